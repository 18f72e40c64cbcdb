/* How the processes of a job agree on an outcome: the first failure is that of all. */
#include "runtime/session/session.h"

#include <stdlib.h>
#include <string.h>

enum { MESSAGE_BYTES = 400 };

/* The outcome of an attempt in one process. */
typedef struct outcome {
    int32_t status;
    char message[MESSAGE_BYTES];
} outcome;

peal_status peal_session_agree(peal_session *session, peal_status mine, int from)
{
    int processes = session->identity.processes;
    if (processes == 1)
        return mine;
    if (session->joined) { /* the control's own deadline is for calls that all make at once */
        peal_status met = peal_session_barrier(session, PEAL_BARRIER_AGREE, 0, 0);
        if (met)
            return met;
    }
    const char *message = mine ? peal_session_first_message(session, from) : NULL;
    char who[PEAL_PROCESS_TEXT];
    outcome own = {.status = (int32_t)mine};
    if (mine)
        snprintf(own.message, sizeof(own.message), "%s",
                 message ? message : peal_status_name(mine));
    outcome *all = calloc((size_t)processes, sizeof(*all));
    if (!all)
        return peal_session_fail(session,
                                 peal_report(session->diagnostics, PEAL_E_OUT_OF_MEMORY,
                                             PEAL_NO_SOURCE, NULL, "no memory for %d outcomes",
                                             processes),
                                 from);
    peal_status status = peal_control_allgather(session->control, &own, sizeof(own), all);
    if (status && peal_session_status(session))
        status = peal_session_cause(session);
    for (int p = 0; !status && p < processes; p++) {
        if (!all[p].status)
            continue;
        all[p].message[MESSAGE_BYTES - 1] = 0;
        status = (peal_status)all[p].status;
        session->failed_first = p;
        if (!mine)
            peal_report(session->diagnostics, PEAL_E_PEER_CALL_FAILED, PEAL_NO_SOURCE, NULL,
                        "%s: %s", peal_control_name(session->control, p, who), all[p].message);
    }
    free(all);
    return status;
}
