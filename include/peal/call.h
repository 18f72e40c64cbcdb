/* What a task's function is called with: one tile, the views of its accesses, its arguments.
 *
 * Kernels of a spec never see this: peal generates the call (see peal/kernel.h). Applications that
 * pass functions of their own receive it as it stands: `.function` by a pointer on the host,
 * `.cuda_function` by value on the GPU, `.enqueue` by a pointer on the host with addresses of the
 * GPU in it. This header is C11, C++ and CUDA C++. */
#ifndef PEAL_CALL_H
#define PEAL_CALL_H

#include <peal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PEAL_CALL_VIEWS = 16,    /* most accesses of a task: read, update, write */
    PEAL_CALL_PARTIALS = 8,  /* most reductions of a task */
    PEAL_CALL_ARGUMENTS = 16 /* most arguments of a task */
};

/* The tile of a call, in global coordinates of the field that the task's box names. */
typedef struct peal_tile {
    int lo[PEAL_AXES];
    int hi[PEAL_AXES]; /* end excluded */
    int64_t index;     /* number of this tile among the task's tiles on this rank */
    int64_t count;     /* number of the task's tiles on this rank */
} peal_tile;

/* One access: element (x, y, z, w) in global coordinates is base[x + y*stride[1] + z*stride[2] +
 * w*stride[3]], in elements. base may point outside the allocation; only stored points may be
 * dereferenced. Plain buffers: base[i]. stride[0] is 1. */
typedef struct peal_view {
    void *base;
    int64_t stride[PEAL_AXES];
} peal_view;

typedef union peal_argument {
    int64_t integer;
    double real;
} peal_argument;

typedef struct peal_call {
    peal_tile tile;
    int view_count;     /* accesses in the order read, update, write */
    int partial_count;  /* reductions, in listed order */
    int argument_count; /* in listed order */
    peal_view view[PEAL_CALL_VIEWS];
    void *partial[PEAL_CALL_PARTIALS]; /* one element each: store this tile's part; NULL: nobody
                                          reads it */
    peal_argument argument[PEAL_CALL_ARGUMENTS];
    void *user; /* the task's `.user` pointer */
} peal_call;

/* A task's function. It may be called by several threads at a time, each with its own tile. */
typedef void (*peal_function)(const peal_call *call);

/* Of a task that is the application's own kernel (`.cuda_function`):
 *
 *     __global__ void relax(peal_device_call call);
 *
 * Addresses are the GPU's. It is launched with a one-dimensional grid of as many threads as the
 * tile has points, rounded up to whole blocks, and must do all of [tile.lo, tile.hi) whatever the
 * grid is. Without `.tile` the tile is a box of any size, and its number has no meaning; with
 * `.tile`, and where partials are wanted, each tile has a launch of its own. `partial`: one thread
 * stores the tile's part. */
typedef peal_call peal_device_call;

#ifdef __cplusplus
}
#endif
#endif
