/* What compiled kernels take of a GPU: registers, memory, blocks an SM. No GPU is needed: the
 * compiler says what a kernel has, and how many blocks fit is arithmetic. */
#ifndef PEAL_CUDA_RESOURCES_H
#define PEAL_CUDA_RESOURCES_H

#include "backends/cuda/codegen/codegen.h"
#include "backends/cuda/gpu/occupancy.h"

typedef struct peal_cuda_resource {
    const char *unit;   /* "full", "communication-free", "fused" or "dispatcher": the fused kernel
                           without tasks and shapes */
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

/* Resources of the kernels of several units of a source. */
typedef struct peal_cuda_resource_list {
    const peal_cuda_source *source;
    const peal_cuda_sm *sm;
    peal_arena *arena;
    peal_cuda_resource *kernel;
    int count, room;
} peal_cuda_resource_list;

/* Compiles a unit's text and adds its kernels; `unit` is the name that they get. Statuses as
 * peal_cuda_compile. */
peal_status peal_cuda_resources_add(peal_cuda_resource_list *list, const char *unit,
                                    const char *text);

#endif
