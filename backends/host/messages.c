/* WAITs: whether a message, or the credit of one, is there. */
#include "backends/host/execute.h"
#include "backends/host/network.h"

/* The number of the message whose word a WAIT needs. False: nothing is to be waited for, because
 * the first messages have free slots. */
static bool awaited(const host_op *op, const peal_walk_frame *frame, uint64_t first,
                    uint64_t *message)
{
    uint64_t slots = op->source->credit ? (uint64_t)op->channel->slots : 0;

    *message = frame->message - slots;
    return frame->message - first > slots;
}

bool host_message_ready(const host_op *op, const peal_walk_frame *frame)
{
    uint64_t message = frame->message - (op->source->credit ? (uint64_t)op->channel->slots : 0);
    return op->skipped || host_word_reached(op->word, peal_flag_value(op->channel, message));
}

bool host_message_wait(host_context *context, const host_op *op, const peal_walk_frame *frame)
{
    uint64_t message = 0;
    uint64_t first = context->rank->plan->desc.hooks.first_message;

    if (op->skipped || !awaited(op, frame, first, &message))
        return true;
    uint64_t value = peal_flag_value(op->channel, message);
    if (host_word_reached(op->word, value))
        return true;
    host_wait wait = {.rank = context->rank,
                      .kind = op->source->credit ? HOST_WAIT_CREDIT : HOST_WAIT_FLAG,
                      .worker = context->worker,
                      .op = (int)(op - context->rank->op),
                      .other_op = -1,
                      .step = frame->counter[0],
                      .message = message};
    bool expects = op->lands && host_network_expect(context, op, frame, value);
    bool reached = host_wait_slow(&wait, op->word, value);
    if (expects)
        host_network_withdraw(context, op);
    return reached;
}
