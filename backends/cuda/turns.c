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
 * The kernel that stays (mode fused) has no queue: all of its blocks are there.
 *
 * A graph's branches are shared out among queues in ways that only the driver knows: there an edge
 * leads from each kernel that writes flags to each later wait, so that any order that the edges
 * allow is one as above. */
#include "backends/cuda/emit.h"
#include "backends/cuda/run.h"

/* ---- places ---- */

static peal_walk_place place_of(const cuda_rank *rank)
{
    return (peal_walk_place){.order = &rank->order,
                             .position = rank->walk.position,
                             .step = rank->walk.counter[0],
                             .loop = rank->walk.loop};
}

static bool is_before(const cuda_rank *a, const cuda_rank *b)
{
    peal_walk_place x = place_of(a), y = place_of(b);

    return peal_walk_compare(&x, &y) < 0;
}

/* Of those beside it that have something left to do; the rank itself: there is none. */
static cuda_rank *earliest_beside(cuda_rank *rank)
{
    cuda_plan *plan = rank->plan;
    cuda_rank *found = NULL;

    for (int r = 0; r < plan->rank_count; r++) {
        cuda_rank *other = &plan->rank[r];
        if (other != rank && !other->done && (!found || is_before(other, found)))
            found = other;
    }
    return found ? found : rank;
}

bool cuda_keeps_order(const cuda_plan *plan)
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
static bool launch_flags(cuda_rank *rank, const cuda_lane *mine)
{
    cuda_plan *plan = rank->plan;
    bool ok = true;

    for (int r = 0; r < plan->rank_count; r++)
        for (int l = 0; l < plan->rank[r].lanes && ok; l++) {
            cuda_lane *lane = &plan->rank[r].lane[l];
            if (lane != mine && lane->group.kind != CUDA_GROUP_NONE &&
                lane->group.launch.write_count > 0)
                ok = cuda_flush(&plan->rank[r], l);
        }
    return ok;
}

bool cuda_flags_put(cuda_plan *plan, cuda_lane *lane)
{
    if (!plan->capturing || !plan->keeps_order || cuda_is_noting(plan))
        return true;
    lane->sent = ++plan->sends;
    CUresult result = plan->driver->cuEventRecord_(lane->sent_event, lane->stream);
    return !result || cuda_broken(plan, result, NULL, "flags");
}

/* In a graph: a lane goes on behind the flags that all others have written. */
static bool follow_flags(cuda_plan *plan, cuda_lane *mine)
{
    CUresult result = CUDA_SUCCESS;

    for (int r = 0; r < plan->rank_count; r++)
        for (int l = 0; l < plan->rank[r].lanes && !result; l++) {
            const cuda_lane *lane = &plan->rank[r].lane[l];
            if (lane == mine || lane->sent <= mine->followed)
                continue;
            mine->chained = false;
            result = plan->driver->cuStreamWaitEvent_(mine->stream, lane->sent_event, 0);
        }
    mine->followed = plan->sends;
    return !result || cuda_broken(plan, result, NULL, "flags");
}

cuda_advance cuda_turn(cuda_rank *rank)
{
    cuda_plan *plan = rank->plan;
    const cuda_op *op = &rank->op[rank->walk.position];

    if (op->source->kind != PEAL_OP_WAIT || op->skipped)
        return CUDA_ADVANCED;
    if (op->self)
        return cuda_emit_is_ready(rank) ? CUDA_ADVANCED : CUDA_WAITS_FOR_RANK;
    if (!plan->keeps_order || cuda_is_noting(plan))
        return CUDA_ADVANCED;
    cuda_lane *lane = cuda_lane_at(rank, op->lane);
    bool first = !plan->earliest;
    if (first)
        plan->earliest = earliest_beside(rank);
    if (is_before(plan->earliest, rank))
        return CUDA_WAITS_FOR_RANK;
    /* Nobody else moves in this turn. */
    if (first && !launch_flags(rank, lane))
        return CUDA_FAILED;
    return !plan->capturing || follow_flags(plan, lane) ? CUDA_ADVANCED : CUDA_FAILED;
}

/* ---- turns ---- */

static bool stuck(cuda_plan *plan)
{
    for (int r = 0; r < plan->rank_count; r++) {
        const cuda_rank *rank = &plan->rank[r];
        if (rank->walk.position >= rank->schedule->op_count || cuda_emit_is_ready(rank))
            continue;
        const peal_op *op = &rank->schedule->op[rank->walk.position];
        peal_report(plan->late, PEAL_E663, op->source, NULL,
                    "rank %d waits for %s, which is never sent", rank->schedule->rank,
                    rank->schedule->channel[op->channel].edge);
    }
    return cuda_fail(plan, PEAL_STATUS_SPEC);
}

bool cuda_take_turns(cuda_plan *plan, cuda_advance (*next)(cuda_rank *rank))
{
    unsigned polls = 0;

    for (int r = 0; r < plan->rank_count; r++)
        plan->rank[r].done = false;
    for (;;) {
        bool moved = false, device = false, done = true;
        for (int r = 0; r < plan->rank_count; r++) {
            plan->rank[r].moved = false;
            plan->earliest = NULL;
            cuda_advance state = next(&plan->rank[r]);
            if (state == CUDA_FAILED)
                return false;
            plan->rank[r].done = state == CUDA_FINISHED;
            moved = moved || plan->rank[r].moved;
            device = device || state == CUDA_WAITS_FOR_DEVICE;
            done = done && state == CUDA_FINISHED;
        }
        if (done)
            return true;
        /* A rank that has finished in its turn may have sent what another waits for. */
        if (moved) {
            polls = 0;
            if (cuda_is_aborted(plan) && !cuda_look(plan, &polls))
                return false;
            continue;
        }
        if (!device)
            return stuck(plan);
        /* What the device waits for may be in what has not been launched yet. */
        for (int r = 0; r < plan->rank_count; r++)
            if (!cuda_flush_all(&plan->rank[r]))
                return false;
        if (!cuda_rows_out(plan, false) || !cuda_look(plan, &polls))
            return false;
    }
}
