/* order=paper: the dispatcher of the publication that mode fused began with.
 *
 * Agostini, Rossetti and Potluri, "GPUDirect Async: Exploring GPU synchronous communication
 * techniques for InfiniBand clusters" (JPDC 114, 2018), describe one kernel for each period of
 * communication. Its blocks take numbers by an atomic addition; the first block receives, the next
 * ones pack and send, others compute the interior, and the last ones wait at a barrier until the
 * receiving block releases them, and unpack. scheduler/model.h has the performance model of the
 * same publication.
 *
 * Here it is: a launch for each step, whose list of tickets (ticket_list.c) is that step's part of
 * the round. What a launch waits for is a work item of one block, in front of the launch.
 * Partitions that need a message wait for all partitions before them. In a work item those that
 * send and need no message come first, those that need a message and send nothing come last.
 *
 * Invariants: those of codegen/device/ticket_walker.h, which has the kernel. A kernel has one rank,
 * since launches are cut where that rank's steps begin. No receive holds up what it waits for: the
 * list follows the order of all ranks, in which that was sent earlier.
 *
 * When to use it: to compare with runtimes that work so. It is never the default. */
#include "backends/cuda/fused/dispatchers/ticket_list.h"

#include <string.h>

/* Kernels that are enqueued at a time, one for each step. */
enum { MOST_LAUNCHES = 64 };

/* ---- recording ---- */

static void record_receive(peal_cuda_rank *rank, const peal_launch *launch)
{
    peal_cuda_work_item *item = peal_cuda_fused_next_item(rank);
    peal_launch *own = &item->launch;

    own->control = launch->control;
    own->stop = launch->stop;
    own->skip = launch->skip;
    own->step = launch->step;
    own->budget = launch->budget;
    own->op = launch->op;
    own->counter[0] = launch->counter[0];
    own->wait_count = launch->wait_count;
    memcpy(own->wait, launch->wait, (size_t)launch->wait_count * sizeof(own->wait[0]));
    own->box_count = 1;
    own->box[0] = (peal_launch_box){.blocks = 1, .bit = 1, .waits = (1u << own->wait_count) - 1};
    for (int k = 0; k < PEAL_AXES; k++) {
        own->box[0].hi[k] = own->box[0].extent[k] = 1;
        own->box[0].count[k] = 1;
    }
    item->number = PEAL_CUDA_BUILTIN_SIGNAL;
    item->blocks = 1;
    item->receives = true;
    peal_cuda_footprint_note_waits(rank, item);
    peal_cuda_fused_keep_touches(rank->plan, item);
}

/* ---- what a partition waits for ---- */

static bool waits_for_all(const peal_cuda_work_item *item, const peal_fused_partition *partition)
{
    return partition->waits && !item->receives;
}

/* ---- the list ---- */

static bool begins_launch(const peal_cuda_fused *fused, int item)
{
    return fused->item[item].step != fused->item[item - 1].step;
}

static bool sends(const peal_launch *launch, const peal_fused_partition *partition)
{
    unsigned end = partition->first + partition->count * partition->stride;

    for (int b = 0; b < launch->box_count; b++)
        if (launch->box[b].sends &&
            partition->first < launch->box[b].first + launch->box[b].blocks &&
            end > launch->box[b].first)
            return true;
    return false;
}

static int place_of(const peal_cuda_work_item *item, const peal_fused_partition *partition)
{
    return (waits_for_all(item, partition) ? 2 : 0) + !sends(&item->launch, partition);
}

static void list_tickets(const peal_cuda_rank *rank, peal_cuda_fused *fused,
                         const peal_cuda_block_deps *deps, peal_cuda_tickets *out)
{
    static const peal_cuda_ticket_rules launch_a_step = {.begins_launch = begins_launch,
                                                         .place_of = place_of,
                                                         .places = 4};

    peal_cuda_ticket_list(rank, fused, deps, &launch_a_step, out);
}

/* ---- launches ---- */

static int64_t most_rounds(const peal_cuda_plan *plan, int items)
{
    int most = MOST_LAUNCHES / plan->fused[0].rank[0].part_count;

    (void)items;
    return most > 1 ? most : 1;
}

/* One round of one rank, a launch for each of its steps. */
static CUresult launch_steps(peal_cuda_plan *plan, const peal_cuda_fused_kernel *kernel)
{
    const peal_cuda_fused *fused = &kernel->rank[0];
    peal_fused_tickets *own = &kernel->parameter[0].tickets;
    const peal_fused_tickets all = *own;
    CUresult result = CUDA_SUCCESS;

    for (int p = 0; p < fused->part_count && !result; p++) {
        const peal_cuda_ticket_launch *part = &fused->part[p];
        own->list = all.list + part->ticket * sizeof(peal_fused_ticket);
        own->first = all.first + (size_t)p * fused->grid * sizeof(unsigned short);
        own->count = part->count;
        own->item = (unsigned)part->item;
        result = peal_cuda_fused_launch(plan, kernel, 1);
    }
    *own = all;
    return result;
}

static CUresult start(peal_cuda_plan *plan, const peal_cuda_fused_kernel *kernel, int64_t rounds)
{
    CUresult result = CUDA_SUCCESS;

    for (int64_t done = 0; done < rounds && !result; done++) {
        result = launch_steps(plan, kernel);
        peal_cuda_fused_advance(plan, kernel, 1);
    }
    return result;
}

const peal_cuda_dispatcher peal_cuda_dispatcher_paper = {
    .name = "paper",
    .device_header = "ticket_walker",
    .one_rank = true,
    .record_receive = record_receive,
    .workers = peal_cuda_ticket_workers,
    .waits_for_all = waits_for_all,
    .list_tickets = list_tickets,
    .most_rounds = most_rounds,
    .start = start,
};
