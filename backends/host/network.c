/* Messages to other hosts: a WRITE tells the network, and what has been told leaves together: by
 * the turns of who waits, or before this thread begins what takes long. */
#include "backends/host/network.h"
#include "backends/host/wait.h"
#include "base/clock.h"
#include "base/patience.h"

enum {
    SETTLE_NS = 100000,
    LONG = 8192,    /* bytes from which on a message leaves from where it lies */
    IDLE_SLEEPS = 8 /* in a row in which nobody makes turns, then an idle thread does */
};

void host_network_tell(host_context *context, const host_op *op, const peal_walk_frame *frame)
{
    const peal_network_hook *network = context->rank->plan->desc.network;
    network->due(network->user, context->rank->index, op->source->channel, op->source->credit,
                 peal_flag_value(op->channel, frame->message));
    context->has_told = true;
}

void host_network_before_work(host_context *context)
{
    if (context->has_told)
        host_network_send_told(context->rank->plan);
    context->has_told = false;
}

/* One run of bytes, as long as the message in its slot. */
static bool is_whole(const host_op *copy, bool to_slot)
{
    const host_piece *piece = copy->piece;
    const peal_copy *run = &piece->copy;
    if (copy->channel->piece_count != 1 || piece->counted)
        return false;
    int slot = to_slot ? piece->target_array : piece->source_array;
    int64_t offset = to_slot ? piece->target_offset : piece->source_offset;
    return run->count[0] == 1 && run->count[1] == 1 && run->count[2] == 1 && run->bytes >= LONG &&
           run->bytes % 8 == 0 && slot < 0 && offset == 0;
}

bool host_network_leaves(const host_rank *rank, int index)
{
    const peal_network_hook *network = rank->plan->desc.network;
    const host_op *op = &rank->op[index], *write = op + 1;
    const peal_op *source = op->source, *next = write->source;
    bool follows = op->kind == PEAL_OP_COPY && source->copy == PEAL_COPY_SEND && write->remote &&
                   !next->credit && next->channel == source->channel &&
                   next->lane == source->lane && next->dependence_count == 0 && !op->skipped &&
                   !write->skipped;
    return network && network->due_from && follows && is_whole(op, true);
}

void host_network_send(const host_context *context, const host_op *op, const peal_walk_frame *frame)
{
    const host_rank *rank = context->rank;
    const peal_network_hook *network = rank->plan->desc.network;
    const host_piece *piece = op->piece;
    uint64_t value = peal_flag_value(op->channel, frame->message);
    host_word_store((op + 1)->word, value);
    network->due_from(network->user, rank->index, op->source->channel, value,
                      rank->first[frame->binding[piece->source_array]] + piece->source_offset);
}

bool host_network_lands(const host_rank *rank, int index)
{
    const peal_network_hook *network = rank->plan->desc.network;
    const host_op *op = &rank->op[index], *copy = op + 1;
    const peal_op *source = op->source, *next = copy->source;
    return network && network->expect && op->kind == PEAL_OP_WAIT && !source->credit &&
           peal_transport_is_network(op->channel->transport) && copy->kind == PEAL_OP_COPY &&
           next->copy == PEAL_COPY_UNPACK && next->channel == source->channel &&
           next->lane == source->lane && !op->skipped && !copy->skipped && is_whole(copy, false);
}

bool host_network_expect(const host_context *context, const host_op *op,
                         const peal_walk_frame *frame, uint64_t value)
{
    const host_rank *rank = context->rank;
    const peal_network_hook *network = rank->plan->desc.network;
    const host_piece *piece = (op + 1)->piece;
    return network->expect(network->user, rank->index, op->source->channel, value,
                           rank->first[frame->binding[piece->target_array]] + piece->target_offset);
}

void host_network_withdraw(host_context *context, const host_op *op)
{
    const peal_network_hook *network = context->rank->plan->desc.network;
    if (network->withdraw(network->user, context->rank->index, op->source->channel))
        context->landed = op + 1;
}

/* ---- turns ---- */

/* In the word, beside the address of the wait that makes turns; 0: nobody does. */
enum { IS_IDLE = 1, IS_ASLEEP = 2 };

static uint64_t word_of(const host_turn *turn)
{
    return (uint64_t)(uintptr_t)turn | (turn->idle ? IS_IDLE : 0);
}

/* Whether it is this wait's to make turns. An idle one loses it to who waits for a message; that
 * both are at it for a moment does no harm. */
static bool has_turn(host_plan *plan, host_turn *turn, bool sleeps)
{
    uint64_t mine = word_of(turn);
    uint64_t now = atomic_load_explicit(&plan->turn->value, memory_order_relaxed);
    if ((now & ~(uint64_t)IS_ASLEEP) == mine)
        return true;
    if (turn->idle ? now != 0 : now && !(now & IS_IDLE)) {
        turn->missed = 0;
        return false;
    }
    if (turn->idle && (!sleeps || ++turn->missed < IDLE_SLEEPS))
        return false;
    return atomic_compare_exchange_strong(&plan->turn->value, &now, mine);
}

void host_network_pause(host_plan *plan, host_turn *turn, peal_backoff *backoff, int64_t most_ns)
{
    const peal_network_hook *network = plan->desc.network;
    bool sleeps = peal_backoff_sleeps(backoff), mine = has_turn(plan, turn, sleeps);
    if (mine)
        network->progress(network->user);
    if (mine && sleeps) {
        uint64_t now = word_of(turn);
        atomic_compare_exchange_strong(&plan->turn->value, &now, now | IS_ASLEEP);
        network->sleep(network->user, most_ns);
    } else if (mine && backoff->yields % turn->to_a_yield)
        backoff->yields--;
    else
        peal_backoff_wait(backoff);
}

/* Order: whoever told a message before, and left it to this wait, has it sent now. */
void host_network_leave(host_plan *plan, host_turn *turn)
{
    const peal_network_hook *network = plan->desc.network;
    uint64_t awake = word_of(turn), asleep = awake | IS_ASLEEP;
    if (atomic_compare_exchange_strong(&plan->turn->value, &awake, 0) ||
        atomic_compare_exchange_strong(&plan->turn->value, &asleep, 0))
        network->flush(network->user);
}

void host_network_send_told(const host_plan *plan)
{
    const peal_network_hook *network = plan->desc.network;
    uint64_t turn = atomic_load(&plan->turn->value);
    if (!turn || turn & IS_ASLEEP)
        network->flush(network->user);
}

peal_status host_network_settle(host_plan *plan)
{
    const peal_network_hook *network = plan->desc.network;
    peal_patience patience = peal_patience_begin(peal_clock_ns(), plan->desc.deadline_ns);
    while (network && !atomic_load(plan->desc.abort_word) && !network->settle(network->user)) {
        bool is_over = peal_patience_is_over(&patience, peal_clock_ns());
        if (is_over && network->others_run(network->user))
            patience = peal_patience_begin(peal_clock_ns(), plan->desc.deadline_ns);
        else if (is_over) {
            host_fail(plan, PEAL_STATUS_DEADLINE);
            return peal_report(plan->desc.diagnostics, PEAL_E_RANK_STALLED, (peal_source){0},
                               "see what the processes of other hosts are doing",
                               "rank %d and others of its process are through, but a process of "
                               "another host has not taken their messages within %.3g s",
                               plan->rank_count ? plan->rank[0].schedule->rank : -1,
                               (double)plan->desc.deadline_ns * 1e-9);
        }
        network->sleep(network->user, SETTLE_NS);
    }
    return PEAL_STATUS_OK;
}
