/* What is put onto a lane later than the walk passes it, so that what comes between need not wait:
 * waits, until something depends on them, and groups whose results nothing needs for a while. */
#include "backends/cuda/lower/emit.h"
#include "backends/cuda/lower/predicate.h"
#include "backends/cuda/lower/sink.h"

#include <string.h>

/* Only where all is on one lane, in kernels, and nobody looks in between; nor where the device
 * decides what is skipped, which would change meanwhile. */
static bool may_put_off(const peal_cuda_rank *rank)
{
    const peal_cuda_plan *plan = rank->plan;
    bool decides = rank->predicates && rank->predicates->any;
    return !decides && plan->emission.sink->signal == PEAL_CUDA_SIGNAL_FUSED &&
           plan->options.defers && rank->lanes == 1;
}

/* ---- waits ---- */

/* Nothing but what depends on it has to come behind a wait: the list of an op's dependences is
 * complete, but for the order of the ops of one message. */
bool peal_cuda_defer_wait(peal_cuda_rank *rank, int index, uint64_t value)
{
    peal_cuda_lane *lane = peal_cuda_lane_at(rank, rank->op[index].lane);

    if (!may_put_off(rank) || lane->pending_count == PEAL_CUDA_PENDING_WAITS)
        return false;
    lane->pending[lane->pending_count++] =
        (peal_cuda_pending_wait){.op = index, .value = value, .instance = rank->walk.passed[index]};
    rank->member[index] = PEAL_CUDA_PENDING;
    return true;
}

static bool needs(const peal_cuda_rank *rank, int index, int wait)
{
    const peal_op *op = &rank->schedule->op[index];

    if (index == wait || (op->channel >= 0 && op->channel == rank->schedule->op[wait].channel))
        return true;
    for (int i = 0; i < op->dependence_count; i++)
        if (op->dependence[i].op == wait)
            return true;
    return false;
}

/* Whether the lane's group can still begin with another wait, before op `index` joins it. */
static bool takes_waits(const peal_cuda_rank *rank, const peal_cuda_group *group, int index)
{
    const peal_op *op = &rank->schedule->op[index];

    if (group->launch.wait_count == PEAL_LAUNCH_WAITS)
        return false;
    if (group->kind == PEAL_CUDA_GROUP_COPY)
        return op->kind == PEAL_OP_COPY && group->event == op->event;
    /* Tiles of the same task that have sent nothing yet: none of them needs the wait. */
    if (group->kind == PEAL_CUDA_GROUP_TASK)
        return op->kind == PEAL_OP_LAUNCH && !group->closed &&
               group->task == rank->op[index].task && group->instance == rank->walk.passed[index] &&
               group->launch.write_count == 0 && group->launch.remote_store_count == 0 &&
               group->launch.list_count == 0;
    return group->kind == PEAL_CUDA_GROUP_NONE ||
           (group->kind == PEAL_CUDA_GROUP_WAITS && group->launch.write_count == 0);
}

/* The waits that op `index` needs, or all (index -1), go to the lane's group. */
static bool take_waits(peal_cuda_rank *rank, int index)
{
    peal_cuda_lane *lane = peal_cuda_lane_at(rank, 0);
    peal_cuda_group *group = &lane->group;
    int kept = 0;

    for (int i = 0; i < lane->pending_count; i++) {
        const peal_cuda_pending_wait *wait = &lane->pending[i];
        peal_cuda_op *op = &rank->op[wait->op];
        if (index >= 0 && !needs(rank, index, wait->op)) {
            lane->pending[kept++] = *wait;
            continue;
        }
        if (!takes_waits(rank, group, index >= 0 ? index : wait->op) &&
            !peal_cuda_flush_group(rank, lane, group))
            return false;
        peal_walk_frame frame = {.counter = rank->walk.counter};
        peal_cuda_group_open(rank, lane, op, &frame);
        peal_cuda_group_wait(rank, group, wait->op, wait->value);
        group->op_instance[group->op_count - 1] = wait->instance;
    }
    lane->pending_count = kept;
    return true;
}

/* ---- groups ---- */

/* A group that may wait for messages, and whose results nothing may need for a while, is put onto
 * its lane with or behind what comes next (piggyback.c): the messages are there by then. Nobody
 * waits for what it writes: those are credits of channels with two slots or more, which a peer asks
 * for when it sends the message after the next one; this rank puts the group onto the lane before
 * it receives that one, and what comes between depends on earlier messages only. */
bool peal_cuda_defer_group(peal_cuda_rank *rank, peal_cuda_lane *lane)
{
    peal_cuda_group *group = &lane->group;

    for (int i = 0; i < group->op_count; i++) {
        const peal_op *op = rank->op[group->op[i]].source;
        bool is_message = op->kind == PEAL_OP_WAIT || op->kind == PEAL_OP_WRITE;
        if (!may_put_off(rank) || (is_message && rank->schedule->channel[op->channel].slots < 2) ||
            (op->kind == PEAL_OP_WRITE && !op->credit))
            return peal_cuda_flush(rank, (int)(lane - rank->lane));
    }
    if (!peal_cuda_flush_group(rank, lane, &lane->deferred))
        return false;
    const peal_cuda_group empty = lane->deferred;
    lane->deferred = *group;
    *group = empty;
    for (int i = 0; i < lane->deferred.op_count; i++)
        rank->member[lane->deferred.op[i]] = PEAL_CUDA_IN_DEFERRED_GROUP;
    return true;
}

/* A group that was put off and that op `index` depends on comes first, behind the group before. */
static bool release_held(peal_cuda_rank *rank, int index)
{
    const peal_op *op = &rank->schedule->op[index];
    peal_cuda_lane *lane = peal_cuda_lane_at(rank, 0);
    bool needed = false;

    if (lane->deferred.kind == PEAL_CUDA_GROUP_NONE)
        return true;
    for (int k = 0; k < lane->deferred.op_count && !needed; k++) {
        needed = lane->deferred.op[k] == index;
        for (int i = 0; i < op->dependence_count && !needed; i++)
            needed = op->dependence[i].op == lane->deferred.op[k];
    }
    if (!needed)
        return true;
    /* What the group is to fold itself: the walk had what was put off before the group. */
    if (peal_cuda_fold_fits(rank, index))
        return peal_cuda_piggyback(rank, lane) ||
               peal_cuda_flush_group(rank, lane, &lane->deferred);
    return peal_cuda_flush_group(rank, lane, &lane->group) &&
           peal_cuda_flush_group(rank, lane, &lane->deferred);
}

bool peal_cuda_emit_prerequisites(peal_cuda_rank *rank, int index)
{
    const peal_op_kind kind = rank->schedule->op[index].kind;
    bool works = kind == PEAL_OP_LAUNCH || kind == PEAL_OP_COPY || kind == PEAL_OP_WRITE ||
                 kind == PEAL_OP_WAIT;

    return !works || (release_held(rank, index) && take_waits(rank, index));
}

bool peal_cuda_flush_all(peal_cuda_rank *rank)
{
    bool ok = true;

    for (int l = 0; l < rank->lanes && ok; l++) {
        peal_cuda_lane *lane = peal_cuda_lane_at(rank, l);
        /* In the walk's order; of more lanes than one nothing is put off. */
        ok = peal_cuda_flush_group(rank, lane, &lane->deferred) &&
             peal_cuda_flush_group(rank, lane, &lane->group) && take_waits(rank, -1) &&
             peal_cuda_flush_group(rank, lane, &lane->group);
    }
    return ok;
}
