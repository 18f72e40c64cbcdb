/* The contract of the dispatchers of mode fused. A dispatcher decides how the blocks of the
 * persistent kernel get their work: how work items are shared out, which one a block runs next,
 * what that one waits for, and by how many launches the kernel is run. Each dispatcher is a
 * constant in a file of its own; table.c lists them by the names that `--lower order=NAME` has. All
 * others ask the constant, and none asks which dispatcher it is. To take one out, delete its file,
 * its line in table.c and its word in base/lowering.c.
 *
 *   tiles.c    fixed partitions, dataflow between tiles (the default)
 *   grid.c     fixed partitions, a barrier of all blocks
 *   tickets.c  dynamic: blocks take the next partition of a list
 *   paper.c    the published dispatcher: a kernel a step, tickets, receives apart, a barrier
 *
 * The kernels are text for NVRTC: codegen/device/dispatch_tiles.h and ticket_walker.h. */
#ifndef PEAL_CUDA_DISPATCHER_H
#define PEAL_CUDA_DISPATCHER_H

#include "backends/cuda/fused/fused.h"

typedef struct peal_cuda_dispatcher {
    const char *name;          /* `--lower order=NAME` */
    const char *device_header; /* the text of its kernel is <peal/DEVICE_HEADER.h> */
    bool one_rank;             /* a kernel has blocks of one rank only */

    /* ---- recording: what becomes a work item ---- */

    /* Records what a launch waits for as a work item of its own, in front of the launch. NULL: the
     * launch's own partitions wait. */
    void (*record_receive)(peal_cuda_rank *rank, const peal_launch *launch);
    bool has_reduction_ring; /* folds may be some steps behind (reduction_ring.c) */
    bool serves_alone; /* the kernel itself waits and adds to flags for work items of one block that
                          are `alone` */

    /* ---- sharing out: who runs which part of a work item ---- */

    /* How many blocks, or workers, have a partition of each work item. */
    unsigned (*workers)(const peal_cuda_fused *fused);
    /* Partition b of every work item is run by block b, in the order of the list. Else any block
     * may run it, so it waits for what ran partition b of the work items before. */
    bool is_fixed;
    bool has_dynamic_tiles; /* tiles of a cyclic work item may be taken one by one */
    bool has_services; /* folds, their messages and work items of one block have their own blocks */

    /* ---- what a partition waits for ---- */

    /* Each work item waits for all blocks. */
    bool has_barrier;
    /* Whether one partition waits for all blocks, beside those of work items that always do. NULL:
     * it waits for the blocks that touch the same memory. */
    bool (*waits_for_all)(const peal_cuda_work_item *item, const peal_fused_partition *partition);

    /* ---- the next work item ---- */

    /* The order in which blocks take partitions. NULL: each block walks the work items. */
    void (*list_tickets)(const peal_cuda_rank *rank, peal_cuda_fused *fused,
                         const peal_cuda_block_deps *deps, peal_cuda_tickets *out);

    /* ---- launches ---- */

    /* A launch may begin and end amid a round. */
    bool has_parts;
    /* Most rounds that `start` may be asked for, of at most `items` work items each. */
    int64_t (*most_rounds)(const peal_cuda_plan *plan, int items);
    /* Enqueues so many rounds. */
    CUresult (*start)(peal_cuda_plan *plan, const peal_cuda_fused_kernel *kernel, int64_t rounds);
} peal_cuda_dispatcher;

extern const peal_cuda_dispatcher peal_cuda_dispatcher_tiles, peal_cuda_dispatcher_grid,
    peal_cuda_dispatcher_tickets, peal_cuda_dispatcher_paper;

/* The dispatcher whose name has these `length` bytes; NULL: there is none. */
const peal_cuda_dispatcher *peal_cuda_dispatcher_find(const char *name, size_t length);
/* What is taken where no word names one. */
const peal_cuda_dispatcher *peal_cuda_dispatcher_default(void);

#endif
