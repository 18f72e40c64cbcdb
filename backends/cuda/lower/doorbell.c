/* What a stream stores so that a message leaves: the contract is in peal/plugin/network.h, the
 * entries are the network engine's. */
#include "backends/cuda/lower/doorbell.h"
#include "backends/cuda/gpu/pages.h"
#include "backends/cuda/lower/emit.h"
#include "backends/cuda/lower/sink.h"

#include <stdio.h>

struct peal_cuda_doorbell {
    peal_network_pages pages[PEAL_NETWORK_PAGES];
    CUdeviceptr address[PEAL_NETWORK_PAGES]; /* of the pages, as the device sees them */
    int count;                               /* pages that were taken */
};

bool peal_cuda_doorbells_are_there(const peal_cuda_plan *plan, char reason[PEAL_CUDA_REASON_BYTES])
{
    const char *why = NULL;
    if (!plan->desc.network)
        why = "no message goes to another host";
    else if (!plan->desc.network->doorbell)
        why = "only messages by mlx5 can be rung for (--transport mlx5)";
    else if (!plan->device->has_memops || !plan->device->has_wait_nor)
        why = "this GPU lacks memory operations: of 64 bits, or waits for a bit that is clear";
    else if (plan->desc.hooks.unawaited)
        why = "nobody waits for messages";
    snprintf(reason, PEAL_CUDA_REASON_BYTES, "%s", why ? why : "");
    return !why;
}

static bool bind(peal_cuda_rank *rank, peal_cuda_op *op, char *reason)
{
    const peal_cuda_plan *plan = rank->plan;
    const peal_network_hook *network = plan->desc.network;
    peal_cuda_doorbell *bell = PEAL_ARENA_NEW(plan->arena, peal_cuda_doorbell);
    peal_network_doorbell asked = {.size = sizeof(asked)};
    char text[PEAL_CUDA_REASON_BYTES];

    if (network->doorbell(network->user, rank->index, op->source->channel, op->source->credit,
                          &asked)) {
        snprintf(reason, PEAL_CUDA_REASON_BYTES, "the network engine has refused a doorbell");
        return false;
    }
    op->doorbell = bell;
    for (; bell->count < asked.page_count; bell->count++) {
        bell->pages[bell->count] = asked.pages[bell->count];
        CUresult result = peal_cuda_pages_take(plan->device, &bell->pages[bell->count],
                                               &bell->address[bell->count]);
        if (!result)
            continue;
        snprintf(reason, PEAL_CUDA_REASON_BYTES, "the driver does not map %s of the adapter: %s",
                 bell->pages[bell->count].registers ? "registers" : "records",
                 peal_cuda_error(result, text));
        return false;
    }
    return true;
}

bool peal_cuda_doorbells_bind(peal_cuda_rank *rank, char reason[PEAL_CUDA_REASON_BYTES])
{
    for (int i = 0; i < rank->schedule->op_count; i++) {
        peal_cuda_op *op = &rank->op[i];
        if (op->source->kind == PEAL_OP_WRITE && !op->self &&
            peal_transport_is_network(op->channel->transport) && !bind(rank, op, reason))
            return false;
    }
    return true;
}

void peal_cuda_doorbells_release(peal_cuda_rank *rank)
{
    for (int i = 0; rank->op && i < rank->schedule->op_count; i++) {
        peal_cuda_doorbell *bell = rank->op[i].doorbell;
        for (int p = 0; bell && p < bell->count; p++)
            peal_cuda_pages_give(rank->plan->device, &bell->pages[p]);
        rank->op[i].doorbell = NULL;
    }
}

/* Engines count messages of a plan from 1. */
static uint64_t number_of(const peal_cuda_rank *rank, uint64_t message)
{
    return message - rank->plan->desc.hooks.first_message;
}

bool peal_cuda_doorbell_has_room(const peal_cuda_rank *rank)
{
    int index = rank->walk.position;
    const peal_cuda_op *op = &rank->op[index];
    const peal_network_hook *network = rank->plan->desc.network;

    if (!op->doorbell || op->skipped)
        return true;
    uint64_t next = rank->walk.message[rank->program->op[index].message_counter] + 1;
    return network->ahead(network->user, rank->index, op->source->channel, op->source->credit,
                          number_of(rank, next));
}

/* Where the device sees what a store goes to; 0: nowhere. */
static CUdeviceptr address_of(const peal_cuda_doorbell *bell, const void *at)
{
    for (int p = 0; p < bell->count; p++) {
        uint64_t offset = (uint64_t)((uintptr_t)at - (uintptr_t)bell->pages[p].at);
        if (offset < bell->pages[p].bytes)
            return bell->address[p] + offset;
    }
    return 0;
}

bool peal_cuda_doorbell_emit(peal_cuda_rank *rank, peal_cuda_op *op, uint64_t message)
{
    peal_cuda_plan *plan = rank->plan;
    const peal_network_hook *network = plan->desc.network;
    peal_cuda_lane *lane = peal_cuda_lane_at(rank, op->lane);
    peal_network_store store[PEAL_NETWORK_STORES];
    int index = (int)(op - rank->op);

    if (!peal_cuda_flush(rank, op->lane))
        return false;
    int count = network->stores(network->user, rank->index, op->source->channel, op->source->credit,
                                number_of(rank, message), store);
    for (int i = 0; i < count; i++) {
        CUdeviceptr word = address_of(op->doorbell, store[i].at);
        CUresult result =
            word ? plan->emission.sink->ops->ring(rank, lane, word, store[i].value, store[i].bytes)
                 : CUDA_ERROR_INVALID_ADDRESS_SPACE;
        if (result)
            return peal_cuda_report_driver_error(plan, result, op, op->channel->edge);
    }
    return peal_cuda_flags_enqueued(rank, lane) && peal_cuda_enqueued(rank, lane, index) &&
           peal_cuda_publish(rank, lane, index);
}
