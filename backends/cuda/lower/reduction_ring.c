/* Where partials and results of reductions lie: in their arrays; or, in recorded launches of the
 * persistent kernel, in a ring of copies for the last few steps, which fused/reduction_ring.c
 * allocates. */
#include "backends/cuda/lower/emit.h"
#include "backends/cuda/lower/sink.h"

enum { ALIGNMENT = 256 };

size_t peal_cuda_ring_bytes(const peal_cuda_rank *rank, int storage)
{
    size_t bytes = (size_t)rank->schedule->array[storage].layout.bytes;
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

CUdeviceptr peal_cuda_array_at(const peal_cuda_rank *rank, const peal_walk_frame *frame, int array)
{
    int storage = frame->binding[array];

    if (!rank->scratch || !rank->scratch[storage] || !rank->plan->emission.sink->is_one_kernel)
        return rank->first[storage];
    return rank->scratch[storage] + (uint64_t)(frame->counter[0] % PEAL_CUDA_RING_STEPS) *
                                        peal_cuda_ring_bytes(rank, storage);
}

int peal_cuda_reduction_ring_at(const peal_cuda_rank *rank, CUdeviceptr address)
{
    int count = rank->schedule->array_count;

    for (int i = 0; rank->scratch && i < count; i++) {
        CUdeviceptr first = rank->scratch[i];
        size_t bytes = peal_cuda_ring_bytes(rank, i);
        if (first && address >= first && address < first + PEAL_CUDA_RING_STEPS * bytes)
            return count + PEAL_CUDA_RING_STEPS * i + (int)((address - first) / bytes);
    }
    return -1;
}
