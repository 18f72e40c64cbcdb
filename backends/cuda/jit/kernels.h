/* The kernels of a plan as functions of a device: generated (codegen/), compiled by NVRTC, kept in
 * a cache on disk, loaded into the device's context.
 *
 * This room turns text into code. Besides this header it offers compile.h, which compiles and links
 * a text without a driver or a GPU, and resources.h, which says what compiled kernels take of a
 * GPU. */
#ifndef PEAL_CUDA_KERNELS_H
#define PEAL_CUDA_KERNELS_H

#include "backends/cuda/codegen/codegen.h"
#include "base/cuda_driver.h"

typedef struct peal_cuda_kernels peal_cuda_kernels;

/* What one task is run by. codegen.h says what the variants are; which one a launch takes is the
 * launch's choice. */
typedef struct peal_cuda_task_kernel {
    CUfunction full;
    CUfunction no_reduction; /* full if the task has no reductions */
    CUfunction self_sending; /* NULL: there is none (serial, fused) */
    CUfunction self_sending_no_reduction;
    CUfunction communication_free; /* NULL: none, because the tiles are given */
    CUfunction communication_free_no_reduction;
    bool light;     /* few registers' worth of points in a whole tile */
    int threads[3]; /* block shape, x fastest, of launches whose tiles are free: at most 1024 in
                       all. Exact tiles: PEAL_CUDA_TASK_THREADS in a row. */
    int number;     /* mode fused: the dispatcher's, of the full variant (peal_cuda_fused_number) */
    bool shapes;    /* mode fused: may be compiled for launches of known shape, */
    bool deepens;   /* and for rounds of several steps */
    unsigned own_points; /* bit i: access i, which is updated, is stored to at points of the tile
                            alone */
    int full_blocks, no_reduction_blocks; /* resident blocks an SM, by the driver */
    int full_registers, no_reduction_registers;
    /* Arrays whose first element the task's expressions read on the device, in the order of
     * peal_launch.element. */
    const int *element;
    int element_count;
    unsigned device_arguments; /* bit i: argument i reads elements, so that the device has to
                                  compute it (peal_launch.evaluate); the others are the host's */
} peal_cuda_task_kernel;

/* Prints the text of all that the schedules of desc need. fused_text: see peal_cuda_source_create.
 */
peal_status peal_cuda_kernels_create(const peal_backend_desc *desc,
                                     const peal_cuda_fused_text *fused_text,
                                     const peal_device *device, peal_cuda_kernels **out);
/* Whether the cache is there and lacks the unit of all modes: it takes seconds to load. */
bool peal_cuda_kernels_are_missing(const peal_cuda_kernels *kernels);
/* Compiles and loads it on the device, whose context is current. Diagnostics are as the host
 * backend's (E2xx: the user's file and line). A dry device gets names instead of functions, and
 * nothing is compiled. */
peal_status peal_cuda_kernels_load(peal_cuda_kernels *kernels);
/* Compiles it into the cache, beside many others, and loads nothing. */
peal_status peal_cuda_kernels_compile(const peal_cuda_kernels *kernels);
/* Unloads all; NULL is fine. */
void peal_cuda_kernels_destroy(peal_cuda_kernels *kernels);

/* The kernel of a task; NULL: it has none (LOAD, SAVE). What a launch of it has to say, by the kind
 * of task:
 * - KERNEL: views, partials and arguments of the user's kernel.
 * - SET stores to view[0], in the array's type. DECIDE stores 0 or 1 as a 32-bit word at view[0]
 *   (and more: peal_decide_ in device/builtin.h). PRINT stores item_count records
 *   (peal_device_item) at view[0]. One thread each.
 * - FOLD: argument[0].integer elements at view[1], the result to view[0], by ceil(n /
 *   PEAL_CUDA_FOLD_CHUNK) blocks of 256 threads. With more than one block, the last one to arrive
 *   (launch.arrived) folds the chunks' results, which replace the chunks' first elements.
 * - COMBINE: argument[0] contributions of argument[1] elements each (row k at view[1] + k *
 *   argument[1] elements), the result to view[0][0 .. argument[1]), by ceil(width / 256) blocks.
 * FOLD and COMBINE fold in the tree that schedule.h defines; each has a kernel by type and
 * operation. All kernels heed stop, waits (of box 0, if box_count is 1) and writes. */
const peal_cuda_task_kernel *peal_cuda_kernels_task(const peal_cuda_kernels *kernels,
                                                    const peal_schedule *schedule,
                                                    const peal_schedule_task *task);
CUfunction peal_cuda_kernels_builtin(const peal_cuda_kernels *kernels, peal_cuda_builtin which);
/* The kernel at the end of a round of a WHILE node (device/round.h). *result: why the driver cannot
 * load it. */
peal_status peal_cuda_kernels_round(peal_cuda_kernels *kernels, CUfunction *out, CUresult *result);

/* Mode fused: compiles and loads the persistent kernel, with what its slot of the graph calls. */
peal_status peal_cuda_kernels_fused(peal_cuda_kernels *kernels, int slot,
                                    const peal_cuda_fused_calls *calls, CUfunction *out);
/* Mode graph, once: compiles and loads the kernel that runs bundles (device/bundle.h). */
peal_status peal_cuda_kernels_bundle(peal_cuda_kernels *kernels, const peal_cuda_fused_calls *calls,
                                     CUfunction *out);

/* The unit that one of these two was given (of the first slot); NULL: none was. */
const char *peal_cuda_kernels_recorded_text(const peal_cuda_kernels *kernels);
/* Compiles it into the cache, as for a driver of that version. many: beside others. */
peal_status peal_cuda_kernels_compile_recorded(const peal_cuda_kernels *kernels, int driver_version,
                                               bool many);

/* A 32-bit word in device memory that is set once a wait of these kernels has been given up: from
 * then on they store no flag. An abort that releases waits by other means stores 1 here first. */
CUdeviceptr peal_cuda_kernels_given_up(const peal_cuda_kernels *kernels);

/* For tests and `peal plan --emit`: the unit of all modes, in the arena. The unit of mode fused
 * needs a plan (dry_plan.h). */
peal_status peal_cuda_kernels_source(const peal_backend_desc *desc, peal_arena *arena,
                                     const char **out);
/* The unit of communication-free kernels; NULL: there are none. */
peal_status peal_cuda_kernels_communication_free_source(const peal_backend_desc *desc,
                                                        peal_arena *arena, const char **out);
/* Compiles both units to PTX for compute_90, without a driver or a device, with the options of
 * peal_cuda_kernels_create; *communication_free: NULL: there are no such kernels. */
peal_status peal_cuda_kernels_ptx(const peal_backend_desc *desc, peal_arena *arena,
                                  const char **out, const char **communication_free);

#endif
