/* Built-in kernels: copies, signals, the count of steps, folds, memory that is touched. */
#ifndef PEAL_DEVICE_BUILTIN_H
#define PEAL_DEVICE_BUILTIN_H

#include "peal/reduce.h"
#include "peal/send.h"

enum { PEAL_COPY_THREADS_ = 256, PEAL_FOLD_CHUNK_ = 2048 };

/* Loads that a thread of a copy has under way. In mode fused their registers count for all tasks.
 */
#ifdef PEAL_FUSED
enum { PEAL_COPIES_AT_ONCE_ = 2 };
#else
enum { PEAL_COPIES_AT_ONCE_ = 4 };
#endif

PEAL_ENTRY_(PEAL_COPY_THREADS_)
peal_copy(PEAL_LAUNCH_ launch)
{
    const peal_device_piece *table = peal_stage_pieces_(&launch, peal_staged_) ? peal_staged_ : 0;
    bool given_up = peal_has_given_up_();

    if (!peal_enter_(launch))
        return;
    __syncthreads();
    /* The kernel before may have given up since; then its data is incomplete and no flag is added.
     */
    const bool gone = launch.adds && peal_has_given_up_();
    if (launch.list_count > 0 && !given_up)
        peal_copy_share_<PEAL_COPIES_AT_ONCE_>(&launch, table,
                                               peal_block_() * (PEAL_COPY_THREADS_ / 32) +
                                                   peal_thread_() / 32,
                                               peal_blocks_() * (PEAL_COPY_THREADS_ / 32),
                                               peal_thread_() % 32);
    if (launch.adds && !gone)
        peal_add_flags_(launch, 1);
    else if (!launch.adds && launch.write_count > 0 &&
             peal_is_last_((unsigned *)launch.arrived, peal_blocks_(), true))
        peal_write_flags_(&launch, 0);
}

/* One warp: all waits, then all writes. */
PEAL_ENTRY_(32)
peal_signal(PEAL_LAUNCH_ launch)
{
    if (peal_is_stopped_(launch))
        return;
    if (!peal_await_(launch, launch.wait_count > 0 ? 0xffffffffu : 0))
        return;
    if (launch.write_count > 0 && !peal_has_given_up_())
        peal_write_flags_(&launch, 0);
}

/* One thread: another argument[0] iterations are done. */
PEAL_ENTRY_(32)
peal_step(PEAL_LAUNCH_ launch)
{
    if (peal_thread_() != 0 || !peal_enter_(launch))
        return;
    long long step = *(long long *)launch.step + launch.argument[0].integer;
    *(long long *)launch.step = step;
    if (launch.control) /* for the host's estimate of the progress: it orders no other memory */
        *(volatile unsigned long long *)&((peal_device_control *)launch.control)->steps_done =
            (unsigned long long)step;
}

/* One thread: what depends on the word at view[0] begins anew. It is skipped if the word at view[1]
 * (0: none) says so. The argument[0] words at view[2] are verdicts that are acted on later: they
 * are cleared. */
PEAL_ENTRY_(32)
peal_begin(PEAL_LAUNCH_ launch)
{
    if (peal_thread_() != 0 || !peal_enter_(launch))
        return;
    *(unsigned *)launch.view[0] = launch.view[1] ? *(volatile unsigned *)launch.view[1] : 0;
    for (int i = 0; i < launch.argument[0].integer; i++)
        ((unsigned *)launch.view[2])[i] = 0;
}

/* Reads something at list[i].end places of each of `list_count` ranges, argument[i] bytes apart,
 * from base[i] on. */
PEAL_ENTRY_(32)
peal_touch(PEAL_LAUNCH_ launch)
{
    if (peal_is_stopped_(launch))
        return;
    for (int i = 0; i < launch.list_count; i++)
        for (long long place = peal_block_() * 32 + peal_thread_(); place < launch.list[i].end;
             place += peal_blocks_() * 32)
            (void)*(volatile unsigned char *)(launch.base[i] + place * launch.argument[i].integer);
}

/* DECIDE, by one thread. Whether the condition is not evaluated, because it depends on the word at
 * view[1], and that word says that all of this is skipped. */
static __device__ __forceinline__ bool peal_is_decided_(const peal_launch &launch)
{
    if (!launch.view[1] || *(volatile unsigned *)launch.view[1] == 0)
        return false;
    *(unsigned *)launch.view[0] = 1;
    return true;
}

/* Stores the verdict to the word at view[0], inverted if argument[0] says so: the word says what is
 * skipped. A loop that acts on verdicts later has the latest ones at view[2]: this one goes to
 * index argument[1], the one to act on is at index argument[2]. */
static __device__ __forceinline__ void peal_decide_(const peal_launch &launch, unsigned verdict)
{
    if (launch.view[2]) {
        ((unsigned *)launch.view[2])[launch.argument[1].integer] = verdict;
        verdict = ((unsigned *)launch.view[2])[launch.argument[2].integer];
    }
    *(unsigned *)launch.view[0] = verdict ^ (launch.argument[0].integer != 0);
}

/* Thread 0 gets the fold of element[i * stride], i in [0, count), count at most a chunk. Each
 * thread folds a group of eight, a power of two, so that the tree is the one of the whole chunk. */
