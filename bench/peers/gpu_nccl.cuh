/* What the peers on NCCL share: the check of its calls. */
#ifndef PEAL_BENCH_GPU_NCCL_CUH
#define PEAL_BENCH_GPU_NCCL_CUH

#include "../gpu/team.cuh"

#include <nccl.h>

#include <stdio.h>

#define NCCL(call)                                                                                 \
    do {                                                                                           \
        ncclResult_t nccl_result = (call);                                                         \
        if (nccl_result != ncclSuccess) {                                                          \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,                          \
                    ncclGetErrorString(nccl_result));                                              \
            _Exit(GPU_EXIT);                                                                       \
        }                                                                                          \
    } while (0)

/* Which library was loaded. */
static inline void nccl_say_version(const team *t)
{
    int version;
    NCCL(ncclGetVersion(&version));
    if (t->rank == 0)
        fprintf(stderr, "NCCL %d.%d.%d\n", version / 10000, version / 100 % 100, version % 100);
}

#endif
