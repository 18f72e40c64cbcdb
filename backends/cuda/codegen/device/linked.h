/* How functions of the application's device code are called: see include/peal/block.h. */
#ifndef PEAL_DEVICE_LINKED_H
#define PEAL_DEVICE_LINKED_H

#include "peal/block.h"

static __device__ __forceinline__ peal_block peal_block_of_(const peal_tile &tile)
{
    peal_block block;

#pragma unroll
    for (int k = 0; k < PEAL_AXES; k++) {
        block.lo[k] = tile.lo[k];
        block.hi[k] = tile.hi[k];
    }
    block.index = tile.index;
    block.count = tile.count;
    block.thread = peal_thread_();
    block.threads = PEAL_THREADS_;
    return block;
}

static __device__ __forceinline__ peal_block_strides peal_block_strides_of_(const peal_strides_ &s)
{
    return {s.peal_y_, s.peal_z_, s.peal_w_};
}

static __device__ __forceinline__ peal_block_strides
peal_block_strides_of_(const peal_component_strides_ &s)
{
    return {s.peal_first_, s.peal_second_, s.peal_third_};
}

#endif
