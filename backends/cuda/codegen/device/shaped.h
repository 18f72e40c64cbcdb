/* Tiles of launches whose shape the compiler knows (mode fused). For a box of such a launch the
 * host prints a type, whose constants are the extents, counts and strides, so a tile costs few
 * instructions around its points. A type may be of several boxes with the same extents, its parts,
 * since each type costs the compiler a loop over tiles. The box's position and the addresses are
 * read from the launch, so that ranks with equal boxes share a kernel. */
#ifndef PEAL_DEVICE_SHAPED_H
#define PEAL_DEVICE_SHAPED_H

#include "peal/send.h"

/* Flags that are no sums are stored by the block that is the last of `senders`. A block that has
 * done its part adds `count` at `arrived`; arrived 0: there are no such flags. Lane i of the first
 * warp stores flag i; word 0: none. They are in shared memory, where they cost no registers
 * meanwhile. */
struct peal_flag_ {
    unsigned long long word, value;
};
__shared__ peal_flag_ peal_fused_flag_[32];
struct peal_arrival_ {
    unsigned *arrived;
    unsigned count, senders, is_last;
};
__shared__ peal_arrival_ peal_fused_arrival_;
static_assert(PEAL_LAUNCH_WRITES <= 32, "a lane a flag");

/* Blocks of a launch: begin, begin + stride, ... below end; back: from the last one to the first.
 */
struct peal_blocks_of_ {
    unsigned begin, end, stride;
    bool back;
};

/* Those blocks that are of the box. Unless parts are cyclic, the compiler knows the stride. */
template <class box>
static __device__ __forceinline__ peal_blocks_of_ peal_shaped_blocks_(peal_blocks_of_ blocks)
{
    const unsigned last = box::first + box::blocks;

    if (!box::cyclic)
        blocks.stride = 1;
    if (blocks.begin < box::first)
        blocks.begin = !box::cyclic
                           ? box::first
                           : blocks.begin + (box::first - blocks.begin + blocks.stride - 1) /
                                                blocks.stride * blocks.stride;
    blocks.end = blocks.end < last ? blocks.end : last;
    return blocks;
}

/* How many they are. */
template <class box>
static __device__ __forceinline__ unsigned peal_shaped_count_(const peal_blocks_of_ &blocks)
{
    const peal_blocks_of_ mine = peal_shaped_blocks_<box>(blocks);

    return mine.begin < mine.end ? (mine.end - mine.begin - 1) / mine.stride + 1 : 0;
}

/* Whether some of these blocks may have been of a box that is run before. */
template <class box>
static __device__ __forceinline__ bool peal_follows_box_(const peal_blocks_of_ &blocks)
{
    return box::index > 0 &&
           (blocks.begin < box::first || blocks.end > (unsigned)(box::first + box::blocks));
}

enum : unsigned { PEAL_NO_BLOCK_ = ~0u };

/* Which blocks of a box are run next: those of this block's part. number(0) is run, number(1) and
 * so on follow it, and number COUNT, the last one that there is a buffer for, is found while
 * number(0) is run. */
template <class box, bool dynamic = box::dynamic> struct peal_turns_ {
    enum : int { COUNT = box::buffers > 2 ? box::buffers - 1 : 1 };
    unsigned at, step, left;

    __device__ __forceinline__ peal_turns_(const peal_launch &, const peal_blocks_of_ &blocks)
        : at(blocks.begin), step(blocks.stride),
          left((blocks.end - blocks.begin - 1) / blocks.stride + 1)
    {
        if (blocks.back) {
            at += (left - 1) * step;
            step = 0 - step;
        }
    }
    __device__ __forceinline__ unsigned number(unsigned ahead) const
    {
        return ahead < left ? at + ahead * step : PEAL_NO_BLOCK_;
    }
    /* The same before the first is run. `ahead` need not be known to the compiler. */
    __device__ __forceinline__ unsigned first(unsigned ahead, const peal_blocks_of_ &) const
    {
        return number(ahead);
    }
    /* All threads: ask before a barrier, find after it. */
    __device__ __forceinline__ void ask(const peal_launch &)
    {
    }
    __device__ __forceinline__ unsigned find(const peal_launch &)
    {
        return number(COUNT);
    }
    __device__ __forceinline__ void go_on()
    {
        at += step;
        left--;
    }
};

