/* Opens the network and tells what it finds. */
#include "runtime/session/network.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

static const int64_t moment_ns = INT64_C(1000000000);

static peal_status connect_to(void *user, int process, int *stream)
{
    const peal_session_network *network = user;
    return peal_control_connect(network->session->control, process, network->stream, stream);
}

static peal_status read_from(void *user, int process, int stream, void *data, size_t bytes)
{
    const peal_session_network *network = user;
    return peal_control_read(network->session->control, process, stream, data, bytes);
}

/* A process that has died is told by the control plane, with more to say. */
static void fail(void *user, peal_status status, const char *message)
{
    peal_session *session = ((const peal_session_network *)user)->session;
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

peal_status peal_session_open_network(peal_session *session, peal_transport_kind kind,
                                      peal_session_network **out)
{
    int index = (int)kind - PEAL_TRANSPORT_TCP;
    peal_session_network *network = &session->network[index];
    *out = network;
    if (network->opened)
        return PEAL_STATUS_OK;
    network->session = session;
    network->stream = index;
    network->site = (peal_network_site){.size = sizeof(network->site),
                                        .process = session->identity.process,
                                        .processes = session->identity.processes,
                                        .first_port = session->network_ports[0],
                                        .last_port = session->network_ports[1],
                                        .user = network,
                                        .connect = connect_to,
                                        .read = read_from,
                                        .fail = fail};
    network->engine = peal_network_of(kind);
    peal_network *opened = NULL;
    peal_status status = network->engine->open(&network->site, session->diagnostics, &opened);
    atomic_store(&network->opened, opened); /* the threads that post look at it */
    if (!status)                            /* others may wait for room in our sockets */
        peal_control_meanwhile(session->control, turn, session);
    return status;
}

void peal_session_close_networks(peal_session *session)
{
    for (int i = 0; i < PEAL_NETWORK_COUNT; i++) {
        peal_session_network *network = &session->network[i];
        if (network->opened)
            network->engine->close(network->opened);
        free(network->is_tried);
        network->is_tried = NULL;
        network->opened = NULL;
    }
}

void peal_session_turn(peal_session *session)
{
    bool any = false;
    for (int i = 0; i < PEAL_NETWORK_COUNT; i++) {
        const peal_session_network *network = &session->network[i];
        if (network->opened)
            network->engine->progress(network->opened);
        any |= network->opened != NULL;
    }
    if (!any)
        return;
    int64_t lost_ns = atomic_load_explicit(&session->lost_stream_ns, memory_order_acquire);
    if (lost_ns && !peal_session_status(session) && peal_clock_ns() - lost_ns > moment_ns)
        peal_session_abort(session, PEAL_STATUS_PEER_LOST, session->lost_stream);
}
