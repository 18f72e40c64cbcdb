/* Decides whose turn it is among the ranks of a process.
 *
 * A rank blocks in two cases. Its next op waits for a message of another rank of the process that
 * has not been enqueued yet. Or its next op waits for a message of another *process*, and a rank
 * beside it is earlier in program order (base/walk_order.h).
 *
 * Why the second case: streams share the eight queues of a device, and a wait in a queue delays
 * everything that other streams have behind it. Within a process that is harmless, because whatever
 * is waited for was enqueued before the wait. But two processes can deadlock: each enqueues a wait
 * first, and behind it the flag that the other one waits for.
 *
 * Why it is enough: let a message's key be the position of its flag in the sender's program. The
 * wait for it has a later position. A wait is enqueued only when no rank of the process still has
 * to write a flag of an earlier key, and when the groups that have such flags have been launched.
 * So everything behind a wait in the queues of a process has a key at least as late as the wait's.
 * Around a circle of waits and flags that delay each other, keys would have to increase for ever. A
 * credit is given in an iteration before the one that needs it. The rank with the earliest position
 * can always go on, because what it waits for has an earlier one. All this needs sends before their
 * receives in the program; in others (pipelines) ranks are not ordered.
 *
 * The persistent kernel of mode fused uses no queue while it waits: all of its blocks are resident.
 *
 * The driver's assignment of a graph's branches to queues is undocumented. So in a capture an edge
 * leads from each kernel that writes flags to each later wait; then every order that the edges
 * allow is one as above. */
#include "backends/cuda/drive/run.h"
#include "backends/cuda/lower/doorbell.h"
#include "backends/cuda/lower/emit.h"
#include "backends/cuda/lower/sink.h"
#include "base/clock.h"

/* ---- program order ---- */

static peal_walk_place order_key_of(const peal_cuda_rank *rank)
{
    return (peal_walk_place){.order = &rank->order,
                             .position = rank->walk.position,
                             .step = rank->walk.counter[0],
                             .loop = rank->walk.loop};
}

static bool is_before(const peal_cuda_rank *a, const peal_cuda_rank *b)
{
    peal_walk_place x = order_key_of(a), y = order_key_of(b);

    return peal_walk_compare(&x, &y) < 0;
}

/* The earliest of the other ranks that have something left to do; if there is none, the rank
 * itself.
 */
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

/* Launches the groups of all other lanes that write flags. */
static bool flush_flags(peal_cuda_rank *rank, const peal_cuda_lane *mine)
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

/* That an adapter has sent messages is progress, which no event of a stream tells; so a wait for it
 * begins and ends with some. */
static bool has_room_to_ring(peal_cuda_rank *rank)
{
    bool has_room = peal_cuda_doorbell_has_room(rank);

    if (has_room == rank->awaits_room)
        rank->plan->run->last_progress = peal_clock_s();
    rank->awaits_room = !has_room;
    return has_room;
}

peal_cuda_advance peal_cuda_may_emit(peal_cuda_rank *rank)
{
    peal_cuda_plan *plan = rank->plan;
    const peal_cuda_op *op = &rank->op[rank->walk.position];

    if (op->doorbell && !has_room_to_ring(rank))
        return PEAL_CUDA_WAITS_FOR_DEVICE;
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
    /* No other rank advances in this turn, so once is enough. */
    if (first && !flush_flags(rank, lane))
        return PEAL_CUDA_FAILED;
    const struct peal_cuda_sink_ops *ops = plan->emission.sink->ops;
    CUresult result = ops->follow_flags ? ops->follow_flags(rank, lane) : CUDA_SUCCESS;
    return !result || peal_cuda_report_driver_error(plan, result, NULL, "flags")
               ? PEAL_CUDA_ADVANCED
               : PEAL_CUDA_FAILED;
}

/* ---- turns ---- */

static bool report_deadlock(peal_cuda_plan *plan)
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
            CUresult result = state == PEAL_CUDA_FAILED ? 0 : peal_cuda_sink_submit(plan);
            if (result)
                peal_cuda_report_driver_error(plan, result, NULL, "a batch");
            if (state == PEAL_CUDA_FAILED || result)
                return false;
            plan->rank[r].done = state == PEAL_CUDA_FINISHED;
            moved = moved || plan->rank[r].moved;
            device = device || state == PEAL_CUDA_WAITS_FOR_DEVICE;
            done = done && state == PEAL_CUDA_FINISHED;
        }
        if (done)
            return true;
        /* A rank that has finished in its turn may have sent what another one waits for. */
        if (moved) {
            backoff = peal_cuda_backoff();
            if (peal_cuda_is_aborted(plan) && !peal_cuda_poll_once(plan, &backoff))
                return false;
            continue;
        }
        if (!device)
            return report_deadlock(plan);
        /* The device may wait for something that has not been launched yet. */
        for (int r = 0; r < plan->rank_count; r++)
            if (!peal_cuda_flush_all(&plan->rank[r]))
                return false;
        if (!peal_cuda_rows_out(plan, false) || !peal_cuda_poll_once(plan, &backoff))
            return false;
    }
}
