/* The kernels of a plan: generated from the spec's C files and the tasks that call them, compiled
 * by NVRTC, cached on disk, loaded into the device's context.
 *
 * source.c and translation_unit.c print the translation units, compile.c has it compiled (no driver
 * needed: tests do so without a GPU), kernels.c loads it. Every kernel takes one peal_launch
 * (device/launch.h) by value and is called with a one-dimensional grid. */
#ifndef PEAL_CUDA_KERNELS_H
#define PEAL_CUDA_KERNELS_H

#include "base/arena.h"
#include "base/cuda_driver.h"

#include <peal/plugin/backend.h>

typedef struct peal_cuda_kernels peal_cuda_kernels;

enum {
    PEAL_CUDA_TASK_THREADS = 256 /* of a block of a task with exact tiles; reductions count on it */
};

/* What one task is run by. */
typedef struct peal_cuda_task_kernel {
    CUfunction full; /* writes partials; the same as bare if the task has no reductions */
    CUfunction bare; /* nobody reads the reductions */
    CUfunction own,
        own_bare;     /* the same for launches whose blocks send all that is sent
                         themselves: they have fewer registers; NULL: none (serial, fused) */
    CUfunction plain; /* bare, for launches that wait for nothing and send nothing, with tiles of
                         any shape; NULL: the tiles are given */
    CUfunction plain_full; /* full, for such launches; NULL: none */
    bool light;            /* few registers' worth of points in a whole tile */
    int threads[3]; /* block shape, x fastest, of launches whose tiles are free; the product is at
                       most 1024. Exact tiles: PEAL_CUDA_TASK_THREADS in one row of the same shape
                       rule
                     */
    int number;     /* mode fused: of its variants in the dispatcher (peal_cuda_fused_number) */
    bool shapes;    /* ... may be compiled for launches of known shape */
    int full_blocks, bare_blocks; /* resident blocks an SM, by the driver */
    int full_registers, bare_registers;
    /* Arrays whose first element the task's expressions read on the device, in the order of
     * peal_launch.element. */
    const int *element;
    int element_count;
    unsigned device_arguments; /* bit i: argument i reads elements, so that the device has to
                                  compute it (peal_launch.evaluate); the others are the host's */
} peal_cuda_task_kernel;

/* Built-in kernels, one grid each, same parameter. */
typedef enum peal_cuda_builtin {
    PEAL_CUDA_BUILTIN_COPY,   /* pieces, by all blocks of PEAL_CUDA_COPY_THREADS; then, if it has
                            writes, each   block adds its share, or the last one to arrive stores them
                          */
    PEAL_CUDA_BUILTIN_SIGNAL, /* one warp: all waits, then all writes */
    PEAL_CUDA_BUILTIN_STEP, /* one thread: adds argument[0].integer to the word at `step`, stores it
                          to control->steps_done */
    PEAL_CUDA_BUILTIN_BEGIN, /* one thread: what hangs on the word at view[0] begins anew
                                (builtin.h) */
    PEAL_CUDA_BUILTIN_COUNT
} peal_cuda_builtin;
enum { PEAL_CUDA_COPY_THREADS = 256, PEAL_CUDA_FOLD_CHUNK = 2048 };

/* What the dispatcher of mode fused calls an entry: with partials or without; or, where whole tiles
 * are not aligned, as any other mode does. Built-in kernels have their own numbers. */
typedef enum peal_cuda_fused_variant {
    PEAL_CUDA_FUSED_FULL,
    PEAL_CUDA_FUSED_NO_REDUCTION,
    PEAL_CUDA_FUSED_VARIANTS
} peal_cuda_fused_variant;
static inline int peal_cuda_fused_number(int entry, peal_cuda_fused_variant variant)
{
    return PEAL_CUDA_BUILTIN_COUNT + PEAL_CUDA_FUSED_VARIANTS * entry + (int)variant;
}

/* Compiles and loads everything that the schedules of desc need on `device` (its context is
 * current). Diagnostics as the host backend's (E2xx: user's file and line). Where the device is
 * dry, there are names instead of functions. */
peal_status peal_cuda_kernels_create(const peal_backend_desc *desc, const peal_device *device,
                                     peal_cuda_kernels **out);
void peal_cuda_kernels_destroy(peal_cuda_kernels *kernels);

/* NULL: the task has no kernel (LOAD, SAVE). KERNEL: the user's. SET, DECIDE, PRINT: expression
 * tasks, one thread: SET stores to view[0] (type of the array), DECIDE stores 0 or 1 as a 32-bit
 * word at view[0] (and more: peal_decide_ in builtin.h), PRINT stores item_count records
 * (peal_device_item) at view[0]. FOLD and COMBINE: folds in the tree that schedule.h defines: FOLD:
 * `argument[0].integer` elements at view[1], result to view[0]; COMBINE: argument[0] contributions
 * of argument[1] elements each (row k at view[1] + k * argument[1] elements), result to view[0][0
 * .. argument[1]). One kernel each by (type, combine); grids: FOLD of n elements: ceil(n /
 * PEAL_CUDA_FOLD_CHUNK) blocks of 256 threads; with more than one block the last one to arrive
 * (launch.arrived) folds the chunks' results, which are left in place of the chunks' first
 * elements; COMBINE: ceil(width / 256) blocks. All honour stop, waits (of box 0, if box_count is 1)
 * and writes as tasks do. */
const peal_cuda_task_kernel *peal_cuda_kernels_task(const peal_cuda_kernels *kernels,
                                                    const peal_schedule *schedule,
                                                    const peal_schedule_task *task);
CUfunction peal_cuda_kernels_builtin(const peal_cuda_kernels *kernels, peal_cuda_builtin which);
/* The end of a round of a WHILE node (device/round.h). *result: the driver cannot load it. */
peal_status peal_cuda_kernels_round(peal_cuda_kernels *kernels, CUfunction *out, CUresult *result);

/* Mode fused: compiles and loads the persistent kernel, with the shapes that its slot of the graph
 * has (peal_cuda_translation_units_close). */
peal_status peal_cuda_kernels_fused(peal_cuda_kernels *kernels, int slot, const char *shapes,
                                    int shape_count, CUfunction *out);
/* What that has compiled for the first slot. */
const char *peal_cuda_kernels_fused_text(const peal_cuda_kernels *kernels);

/* A 32-bit word in device memory that is set once a wait of these kernels has been given up: from
 * then on they store no flag. An abort that releases waits by other means stores 1 here first. */
CUdeviceptr peal_cuda_kernels_given_up(const peal_cuda_kernels *kernels);

/* For tests and `peal plan --emit`: the translation unit, readable, in the arena. That of mode
 * fused: sketch.h. */
peal_status peal_cuda_kernels_source(const peal_backend_desc *desc, peal_arena *arena,
                                     const char **out);
/* The unit of the plain kernels; NULL: there are none. */
peal_status peal_cuda_kernels_communication_free_source(const peal_backend_desc *desc,
                                                        peal_arena *arena, const char **out);
/* Compiles text to PTX for compute_90 without a driver or device, through the same options as
 * peal_cuda_kernels_create; the log is in the diagnostics. plain: that of plain kernels, or NULL.
 */
peal_status peal_cuda_kernels_ptx(const peal_backend_desc *desc, peal_arena *arena,
                                  const char **out, const char **plain);

#endif
