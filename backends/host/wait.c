/* Waits: spin while the other side is likely to run, then yield, then sleep for growing times.
 *
 * Nobody wakes a thread that sleeps, since processes that store words do not know who waits. A
 * sleep is short beside a scheduler's time slice, so more ranks than cores work without wasting
 * cores. */
#define _GNU_SOURCE
#include "backends/host/wait.h"
#include "backends/host/network.h"

#include "base/backoff.h"
#include "base/clock.h"
#include "base/patience.h"

enum {
    YIELDS = 200,           /* before the first sleep */
    TURNS = 4000,           /* the same where other hosts are asked: about 2 ms, */
    TURNS_TO_A_YIELD = 16,  /* which takes as long as a turn */
    SHORT = 50,             /* rounds of a wait that nobody times: about 20 us */
    SLEEP_FIRST_NS = 20000, /* grows by a quarter each time */
    SLEEP_MOST_NS = 100000
};

uint64_t host_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void host_jitter(uint64_t *state)
{
    uint64_t r = host_random(state);
    if (r % 4 == 0)
        peal_backoff_wait(&(peal_backoff){.yields = 1});
    for (uint64_t i = 0; i < (r >> 8) % 512; i++)
        peal_cpu_relax();
}

bool host_fail(host_plan *plan, peal_status status)
{
    int none = 0;
    /* `failure` is read after the threads are joined, so the word itself need not order anything.
     */
    atomic_compare_exchange_strong(plan->desc.abort_word, &none, (int)status);
    return false;
}

static void record(const host_wait *wait, int64_t since, uint64_t expected, uint64_t seen)
{
    host_failure *failure = &wait->rank->plan->failure;
    host_stall stall = {.since = since,
                        .rank = wait->rank->index,
                        .worker = wait->worker,
                        .op = wait->op,
                        .other_op = wait->other_op,
                        .kind = (int)wait->kind,
                        .step = wait->step,
                        .message = wait->message,
                        .expected = expected,
                        .seen = seen};
    pthread_mutex_lock(&failure->lock);
    int at = failure->count < HOST_STALLS ? failure->count++ : HOST_STALLS - 1;
    if (at < HOST_STALLS - 1 || failure->stall[at].since == 0 || failure->stall[at].since > since)
        failure->stall[at] = stall;
    for (; at > 0 && failure->stall[at - 1].since > failure->stall[at].since; at--) {
        host_stall other = failure->stall[at];
        failure->stall[at] = failure->stall[at - 1];
        failure->stall[at - 1] = other;
    }
    pthread_mutex_unlock(&failure->lock);
}

static bool wait_long(const host_wait *wait, const peal_dispatch_word *word, uint64_t value,
                      host_turn *turn)
{
    host_plan *plan = wait->rank->plan;
    int64_t since = 0; /* short waits don't ask the clock */
    peal_patience patience = {0};
    bool asks = plan->desc.network && !turn->idle && plan->spin > YIELDS; /* has an own core */
    turn->to_a_yield = asks ? TURNS_TO_A_YIELD : 1;
    peal_backoff backoff = {.yields = asks ? TURNS : YIELDS,
                            .sleep_ns = SLEEP_FIRST_NS,
                            .most_ns = SLEEP_MOST_NS,
                            .growth = 4};

    for (int rounds = 0;;) {
        if (host_word_reached(word, value))
            return true;
        if (!since && (++rounds > SHORT || peal_backoff_sleeps(&backoff))) {
            since = peal_clock_ns();
            patience = peal_patience_begin(since, plan->desc.deadline_ns);
        }
        int aborted = atomic_load_explicit(plan->desc.abort_word, memory_order_relaxed);
        if (aborted == PEAL_STATUS_DEADLINE && wait->op >= 0)
            record(wait, since ? since : peal_clock_ns(), value, PEAL_DISPATCH_LOAD_ACQUIRE(word));
        if (aborted)
            return false;
        /* A lane without work, and workers between two launches, wait as long as it takes. */
        if (peal_backoff_sleeps(&backoff) && wait->op >= 0 &&
            peal_patience_is_over(&patience, peal_clock_ns())) {
            record(wait, since, value, PEAL_DISPATCH_LOAD_ACQUIRE(word));
            return host_fail(plan, PEAL_STATUS_DEADLINE);
        }
        if (plan->desc.network)
            host_network_pause(plan, turn, &backoff, SLEEP_MOST_NS);
        else
            peal_backoff_wait(&backoff);
    }
}