/* Dynamic tiles: a block runs the first COUNT of its part, then the next one that the box's counter
 * gives out. With equal parts all blocks would wait for the SMs that get the least of the memory's
 * bandwidth. Each block also takes one number beyond the end, so the last number is known: the
 * block that gets it sets the counter back to 0. The epochs with which a round begins order that
 * before all additions of the next round. */
__shared__ unsigned peal_taken_[2];

template <class box> struct peal_turns_<box, true> {
    enum : int { COUNT = box::buffers > 2 ? box::buffers - 1 : 1 };
    unsigned line[COUNT], taken, odd, stride;
    bool back;

    __device__ __forceinline__ peal_turns_(const peal_launch &launch, const peal_blocks_of_ &blocks)
        : taken(0), odd(0), stride(blocks.stride), back(blocks.back)
    {
        for (int k = 0; k < COUNT; k++)
            line[k] = first(k, blocks);
        take(launch);
    }
    __device__ __forceinline__ unsigned first(unsigned ahead, const peal_blocks_of_ &blocks) const
    {
        return nth(blocks.begin - box::first + ahead * stride);
    }
    __device__ __forceinline__ unsigned nth(unsigned n) const
    {
        if (n >= box::blocks)
            return PEAL_NO_BLOCK_;
        return box::first + (back ? box::blocks - 1 - n : n);
    }
    static __device__ __forceinline__ unsigned *counter(const peal_launch &launch)
    {
        return (unsigned *)launch.arrived + 1 + box::index;
    }
    /* The addition is under way until `ask` uses its result. */
    __device__ __forceinline__ void take(const peal_launch &launch)
    {
        if (peal_thread_() == 0)
            taken = atomicAdd(counter(launch), 1u);
    }
    __device__ __forceinline__ unsigned number(unsigned ahead) const
    {
        return line[ahead];
    }
    __device__ __forceinline__ void ask(const peal_launch &launch)
    {
        const unsigned first = COUNT * stride;
        const unsigned rest = box::blocks > first ? box::blocks - first : 0;
        const unsigned takers = box::blocks < stride ? box::blocks : stride;

        if (peal_thread_() != 0)
            return;
        peal_taken_[odd] = first + taken;
        if (taken == rest + takers - 1)
            *counter(launch) = 0;
    }
    __device__ __forceinline__ unsigned find(const peal_launch &launch)
    {
        const unsigned found = nth(peal_taken_[odd]);

        odd = 1 - odd;
        if (found != PEAL_NO_BLOCK_)
            take(launch);
        for (int k = 0; k + 1 < COUNT; k++)
            line[k] = line[k + 1];
        line[COUNT - 1] = found;
        return found;
    }
    __device__ __forceinline__ void go_on()
    {
    }
};

/* The tile of a block, from the begin of the box; of several boxes in one, that of the block. */
template <class box>
static __device__ __forceinline__ void peal_shaped_origin_(unsigned block, int *lo, int *hi,
                                                           unsigned *coordinate)
{
    const unsigned part = box::part(block);
    unsigned rest = block - box::begin(part);

#pragma unroll
    for (int k = 0; k < PEAL_AXES; k++) {
        const unsigned quotient = k < PEAL_AXES - 1 ? rest / box::count(k, part) : 0;
        coordinate[k] = rest - quotient * box::count(k, part);
        lo[k] = (int)coordinate[k] * box::extent(k) - (k == 0 ? box::lead : 0);
        hi[k] = lo[k] + box::extent(k);
        rest = quotient;
        if (box::is_cut(k))
            hi[k] = hi[k] < box::length(k, part) ? hi[k] : box::length(k, part);
        if (k == 0 && box::lead > 0)
            lo[k] = lo[k] > 0 ? lo[k] : 0;
    }
}

