/* What the kernels of a plan take of a GPU: registers, memory, blocks an SM. No GPU is needed: the
 * compiler says what a kernel has, and how many blocks fit is arithmetic. */
#ifndef PEAL_CUDA_RESOURCES_H
#define PEAL_CUDA_RESOURCES_H

#include "backends/cuda/gpu/occupancy.h"
#include "base/arena.h"

#include <peal/plugin/backend.h>

typedef struct peal_cuda_resource {
    const char *unit;   /* "full", "plain", "fused" or "dispatcher": the fused kernel without tasks
                           and shapes */
    const char *kernel; /* its name in the unit */
    const char *task;   /* that it runs; NULL: none, or all */
    int rank;           /* unit "fused": the first one whose kernel this is; else -1 */
    int threads;        /* of a block, at most */
    int registers;      /* of a thread */
    int budget;         /* the most registers that its launch bounds leave the compiler */
    int least_blocks;   /* an SM that these bounds ask for; 0: they don't say */
    int spill_store_bytes, spill_load_bytes; /* of a thread, once; of called functions as well */
    int local_bytes;                         /* of a thread: its stack, with what is spilled */
    int shared_bytes;                        /* of a block */
    int blocks;                              /* that an SM holds */
    const char *limit; /* of them: "registers", "shared memory", "threads" or "blocks" */
} peal_cuda_resource;

typedef struct peal_cuda_resources {
    int architecture;
    int nvrtc_major, nvrtc_minor;
    const peal_cuda_resource *kernel;
    int count;
} peal_cuda_resources;

/* Compiles all units of the ranks of desc; results are in the arena. Statuses as peal_cuda_compile.
 */
peal_status peal_cuda_kernels_resources(const peal_backend_desc *desc, int architecture,
                                        peal_arena *arena, peal_cuda_resources *out);

#endif
