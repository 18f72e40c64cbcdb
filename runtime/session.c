/* The session: membership in a job, its diagnostics, and how the processes agree on an outcome. */
#include "runtime/session/session.h"
#include "base/handle.h"
#include "base/originals.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/session/device.h"

#include <math.h>
#include <peal/bootstrap.h>
#include <peal/peal.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_DEADLINE_S = 30, MESSAGE_BYTES = 400 };

/* The outcome of an attempt in one process. */
typedef struct outcome {
    int32_t status;
    char message[MESSAGE_BYTES];
} outcome;

static peal_status check_desc(const peal_session_desc *desc, peal_diagnostics *diagnostics)
{
    if (!desc)
        return PEAL_STATUS_OK;
    if (desc->size_bytes != sizeof(*desc))
        return peal_report(
            diagnostics, PEAL_E_INVALID_DESCRIPTOR, PEAL_NO_SOURCE,
            "set .size_bytes = sizeof(peal_session_desc) and build against this version",
            "peal_session_desc has %zu bytes here, the caller's has %zu", sizeof(*desc),
            desc->size_bytes);
    if (!(desc->deadline_s >= 0) || desc->deadline_s > 1e9)
        return peal_report(diagnostics, PEAL_E_INVALID_DESCRIPTOR, PEAL_NO_SOURCE,
                           "seconds; 0 means 30", "the deadline of a session is %g",
                           desc->deadline_s);
    return PEAL_STATUS_OK;
}

static peal_status open_board(peal_session *session)
{
    int64_t bytes = (int64_t)sizeof(peal_meeting_seat) * (session->identity.processes + 1);
    int key = session->next_key++, from = peal_diagnostics_count(session->diagnostics);
    peal_status status = PEAL_STATUS_OK;
    bool first = session->identity.process == 0, several = session->identity.processes > 1;
    if (first || !several) {
        status = peal_segment_create(bytes, several, session->diagnostics, &session->board);
        if (!status && several)
            status = peal_control_publish(session->control, key, session->board.descriptor);
    }
    if (several)
        status = peal_session_agree(session, status, from);
    if (status || first)
        return status;
    int descriptor;
    status = peal_control_fetch(session->control, 0, key, &descriptor);
    return status ? status
                  : peal_segment_import(descriptor, bytes, session->diagnostics, &session->board);
}

/* A barrier at the end: nobody is told of a session that another process could not open. */
static peal_status finish_joining(peal_session *session)
{
    int from = peal_diagnostics_count(session->diagnostics);
    peal_status status = peal_session_agree(session, open_board(session), from);
    session->joined = !status;
    return status;
}

static peal_status join(peal_session *session, const peal_session_desc *desc)
{
    peal_status status =
        desc && desc->bootstrap
            ? peal_bootstrap_caller(desc->bootstrap, session->diagnostics, &session->bootstrap)
            : peal_bootstrap_open(session->deadline_ns, session->diagnostics, &session->bootstrap);
    if (status)
        return status;
    status = session->bootstrap->ops->identity(session->bootstrap, &session->identity);
    if (status)
        return status;
    status = peal_control_open(session->bootstrap, &session->abort_word, session->deadline_ns,
                               session->diagnostics, &session->control);
    return status ? status : finish_joining(session);
}

static void free_session(peal_session *session)
{
    peal_control_close(session->control); /* nobody has memory of this process open any more */
    peal_session_close_device(session);
    peal_originals_destroy(session->originals);
    if (session->board.base)
        peal_segment_destroy(&session->board);
    if (session->bootstrap)
        session->bootstrap->ops->close(session->bootstrap);
    peal_diagnostics_destroy(session->diagnostics);
    peal_handle_free(session);
}

peal_status peal_session_create(const peal_session_desc *desc, peal_session **out)
{
    if (!peal_argument_check(out, "where the session goes", __func__))
        return PEAL_STATUS_USAGE;
    peal_session *session = calloc(1, sizeof(*session));
    if (!session || !(session->diagnostics = peal_diagnostics_create()) ||
        !peal_handle_open(session, PEAL_HANDLE_SESSION, NULL)) {
        if (session)
            peal_diagnostics_destroy(session->diagnostics);
        free(session);
        if (desc && desc->size_bytes == sizeof(*desc) && desc->log)
            fprintf(desc->log, "peal: error: no memory for a session [E367]\n");
        return PEAL_STATUS_ENVIRONMENT;
    }
    session->deadline_ns = (int64_t)DEFAULT_DEADLINE_S * 1000000000;
    session->board.descriptor = -1;
    session->failed_first = -1;
    peal_status status = check_desc(desc, session->diagnostics);
    if (!status && desc) {
        if (desc->deadline_s > 0)
            session->deadline_ns = (int64_t)ceil(desc->deadline_s * 1e9);
        session->log = desc->log;
        session->log_level = desc->log_level;
    }
    if (!status)
        status = join(session, desc);
    if (!status) {
        *out = session;
        return PEAL_STATUS_OK;
    }
    bool tells = session->failed_first < 0 || session->failed_first == session->identity.process;
    if (desc && desc->size_bytes == sizeof(*desc) && desc->log &&
        desc->log_level >= PEAL_LOG_ERROR && tells)
        peal_diagnostics_print(session->diagnostics, desc->log, 0);
    peal_handle_close(session);
    free_session(session);
    return status;
}

