/* Tiles of launches whose shape the compiler knows (mode fused). What the host prints for a box of
 * such a launch is a type: extents, counts and strides are its constants, so a tile costs few
 * instructions around its points; where the box lies and what addresses there are is read from the
 * launch, so that ranks with equal boxes share a kernel. */
#ifndef PEAL_DEVICE_SHAPED_H
#define PEAL_DEVICE_SHAPED_H

#include "peal/send.h"

/* What lane i of the first warp adds to a flag, or stores there, once the block's share is done;
 * word 0: nothing. In shared memory, where it costs no registers meanwhile. */
struct peal_flag_ {
    unsigned long long word, value;
    bool adds;
};
__shared__ peal_flag_ peal_fused_flag_[32];

/* Flags that are no sums are stored by the block that is the last of `senders`, counted at
 * `arrived` by `count`; 0: they are sums. */
struct peal_arrival_ {
    unsigned *arrived;
    unsigned count, senders, is_last;
};
__shared__ peal_arrival_ peal_fused_arrival_;
static_assert(PEAL_LAUNCH_WRITES <= 32, "a lane a flag");

/* Blocks of a launch: begin, begin + stride, ... below end. */
struct peal_blocks_of_ {
    unsigned begin, end, stride;
};

/* How many of them are in [first, last). */
static __device__ __forceinline__ unsigned peal_blocks_within_(const peal_blocks_of_ &blocks,
                                                               unsigned first, unsigned last)
{
    unsigned begin = blocks.begin, end = blocks.end < last ? blocks.end : last;

    if (begin < first && blocks.stride > 1)
        begin += (first - begin + blocks.stride - 1) / blocks.stride * blocks.stride;
    begin = begin < first ? first : begin;
    return begin >= end        ? 0
           : blocks.stride > 1 ? (end - begin - 1) / blocks.stride + 1
                               : end - begin;
}

/* Those of the box. */
template <class box>
static __device__ __forceinline__ peal_blocks_of_ peal_shaped_blocks_(peal_blocks_of_ blocks)
{
    const unsigned last = box::first + box::blocks;

    if (blocks.begin < box::first)
        blocks.begin = blocks.stride == 1
                           ? box::first
                           : blocks.begin + (box::first - blocks.begin + blocks.stride - 1) /
                                                blocks.stride * blocks.stride;
    blocks.end = blocks.end < last ? blocks.end : last;
    return blocks;
}

/* The tile of a block, from the begin of the box. */
template <class box>
static __device__ __forceinline__ void peal_shaped_place_(unsigned block, int *lo, int *hi,
                                                          unsigned *place)
{
    unsigned rest = block - box::first;

#pragma unroll
    for (int k = 0; k < PEAL_AXES; k++) {
        const unsigned quotient = k < PEAL_AXES - 1 ? rest / box::count(k) : 0;
        place[k] = rest - quotient * box::count(k);
        lo[k] = (int)place[k] * box::extent(k) - (k == 0 ? box::lead : 0);
        hi[k] = lo[k] + box::extent(k);
        rest = quotient;
        if ((box::length(k) + (k == 0 ? box::lead : 0)) % box::extent(k) != 0)
            hi[k] = hi[k] < box::length(k) ? hi[k] : box::length(k);
        if (k == 0 && box::lead > 0)
            lo[k] = lo[k] > 0 ? lo[k] : 0;
    }
}

template <class box>
static __device__ __forceinline__ void peal_shaped_tile_(const peal_launch &launch, unsigned block,
                                                         peal_tile *tile)
{
    int lo[PEAL_AXES], hi[PEAL_AXES];
    unsigned place[PEAL_AXES];

    peal_shaped_place_<box>(block, lo, hi, place);
    tile->index = launch.box[box::index].tile;
    tile->count = launch.tile_count;
    tile->peal_whole_ = tile->peal_odd_ = 0;
#pragma unroll
    for (int k = 0; k < 3; k++)
        tile->peal_at_[k] = tile->peal_lo_[k] = 0;
#pragma unroll
    for (int k = 0; k < PEAL_AXES; k++) {
        tile->lo[k] = launch.box[box::index].lo[k] + lo[k];
        tile->hi[k] = launch.box[box::index].lo[k] + hi[k];
        tile->index += place[k] * box::step(k);
    }
}

/* All threads, behind a barrier: points of the tiles into a message (peal_mirror_, send.h). */
template <class box, class mirror>
static __device__ __forceinline__ void peal_shaped_mirror_(const peal_launch &launch,
                                                           const peal_blocks_of_ &blocks)
{
    const peal_blocks_of_ mine = peal_shaped_blocks_<box>(blocks);
    const peal_mirror_way_ way = {launch.view[mirror::view],
                                  launch.mirror[mirror::index].target,
                                  {mirror::stride(0), mirror::stride(1)},
                                  {mirror::step(0), mirror::step(1)}};

#pragma unroll 1
    for (unsigned block = mine.begin; block < mine.end; block += mine.stride) {
        int lo[PEAL_AXES], hi[PEAL_AXES], n[3];
        unsigned place[PEAL_AXES];
        bool any = true;
        peal_shaped_place_<box>(block, lo, hi, place);
#pragma unroll
        for (int k = 0; k < 3; k++) {
            any = any && peal_mirror_axis_(mirror::inner_lo(k), mirror::inner_hi(k), mirror::lo(k),
                                           mirror::hi(k), &lo[k], &hi[k]);
            n[k] = hi[k] - lo[k];
            lo[k] += launch.box[box::index].lo[k];
        }
        if (any)
            peal_mirror_points_<typename mirror::type>(way, lo, n);
    }
}

/* The last warp: notes what is to be done for the flags that the blocks promise. */
static __device__ __forceinline__ void peal_shaped_flags_(const peal_launch &launch,
                                                          const peal_blocks_of_ &blocks)
{
    const int lane = peal_thread_() - (PEAL_THREADS_ - 32);
    unsigned count = 0;

    if (lane < 0 || lane >= launch.write_count)
        return;
    const peal_launch_write &write = launch.write[lane];
    for (int b = 0; b < launch.box_count; b++)
        if (launch.adds ? (launch.box[b].bit & write.boxes) != 0 : launch.box[b].sends != 0)
            count += peal_blocks_within_(blocks, launch.box[b].first,
                                         launch.box[b].first + launch.box[b].blocks);
    if (count == 0)
        return;
    if (lane == 0 && !launch.adds) {
        peal_fused_arrival_.arrived = (unsigned *)launch.arrived;
        peal_fused_arrival_.count = count;
        peal_fused_arrival_.senders = launch.senders;
    }
    peal_flag_ *flag = &peal_fused_flag_[lane];
    flag->word = write.word;
    flag->adds = launch.adds && write.part != 0;
    flag->value = write.value;
    if (flag->adds)
        flag->value = write.part * count +
                      (peal_blocks_within_(blocks, write.first, write.first + 1) ? write.rest : 0);
}

#endif
