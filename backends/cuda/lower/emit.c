/* Puts op instances onto lanes, in walk order.
 *
 * A lane has a kernel that is being put together (its group). WAITs open a group; tiles of one
 * task, or pieces of copies, join it; then the pieces and flags of the messages that its tiles
 * produce. What doesn't fit closes the group and begins the next. The rules below keep the lane's
 * order, but for these things, which hurt nobody:
 * - tiles of the same task instance join although the task's messages are already in the group:
 * they run beside the sending;
 * - a WAIT of the same event joins a group of unpacking copies, so that they wait for all first:
 * one receive statement's messages cannot depend on each other's credits;
 * - a WAIT for a credit joins the task whose messages it is for; other WAITs, and the combining of
 * contributions, are put off until something depends on them (defer.c);
 * - a WAIT is waited for by the blocks that need it only, at the latest by one block of its group.
 */
#include "backends/cuda/lower/emit.h"
#include "backends/cuda/lower/predicate.h"

/* ---- an op ---- */

/* False: the rank's next op waits for a message of this process that has not been put onto a lane
 * yet. */
bool peal_cuda_emit_is_ready(const peal_cuda_rank *rank)
{
    const peal_cuda_op *op = &rank->op[rank->walk.position];

    if (op->source->kind != PEAL_OP_WAIT || !op->self || op->peer_op < 0 || op->skipped)
        return true;
    int mine = rank->program->op[rank->walk.position].message_counter;
    int theirs = op->peer->program->op[op->peer_op].message_counter;
    uint64_t slots = op->source->credit ? (uint64_t)op->channel->slots : 0;
    uint64_t message = rank->walk.message[mine] + 1;
    if (message - rank->plan->desc.hooks.first_message <= slots)
        return true;
    /* Numbers of messages wrap round, as their values do. */
    return (int64_t)(op->peer->walk.message[theirs] - (message - slots)) >= 0;
}

bool peal_cuda_emit(peal_cuda_rank *rank)
{
    int index = rank->walk.position;
    peal_walk_frame frame = peal_walk_pass(&rank->walk);
    bool ok = true;

    if (rank->op[index].skipped)
        return true;
    if (!peal_cuda_emit_prerequisites(rank, index) || !peal_cuda_predicate_begin(rank, index))
        return false;
    switch (rank->schedule->op[index].kind) {
    case PEAL_OP_LAUNCH:
        ok = peal_cuda_emit_launch(rank, index, &frame);
        break;
    case PEAL_OP_COPY:
        ok = peal_cuda_emit_copy(rank, index, &frame);
        break;
    case PEAL_OP_WRITE:
        ok = peal_cuda_emit_write(rank, index, &frame);
        break;
    case PEAL_OP_WAIT:
        ok = peal_cuda_emit_wait(rank, index, &frame);
        break;
    default: /* FENCE: every WRITE of this backend is a release of the system's scope */
        break;
    }
    return ok;
}
