/* The failure that ends a job: its cause, and what the other processes are told of it. */
#include "runtime/session/session.h"

#include <string.h>

enum { MESSAGE_BYTES = 400 };

static const peal_diagnostic *first_error(const peal_session *session, int from)
{
    for (int i = from; i < peal_diagnostics_count(session->diagnostics); i++) {
        const peal_diagnostic *d = peal_diagnostics_at(session->diagnostics, i);
        if (d->severity == PEAL_ERROR && d->message)
            return d;
    }
    return NULL;
}

const char *peal_session_first_message(const peal_session *session, int from)
{
    const peal_diagnostic *error = first_error(session, from);
    return error ? error->message : NULL;
}

peal_status peal_session_cause(peal_session *session)
{
    char message[MESSAGE_BYTES] = "", who[PEAL_PROCESS_TEXT];
    int process = -1;
    peal_status status = peal_control_cause(session->control, &process, message, sizeof(message));
    /* The control's thread sets the abort word before it reports why. Whoever comes first adds the
     * text; the same text is kept once. */
    if (process >= 0 && process != session->identity.process)
        peal_warn(session->diagnostics, PEAL_E_JOB_ENDED_BY_PEER, PEAL_NO_SOURCE, NULL,
                  "%s ended the job: %s", peal_control_name(session->control, process, who),
                  message);
    else if (process >= 0 && status == PEAL_STATUS_PEER_LOST)
        peal_report(session->diagnostics,
                    strcmp(message, PEAL_LAUNCHER_GONE) ? PEAL_E_PROCESS_LOST
                                                        : PEAL_E_LAUNCHER_LOST,
                    PEAL_NO_SOURCE, NULL, "%s", message);
    return status ? status : peal_session_status(session);
}

peal_status peal_session_fail(peal_session *session, peal_status status, int from)
{
    /* A backend sets the abort word itself: that alone tells no other process. What has become the
     * cause before stays it. */
    peal_status first = peal_session_status(session);
    const peal_diagnostic *error = first_error(session, from);
    char message[MESSAGE_BYTES]; /* what others print: with the number to ask `explain` about */
    if (error)
        snprintf(message, sizeof(message), "%s [%s]", error->message,
                 peal_code_number(error->code));
    else
        snprintf(message, sizeof(message), "%s", peal_status_name(status));
    peal_control_abort(session->control, first ? first : status, message);
    return peal_session_cause(session);
}
