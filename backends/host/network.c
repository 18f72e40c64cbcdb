/* Messages to other hosts: a WRITE tells the network, whoever waits makes turns for it. */
#include "backends/host/network.h"

enum { SETTLE_NS = 100000 };

void host_network_tell(const host_context *context, const host_op *op, const peal_walk_frame *frame)
{
    const peal_network_hook *network = context->rank->plan->desc.network;
    network->due(network->user, context->rank->index, op->source->channel, op->source->credit,
                 peal_flag_value(op->channel, frame->message));
}

void host_network_pause(const host_plan *plan, peal_backoff *backoff, int64_t most_ns)
{
    const peal_network_hook *network = plan->desc.network;
    network->progress(network->user);
    if (peal_backoff_sleeps(backoff))
        network->sleep(network->user, most_ns);
    else
        peal_backoff_wait(backoff);
}

void host_network_settle(const host_plan *plan)
{
    const peal_network_hook *network = plan->desc.network;
    while (network && !atomic_load(plan->desc.abort_word) && !network->settle(network->user))
        network->sleep(network->user, SETTLE_NS);
}
