/* order=tickets: dynamic, blocks take the next partition of a list.
 *
 * Work items are shared out among *workers*, up to a few for each block. A round's partitions are
 * listed in the order of the work items (ticket_list.c). A block that is free takes the next number
 * of the list by an atomic addition, waits for what that partition depends on, which is as in
 * tiles.c, and runs it: a block whose tiles are done early takes more of them.
 *
 * Invariants: codegen/device/ticket_walker.h, which has the kernel. One resident block is enough
 * for a rank to get to its end.
 *
 * Where it comes from: work that persistent threads take by an atomic counter is that of Aila and
 * Laine, "Understanding the efficiency of ray traversal on GPUs" (HPG 2009). That an atomic number
 * makes the order of work independent of the order in which the hardware starts blocks, so that a
 * block may wait for lower numbers, is used by Yan, Long and Zhang, "StreamScan: fast scan
 * algorithms for GPUs without global barrier synchronization" (PPoPP 2013).
 *
 * When to use it: tiles whose work is uneven. Where all tiles cost the same, taking tickets and
 * reading a partition from device memory each time costs more than it gives. */
#include "backends/cuda/fused/dispatchers/ticket_list.h"

static void list_tickets(const peal_cuda_rank *rank, peal_cuda_fused *fused,
                         const peal_cuda_block_deps *deps, peal_cuda_tickets *out)
{
    static const peal_cuda_ticket_rules one_launch = {.places = 1};

    peal_cuda_ticket_list(rank, fused, deps, &one_launch, out);
}

const peal_cuda_dispatcher peal_cuda_dispatcher_tickets = {
    .name = "tickets",
    .device_header = "ticket_walker",
    .workers = peal_cuda_ticket_workers,
    .list_tickets = list_tickets,
    .most_rounds = peal_cuda_fused_rounds_of_epochs,
    .start = peal_cuda_fused_start_once,
};
