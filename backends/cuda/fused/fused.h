/* Mode fused on a GPU: what capture.c would put into a graph becomes work items of one kernel that
 * stays (device/fused.h).
 *
 * record.c notes launches as work items and lays them out in device memory, launch.c starts the
 * kernel; footprint.c says what the blocks of a work item read and write, partition.c gives
 * each block its partition of a work item, and block_deps.c finds the blocks whose earlier work
 * items it has to wait for; reduction_ring.c lets folds be behind the steps; tickets.c lists
 * partitions that blocks take as they come; shapes.c prints what the compiler may know of the
 * launches. */
#ifndef PEAL_CUDA_FUSED_H
#define PEAL_CUDA_FUSED_H

#include "backends/cuda/codegen/device/fused_launch.h"
#include "backends/cuda/lower/plan.h"

/* What blocks may read or write. Spaces are the rank's storages, then words of the run. */
typedef struct peal_cuda_touch {
    int space;
    bool write;
    unsigned boxes; /* by which boxes of the launch; all of a copy */
    enum {
        PEAL_CUDA_TOUCH_ALL,   /* the whole space */
        PEAL_CUDA_TOUCH_REACH, /* around the tile */
        PEAL_CUDA_TOUCH_INDEX, /* the element that has the tile's number */
        PEAL_CUDA_TOUCH_BOX
    } kind;
    const peal_reach *reach;
    int lo[PEAL_AXES], hi[PEAL_AXES]; /* BOX */
    CUdeviceptr word; /* it is a message that blocks of these boxes wait for by this word; or 0 */
} peal_cuda_touch;

enum { PEAL_CUDA_WORK_ITEM_TOUCHES = 256 };

/* Boxes of a launch that has a shape; one of more boxes is run by the general function. */
enum { PEAL_CUDA_SHAPED_BOXES = 4 };

typedef struct peal_cuda_work_item {
    peal_launch launch;
    int number; /* of its function in the dispatcher */
    unsigned blocks;
    bool after_all; /* its blocks wait for all blocks */
    unsigned each;  /* so many a partition has of them, about */
    bool cyclic;    /* neighbouring blocks are run at a time, by neighbours (partition.c), */
    bool dynamic;   /* and by whoever comes next where they neither wait for messages nor send */
    bool back;      /* partitions are run from their end */
    bool overflows; /* more is touched than can be noted */
    peal_cuda_touch *touch;
    int touch_count;
    bool receives; /* it only waits for messages, for the work item behind it */
    int64_t step;
    int kind;                       /* work items of a kind have the same partitions */
    const peal_schedule_task *task; /* whose tiles are cut as one likes; or NULL */
    const peal_schedule *schedule;
    bool partials;
    int shape;  /* -1: any */
    int serves; /* the task that it folds for, while others go on; -1 */
    bool alone; /* the dispatcher waits for it, and adds to its flags: */
    uint64_t quantum[PEAL_LAUNCH_WRITES];
    unsigned first_blocks; /* of boxes that send, and come before all others: blocks of their own */
    int service; /* which block runs it, counted from the last one, if it is one block's work */
} peal_cuda_work_item;

/* A launch's part of the work items, and of the list of tickets. */
typedef struct peal_cuda_ticket_launch {
    int item, end;  /* work items [work item, end) */
    size_t ticket;  /* place of its first in the list */
    unsigned count; /* of tickets */
} peal_cuda_ticket_launch;

/* The work items of a rank, of a slot. */
typedef struct peal_cuda_fused {
    peal_cuda_work_item *item;
    int count, room;
    peal_cuda_touch *touch; /* PEAL_CUDA_WORK_ITEM_TOUCHES: of the work item that is being noted */
    int kinds;
    int *kind_item;         /* by kind: its first work item */
    unsigned blocks;        /* the rank's, of the kernel */
    unsigned grid;          /* so many share a work item: the blocks, or, with tickets, workers */
    int services;           /* so many of these, the last ones, have what is one block's work */
    bool tickets, receives; /* receives are work items of their own */
    peal_cuda_ticket_launch *part; /* with tickets: launches of a round, in a row */
    int part_count;
    CUdeviceptr memory;
} peal_cuda_fused;

/* The kernel of a slot: all ranks of the process. */
typedef struct peal_cuda_fused_kernel {
    peal_cuda_fused *rank; /* by rank */
    peal_fused *parameter; /* by rank */
    int shapes;
    const struct peal_cuda_sm *sm; /* NULL: not known */
    int stage_bytes;               /* shared memory that a launch gives it, for staging */
    CUfunction function;
    unsigned blocks; /* of all ranks */
} peal_cuda_fused_kernel;