/* For a message, or for what has to be done before one may land in place. */
static bool is_for_message(const host_wait *wait)
{
    const host_op *op = wait->op < 0 ? NULL : &wait->rank->op[wait->op];
    return wait->kind == HOST_WAIT_FLAG || wait->kind == HOST_WAIT_CREDIT ||
           (op && (op->kind == PEAL_OP_WAIT ||
                   (op->kind == PEAL_OP_COPY && op->source->copy == PEAL_COPY_UNPACK)));
}

bool host_wait_slow(const host_wait *wait, const peal_dispatch_word *word, uint64_t value)
{
    host_plan *plan = wait->rank->plan;
    host_turn turn = {.idle = !is_for_message(wait)};

    if (plan->desc.network)
        host_network_send_told(plan);
    /* No message of another host comes while nobody makes a turn. */
    for (int i = 0; i < plan->spin && (!plan->desc.network || turn.idle); i++) {
        if (host_word_reached(word, value))
            return true;
        peal_cpu_relax();
    }
    if (wait->op >= 0)
        atomic_store_explicit(&wait->rank->progress.op, wait->op, memory_order_relaxed);
    bool reached = wait_long(wait, word, value, &turn);
    if (plan->desc.network)
        host_network_leave(plan, &turn);
    if (reached && wait->op >= 0)
        atomic_store_explicit(&wait->rank->progress.op, -1, memory_order_relaxed);
    return reached;
}

static const peal_channel *channel_of(const peal_schedule *schedule, int op)
{
    int channel = op < 0 ? -1 : schedule->op[op].channel;
    bool has = op >= 0 &&
               (schedule->op[op].kind == PEAL_OP_WAIT || schedule->op[op].kind == PEAL_OP_WRITE ||
                schedule->op[op].kind == PEAL_OP_COPY);
    return has && channel >= 0 ? &schedule->channel[channel] : NULL;
}

static const char *label_of(const peal_schedule *schedule, int op)
{
    return op >= 0 && schedule->op[op].label ? schedule->op[op].label : "a task";
}

/* How many messages are missing. Words wrap around, so only their difference has a meaning. */
static unsigned long long missing(const host_stall *f, const peal_channel *channel)
{
    return (f->expected - f->seen) / (channel->quantum > 0 ? channel->quantum : 1);
}

static peal_status report_stall(const host_plan *plan, const host_stall *f)
{
    static const char *const hint =
        "see what the other rank was doing; a longer --deadline helps if it is only slow";
    const peal_schedule *schedule = plan->rank[f->rank].schedule;
    const peal_channel *channel = channel_of(schedule, f->op);
    peal_source none = {0};
    peal_source source = f->op >= 0 ? schedule->op[f->op].source : none;
    const char *label = label_of(schedule, f->op);
    bool credit = f->kind == HOST_WAIT_CREDIT;

    if (channel && f->kind != HOST_WAIT_TILES)
        return peal_report(plan->desc.diagnostics, PEAL_E_RANK_STALLED, source, hint,
                           "rank %d waits in `%s` for %s %llu of edge %s from rank %d, step %lld: "
                           "%llu %s",
                           schedule->rank, label, credit ? "the credit of message" : "message",
                           (unsigned long long)f->message, channel->edge ? channel->edge : "?",
                           channel->peer, (long long)f->step, missing(f, channel),
                           credit ? "to be given back" : "to come");
    return peal_report(plan->desc.diagnostics, PEAL_E_RANK_STALLED, source, hint,
                       "rank %d, worker %d waits in `%s` for `%s`, step %lld: expected %llu "
                       "finished, seen %llu",
                       schedule->rank, f->worker, label,
                       f->kind == HOST_WAIT_TILES ? label_of(schedule, f->other_op)
                                                  : "the other workers",
                       (long long)f->step, (unsigned long long)f->expected,
                       (unsigned long long)f->seen);
}

peal_status host_failure_report(host_plan *plan)
{
    peal_status status = PEAL_STATUS_OK;

    for (int i = 0; i < plan->failure.count; i++)
        status = report_stall(plan, &plan->failure.stall[i]);
    plan->failure.count = 0;
    return status;
}
