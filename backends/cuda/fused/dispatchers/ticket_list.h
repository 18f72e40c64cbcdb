/* What the dispatchers with tickets share: how many workers there are, and the list of tickets that
 * blocks take (codegen/device/ticket_walker.h). */
#ifndef PEAL_CUDA_TICKET_LIST_H
#define PEAL_CUDA_TICKET_LIST_H

#include "backends/cuda/fused/dispatchers/dispatcher.h"

typedef struct peal_cuda_ticket_rules {
    /* Whether a work item, not the first one, begins another launch. NULL: a launch has all. */
    bool (*begins_launch)(const peal_cuda_fused *fused, int item);
    /* Where a partition comes among those of its work item, from 0 to `places` - 1: the lower, the
     * earlier. NULL: in the order of workers. */
    int (*place_of)(const peal_cuda_work_item *item, const peal_fused_partition *partition);
    int places;
} peal_cuda_ticket_rules;

unsigned peal_cuda_ticket_workers(const peal_cuda_fused *fused);
/* Cuts the round into launches (fused->part), and lists the tickets of all of them, in the arena.
 */
void peal_cuda_ticket_list(const peal_cuda_rank *rank, peal_cuda_fused *fused,
                           const peal_cuda_block_deps *deps, const peal_cuda_ticket_rules *rules,
                           peal_cuda_tickets *out);

#endif
