/* A plan of one message of PEAL_TRY_BYTES a connection and way, before those that count. */
#define _GNU_SOURCE
#include "runtime/bind/probe.h"
#include "base/clock.h"
#include "base/patience.h"
#include "runtime/session/network.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PROBE_BYTES = PEAL_TRY_BYTES, PROBE_SLOTS = 2 };

typedef struct probe_pair {
    peal_put out, in;
    _Atomic uint64_t sent, received; /* words */
    const char *edge;
    unsigned char from[PROBE_SLOTS * PROBE_BYTES], to[PROBE_SLOTS * PROBE_BYTES];
} probe_pair;

struct peal_probe {
    peal_session_network *network;
    peal_network_plan *plan;
    peal_pair *pair;
    probe_pair *way; /* on pages of their own, as they may be registered with an adapter */
    int count, room;
};

static peal_status no_memory(const peal_session *session)
{
    return peal_report(session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                       "no memory to try connections to other hosts");
}

static unsigned char byte_of(int from, int to, int at)
{
    return (unsigned char)(from * 31 + to * 17 + at * 7 + (at >> 8));
}

static void fill(peal_probe *probe, int index, int process, const char *edge)
{
    probe_pair *way = &probe->way[index];
    int own = probe->network->session->identity.process;
    way->edge = edge;
    way->out = (peal_put){.rank = process,
                          .slot_bytes = PROBE_BYTES,
                          .bytes = PROBE_BYTES,
                          .slots = PROBE_SLOTS,
                          .quantum = 1,
                          .at = &way->sent,
                          .first_slot = way->from};
    way->in = way->out;
    way->in.rank = own;
    way->in.at = &way->received;
    way->in.first_slot = way->to;
    for (int at = 0; at < PROBE_BYTES; at++)
        peal_put_slot(&way->out, 1)[at] = byte_of(own, process, at);
    probe->pair[index] = (peal_pair){
        .process = process, .out = &way->out, .in = &way->in, .out_count = 1, .in_count = 1};
}

peal_status peal_probe_create(peal_session_network *network, uint32_t number, const peal_pair *pair,
                              const char *const *edge, int count, peal_probe **out)
{
    peal_session *session = network->session;
    int left = 0;
    *out = NULL;
    if (!network->is_tried)
        network->is_tried = calloc((size_t)session->identity.processes, sizeof(bool));
    if (!network->is_tried)
        return no_memory(session);
    for (int i = 0; i < count; i++)
        left += !network->is_tried[pair[i].process];
    if (!left)
        return PEAL_STATUS_OK;
    peal_probe *probe = calloc(1, sizeof(*probe));
    if (!probe)
        return no_memory(session);
    void *way = mmap(NULL, (size_t)left * sizeof(probe_pair), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *probe = (peal_probe){.network = network,
                          .pair = calloc((size_t)left, sizeof(*probe->pair)),
                          .way = way == MAP_FAILED ? NULL : way,
                          .room = left};
    if (!probe->pair || !probe->way) {
        peal_probe_destroy(probe);
        return no_memory(session);
    }
    for (int i = 0; i < count; i++)
        if (!network->is_tried[pair[i].process])
            fill(probe, probe->count++, pair[i].process, edge[i]);
    peal_status status = network->engine->attach(network->opened, number, probe->pair, probe->count,
                                                 session->diagnostics, &probe->plan);
    if (status)
        peal_probe_destroy(probe);
    else
        *out = probe;
    return status;
}

/* "h1 (process 3)", or the process alone. */
static const char *place_of(const peal_session *session, int process, char text[PEAL_PROCESS_TEXT])
{
    return peal_control_name(session->control, process, text);
}

static peal_status tell(const peal_probe *probe, int index, const char *what)
{
    const peal_session *session = probe->network->session;
    const char *kind = peal_transport_name(probe->network->engine->kind);
    char from[PEAL_PROCESS_TEXT], to[PEAL_PROCESS_TEXT];
    return peal_report(session->diagnostics, PEAL_E_NO_PATH_TO_HOST, PEAL_NO_SOURCE,
                       PEAL_NO_PATH_HINT, "no path from %s to %s for edge %s: %s by %s (%d bytes)",
                       place_of(session, probe->pair[index].process, from),
                       place_of(session, session->identity.process, to), probe->way[index].edge,
                       what, kind, PROBE_BYTES);
}

static peal_status check(const peal_probe *probe, int index)
{
    const probe_pair *way = &probe->way[index];
    int own = probe->network->session->identity.process;
    const unsigned char *bytes = peal_put_slot(&way->in, 1);
    for (int at = 0; at < PROBE_BYTES; at++)
        if (bytes[at] != byte_of(probe->pair[index].process, own, at))
            return tell(probe, index, "other bytes than were sent have come");
    probe->network->is_tried[probe->pair[index].process] = true;
    return PEAL_STATUS_OK;
}

/* The first whose message has not come; -1: all have. */
static int first_left(const peal_probe *probe)
{
    for (int i = 0; i < probe->count; i++)
        if (!atomic_load_explicit(&probe->way[i].received, memory_order_acquire))
            return i;
    return -1;
}

peal_status peal_probe_run(peal_probe *probe, int64_t deadline_ns)
{
    const int64_t slice_ns = 1000000;
    if (!probe)
        return PEAL_STATUS_OK;
    const peal_session_network *network = probe->network;
    peal_session *session = network->session;
    peal_patience patience = peal_patience_begin(peal_clock_ns(), deadline_ns);
    int left = 0;
    for (int i = 0; i < probe->count; i++) {
        atomic_store(&probe->way[i].sent, 1);
        network->engine->due(probe->plan, i, 0, 1);
    }
    if (network->engine->flush)
        network->engine->flush(probe->plan);
    for (;;) {
        peal_session_turn(session);
        bool is_settled = network->engine->settle(network->opened);
        left = first_left(probe);
        peal_status status = peal_session_status(session);
        if (status)
            return peal_session_cause(session);
        if (left < 0 && is_settled)
            break;
        bool is_over = peal_patience_is_over(&patience, peal_clock_ns());
        if (is_over && left >= 0)
            return tell(probe, left, "what was sent has not come");
        if (is_over) /* what does not leave is missed, and told, by who awaits it */
            break;
        network->engine->sleep(network->opened, slice_ns);
    }
    for (int i = 0; i < probe->count; i++) {
        peal_status status = check(probe, i);
        if (status)
            return status;
    }
    return PEAL_STATUS_OK;
}

void peal_probe_destroy(peal_probe *probe)
{
    if (!probe)
        return;
    if (probe->plan)
        probe->network->engine->detach(probe->plan);
    free(probe->pair);
    if (probe->way)
        munmap(probe->way, (size_t)probe->room * sizeof(*probe->way));
    free(probe);
}
