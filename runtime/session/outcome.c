/* What becomes of a failed call in a session whose failures are fatal: it is printed once, and the
 * job ends. */
#include "base/clock.h"
#include "runtime/session/session.h"

#include <peal/bootstrap.h>
#include <stdlib.h>

/* For the process that prints why, before another one ends the job. */
static const int64_t tell_ns = 3000000000;

_Noreturn static void leave(peal_bootstrap *bootstrap, const peal_bootstrap_callbacks *callbacks,
                            peal_status status)
{
    const char *message = peal_status_name(status);
    fflush(NULL);
    if (bootstrap)
        bootstrap->ops->abort(bootstrap, (int)status, message);
    else if (callbacks && callbacks->abort)
        callbacks->abort(callbacks->user, (int)status, message);
    exit((int)status);
}

static void tell(const peal_diagnostics *diagnostics, FILE *log, bool tells)
{
    if (tells)
        peal_diagnostics_print(diagnostics, log ? log : stderr, 0);
    else
        peal_clock_sleep(tell_ns);
}

/* What all have agreed on, or have heard of, one of them prints; what only this process has found,
 * such as a call out of order, this one. */
static bool tells_it(peal_session *session)
{
    bool is_shared = session->failed_first >= 0 || session->fails_alike ||
                     peal_control_cause(session->control, NULL, NULL, 0);
    return is_shared ? peal_session_tells(session) : peal_session_tells_of_exit(session);
}

peal_status peal_session_outcome(peal_session *session, peal_status status)
{
    if (!status)
        session->failed_first = -1; /* what failed on the way was passed over */
    if (!status || !session->fatal)
        return status;
    tell(session->diagnostics, session->log, tells_it(session));
    peal_control_abort(session->control, status, peal_status_name(status));
    leave(session->bootstrap, NULL, status);
}

_Noreturn void peal_session_fatal_start(peal_session *session, const peal_session_desc *desc,
                                        peal_status status, bool tells)
{
    tell(session->diagnostics, desc->log, tells);
    leave(session->bootstrap, desc->bootstrap, status);
}
