/* What can be asked of a session, and how the application ends its job. */
#include "runtime/session/session.h"

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
                    "%s: the %s has been destroyed", call, peal_handle_kind_name(kind));
    return false;
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

int peal_session_message_count(const peal_session *session)
{
    return is_session(session, __func__) ? peal_diagnostics_count(session->diagnostics) : -1;
}

peal_status peal_session_message(const peal_session *session, int index, peal_message *out)
{
    if (!is_session(session, __func__) ||
        !peal_argument_check(out, "where the message goes", __func__) || index < 0 ||
        index >= peal_diagnostics_count(session->diagnostics))
        return PEAL_STATUS_USAGE;
    const peal_diagnostic *d = peal_diagnostics_at(session->diagnostics, index);
    *out = (peal_message){.code = peal_code_number(d->code),
                          .is_error = d->severity == PEAL_ERROR,
                          .source = d->source,
                          .text = d->message,
                          .hint = d->hint};
    return PEAL_STATUS_OK;
}

void peal_session_forget_messages(peal_session *session)
{
    if (is_session(session, __func__))
        peal_diagnostics_take_back(session->diagnostics, 0);
}

peal_diagnostics *peal_session_diagnostics(peal_session *session)
{
    return session->diagnostics;
}

_Atomic int *peal_session_abort_word(peal_session *session)
{
    return &session->abort_word;
}