static bool is_session(const peal_session *session, const char *call)
{
    return peal_handle_check(session, PEAL_HANDLE_SESSION, call);
}

bool peal_session_check_handle(const void *object, peal_handle_kind kind, const char *call)
{
    if (peal_handle_check(object, kind, call))
        return true;
    peal_session *session = peal_handle_owner(object);
    if (session)
        peal_report(session->diagnostics, PEAL_E_USED_AFTER_DESTROY, PEAL_NO_SOURCE, NULL,
                    "%s: the %s has been destroyed", call,
                    kind == PEAL_HANDLE_PLAN ? "plan" : "exchange");
    return false;
}

/* Plans and exchanges that the application has left. */
static void destroy_owned(peal_session *session, const char *call)
{
    peal_handle_kind kind;
    for (void *left = peal_handle_owned(session, &kind); left;
         left = peal_handle_owned(session, &kind)) {
        if (kind == PEAL_HANDLE_PLAN)
            peal_plan_destroy(left);
        else
            peal_exchange_destroy(left);
        peal_handle_report_early(call, kind);
        if (session->log && session->log_level >= PEAL_LOG_ERROR)
            fprintf(session->log, "peal: warning: %s\n", peal_misuse());
    }
}

void peal_session_destroy(peal_session *session)
{
    if (!session || !is_session(session, __func__))
        return;
    destroy_owned(session, __func__);
    peal_handle_close(session);
    free_session(session);
}

int peal_session_process(const peal_session *session)
{
    return is_session(session, __func__) ? session->identity.process : -1;
}

int peal_session_processes(const peal_session *session)
{
    return is_session(session, __func__) ? session->identity.processes : -1;
}

int peal_session_local_process(const peal_session *session)
{
    return is_session(session, __func__) ? session->identity.local_process : -1;
}

int peal_session_local_processes(const peal_session *session)
{
    return is_session(session, __func__) ? session->identity.local_processes : -1;
}

const char *peal_session_bootstrap(const peal_session *session)
{
    return is_session(session, __func__) ? session->identity.name : "";
}

void peal_session_abort(peal_session *session, peal_status status, const char *message)
{
    if (!is_session(session, __func__))
        return;
    peal_control_abort(session->control, status ? status : PEAL_STATUS_INTERNAL,
                       message ? message : "ended by the application");
}

peal_status peal_session_status(const peal_session *session)
{
    if (!is_session(session, __func__))
        return PEAL_STATUS_USAGE;
    return (peal_status)atomic_load_explicit(&session->abort_word, memory_order_acquire);
}

void peal_session_print_diagnostics(const peal_session *session, FILE *stream, int limit)
{
    if (is_session(session, __func__) && peal_argument_check(stream, "the stream", __func__))
        peal_diagnostics_print(session->diagnostics, stream, limit);
}

int peal_session_error_count(const peal_session *session)
{
    return is_session(session, __func__) ? peal_diagnostics_errors(session->diagnostics) : -1;
}

peal_diagnostics *peal_session_diagnostics(peal_session *session)
{
    return session->diagnostics;
}

_Atomic int *peal_session_abort_word(peal_session *session)
{
    return &session->abort_word;
}

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
    char message[MESSAGE_BYTES] = "";
    int process = -1;
    peal_status status = peal_control_cause(session->control, &process, message, sizeof(message));
    /* The control's thread sets the abort word before it reports why. Whoever comes first adds the
     * text; the same text is kept once. */
    if (process >= 0 && process != session->identity.process)
        peal_warn(session->diagnostics, PEAL_E_JOB_ENDED_BY_PEER, PEAL_NO_SOURCE, NULL,
                  "process %d ended the job: %s", process, message);
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

peal_status peal_session_agree(peal_session *session, peal_status mine, int from)
{
    int processes = session->identity.processes;
    if (processes == 1)
        return mine;
    if (session->joined) { /* the control's own deadline is for calls that all make at once */
        peal_status met = peal_session_meet(session, PEAL_MEET_AGREE, 0, 0);
        if (met)
            return met;
    }
    const char *message = mine ? peal_session_first_message(session, from) : NULL;
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
                        "process %d: %s", p, all[p].message);
    }
    free(all);
    return status;
}
