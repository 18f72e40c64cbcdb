/* Emission: turns op instances into launches, in walk order.
 *
 * A lane has a group, the launch that is being put together. WAITs open a group. Then tiles of one
 * task, or pieces of copies, join it; then the pieces and flags of the messages that its tiles
 * produce. An op that does not fit closes the group and opens the next one.
 *
 * Permitted reorderings. A lane runs its ops in walk order, with these exceptions, which are sound:
 * - Tiles of the same task instance join the group after the task's messages have. They run beside
 *   the sending.
 * - A WAIT of the same event joins a group of unpacking copies. Then all of them wait first. The
 *   messages of one receive statement do not depend on each other's credits.
 * - A WAIT for a credit joins the group of the task whose messages need it.
 * - Other WAITs, and COMBINEs, are deferred until something depends on them (defer.c).
 * - Only the blocks that need a WAIT wait for it. If none does, one block of the group waits. */
#include "backends/cuda/lower/emit.h"
#include "backends/cuda/lower/predicate.h"

/* ---- an op ---- */

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
    /* Message numbers wrap around, as flags do. */
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
    default: /* FENCE does nothing: every WRITE of this backend is a release in system scope */
        break;
    }
    return ok;
}