template <class box>
static __device__ __forceinline__ void peal_shaped_tile_(const peal_launch &launch, unsigned block,
                                                         peal_tile *tile)
{
    int lo[PEAL_AXES], hi[PEAL_AXES];
    unsigned coordinate[PEAL_AXES];
    const peal_launch_box &at = launch.box[box::index + box::part(block)];

    peal_shaped_origin_<box>(block, lo, hi, coordinate);
    tile->index = at.tile;
    tile->count = launch.tile_count;
    tile->peal_whole_ = tile->peal_odd_ = 0;
#pragma unroll
    for (int k = 0; k < 3; k++)
        tile->peal_at_[k] = tile->peal_lo_[k] = 0;
#pragma unroll
    for (int k = 0; k < PEAL_AXES; k++) {
        tile->lo[k] = at.lo[k] + lo[k];
        tile->hi[k] = at.lo[k] + hi[k];
        tile->index += coordinate[k] * box::step(k);
    }
}

/* How many points of a tile a remote store has at most; points around the tiles are not bounded. */
template <class box, class remote_store> static __device__ constexpr int peal_shaped_most_()
{
    int points = 1;

    for (int k = 0; k < 3; k++) {
        const int length = remote_store::hi(k) - remote_store::lo(k);
        if (remote_store::lo(k) != remote_store::inner_lo(k) ||
            remote_store::hi(k) != remote_store::inner_hi(k))
            return 0x7fffffff;
        points *= length < box::extent(k) ? length : box::extent(k);
    }
    return points;
}

/* All threads, behind a barrier: stores points of the tiles into a message (peal_remote_store_,
 * send.h). Where tiles have few such points, each warp does tiles of its own, because a tile costs
 * the latency of memory. */
template <class box, class remote_store>
static __device__ __forceinline__ void peal_shaped_remote_store_(const peal_launch &launch,
                                                                 const peal_blocks_of_ &blocks)
{
    const bool few = peal_shaped_most_<box, remote_store>() <= 32;
    const unsigned first = few ? peal_thread_() / 32 : 0, step = few ? PEAL_THREADS_ / 32 : 1;
    const int thread = few ? peal_thread_() % 32 : peal_thread_();
    const peal_blocks_of_ mine = peal_shaped_blocks_<box>(blocks);
    const peal_remote_store_way_ way = {launch.view[remote_store::view],
                                        launch.remote_store[remote_store::index].target,
                                        {remote_store::stride(0), remote_store::stride(1)},
                                        {remote_store::step(0), remote_store::step(1)}};

#pragma unroll 1
    for (unsigned block = mine.begin + first * mine.stride; block < mine.end;
         block += step * mine.stride) {
        int lo[PEAL_AXES], hi[PEAL_AXES], n[3];
        unsigned coordinate[PEAL_AXES];
        bool any = true;
        peal_shaped_origin_<box>(block, lo, hi, coordinate);
#pragma unroll
        for (int k = 0; k < 3; k++) {
            any = any &&
                  peal_remote_store_axis_(remote_store::inner_lo(k), remote_store::inner_hi(k),
                                          remote_store::lo(k), remote_store::hi(k), &lo[k], &hi[k]);
            n[k] = hi[k] - lo[k];
            lo[k] += launch.box[box::index].lo[k];
        }
        if (any)
            peal_remote_store_points_<typename remote_store::type>(way, lo, n, thread,
                                                                   few ? 32 : PEAL_THREADS_);
    }
}

/* The last warp: notes the flags that are no sums, which are stored when all senders are done; this
 * block has run `count` of them. */
static __device__ __forceinline__ void peal_shaped_flags_(const peal_launch &launch, unsigned count)
{
    const int lane = peal_thread_() - (PEAL_THREADS_ - 32);

    if (lane < 0 || lane >= launch.write_count)
        return;
    if (lane == 0) {
        peal_fused_arrival_.arrived = (unsigned *)launch.arrived;
        peal_fused_arrival_.count = count;
        peal_fused_arrival_.senders = launch.senders;
    }
    peal_fused_flag_[lane].word = launch.write[lane].word;
    peal_fused_flag_[lane].value = launch.write[lane].value;
}

#endif
