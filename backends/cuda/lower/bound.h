/* What ops and tasks are bound to when a plan is created: addresses, kernels, pieces and tiles. It
 * does not change afterwards, but for the events of published ops. */
#ifndef PEAL_CUDA_BOUND_H
#define PEAL_CUDA_BOUND_H

#include "backends/cuda/codegen/device/launch.h"
#include "backends/cuda/jit/kernels.h"
#include "base/walk.h"

typedef struct peal_cuda_rank peal_cuda_rank;
typedef struct peal_cuda_plan peal_cuda_plan;

/* What the address of a piece is relative to: an array of this rank, an array of the peer, or the
 * channel's staging slot. */
typedef enum peal_cuda_base_kind {
    PEAL_CUDA_BASE_OWN,
    PEAL_CUDA_BASE_PEER,
    PEAL_CUDA_BASE_STAGING
} peal_cuda_base_kind;
typedef struct peal_cuda_base {
    peal_cuda_base_kind kind;
    int array;
} peal_cuda_base;

/* The pieces of a COPY: the host's table, and its copy in device memory. */
typedef struct peal_cuda_pieces {
    peal_device_piece *piece; /* host memory */
    CUdeviceptr table;        /* device memory */
    int count;
    int64_t units, bytes;
    peal_cuda_base *base;
    int base_count;
} peal_cuda_pieces;

/* A piece of a message as a remote store: each block of the task that writes the array stores its
 * own points of the piece into the receiver's memory (remote_store.c). Pieces of local copies,
 * which fill images of the rank's own points, are remote stores as well; their target is local. */
typedef struct peal_cuda_remote_store {
    int array;
    peal_cuda_base base;
    int64_t offset; /* bytes from the base to where the point with coordinates 0 would lie */
    int64_t points;
    peal_launch_remote_store box; /* target, boxes and view are filled in for each launch */
    int to_lo[PEAL_AXES], to_hi[PEAL_AXES]; /* the points that it fills in the target array */
} peal_cuda_remote_store;

typedef struct peal_cuda_doorbell peal_cuda_doorbell; /* doorbell.h */

typedef struct peal_cuda_op {
    const peal_op *source;
    int lane;
    int region;     /* mode graph: the run-time condition that decides whether it runs; -1: none */
    bool skipped;   /* by a test hook, or because the application does it */
    bool idles;     /* WAIT, by a test hook: it is launched and waits for a value that is there */
    bool published; /* an op of another lane depends on it, or its message stays in this process */
    bool self;      /* COPY, WRITE, WAIT: between ranks of this process, whose device is the same */
    peal_cuda_rank *peer; /* self: the rank at the other end of the channel */
    int peer_op;          /* WAIT, self: the peer's WRITE that it waits for; -1: none */
    const peal_channel *channel;
    CUdeviceptr word;             /* WRITE, WAIT: the flag or credit */
    peal_cuda_doorbell *doorbell; /* WRITE: the stream rings for its messages; NULL: it stores
                                     the word */
    CUdeviceptr staging;          /* COPY: address of buffer slot 0 */
    CUdeviceptr *target;          /* COPY SEND: the peer's storages */
    peal_cuda_pieces pieces;
    peal_cuda_remote_store *remote_store; /* COPY SEND */
    int remote_store_count;
    bool can_store_remotely;
    bool can_add; /* WRITE: this device's atomics work on the word's memory */
    const peal_cuda_task_kernel *kernel;
    const peal_schedule_task *task;
    peal_launch_box *free, *exact; /* boxes of its tiles */
    peal_launch_box *large;        /* as many as free, of larger tiles, for launches that wait for
                                      nothing and send nothing; or NULL */
    int free_count, exact_count;
    CUevent event[2];  /* published, by parity of the instance: recorded when it has finished */
    uint64_t epoch[2]; /* peal_cuda_emission.epoch when that event was recorded */
} peal_cuda_op;

typedef struct peal_cuda_task {
    peal_walk_value needed; /* whether somebody reads its partials */
    peal_walk_value *argument;
    unsigned stored_remotely; /* bit i: access i writes the points of the tile and no others, so
                                 that blocks can send them */
} peal_cuda_task;

/* tile_boxes.c. The box of some of the schedule's own tiles, a tile a block; and out->exact, free
 * and large. */
void peal_cuda_box_exact(const peal_schedule_task *task, const peal_tile_range *range,
                         peal_launch_box *out);
/* How rows lie in memory from x = `begin` on, if the point with coordinates 0 is at `zero`:
 * PEAL_ALIGNED: all at an even element, PEAL_ALIGNED_ODD: all at an odd one; else PEAL_UNALIGNED.
 */
int peal_cuda_rows_alignment(const peal_schedule_array *array, uint64_t zero, int64_t begin);
void peal_cuda_tile_boxes_bind(peal_cuda_rank *rank, const peal_op *op, peal_cuda_op *out);

/* copy_pieces.c */
/* Bytes from an array's first element to a point. */
int64_t peal_cuda_offset_of(const peal_layout *layout, const int64_t *point, size_t element_bytes);
/* Fills the pieces of COPY `out` and, but for unpacking, its remote stores. */
void peal_cuda_pieces_bind(peal_cuda_rank *rank, peal_cuda_op *out);

/* remote_store.c */
/* Bit i: access i of the task writes the points of the tile and no others. */
unsigned peal_cuda_remote_store_accesses(const peal_schedule_task *task);
/* Sets the op's remote stores, and can_store_remotely: all of its pieces are of that form. */
void peal_cuda_remote_stores_bind(peal_cuda_rank *rank, peal_cuda_op *op);

/* bind.c */
/* Binds the schedule of rank `index` of the plan to memory. What fails has been reported: an
 * expression, too many tiles for a grid, an invalid CUDA function of the application, a driver
 * call. */
peal_status peal_cuda_rank_bind(peal_cuda_plan *plan, int index);
/* Once all ranks are bound: finds the peer ops of waits, and copies the tables of pieces to the
 * device. What fails has been reported (PEAL_E_DRIVER_CALL_FAILED). */
peal_status peal_cuda_plan_upload(peal_cuda_plan *plan);

/* emit_call.c: whether the application's function can be launched with its number of threads, and
 * the host can compute its arguments. If not: PEAL_E_INVALID_CUDA_FUNCTION. */
peal_status peal_cuda_call_check(const peal_cuda_rank *rank, const peal_schedule_task *source,
                                 const peal_cuda_task *task);

#endif
