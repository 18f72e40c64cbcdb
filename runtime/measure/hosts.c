/* Ping-pongs between the first processes of hosts, a pair at a time; the others wait. */
#include "runtime/measure/hosts.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/patience.h"
#include "runtime/session/network.h"

#include <stdlib.h>

enum {
    SLOTS = 2,
    SIZES = 2,
    SHORT = 8,
    LONG = 1 << 20,
    WARM = 50,
    SHORT_ROUNDS = 501,
    LONG_ROUNDS = 21,
    NUMBER =
        0x7fffffff /* of the plan of these messages: a session has fewer, and probes count down */
};

static const int64_t sizes[SIZES] = {SHORT, LONG};

/* Of one pair; the slots are those of all. */
typedef struct line {
    peal_put out[SIZES], in[SIZES];
    _Atomic uint64_t sent[SIZES], taken[SIZES];
} line;

typedef struct measuring {
    peal_session *session;
    peal_transport_kind kind;
    peal_session_network *network;
    peal_network_plan *plan;
    int *first; /* by host: its first process, but for those beyond the limit */
    int hosts;
    peal_pair *pair;
    line *line;
    int count; /* of pairs that this process is one of */
    unsigned char *out_slot, *in_slot;
    double *sample;
} measuring;

static void find_hosts(measuring *m)
{
    const int *host = peal_control_hosts(m->session->control);
    for (int p = 0; host && p < m->session->identity.processes; p++)
        if (host[p] == m->hosts && m->hosts < PEAL_MEASURED_HOSTS) /* numbered as they come */
            m->first[m->hosts++] = p;
}

static void add_pair(measuring *m, int process)
{
    int own = m->session->identity.process;
    line *l = &m->line[m->count];
    for (int i = 0; i < SIZES; i++) {
        l->out[i] = (peal_put){.rank = process,
                               .word = i,
                               .slot_bytes = sizes[i],
                               .bytes = sizes[i],
                               .slots = SLOTS,
                               .quantum = 1,
                               .at = &l->sent[i],
                               .first_slot = m->out_slot};
        l->in[i] = l->out[i];
        l->in[i].rank = own;
        l->in[i].at = &l->taken[i];
        l->in[i].first_slot = m->in_slot;
    }
    m->pair[m->count++] = (peal_pair){
        .process = process, .out = l->out, .in = l->in, .out_count = SIZES, .in_count = SIZES};
}

/* The index among this process's pairs; -1: it is not the first of its host. */
static int pair_with(const measuring *m, int process)
{
    for (int i = 0; i < m->count; i++)
        if (m->pair[i].process == process)
            return i;
    return -1;
}

static peal_status no_memory(const peal_session *session)
{
    return peal_report(session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                       "no memory to measure messages between hosts");
}

static peal_status prepare(measuring *m, peal_transport_kind kind)
{
    int own = m->session->identity.process;
    bool is_first = false;
    m->first = calloc(PEAL_MEASURED_HOSTS, sizeof(*m->first));
    m->pair = calloc(PEAL_MEASURED_HOSTS, sizeof(*m->pair));
    m->line = calloc(PEAL_MEASURED_HOSTS, sizeof(*m->line));
    m->out_slot = calloc(SLOTS, LONG);
    m->in_slot = calloc(SLOTS, LONG);
    m->sample = calloc(SHORT_ROUNDS, sizeof(*m->sample));
    if (!m->first || !m->pair || !m->line || !m->out_slot || !m->in_slot || !m->sample)
        return no_memory(m->session);
    find_hosts(m);
    for (int h = 0; h < m->hosts; h++)
        is_first |= m->first[h] == own;
    for (int h = 0; is_first && h < m->hosts; h++)
        if (m->first[h] != own)
            add_pair(m, m->first[h]);
    if (!m->count)
        return PEAL_STATUS_OK;
    peal_status status = peal_session_open_network(m->session, kind, &m->network);
    return status ? status
                  : m->network->engine->attach(m->network->opened, NUMBER, m->pair, m->count,
                                               m->session->diagnostics, &m->plan);
}

