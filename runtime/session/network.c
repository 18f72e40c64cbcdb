/* Opens the network and tells what it finds. */
#include "runtime/session/network.h"
#include "base/clock.h"

#include <stdio.h>

enum { MESSAGE_STREAM = 0 /* of the control plane's streams */ };
static const int64_t moment_ns = INT64_C(1000000000);

static peal_status connect_to(void *user, int process, int *stream)
{
    peal_session *session = user;
    return peal_control_connect(session->control, process, MESSAGE_STREAM, stream);
}

/* A process that has died is told by the control plane, with more to say. */
static void fail(void *user, peal_status status, const char *message)
{
    peal_session *session = user;
    if (status != PEAL_STATUS_PEER_LOST) {
        peal_report(session->diagnostics, PEAL_E_COLLECTIVE_MISMATCH, PEAL_NO_SOURCE, NULL, "%s",
                    message);
        peal_session_abort(session, status, message);
        return;
    }
    snprintf(session->lost_stream, sizeof(session->lost_stream), "%s", message);
    atomic_store(&session->lost_stream_ns, peal_clock_ns());
}

static void turn(void *session)
{
    peal_session_turn(session);
}

peal_status peal_session_open_network(peal_session *session)
{
    if (session->network)
        return PEAL_STATUS_OK;
    session->network_site = (peal_network_site){.size = sizeof(session->network_site),
                                                .process = session->identity.process,
                                                .processes = session->identity.processes,
                                                .user = session,
                                                .connect = connect_to,
                                                .fail = fail};
    session->engine = &peal_network_tcp;
    peal_status status =
        session->engine->open(&session->network_site, session->diagnostics, &session->network);
    if (!status) /* others may wait for room in our sockets */
        peal_control_meanwhile(session->control, turn, session);
    return status;
}

void peal_session_close_network(peal_session *session)
{
    if (session->network)
        session->engine->close(session->network);
    session->network = NULL;
}

void peal_session_turn(peal_session *session)
{
    if (!session->network)
        return;
    session->engine->progress(session->network);
    int64_t lost_ns = atomic_load_explicit(&session->lost_stream_ns, memory_order_acquire);
    if (lost_ns && !peal_session_status(session) && peal_clock_ns() - lost_ns > moment_ns)
        peal_session_abort(session, PEAL_STATUS_PEER_LOST, session->lost_stream);
}
