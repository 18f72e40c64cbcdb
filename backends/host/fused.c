/* `fused`: each worker walks the whole list of ops, runs its own tiles, and waits only for those
 * tiles of other workers that its own tiles depend on. There is no barrier, queue or lead thread.
 *
 * The walks are independent and in the same order, so the earliest unfinished tile or op of a rank
 * can always run. A rank with one worker keeps no counts. */
#include "backends/host/execute.h"
#include "backends/host/network.h"
#include "backends/host/threads.h"
#include "backends/host/walk.h"

typedef struct fused_worker {
    host_walk walk;
    host_context context;
    uint64_t *seen; /* by op, by worker: its count as last read, so that its line is read less */
} fused_worker;

typedef struct fused_state {
    fused_worker *worker; /* by rank, by worker */
    int workers;
} fused_state;

/* Waits for what `need` asks for. Pairs with the release store after each tile (execute.c) or op
 * (below). */
static bool await(fused_worker *me, const host_need *need, int op)
{
    host_rank *rank = me->walk.rank;
    /* An op that depends on itself depends on its previous instance. */
    uint64_t passed = me->walk.passed[need->op] - (need->op == op);
    uint64_t target = peal_dispatch_target(passed, need->lag, need->per_instance, need->target);
    uint64_t *seen = &me->seen[need->op * rank->share_count + need->worker];

    if (*seen >= target)
        return true;
    const peal_dispatch_word *count = &host_done(rank, need->op, need->worker)->value;
    uint64_t now = PEAL_DISPATCH_LOAD_ACQUIRE(count);
    if (now < target) {
        host_wait wait = host_walk_wait(&me->walk, HOST_WAIT_TILES, op);
        wait.other_op = need->op;
        if (!host_wait_slow(&wait, count, target))
            return false;
        now = target;
    }
    *seen = now;
    return true;
}

static bool await_all(fused_worker *me, const host_need *need, int count, int op)
{
    for (int i = 0; i < count; i++)
        if (!await(me, &need[i], op))
            return false;
    return true;
}

static bool run_tiles(fused_worker *me, const host_op *op, const peal_walk_frame *frame)
{
    host_rank *rank = me->walk.rank;
    int index = (int)(op - rank->op);
    const host_share *share = &op->share[me->walk.worker];
    uint64_t base = (frame->instance - 1) * (uint64_t)share->tiles;
    peal_dispatch_word *done =
        op->published ? &host_done(rank, index, me->walk.worker)->value : NULL;
    host_launch launch;
    int64_t at = 0;
    int need = 0;

    host_network_before_work(&me->context);
    host_launch_init(&launch, &me->context, op, frame, share);
    while (at < share->tiles) {
        for (; need < share->need_count && share->need[need].position == at; need++)
            if (!await(me, &share->need[need], index))
                return false;
        int64_t until = need < share->need_count ? share->need[need].position : share->tiles;
        if (!host_launch_tiles(&launch, until - at, done, base + (uint64_t)at))
            return false;
        at = until;
    }
    return true;
}

static bool run_alone(host_walk *walk, void *user)
{
    fused_worker *me = user;
    const host_op *op = &walk->rank->op[walk->position];

    if (walk->jitter)
        host_jitter(&walk->jitter);
    peal_walk_frame frame = host_walk_pass(walk);
    return host_execute(&me->context, op, &frame);
}

static bool run_shared(host_walk *walk, void *user)
{
    fused_worker *me = user;
    int index = walk->position;
    const host_op *op = &walk->rank->op[index];
    peal_walk_frame frame = host_walk_pass(walk);

    if (!op->shared && op->owner != walk->worker)
        return true;
    if (walk->jitter)
        host_jitter(&walk->jitter);
    bool launches = op->kind == PEAL_OP_LAUNCH;
    if (launches && host_is_kernel(op))
        return run_tiles(me, op, &frame);
    const host_need *need = launches ? op->share[walk->worker].need : op->need;
    int count = launches ? op->share[walk->worker].need_count : op->need_count;
    if (!await_all(me, need, count, index) ||
        (op->lands && !await_all(me, op[1].need, op[1].need_count, index + 1)))
        return false;
    if (!host_execute(&me->context, op, &frame))
        return false;
    if (op->published)
        /* Pairs with the acquire load in await and in read_verdict (walk.c). */
        host_word_store(&host_done(walk->rank, index, walk->worker)->value, frame.instance);
    return true;
}

static void body(host_plan *plan, int index)
{
    fused_state *state = plan->executor_data;
    fused_worker *me = &state->worker[index];

    host_walk_run(&me->walk, state->workers == 1 ? run_alone : run_shared, me);
    if (me->walk.worker == 0)
        for (int i = 0; i < me->walk.rank->schedule->array_count; i++)
            me->walk.rank->final_binding[i] = me->walk.binding[i];
}

static peal_status create(host_plan *plan)
{
    int workers = plan->desc.workers;
    fused_state *state = PEAL_ARENA_NEW(plan->arena, fused_state);

    plan->executor_data = state;
    state->workers = workers;
    state->worker = PEAL_ARENA_ARRAY(plan->arena, fused_worker, plan->rank_count * workers);
    for (int i = 0; i < plan->rank_count * workers; i++) {
        host_rank *rank = &plan->rank[i / workers];
        fused_worker *worker = &state->worker[i];
        host_walk_init(&worker->walk, rank, i % workers, workers > 1);
        host_context_init(&worker->context, rank, i % workers);
        worker->seen =
            PEAL_ARENA_ARRAY(plan->arena, uint64_t, (rank->schedule->op_count + 1) * workers + 16);
    }
    return host_threads_create(plan, workers, body, &plan->threads);
}

/* A worker without tiles is ahead: done are the steps that all workers of the first rank have
 * behind them. */
static int64_t progress(const host_plan *plan)
{
    const fused_state *state = plan->executor_data;
    int64_t steps = INT64_MAX;
    for (int w = 0; w < state->workers; w++) {
        int64_t own = atomic_load_explicit(&state->worker[w].walk.steps, memory_order_acquire);
        steps = own < steps ? own : steps;
    }
    return steps;
}

const host_executor host_fused = {create, host_start, host_wait_all, host_destroy, progress};