static peal_status await(measuring *m, int pair, int size, uint64_t value)
{
    const int64_t spin_ns = 50000, slice_ns = 100000;
    const line *l = &m->line[pair];
    int64_t begin = peal_clock_ns();
    peal_patience patience = peal_patience_begin(begin, m->session->deadline_ns);
    while (atomic_load_explicit(&l->taken[size], memory_order_acquire) != value) {
        peal_session_turn(m->session);
        peal_status status = peal_session_status(m->session);
        if (status)
            return peal_session_cause(m->session);
        int64_t now = peal_clock_ns();
        if (peal_patience_is_over(&patience, now))
            return peal_report(m->session->diagnostics, PEAL_E_COLLECTIVE_STALLED, PEAL_NO_SOURCE,
                               NULL,
                               "by %s: message %llu of %lld bytes of process %d has not come "
                               "within %.3g s (%llu have)",
                               peal_transport_name(m->kind), (unsigned long long)value,
                               (long long)sizes[size], m->pair[pair].process,
                               (double)m->session->deadline_ns * 1e-9,
                               (unsigned long long)atomic_load(&l->taken[size]));
        if (now - begin > spin_ns)
            m->network->engine->sleep(m->network->opened, slice_ns);
    }
    return PEAL_STATUS_OK;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* There and back, `rounds` times: the median. */
static peal_status play(measuring *m, int pair, int size, int rounds, double *median_s)
{
    bool begins = m->session->identity.process < m->pair[pair].process;
    uint64_t last = atomic_load(&m->line[pair].taken[size]);
    for (int i = -WARM; i < rounds; i++) {
        uint64_t value = ++last;
        int64_t begin = peal_clock_ns();
        peal_status status = begins ? PEAL_STATUS_OK : await(m, pair, size, value);
        if (status)
            return status;
        m->network->engine->due(m->plan, pair, size, value);
        if (m->network->engine->flush)
            m->network->engine->flush(m->plan);
        status = begins ? await(m, pair, size, value) : PEAL_STATUS_OK;
        if (status)
            return status;
        if (i >= 0)
            m->sample[i] = (double)(peal_clock_ns() - begin) * 1e-9;
    }
    qsort(m->sample, (size_t)rounds, sizeof(*m->sample), by_value);
    *median_s = m->sample[rounds / 2];
    return PEAL_STATUS_OK;
}

static peal_status measure_pair(measuring *m, int pair, peal_host_path *path)
{
    double short_s = 0, long_s = 0;
    peal_status status = play(m, pair, 0, SHORT_ROUNDS, &short_s);
    if (!status)
        status = play(m, pair, 1, LONG_ROUNDS, &long_s);
    path->latency_s = short_s / 2;
    path->bytes_per_s = long_s > 0 ? 2 * LONG / long_s : 0;
    return status;
}

/* All take part: the pair measures, then all hear of it. */
static peal_status take_turn(measuring *m, int a, int b, peal_host_path *path)
{
    peal_session *session = m->session;
    int own = session->identity.process, from = peal_diagnostics_count(session->diagnostics);
    int pair = own == a ? pair_with(m, b) : own == b ? pair_with(m, a) : -1;
    *path = (peal_host_path){.from = a, .to = b};
    peal_session_running(session, true);
    peal_status status = pair >= 0 ? measure_pair(m, pair, path) : PEAL_STATUS_OK;
    peal_session_running(session, false);
    status = peal_session_agree(session, status, from);
    return status ? status : peal_control_broadcast(session->control, a, path, sizeof(*path));
}

static peal_status measure(measuring *m, peal_host_path **out, int *count)
{
    peal_host_path *path = calloc((size_t)m->hosts * (size_t)m->hosts + 1, sizeof(*path));
    peal_status status = path ? PEAL_STATUS_OK : no_memory(m->session);
    status = peal_session_agree(m->session, status, 0);
    *count = 0;
    for (int a = 0; a < m->hosts && !status; a++)
        for (int b = a + 1; b < m->hosts && !status; b++)
            status = take_turn(m, m->first[a], m->first[b], &path[(*count)++]);
    if (status)
        free(path);
    else
        *out = path;
    return status;
}

peal_status peal_measure_hosts(peal_session *session, peal_transport_kind kind,
                               peal_host_path **out, int *count)
{
    measuring m = {.session = session, .kind = kind};
    int from = peal_diagnostics_count(session->diagnostics);
    *out = NULL;
    *count = 0;
    peal_status status = peal_session_agree(session, prepare(&m, kind), from);
    if (!status)
        status = measure(&m, out, count);
    if (m.plan)
        m.network->engine->detach(m.plan);
    free(m.first);
    free(m.pair);
    free(m.line);
    free(m.out_slot);
    free(m.in_slot);
    free(m.sample);
    return status;
}
