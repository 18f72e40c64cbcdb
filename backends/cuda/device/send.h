/* How the blocks of a task send: each copies its own tile's points into the messages and adds its
 * share to their flags; where that cannot be, the last block to arrive copies and stores flags. */
#ifndef PEAL_DEVICE_SEND_H
#define PEAL_DEVICE_SEND_H

#include "peal/run.h"

/* The points of [lo, lo + n) of a mirror, by all threads of the block. */
template <class type>
static __device__ __forceinline__ void peal_mirror_points_(const peal_launch &launch,
                                                           const peal_launch_mirror &mirror,
                                                           const int *lo, const unsigned *n)
{
    const type *source = (const type *)launch.view[mirror.view];
    long long y_stride = launch.stride[mirror.view][0], z_stride = launch.stride[mirror.view][1];
    unsigned points = n[0] * n[1] * n[2], threads = peal_block_threads_();

    if (points == n[0]) { /* a row, without divisions */
        const long long row = lo[1] * y_stride + lo[2] * z_stride;
        char *target = (char *)(mirror.target + lo[1] * mirror.step[0] + lo[2] * mirror.step[1]);
        for (unsigned i = peal_thread_(); i < points; i += threads)
            ((type *)target)[lo[0] + (int)i] = source[row + lo[0] + (int)i];
        return;
    }
    for (unsigned i = peal_thread_(); i < points; i += threads) {
        unsigned row = i / n[0], z = row / n[1];
        long long at_x = lo[0] + (int)(i - row * n[0]), at_y = lo[1] + (int)(row - z * n[1]);
        long long at_z = lo[2] + (int)z;
        *(type *)(mirror.target + at_x * sizeof(type) + at_y * mirror.step[0] +
                  at_z * mirror.step[1]) = source[at_x + at_y * y_stride + at_z * z_stride];
    }
}

/* All threads of the block, behind a barrier: what other blocks have stored is not touched. */
static __device__ __forceinline__ void peal_mirror_(const peal_launch &launch, unsigned bit,
                                                    const int *tile_lo, const int *tile_hi)
{
#pragma unroll 1
    for (int m = 0; m < launch.mirror_count; m++) {
        const peal_launch_mirror &mirror = launch.mirror[m];
        int lo[3];
        unsigned n[3];
        if (!(mirror.boxes & bit))
            continue;
#pragma unroll
        for (int k = 0; k < 3; k++) {
            int hi = tile_hi[k] < mirror.inner_hi[k] ? tile_hi[k] : mirror.inner_hi[k];
            lo[k] = tile_lo[k] > mirror.inner_lo[k] ? tile_lo[k] : mirror.inner_lo[k];
            n[k] = hi > lo[k] ? (unsigned)(hi - lo[k]) : 0;
            if (n[k] == 0)
                continue;
            hi = hi == mirror.inner_hi[k] ? mirror.hi[k] : hi;
            lo[k] = lo[k] == mirror.inner_lo[k] ? mirror.lo[k] : lo[k];
            n[k] = (unsigned)(hi - lo[k]);
        }
        if (n[0] == 0 || n[1] == 0 || n[2] == 0)
            continue;
        switch (mirror.bytes) {
        case 8:
            peal_mirror_points_<unsigned long long>(launch, mirror, lo, n);
            break;
        case 4:
            peal_mirror_points_<unsigned>(launch, mirror, lo, n);
            break;
        case 2:
            peal_mirror_points_<unsigned short>(launch, mirror, lo, n);
            break;
        default:
            peal_mirror_points_<unsigned char>(launch, mirror, lo, n);
        }
    }
}

/* All threads of the block, after all that its share promises. */
static __device__ __forceinline__ void peal_add_flags_(const peal_launch &launch, unsigned bit)
{
    __syncthreads();
    for (int i = peal_thread_(); i < launch.write_count; i += peal_block_threads_()) {
        const peal_launch_write &write = launch.write[i];
        if (!(write.boxes & bit))
            continue;
        /* Both pair with the loads in peal_wait_one_ of the receiver. */
        if (write.part == 0)
            peal_store_(write.word, write.value);
        else
            peal_add_to_(write.word, write.part + (peal_block_() == write.first ? write.rest : 0));
    }
}

/* The last of a launch's senders copies what was left to it, and stores the flags. */
static __device__ PEAL_PART_ void peal_send_last_(const peal_launch *launch)
{

    /* The barriers of counting come before the copies. */
    bool is_staged = launch->list_count > 0 && peal_stage_pieces_(launch, peal_staged_);
    if (!peal_is_last_((unsigned *)launch->arrived, launch->senders, launch->mirror_count > 0))
        return;
    if (launch->list_count > 0)
        peal_copy_all_(launch, is_staged ? peal_staged_ : 0);
    peal_write_flags_(launch, launch->fold_bit);
}

/* The end of a block whose tile has a part in messages. `given_up`: a wait of the module was, when
 * the block began; a block that gives up itself does not come here. */
static __device__ __forceinline__ void peal_send_tile_(const peal_launch &launch,
                                                       const peal_launch_box *box,
                                                       const peal_tile &tile, bool given_up)
{
    if (launch.mirror_count > 0) {
        __syncthreads();
        peal_mirror_(launch, box->bit, tile.lo, tile.hi);
    }
#ifdef PEAL_FUSED
    if (!launch.adds) {
        if (peal_thread_() == 0)
            peal_fused_then_ = PEAL_THEN_SEND_;
        return;
    }
#endif
    if (!launch.adds)
        peal_send_last_(&launch);
    else if (!given_up)
        peal_add_flags_(launch, box->bit);
}

/* The same of a task that peal brings itself, whose result this block alone has: one element, in
 * thread 0. */
template <class type>
static __device__ __forceinline__ void peal_send_result_(const peal_launch &launch, type result,
                                                         bool given_up)
{
    for (int m = 0; m < launch.mirror_count && peal_thread_() == 0; m++)
        *(type *)launch.mirror[m].target = result;
    if (launch.list_count > 0) {
        __syncthreads();
        peal_copy_all_(&launch, 0);
    }
    if (!given_up)
        peal_write_flags_(&launch, 0);
}

#endif
