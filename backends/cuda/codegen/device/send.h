/* How the blocks of a task send. Each copies its own tile's points into the messages and adds its
 * part to their flags. Where that cannot be, the last block to arrive copies and stores the flags,
 * if the host has not made the copy a launch of its own. */
#ifndef PEAL_DEVICE_SEND_H
#define PEAL_DEVICE_SEND_H

#include "peal/run.h"

/* Source and target of the points of a remote store: strides in elements, steps in bytes. */
struct peal_remote_store_way_ {
    unsigned long long source, target;
    long long stride[2], step[2];
};

/* The points of [lo, lo + n), by so many threads, of which this is number `thread`. */
template <class type>
static __device__ __forceinline__ void peal_remote_store_points_(const peal_remote_store_way_ &way,
                                                                 const int *lo, const int *n,
                                                                 int thread, int threads)
{
    const int across = n[0], down = n[1], points = across * down * n[2];

    for (int i = thread; i < points; i += threads) {
        /* Most are a row: a division is as long as the copy. */
        const int row = points == across ? 0 : i / across, z = row < down ? 0 : row / down;
        const long long at_x = lo[0] + i - row * across, at_y = lo[1] + row - z * down;
        const long long at_z = lo[2] + z;
        *(type *)(way.target + at_x * sizeof(type) + at_y * way.step[0] + at_z * way.step[1]) =
            ((const type *)way.source)[at_x + at_y * way.stride[0] + at_z * way.stride[1]];
    }
}

/* What tile [*lo, *hi) has of a remote store along an axis: its points within `inner`, and beyond
 * its ends if it is at the rim. False: none. */
static __device__ __forceinline__ bool
peal_remote_store_axis_(int inner_lo, int inner_hi, int rim_lo, int rim_hi, int *lo, int *hi)
{
    *lo = *lo > inner_lo ? *lo : inner_lo;
    *hi = *hi < inner_hi ? *hi : inner_hi;
    if (*lo >= *hi)
        return false;
    *lo = *lo == inner_lo ? rim_lo : *lo;
    *hi = *hi == inner_hi ? rim_hi : *hi;
    return true;
}

/* All threads of the block, behind a barrier: it reads only what this block has stored. */
static __device__ __forceinline__ void peal_remote_store_(const peal_launch &launch, unsigned bit,
                                                          const int *tile_lo, const int *tile_hi)
{
    const int thread = peal_thread_(), threads = peal_block_threads_();

#pragma unroll 1
    for (int m = 0; m < launch.remote_store_count; m++) {
        const peal_launch_remote_store &remote_store = launch.remote_store[m];
        const long long *stride = launch.stride[remote_store.view];
        const peal_remote_store_way_ way = {launch.view[remote_store.view],
                                            remote_store.target,
                                            {stride[0], stride[1]},
                                            {remote_store.step[0], remote_store.step[1]}};
        int lo[3], n[3];
        bool any = (remote_store.boxes & bit) != 0;
#pragma unroll
        for (int k = 0; k < 3; k++) {
            int hi = tile_hi[k];
            lo[k] = tile_lo[k];
            any =
                any && peal_remote_store_axis_(remote_store.inner_lo[k], remote_store.inner_hi[k],
                                               remote_store.lo[k], remote_store.hi[k], &lo[k], &hi);
            n[k] = hi - lo[k];
        }
        if (!any)
            continue;
        switch (remote_store.bytes) {
        case 8:
            peal_remote_store_points_<unsigned long long>(way, lo, n, thread, threads);
            break;
        case 4:
            peal_remote_store_points_<unsigned>(way, lo, n, thread, threads);
            break;
        case 2:
            peal_remote_store_points_<unsigned short>(way, lo, n, thread, threads);
            break;
        default:
            peal_remote_store_points_<unsigned char>(way, lo, n, thread, threads);
        }
    }
}

/* All threads of the block, after all stores that its parts stand for. */
static __device__ __forceinline__ void peal_add_flags_(const peal_launch &launch, unsigned bit)
{
    __syncthreads();
    for (int i = peal_thread_(); i < launch.write_count; i += peal_block_threads_()) {
        const peal_launch_write &write = launch.write[i];
        if (!(write.boxes & bit))
            continue;
        /* Both pair with the loads in peal_wait_one_ of the receiver. */
        if (write.part == 0)
            peal_st_release_sys_(write.word, write.value);
        else
            peal_red_add_release_sys_(write.word,
                                      write.part + (peal_block_() == write.first ? write.rest : 0));
    }
}

/* The last of a launch's senders copies what was left to it, and stores the flags. */
static __device__ PEAL_PART_ void peal_send_last_(const peal_launch *launch)
{
    /* The barriers of counting come before the copies. */
    bool is_staged = launch->list_count > 0 && peal_stage_pieces_(launch, peal_staged_);
    if (!peal_is_last_((unsigned *)launch->arrived, launch->senders,
                       launch->remote_store_count > 0))
        return;
    if (launch->list_count > 0)
        peal_copy_all_(launch, is_staged ? peal_staged_ : 0);
    peal_write_flags_(launch, launch->fold_bit);
}

/* The end of a block of a self-sending kernel: nothing is left to the last block. `given_up`: when
 * the block began, a wait of the module had been given up; a block that gives up itself does not
 * come here. */
static __device__ __forceinline__ void peal_self_send_(const peal_launch &launch,
                                                       const peal_launch_box *box,
                                                       const peal_tile &tile, unsigned given_up)
{
    if (launch.remote_store_count > 0) {
        __syncthreads();
        peal_remote_store_(launch, box->bit, tile.lo, tile.hi);
    }
    if (box->sends == PEAL_SENDS_COUNTED && !given_up)
        peal_add_flags_(launch, box->bit);
}

/* The same where something may be left to the last block. */
static __device__ __forceinline__ void peal_send_tile_(const peal_launch &launch,
                                                       const peal_launch_box *box,
                                                       const peal_tile &tile, unsigned given_up)
{
    if (launch.remote_store_count > 0) {
        __syncthreads();
        peal_remote_store_(launch, box->bit, tile.lo, tile.hi);
    }
#ifdef PEAL_FUSED
    if (!launch.adds) {
        if (peal_thread_() == 0)
            peal_fused_then_ = PEAL_THEN_SEND_;
        return;
    }
#endif
    if (box->sends == PEAL_SENDS_IMAGES)
        return;
    if (!launch.adds)
        peal_send_last_(&launch);
    else if (!given_up)
        peal_add_flags_(launch, box->bit);
}

/* The same of a built-in task, whose result is one element that thread 0 of this block has. */
template <class type>
static __device__ __forceinline__ void peal_send_result_(const peal_launch &launch, type result,
                                                         bool given_up)
{
    for (int m = 0; m < launch.remote_store_count && peal_thread_() == 0; m++)
        *(type *)launch.remote_store[m].target = result;
    if (launch.list_count > 0) {
        __syncthreads();
        peal_copy_all_(&launch, 0);
    }
    if (!given_up)
        peal_write_flags_(&launch, 0);
}

#endif
