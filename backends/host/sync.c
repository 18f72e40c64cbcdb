/* `sync`: a lead thread of each rank walks the ops in order. The tiles of a launch are distributed
 * over the rank's workers and joined before the next op. This is the shape of an MPI program. */
#include "backends/host/execute.h"
#include "backends/host/network.h"
#include "backends/host/threads.h"
#include "backends/host/walk.h"

typedef struct sync_rank {
    host_walk walk;
    host_context *context; /* by worker */
    peal_walk_frame frame; /* of the launch that the workers run */
    const host_op *op;     /* NULL: the run ends */
    uint64_t forks;        /* launches so far */
    host_count fork;       /* written by the lead: launches that may start */
    host_count *join;      /* by worker: launches that it has finished */
} sync_rank;

typedef struct sync_state {
    sync_rank *rank;
    int workers;
} sync_state;

static bool run_share(sync_rank *me, int worker)
{
    const host_share *share = &me->op->share[worker];
    host_launch launch;

    host_launch_init(&launch, &me->context[worker], me->op, &me->frame, share);
    return host_launch_all(&launch);
}

static void announce(sync_rank *me, const host_op *op)
{
    me->op = op;
    /* Pairs with the acquire load of help: op, frame and all memory before are visible. */
    host_word_store(&me->fork.value, ++me->forks);
}

static bool run_op(host_walk *walk, void *user)
{
    sync_state *state = user;
    sync_rank *me = &state->rank[walk->rank->index];
    const host_op *op = &walk->rank->op[walk->position];

    if (walk->jitter)
        host_jitter(&walk->jitter);
    me->frame = host_walk_pass(walk);
    if (op->kind != PEAL_OP_LAUNCH || !host_is_kernel(op))
        return host_execute(&me->context[0], op, &me->frame);
    host_network_before_work(&me->context[0]);
    if (!op->shared) {
        me->op = op;
        return run_share(me, op->owner);
    }
    announce(me, op);
    bool ok = run_share(me, 0);
    host_wait wait = host_walk_wait(walk, HOST_WAIT_WORKERS, (int)(op - walk->rank->op));
    for (int w = 1; w < state->workers; w++)
        /* Pairs with the release store of help: the worker's tiles are visible. */
        if (!host_word_reached(&me->join[w].value, me->forks) &&
            !host_wait_slow(&wait, &me->join[w].value, me->forks))
            return false;
    return ok;
}

/* A worker that is not the lead. */
static void help(sync_rank *me, int worker)
{
    uint64_t next = me->join[worker].value + 1;

    for (;; next++) {
        host_wait wait = {.rank = me->walk.rank,
                          .kind = HOST_WAIT_WORKERS,
                          .worker = worker,
                          .op = -1,
                          .other_op = -1};
        if (!host_word_reached(&me->fork.value, next) &&
            !host_wait_slow(&wait, &me->fork.value, next))
            return;
        bool ends = me->op == NULL;
        if (!ends)
            run_share(me, worker);
        host_word_store(&me->join[worker].value, next);
        if (ends)
            return;
    }
}

static void body(host_plan *plan, int index)
{
    sync_state *state = plan->executor_data;
    sync_rank *me = &state->rank[index / state->workers];

    if (index % state->workers != 0) {
        help(me, index % state->workers);
        return;
    }
    host_walk_run(&me->walk, run_op, state);
    for (int i = 0; i < me->walk.rank->schedule->array_count; i++)
        me->walk.rank->final_binding[i] = me->walk.binding[i];
    if (!host_is_aborted(plan))
        announce(me, NULL);
}

static peal_status create(host_plan *plan)
{
    int workers = plan->desc.workers;
    sync_state *state = PEAL_ARENA_NEW(plan->arena, sync_state);

    plan->executor_data = state;
    state->workers = workers;
    state->rank = host_aligned(plan->arena, (size_t)plan->rank_count * sizeof(sync_rank));
    for (int i = 0; i < plan->rank_count; i++) {
        sync_rank *me = &state->rank[i];
        host_walk_init(&me->walk, &plan->rank[i], 0, false);
        me->join = host_counts_create(plan->arena, workers);
        me->context = PEAL_ARENA_ARRAY(plan->arena, host_context, workers);
        for (int w = 0; w < workers; w++)
            host_context_init(&me->context[w], &plan->rank[i], w);
    }
    return host_threads_create(plan, workers, body, &plan->threads);
}

const host_executor host_sync = {create, host_start, host_wait_all, host_destroy};
