/* What the peers on NVSHMEM share: joining as one PE a process, by a unique id handed on through
 * the team's shared memory. */
#ifndef PEAL_BENCH_GPU_NVSHMEM_CUH
#define PEAL_BENCH_GPU_NVSHMEM_CUH

#include "../gpu/team.cuh"

#include <nvshmem.h>
#include <nvshmemx.h>

static inline void nvshmem_join(const team *t)
{
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    nvshmemx_init_attr_t attribute = NVSHMEMX_INIT_ATTR_INITIALIZER;
    static_assert(sizeof(id) <= sizeof(((team_shared *)NULL)->id), "the id fits");
    if (t->rank == 0) {
        if (nvshmemx_get_uniqueid(&id) != 0) {
            fprintf(stderr, "nvshmemx_get_uniqueid failed\n");
            _exit(GPU_EXIT);
        }
        memcpy(t->shared->id, &id, sizeof(id));
    }
    team_barrier(t);
    memcpy(&id, t->shared->id, sizeof(id));
    if (nvshmemx_set_attr_uniqueid_args(t->rank, t->size, &id, &attribute) != 0 ||
        nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attribute) != 0) {
        fprintf(stderr, "NVSHMEM did not start on rank %d\n", t->rank);
        _exit(GPU_EXIT);
    }
    if (t->rank == 0) {
        int major, minor, patch;
        nvshmemx_vendor_get_version_info(&major, &minor, &patch);
        fprintf(stderr, "NVSHMEM %d.%d.%d\n", major, minor, patch);
    }
}

/* Symmetric memory, zero. */
static inline void *nvshmem_zeroed(size_t bytes)
{
    void *memory = nvshmem_malloc(bytes);
    if (!memory) {
        fprintf(stderr, "nvshmem_malloc of %zu bytes failed\n", bytes);
        _exit(GPU_EXIT);
    }
    GPU(cudaMemset(memory, 0, bytes));
    GPU(cudaDeviceSynchronize());
    nvshmem_barrier_all();
    return memory;
}

/* Multicast stays off; all is on one host; the heap holds what the largest case takes; and no
 * kernel is loaded while another one waits. */
static inline void nvshmem_environment(const char *heap)
{
    setenv("NVSHMEM_DISABLE_NVLS", "1", 1);
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    setenv("NVSHMEM_SYMMETRIC_SIZE", heap, 0);
    setenv("NVSHMEM_REMOTE_TRANSPORT", "none", 0);
    setenv("NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "lo", 0);
}

#endif
