/* Messages to other hosts: a WRITE tells the network, whoever waits makes turns for it. */
#include "backends/host/network.h"
#include "backends/host/wait.h"
#include "base/clock.h"
#include "base/patience.h"

enum { SETTLE_NS = 100000 };

void host_network_tell(const host_context *context, const host_op *op, const peal_walk_frame *frame)
{
    const peal_network_hook *network = context->rank->plan->desc.network;
    network->due(network->user, context->rank->index, op->source->channel, op->source->credit,
                 peal_flag_value(op->channel, frame->message));
    if (!op->precedes)
        network->flush(network->user);
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
