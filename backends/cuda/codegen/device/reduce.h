/* Piggybacked reductions: work on reductions that is part of a task's launch. The last of its
 * blocks folds the partials of all tiles and sends the result. One more block combines what other
 * ranks have sent for an earlier step. */
#ifndef PEAL_DEVICE_REDUCE_H
#define PEAL_DEVICE_REDUCE_H

#include "peal/run.h"

/* Thread 0 gets the fold of `count` partials, which all threads do: each folds neighbouring ones,
 * in number a power of two, so that the tree is the one of all of them (fold.h). */
template <class type, int combine>
static __device__ __forceinline__ type peal_fold_partials_(const type *element, int count)
{
    enum { GROUP = 8, PARTS = PEAL_LAUNCH_FOLDED / GROUP / PEAL_THREADS_ };
    int parts = 1;
    type part[PARTS];

    while (parts < PARTS && count > parts * GROUP * PEAL_THREADS_)
        parts *= 2;
    const int each = parts * GROUP, first = peal_thread_() * each;
#pragma unroll
    for (int p = 0; p < PARTS; p++) {
        const int begin = first + p * GROUP, here = p < parts ? count - begin : 0;
        part[p] = peal_fold_group_<type, combine, GROUP>(element + begin, here, 1);
    }
#pragma unroll
    for (int distance = 1; distance < PARTS; distance *= 2)
#pragma unroll
        for (int p = 0; p + distance < PARTS; p += 2 * distance)
            if (p + distance < parts && first + (p + distance) * GROUP < count)
                part[p] = peal_join_(combine, part[p], part[p + distance]);
    return peal_fold_threads_(combine, part[0], (count + each - 1) / each);
}

/* Whether the block is the last of a launch that folds. It then sees all partials, also those of
 * launches before, which have ended. */
static __device__ __forceinline__ bool peal_folds_(const peal_launch &launch)
{
    return launch.fold_bit && peal_is_last_((unsigned *)launch.arrived + 2, peal_blocks_(), false);
}

/* All threads of that block, which has waited for what the messages need: stores the fold of
 * reduction `index` to its array and into messages. */
template <class type, int combine>
static __device__ __forceinline__ void peal_fold_tiles_(const peal_launch &launch, int index)
{
    const peal_launch_fold &fold = launch.fold[index];

    if (fold.count == 0)
        return;
    type value =
        peal_fold_partials_<type, combine>((const type *)launch.partial[index], fold.count);
    if (peal_thread_() != 0)
        return;
    *(type *)launch.view[fold.view] = value;
    for (int m = 0; m < launch.remote_store_count; m++)
        if (launch.remote_store[m].boxes == launch.fold_bit &&
            launch.remote_store[m].view == fold.view)
            *(type *)launch.remote_store[m].target = value;
}

/* All threads of that block: waits for what the messages with results need. False: given up. */
static __device__ __forceinline__ bool peal_await_folds_(const peal_launch &launch)
{
    return launch.fold_waits == 0 || peal_wait_(&launch, launch.fold_waits);
}

/* Stores the flags of these messages: thread 0 does, which has stored the results. */
static __device__ __forceinline__ void peal_send_folds_(const peal_launch &launch)
{
    if (peal_thread_() != 0 || peal_has_given_up_())
        return;
    for (int i = 0; i < launch.write_count; i++)
        if (launch.write[i].boxes == launch.fold_bit)
            /* Pairs with the loads in peal_wait_one_ of the receiver. */
            peal_st_release_sys_(launch.write[i].word, launch.write[i].value);
}

/* All threads of the block that combines, which has waited for the contributions; each thread has a
 * column. The tree is that of COMBINE (builtin.h). */
template <class type, int combine>
static __device__ __forceinline__ void peal_piggyback_(const peal_launch &launch)
{
    const peal_launch_piggyback &piggyback = launch.piggyback;
    type value[PEAL_LAUNCH_ROWS];

    if (peal_thread_() >= piggyback.width)
        return;
#pragma unroll
    for (int row = 0; row < PEAL_LAUNCH_ROWS; row++)
        value[row] = row < piggyback.rows ? ((const type *)piggyback.row[row])[peal_thread_()]
                                          : peal_nothing_<type>(combine);
#pragma unroll
    for (int distance = 1; distance < PEAL_LAUNCH_ROWS; distance *= 2)
#pragma unroll
        for (int row = 0; row + distance < PEAL_LAUNCH_ROWS; row += 2 * distance)
            if (row + distance < piggyback.rows)
                value[row] = peal_join_(combine, value[row], value[row + distance]);
    ((type *)piggyback.result)[peal_thread_()] = value[0];
}

#endif
