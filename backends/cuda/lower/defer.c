/* Deferral: some ops are enqueued later than the walk passes them, so that the ops between need not
 * wait. These are waits, until something depends on them, and groups whose results nothing needs
 * for a while. */
#include "backends/cuda/lower/emit.h"
#include "backends/cuda/lower/predicate.h"
#include "backends/cuda/lower/sink.h"

#include <string.h>

/* Deferral needs one lane whose signals are in kernels. It is not sound where the device decides
 * what is skipped: the predicate could change before the deferred op runs. */
static bool may_defer(const peal_cuda_rank *rank)
{
    const peal_cuda_plan *plan = rank->plan;
    bool decides = rank->predicates && rank->predicates->any;
    return !decides && plan->emission.sink->signal == PEAL_CUDA_SIGNAL_FUSED &&
           plan->options.defers && rank->lanes == 1;
}

/* ---- waits ---- */

/* Only ops that depend on a wait must come after it. The list of an op's dependences is complete,
 * but for the order of the ops of one message, which needs_wait adds. */
bool peal_cuda_defer_wait(peal_cuda_rank *rank, int index, uint64_t value)
{
    peal_cuda_lane *lane = peal_cuda_lane_at(rank, rank->op[index].lane);

    if (!may_defer(rank) || lane->pending_count == PEAL_CUDA_PENDING_WAITS)
        return false;
    lane->pending[lane->pending_count++] =
        (peal_cuda_pending_wait){.op = index, .value = value, .instance = rank->walk.passed[index]};
    rank->member[index] = PEAL_CUDA_PENDING;
    return true;
}

static bool needs_wait(const peal_cuda_rank *rank, int index, int wait)
{
    const peal_op *op = &rank->schedule->op[index];

    if (index == wait || (op->channel >= 0 && op->channel == rank->schedule->op[wait].channel))
        return true;
    for (int i = 0; i < op->dependence_count; i++)
        if (op->dependence[i].op == wait)
            return true;
    return false;
}

/* Whether a wait can still be added to the lane's group, before op `index` joins it. */
static bool can_add_wait(const peal_cuda_rank *rank, const peal_cuda_group *group, int index)
{
    const peal_op *op = &rank->schedule->op[index];

    if (group->launch.wait_count == PEAL_LAUNCH_WAITS)
        return false;
    if (group->kind == PEAL_CUDA_GROUP_COPY)
        return op->kind == PEAL_OP_COPY && group->event == op->event;
    /* The group has tiles of the same task, and none of them has sent anything. */
    if (group->kind == PEAL_CUDA_GROUP_TASK)
        return op->kind == PEAL_OP_LAUNCH && !group->closed &&
               group->task == rank->op[index].task && group->instance == rank->walk.passed[index] &&
               group->launch.write_count == 0 && group->launch.remote_store_count == 0 &&
               group->launch.list_count == 0;
    return group->kind == PEAL_CUDA_GROUP_NONE ||
           (group->kind == PEAL_CUDA_GROUP_WAITS && group->launch.write_count == 0);
}

/* Adds the deferred waits that op `index` needs, or all (index -1), to the lane's group. */
static bool add_pending_waits(peal_cuda_rank *rank, int index)
{
    peal_cuda_lane *lane = peal_cuda_lane_at(rank, 0);
    peal_cuda_group *group = &lane->group;
    int kept = 0;

    for (int i = 0; i < lane->pending_count; i++) {
        const peal_cuda_pending_wait *wait = &lane->pending[i];
        peal_cuda_op *op = &rank->op[wait->op];
        if (index >= 0 && !needs_wait(rank, index, wait->op)) {
            lane->pending[kept++] = *wait;
            continue;
        }
        if (!can_add_wait(rank, group, index >= 0 ? index : wait->op) &&
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

/* Defers a group that waits for messages and whose results may not be needed for a while. It is
 * enqueued with or after the next group (piggyback.c), when its messages have mostly come.
 *
 * No deadlock can follow, because no peer waits for what the group writes before it is enqueued. It
 * writes only credits of channels with at least two slots. The peer needs such a credit when it
 * sends the message after the next one. This rank enqueues the group before it receives that
 * message, and everything between depends on earlier messages only. */
bool peal_cuda_defer_group(peal_cuda_rank *rank, peal_cuda_lane *lane)
{
    peal_cuda_group *group = &lane->group;

    for (int i = 0; i < group->op_count; i++) {
        const peal_op *op = rank->op[group->op[i]].source;
        bool is_message = op->kind == PEAL_OP_WAIT || op->kind == PEAL_OP_WRITE;
        if (!may_defer(rank) || (is_message && rank->schedule->channel[op->channel].slots < 2) ||
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

/* If op `index` depends on the deferred group: launches the open group, then the deferred one. */
static bool flush_needed_deferred(peal_cuda_rank *rank, int index)
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
    /* The open group is to do this fold itself. The walk passed the deferred ops before that group,
     * so the deferred group may join it or come before it. */
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

    return !works || (flush_needed_deferred(rank, index) && add_pending_waits(rank, index));
}

bool peal_cuda_flush_groups(peal_cuda_rank *rank)
{
    bool ok = true;

    for (int l = 0; l < rank->lanes && ok; l++) {
        peal_cuda_lane *lane = peal_cuda_lane_at(rank, l);
        ok = peal_cuda_flush_group(rank, lane, &lane->deferred) &&
             peal_cuda_flush_group(rank, lane, &lane->group);
    }
    return ok;
}

bool peal_cuda_flush_all(peal_cuda_rank *rank)
{
    bool ok = true;

    for (int l = 0; l < rank->lanes && ok; l++) {
        peal_cuda_lane *lane = peal_cuda_lane_at(rank, l);
        /* In walk order. With more than one lane nothing is deferred. */
        ok = peal_cuda_flush_group(rank, lane, &lane->deferred) &&
             peal_cuda_flush_group(rank, lane, &lane->group) && add_pending_waits(rank, -1) &&
             peal_cuda_flush_group(rank, lane, &lane->group);
    }
    CUresult result = ok ? peal_cuda_sink_submit(rank->plan) : CUDA_SUCCESS;
    return ok && (!result || peal_cuda_report_driver_error(rank->plan, result, NULL, "a batch"));
}
