/* Whose turn it is among the ranks of a process.
 *
 * A rank stands in front of a message of another rank of the process that has not been put onto a
 * lane yet. And it stands in front of a message of another *process* while a rank beside it is at
 * an earlier place in the program (base/walk_order.h). Why: streams share the queues of a device,
 * of which there are eight, and what waits in a queue holds up what other streams have there behind
 * it. Within a process that is harmless: whatever is waited for was put there before. Two processes
 * of which each waits first, and puts behind that what the other one waits for, would wait for
 * ever.
 *
 * Let a message's place be that of its flag in the sender's program; the wait for it is at a later
 * one. A wait is put onto a lane when no rank of the process has still flags to write at an earlier
 * place than the wait's, and when those that were collected for a kernel have been launched. So in
 * a process all that comes behind a wait has a place at least as late as it, and around a circle of
 * waits and flags that hold each other up places would increase for ever. A credit is given in an
 * iteration before the one that asks for it. The rank at the earliest place always goes on, as what
 * it waits for is at an earlier one. That needs sends before their receives in the program; with
 * others (pipelines) ranks go on as they can.
 *
 * The persistent kernel (mode fused) has no queue: all of its blocks are there.
 *
 * A graph's branches are shared out among queues in ways that only the driver knows: there an edge
 * leads from each kernel that writes flags to each later wait, so that any order that the edges
 * allow is one as above. */
#include "backends/cuda/lower/emit.h"
#include "backends/cuda/lower/sink.h"
#include "backends/cuda/stream/run.h"

/* ---- places ---- */

static peal_walk_place place_of(const peal_cuda_rank *rank)
{
    return (peal_walk_place){.order = &rank->order,
                             .position = rank->walk.position,
                             .step = rank->walk.counter[0],
                             .loop = rank->walk.loop};
}

static bool is_before(const peal_cuda_rank *a, const peal_cuda_rank *b)
{
    peal_walk_place x = place_of(a), y = place_of(b);

    return peal_walk_compare(&x, &y) < 0;
}

/* Of those beside it that have something left to do; the rank itself: there is none. */
static peal_cuda_rank *earliest_beside(peal_cuda_rank *rank)
{
    peal_cuda_plan *plan = rank->plan;
    peal_cuda_rank *found = NULL;

    for (int r = 0; r < plan->rank_count; r++) {
        peal_cuda_rank *other = &plan->rank[r];
        if (other != rank && !other->done && (!found || is_before(other, found)))
            found = other;
    }
    return found ? found : rank;
}

bool peal_cuda_keeps_order(const peal_cuda_plan *plan)
{
    if (plan->rank_count == 1)
        return false;
    for (int r = 0; r < plan->rank_count; r++)
        for (int i = 0; i < plan->rank[r].schedule->channel_count; i++)
            if (plan->rank[r].schedule->channel[i].ahead)
                return false;
    return true;
}

/* ---- flags before waits ---- */

/* Flags that were collected, of all other lanes. */
static bool launch_flags(peal_cuda_rank *rank, const peal_cuda_lane *mine)
{
    peal_cuda_plan *plan = rank->plan;
    bool ok = true;

    for (int r = 0; r < plan->rank_count; r++)
        for (int l = 0; l < plan->rank[r].lanes && ok; l++) {
            peal_cuda_lane *lane = &plan->rank[r].lane[l];
            if (lane != mine && lane->group.kind != PEAL_CUDA_GROUP_NONE &&
                lane->group.launch.write_count > 0)
                ok = peal_cuda_flush(&plan->rank[r], l);
        }
    return ok;
}

peal_cuda_advance peal_cuda_may_emit(peal_cuda_rank *rank)
{
    peal_cuda_plan *plan = rank->plan;
    const peal_cuda_op *op = &rank->op[rank->walk.position];

    if (op->source->kind != PEAL_OP_WAIT || op->skipped)
        return PEAL_CUDA_ADVANCED;
    if (op->self)
        return peal_cuda_emit_is_ready(rank) ? PEAL_CUDA_ADVANCED : PEAL_CUDA_WAITS_FOR_RANK;
    if (!plan->keeps_order || plan->emission.sink->is_one_kernel)
        return PEAL_CUDA_ADVANCED;
    peal_cuda_lane *lane = peal_cuda_lane_at(rank, op->lane);
    bool first = !plan->run->earliest;
    if (first)
        plan->run->earliest = earliest_beside(rank);
    if (is_before(plan->run->earliest, rank))
        return PEAL_CUDA_WAITS_FOR_RANK;
    /* Nobody else moves in this turn. */
    if (first && !launch_flags(rank, lane))
        return PEAL_CUDA_FAILED;
    const struct peal_cuda_sink_ops *ops = plan->emission.sink->ops;
    CUresult result = ops->follow_flags ? ops->follow_flags(rank, lane) : CUDA_SUCCESS;
    return !result || peal_cuda_report_driver_error(plan, result, NULL, "flags")
               ? PEAL_CUDA_ADVANCED
               : PEAL_CUDA_FAILED;
}

/* ---- turns ---- */

static bool stuck(peal_cuda_plan *plan)
{
    for (int r = 0; r < plan->rank_count; r++) {
        const peal_cuda_rank *rank = &plan->rank[r];
        if (rank->walk.position >= rank->schedule->op_count || peal_cuda_emit_is_ready(rank))
            continue;
        const peal_op *op = &rank->schedule->op[rank->walk.position];
        peal_report(plan->emission.late, PEAL_E_DEADLOCK_ON_GPU, op->source, NULL,
                    "rank %d waits for %s, which is never sent", rank->schedule->rank,
                    rank->schedule->channel[op->channel].edge);
    }
    return peal_cuda_fail(plan, PEAL_STATUS_SPEC);
}

bool peal_cuda_take_turns(peal_cuda_plan *plan, peal_cuda_advance (*next)(peal_cuda_rank *rank))
{
    peal_backoff backoff = peal_cuda_backoff();

    for (int r = 0; r < plan->rank_count; r++)
        plan->rank[r].done = false;
    for (;;) {
        bool moved = false, device = false, done = true;
        for (int r = 0; r < plan->rank_count; r++) {
            plan->rank[r].moved = false;
            plan->run->earliest = NULL;
            peal_cuda_advance state = next(&plan->rank[r]);
            if (state == PEAL_CUDA_FAILED)
                return false;
            plan->rank[r].done = state == PEAL_CUDA_FINISHED;
            moved = moved || plan->rank[r].moved;
            device = device || state == PEAL_CUDA_WAITS_FOR_DEVICE;
            done = done && state == PEAL_CUDA_FINISHED;
        }
        if (done)
            return true;
        /* A rank that has finished in its turn may have sent what another waits for. */
        if (moved) {
            backoff = peal_cuda_backoff();
            if (peal_cuda_is_aborted(plan) && !peal_cuda_poll_once(plan, &backoff))
                return false;
            continue;
        }
        if (!device)
            return stuck(plan);
        /* What the device waits for may be in what has not been launched yet. */
        for (int r = 0; r < plan->rank_count; r++)
            if (!peal_cuda_flush_all(&plan->rank[r]))
                return false;
        if (!peal_cuda_rows_out(plan, false) || !peal_cuda_poll_once(plan, &backoff))
            return false;
    }
}
