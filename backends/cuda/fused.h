/* Mode fused on a GPU: what capture.c would put into a graph becomes records of one kernel that
 * stays (device/fused.h).
 *
 * fused.c notes launches as records and lays them out in device memory, fused_start.c starts the
 * kernel; fused_touch.c says what the blocks of a record read and write, fused_share.c gives each
 * block its share of a record, and fused_order.c finds the blocks whose earlier records it has to
 * wait for; fused_scratch.c lets folds be behind the steps; fused_tickets.c lists shares that
 * blocks take as they come; fused_shapes.c prints what the compiler may know of the launches. */
#ifndef PEAL_CUDA_FUSED_H
#define PEAL_CUDA_FUSED_H

#include "backends/cuda/device/fused_launch.h"
#include "backends/cuda/plan.h"

/* What blocks may read or write. Spaces are the rank's storages, then words of the run. */
typedef struct cuda_touch {
    int space;
    bool write;
    unsigned boxes; /* by which boxes of the launch; all of a copy */
    enum {
        CUDA_TOUCH_ALL,   /* the whole space */
        CUDA_TOUCH_REACH, /* around the tile */
        CUDA_TOUCH_INDEX, /* the element that has the tile's number */
        CUDA_TOUCH_BOX
    } kind;
    const peal_reach *reach;
    int lo[PEAL_AXES], hi[PEAL_AXES]; /* BOX */
    CUdeviceptr word; /* it is a message that blocks of these boxes wait for by this word; or 0 */
} cuda_touch;

enum { CUDA_RECORD_TOUCHES = 256 };

typedef struct cuda_record {
    peal_launch launch;
    int number; /* of its function in the dispatcher */
    unsigned blocks;
    bool after_all; /* its blocks wait for all blocks */
    unsigned each;  /* so many a share has of them, about */
    bool spread;    /* neighbouring blocks are run at a time, by neighbours (fused_share.c), */
    bool taken;     /* and by whoever comes next where they neither wait for messages nor send */
    bool back;      /* shares are run from their end */
    bool overflows; /* more is touched than can be noted */
    cuda_touch *touch;
    int touch_count;
    bool receives; /* it only waits for messages, for the record behind it */
    int64_t step;
    int kind;                       /* records of a kind have the same shares */
    const peal_schedule_task *task; /* whose tiles are cut as one likes; or NULL */
    const peal_schedule *schedule;
    bool partials;
    int shape;  /* -1: any */
    int serves; /* the task that it folds for, while others go on; -1 */
    bool alone; /* the dispatcher waits for it, and adds to its flags: */
    uint64_t quantum[PEAL_LAUNCH_WRITES];
    unsigned first_blocks; /* of boxes that send, and come before all others: blocks of their own */
    int service; /* which block runs it, counted from the last one, if it is one block's work */
} cuda_record;

/* A launch's part of the records, and of the list of tickets. */
typedef struct cuda_launch_part {
    int record, end; /* records [record, end) */
    size_t ticket;   /* place of its first in the list */
    unsigned count;  /* of tickets */
} cuda_launch_part;

/* The records of a rank, of a half. */
typedef struct cuda_fused {
    cuda_record *record;
    int count, room;
    cuda_touch *touch; /* CUDA_RECORD_TOUCHES: of the record that is being noted */
    int kinds;
    int *kind_record;       /* by kind: its first record */
    unsigned blocks;        /* the rank's, of the kernel */
    unsigned grid;          /* so many share a record: the blocks, or, with tickets, workers */
    int services;           /* so many of these, the last ones, have what is one block's work */
    bool tickets, receives; /* receives are records of their own */
    cuda_launch_part *part; /* with tickets: launches of a round, in a row */
    int part_count;
    CUdeviceptr memory;
} cuda_fused;

/* The kernel of a half: all ranks of the process. */
typedef struct cuda_fused_kernel {
    cuda_fused *rank;      /* by rank */
    peal_fused *parameter; /* by rank */
    int shapes;
    const struct cuda_sm *sm; /* NULL: not known */
    int stage_bytes;          /* shared memory that a launch gives it, for staging */
    CUfunction function;
    unsigned blocks; /* of all ranks */
} cuda_fused_kernel;

/* A launch that the emission makes while it captures. group: NULL for counting and beginning. */
void cuda_fused_add(cuda_rank *rank, CUfunction function, unsigned blocks,
                    const peal_launch *launch, const cuda_group *group);
/* Before the records of a half are noted; after. */
void cuda_fused_begin(cuda_plan *plan, int half);
peal_status cuda_fused_build(cuda_plan *plan, int half);
/* That one launch may have: epochs come round. */
int64_t cuda_fused_most_rounds(const cuda_plan *plan);
/* Blocks of it that an SM holds; 0: none. */
int cuda_fused_resident(const cuda_plan *plan, const cuda_fused_kernel *kernel);
/* rounds of the half's records, on the origin. */
CUresult cuda_fused_start(cuda_plan *plan, int half, int64_t rounds);
void cuda_fused_destroy(cuda_plan *plan);

/* fused_scratch.c: before it is known how many steps a round has. */
enum { CUDA_SCRATCH_STEPS = 4 };
peal_status cuda_fused_scratch(cuda_plan *plan);
/* Whether there was any. */
bool cuda_fused_scratch_free(cuda_plan *plan);
/* By storage and step, which memory an address lies in, counted behind the storages; -1: none. */
int cuda_scratch_at(const cuda_rank *rank, CUdeviceptr address);
/* Whether a group is a FOLD whose result goes into messages and nowhere else. */
bool cuda_fused_sends_fold(const cuda_rank *rank, const cuda_group *group);

/* fused_touch.c */
int cuda_fused_spaces(const cuda_rank *rank);
void cuda_fused_touch(cuda_rank *rank, cuda_record *record, const cuda_group *group);
/* A record that only waits. */
void cuda_fused_touch_waits(const cuda_rank *rank, cuda_record *record);

/* fused_shapes.c: says which shapes records have; the shapes' text, in the arena. */
const char *cuda_fused_shape(cuda_fused_kernel *kernel, int rank_count, const peal_device *device,
                             peal_arena *arena);

/* fused_share.c: says which records are spread, where so many blocks of the kernel stay at least.
 */
void cuda_fused_spread(cuda_fused *fused, unsigned blocks);
/* ... and which block serves those that are one block's work, where the kernel has so many. */
void cuda_fused_serve(cuda_fused *fused, unsigned blocks);
/* ... how many of a launch's blocks send, if they are its first ones, and others follow; else 0. */
unsigned cuda_fused_first_blocks(const peal_launch *launch, unsigned blocks);
peal_fused_share cuda_fused_share(const cuda_fused *fused, const cuda_record *record,
                                  unsigned block);

/* fused_order.c */
/* Kinds; shares by kind and block, what they wait for, and what they add to flags, in the arena.
 * False: there are too many kinds. */
typedef struct cuda_order {
    peal_fused_share *share;
    peal_fused_name *after;
    peal_fused_add *add;
    size_t after_count, add_count;
} cuda_order;
bool cuda_fused_order(const cuda_rank *rank, cuda_fused *fused, cuda_order *out);

/* fused_tickets.c: how many workers share the records; launches, and the list of their tickets, in
 * the arena. */
typedef struct cuda_tickets {
    peal_fused_ticket *list;
    size_t count;
    unsigned short *first; /* by launch and worker: `next` in front of it */
} cuda_tickets;
unsigned cuda_fused_workers(const cuda_fused *fused);
void cuda_fused_tickets(const cuda_rank *rank, cuda_fused *fused, const cuda_order *order,
                        cuda_tickets *out);

#endif