/* engine.c */
extern const struct peal_cuda_engine peal_cuda_fused_engine;

/* A launch that the emission makes while it captures. group: NULL for counting and beginning. */
void peal_cuda_fused_add(peal_cuda_rank *rank, CUfunction function, unsigned blocks,
                         const peal_launch *launch, const peal_cuda_group *group);
/* Before the work items of a slot are noted; after. */
void peal_cuda_fused_begin(peal_cuda_plan *plan, int slot);
peal_status peal_cuda_fused_build(peal_cuda_plan *plan, int slot);
/* That one launch may have: epochs come round. */
int64_t peal_cuda_fused_most_rounds(const peal_cuda_plan *plan);
/* Blocks of it that an SM holds; 0: none. */
int peal_cuda_fused_resident(const peal_cuda_plan *plan, const peal_cuda_fused_kernel *kernel);
/* rounds of the slot's work items, on the origin. */
CUresult peal_cuda_fused_start(peal_cuda_plan *plan, int slot, int64_t rounds);
void peal_cuda_fused_destroy(peal_cuda_plan *plan);

/* reduction_ring.c: before it is known how many steps a round has. */
peal_status peal_cuda_reduction_ring_create(peal_cuda_plan *plan);
/* Whether there was any. */
bool peal_cuda_reduction_ring_free(peal_cuda_plan *plan);
/* Whether a group is a FOLD whose result goes into messages and nowhere else. */
bool peal_cuda_fused_sends_fold(const peal_cuda_rank *rank, const peal_cuda_group *group);

/* footprint.c */
int peal_cuda_footprint_spaces(const peal_cuda_rank *rank);
void peal_cuda_footprint_note(peal_cuda_rank *rank, peal_cuda_work_item *item,
                              const peal_cuda_group *group);
/* A work item that only waits. */
void peal_cuda_footprint_note_waits(const peal_cuda_rank *rank, peal_cuda_work_item *item);

/* shapes.c: says which shapes work items have; the shapes' text, in the arena. */
const char *peal_cuda_fused_shape(peal_cuda_fused_kernel *kernel, int rank_count,
                                  const peal_device *device, peal_arena *arena);

/* partition.c: says which work items are cyclic, where so many blocks of the kernel stay at
 * least.
 */
void peal_cuda_partition_cyclic(peal_cuda_fused *fused, unsigned blocks);
/* ... and which block serves those that are one block's work, where the kernel has so many. */
void peal_cuda_partition_serve(peal_cuda_fused *fused, unsigned blocks);
/* ... how many of a launch's blocks send, if they are its first ones, and others follow; else 0. */
unsigned peal_cuda_partition_first_blocks(const peal_launch *launch, unsigned blocks);
peal_fused_partition peal_cuda_partition(const peal_cuda_fused *fused,
                                         const peal_cuda_work_item *item, unsigned block);

/* block_deps.c */
/* Kinds; partitions by kind and block, what they wait for, and what they add to flags, in the
 * arena. False: there are too many kinds. */
typedef struct peal_cuda_block_deps {
    peal_fused_partition *partition;
    peal_fused_dependency *after;
    peal_fused_add *add;
    size_t after_count, add_count;
} peal_cuda_block_deps;
bool peal_cuda_block_deps_build(const peal_cuda_rank *rank, peal_cuda_fused *fused,
                                peal_cuda_block_deps *out);

/* tickets.c: how many workers partition the work items; launches, and the list of their
 * tickets, in the arena. */
typedef struct peal_cuda_tickets {
    peal_fused_ticket *list;
    size_t count;
    unsigned short *first; /* by launch and worker: `next` in front of it */
} peal_cuda_tickets;
unsigned peal_cuda_fused_workers(const peal_cuda_fused *fused);
void peal_cuda_fused_tickets(const peal_cuda_rank *rank, peal_cuda_fused *fused,
                             const peal_cuda_block_deps *order, peal_cuda_tickets *out);

/* upload.c: the lists of a rank, in device memory; fills the kernel's parameter. */
peal_status peal_cuda_fused_upload(const peal_cuda_rank *rank, peal_cuda_fused *fused,
                                   const peal_cuda_block_deps *deps,
                                   const peal_cuda_tickets *tickets, peal_fused *parameter);

#endif