template <class type, int combine>
static __device__ __forceinline__ type peal_fold_chunk_(const type *element, int count,
                                                        long long stride)
{
    enum { GROUP = PEAL_FOLD_CHUNK_ / PEAL_THREADS_ };
    int first = peal_thread_() * GROUP;
    type value =
        peal_fold_group_<type, combine, GROUP>(element + first * stride, count - first, stride);

    return peal_fold_threads_(combine, value, (count + GROUP - 1) / GROUP);
}

/* One block: folds chunk after chunk in place, until one is left. Thread 0 gets the result. */
template <class type, int combine>
static __device__ __forceinline__ type peal_fold_rest_(type *element, long long count,
                                                       long long stride, type *result)
{
    while (count > PEAL_FOLD_CHUNK_) {
        long long chunks = (count + PEAL_FOLD_CHUNK_ - 1) / PEAL_FOLD_CHUNK_;
        for (long long c = 0; c < chunks; c++) {
            type *first = element + c * PEAL_FOLD_CHUNK_ * stride;
            long long left = count - c * PEAL_FOLD_CHUNK_;
            type value = peal_fold_chunk_<type, combine>(
                first, (int)(left < PEAL_FOLD_CHUNK_ ? left : PEAL_FOLD_CHUNK_), stride);
            if (peal_thread_() == 0)
                *first = value;
        }
        __syncthreads();
        count = chunks;
        stride *= PEAL_FOLD_CHUNK_;
    }
    type value = peal_fold_chunk_<type, combine>(element, (int)count, stride);
    value = count > 0 ? value : peal_nothing_<type>(combine);
    if (peal_thread_() == 0)
        *result = value;
    return value;
}

/* argument[0] elements at view[1], in chunks; the last block folds what the chunks gave. */
template <class type, int combine>
static __device__ __forceinline__ void peal_fold_(const peal_launch &launch)
{
    type *element = (type *)launch.view[1], *result = (type *)launch.view[0];
    long long count = launch.argument[0].integer;
    type value;

    if (!peal_enter_(launch))
        return;
    /* After the kernel before; the load is under way while the elements are folded. */
    const bool given_up = launch.senders > 0 && peal_has_given_up_();
    if (peal_blocks_() > 1) {
        type *first = element + (long long)peal_block_() * PEAL_FOLD_CHUNK_;
        long long left = count - (long long)peal_block_() * PEAL_FOLD_CHUNK_;
        value = peal_fold_chunk_<type, combine>(
            first, (int)(left < PEAL_FOLD_CHUNK_ ? left : PEAL_FOLD_CHUNK_), 1);
        if (peal_thread_() == 0)
            *first = value;
        if (!peal_is_last_((unsigned *)launch.arrived, peal_blocks_(), false))
            return;
        value = peal_fold_rest_<type, combine>(element, peal_blocks_(), PEAL_FOLD_CHUNK_, result);
    } else
        value = peal_fold_rest_<type, combine>(element, count, 1, result);
    if (launch.senders > 0)
        peal_send_result_(launch, value, given_up);
}

/* Each of the argument[1] columns of argument[0] rows has a thread; a launch of one block may
 * unpack pieces first. A stack holds complete subtrees: the bits of the number of rows so far say
 * which. */
template <class type, int combine>
static __device__ __forceinline__ void peal_combine_(const peal_launch &launch)
{
    long long rows = launch.argument[0].integer, width = launch.argument[1].integer;
    long long column = (long long)peal_block_() * PEAL_THREADS_ + peal_thread_();
    type waiting[32];

#ifdef PEAL_FUSED
    if (launch.piggyback.rows > 0) { /* the dispatcher has waited, and sends */
        peal_piggyback_<type, combine>(launch);
        return;
    }
#endif
    const peal_device_piece *table =
        launch.list_count > 0 && peal_stage_pieces_(&launch, peal_staged_) ? peal_staged_ : 0;
    if (!peal_enter_(launch))
        return;
    const bool given_up = launch.senders > 0 && peal_has_given_up_();
    if (launch.list_count > 0) {
        __syncthreads();
        peal_copy_all_(&launch, table);
        __syncthreads();
    }
    if (column < width) {
        const type *element = (const type *)launch.view[1] + column;
        for (unsigned row = 0; row < rows; row++) {
            type value = element[row * width];
            int level = 0;
            for (; row >> level & 1; level++)
                value = peal_join_(combine, waiting[level], value);
            waiting[level] = value;
        }
        type value = peal_nothing_<type>(combine);
        bool any = false;
        for (int level = 0; level < 32; level++)
            if (rows >> level & 1) {
                value = any ? peal_join_(combine, waiting[level], value) : waiting[level];
                any = true;
            }
        ((type *)launch.view[0])[column] = value;
    }
    if (launch.senders > 0 && peal_blocks_() == 1 && !given_up)
        peal_write_flags_(&launch, 0);
    else if (launch.senders > 0 && peal_blocks_() > 1 &&
             peal_is_last_((unsigned *)launch.arrived, launch.senders, false))
        peal_write_flags_(&launch, 0);
}

#endif
