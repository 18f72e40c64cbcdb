/* What the kernels of a plan take of a GPU. No GPU is needed. */
#ifndef PEAL_CUDA_PLAN_RESOURCES_H
#define PEAL_CUDA_PLAN_RESOURCES_H

#include "backends/cuda/jit/resources.h"

typedef struct peal_cuda_resources {
    int architecture;
    int nvrtc_major, nvrtc_minor;
    const peal_cuda_resource *kernel;
    int count;
} peal_cuda_resources;

/* Whether the kernels of a mode can be compiled for an architecture (major * 10 + minor). */
bool peal_cuda_mode_compiles(peal_mode mode, int architecture);
/* Compiles all units of the ranks of desc; results are in the arena. Statuses as peal_cuda_compile.
 */
peal_status peal_cuda_plan_resources(const peal_backend_desc *desc, int architecture,
                                     peal_arena *arena, peal_cuda_resources *out);

#endif
