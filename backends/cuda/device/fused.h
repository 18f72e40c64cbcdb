/* The dispatcher of mode fused: one kernel that stays, whose blocks walk the list of records and do
 * their shares, each as soon as the blocks that it depends on have come so far. What a share does
 * is what a block of a grid of its own would do (run.h, send.h), with its launch in shared memory.
 *
 * Order of memory. A block's epoch grows by st.release.gpu, behind a barrier, after all that the
 * block has stored for its share; whoever waits loads it by ld.acquire.gpu, in front of a barrier.
 * An epoch that is e says that the block is through with all records before number e of the run, so
 * it covers what older records have stored or read as well. Flags between devices are as in other
 * modes (run.h): waits of a share come behind its epochs'. */
#ifndef PEAL_DEVICE_FUSED_H
#define PEAL_DEVICE_FUSED_H

#include "peal/fused_launch.h"

/* Printed behind the user's kernels: a switch over the functions. */
static __device__ __forceinline__ void peal_fused_call_(unsigned function,
                                                        const peal_launch &launch);

/* What a block has at hand for a record. */
struct peal_fused_slot_ {
    peal_fused_head head;
    peal_fused_share share;
    const unsigned short *after;
};

/* Its shares of all kinds, and the names of the blocks that they come after. */
struct peal_fused_shares_ {
    peal_fused_share share[PEAL_FUSED_KINDS];
    unsigned short after[PEAL_FUSED_NAMES];
};

static __device__ __forceinline__ peal_fused_share peal_fused_share_(const peal_fused &fused,
                                                                     unsigned kind)
{
    return ((const peal_fused_share *)fused.shares)[kind * gridDim.x + blockIdx.x];
}

/* All threads, at the begin: shares of the first kinds, whose names, as far as there is room, are
 * then counted from the begin of `after`. */
static __device__ __forceinline__ void peal_fused_keep_(const peal_fused &fused,
                                                        peal_fused_shares_ *kept)
{
    unsigned used = 0;

    for (unsigned k = 0; k < fused.kind_count && k < PEAL_FUSED_KINDS; k++) {
        peal_fused_share share = peal_fused_share_(fused, k);
        const unsigned short *after = (const unsigned short *)fused.after + share.after;
        unsigned count = share.after_count == PEAL_FUSED_ALL ? 0 : share.after_count;
        share.kept = used + count <= PEAL_FUSED_NAMES;
        if (share.kept) {
            for (unsigned i = peal_thread_(); i < count; i += PEAL_FUSED_THREADS)
                kept->after[used + i] = after[i];
            share.after = used;
            used += count;
        }
        if (peal_thread_() == 0)
            kept->share[k] = share;
    }
}

/* All threads: what the block needs for a record, on its way to a slot. */
static __device__ __forceinline__ void
peal_fused_fetch_(const peal_fused &fused, const peal_fused_shares_ *kept, unsigned record,
                  unsigned kind, peal_launch *launch, peal_fused_slot_ *slot)
{
    const unsigned long long *from =
        (const unsigned long long *)fused.records + (unsigned long long)record * fused.record_words;
    const unsigned long long *head =
        (const unsigned long long *)((const peal_fused_head *)fused.heads + record);
    int thread = peal_thread_();

    for (unsigned s = 0; s < fused.section_count; s++)
        for (unsigned i = thread; i < fused.section[s].words; i += PEAL_FUSED_THREADS)
            peal_fetch_to_((unsigned long long *)launch + fused.section[s].to + i,
                           from + fused.section[s].from + i);
    if (thread < 2)
        peal_fetch_to_((unsigned long long *)&slot->head + thread, head + thread);
    if (thread == 32) {
        peal_fused_share share =
            kind < PEAL_FUSED_KINDS ? kept->share[kind] : peal_fused_share_(fused, kind);
        slot->after =
            (share.kept ? kept->after : (const unsigned short *)fused.after) + share.after;
        slot->share = share;
    }
}

/* One thread: until a block has come so far; pairs with its peal_release_gpu_ of the epoch. False:
 * a wait was given up. */
static __device__ __forceinline__ bool peal_fused_reached_(const peal_fused &fused, unsigned block,
                                                           unsigned epoch)
{
    const unsigned *word = (const unsigned *)fused.epochs + block;

    for (unsigned polls = 1; (int)(peal_acquire_gpu_(word) - epoch) < 0; polls++) {
        peal_relax_(polls);
        if (polls % PEAL_POLLS_A_LOOK_ != 0)
            continue;
        if (*(volatile unsigned *)&peal_given_up != 0)
            return false;
        if (fused.control && peal_load_(fused.control) != 0) {
            atomicExch(&peal_given_up, 1u);
            return false;
        }
    }
    return true;
}

/* All threads: until the blocks that the share depends on have come so far; a barrier. */
static __device__ __forceinline__ bool peal_fused_await_(const peal_fused &fused, bool all,
                                                         unsigned count,
                                                         const unsigned short *after,
                                                         unsigned epoch)
{
    int given_up = 0;

    count = all ? gridDim.x : count;
    for (unsigned i = peal_thread_(); i < count; i += PEAL_FUSED_THREADS)
        if (!peal_fused_reached_(fused, all ? i : after[i], epoch))
            given_up = 1;
    return __syncthreads_or(given_up) == 0;
}

/* What a function has left to the dispatcher: all threads, behind a barrier. */
static __device__ __noinline__ void peal_fused_rest_(const peal_launch &launch)
{
    const peal_fused_failure_ failed = peal_fused_failed_;
    const int then = peal_fused_then_;

    __syncthreads();
    if (peal_thread_() == 0)
        peal_fused_then_ = PEAL_THEN_NOTHING_;
    if (failed.kind > 0 && peal_thread_() == 0)
        peal_record_now_(&launch, failed.kind, failed.wait, failed.expected, failed.seen);
    if (!failed.kind && then == PEAL_THEN_SEND_)
        peal_send_last_(&launch);
    else if (!failed.kind && then == PEAL_THEN_PASS_)
        peal_pass_(&launch);
    __syncthreads();
}

/* All threads, at the begin of a round, when all blocks are through with the one before: whether
 * the run is over. One block looks whether the host has ended it. What DECIDE has stored is behind
 * the epochs; its next store is behind this block's. */
static __device__ __forceinline__ bool peal_fused_ends_(const peal_fused &fused)
{
    int over = 0;

    if (peal_thread_() == 0) {
        if (blockIdx.x == gridDim.x - 1 && fused.control && peal_load_(fused.control) != 0)
            atomicExch(&peal_given_up, 1u);
        over = *(volatile unsigned *)&peal_given_up != 0 ||
               (fused.stop && *(volatile unsigned *)fused.stop != 0);
    }
    return __syncthreads_or(over) != 0;
}

/* All blocks: the records, round after round. */
extern "C" __global__ void __launch_bounds__(PEAL_FUSED_THREADS, PEAL_FUSED_BLOCKS)
    peal_fused_kernel(const __grid_constant__ peal_fused fused)
{
    __shared__ peal_launch launch[2];
    __shared__ peal_fused_slot_ slot[2];
    __shared__ peal_fused_shares_ kept;
    __shared__ unsigned short kind[PEAL_FUSED_RECORDS];
    const peal_fused_head *heads = (const peal_fused_head *)fused.heads;
    const int thread = peal_thread_();
    unsigned *word = (unsigned *)fused.epochs + blockIdx.x;
    unsigned epoch = fused.first;

    for (unsigned r = thread; r < fused.record_count; r += PEAL_FUSED_THREADS)
        kind[r] = (unsigned short)heads[r].kind;
    peal_fused_keep_(fused, &kept);
    if (thread == 0)
        peal_fused_failed_.kind = peal_fused_then_ = 0;
    __syncthreads();
    /* A run that was stopped before its end has left the words behind. */
    if (thread == 0)
        peal_release_gpu_(word, epoch);
    peal_fused_fetch_(fused, &kept, 0, kind[0], &launch[epoch & 1], &slot[epoch & 1]);
    for (long long round = 0; round < fused.rounds; round++) {
        for (unsigned r = 0; r < fused.record_count; r++) {
            peal_fused_slot_ *const mine = &slot[epoch & 1];
            peal_fetched_();
            __syncthreads();
            /* Nobody looks at the other slot any more. */
            unsigned next = r + 1 < fused.record_count ? r + 1 : 0;
            peal_fused_fetch_(fused, &kept, next, kind[next], &launch[~epoch & 1],
                              &slot[~epoch & 1]);
            if (mine->share.count > 0 || r == 0) {
                /* Rounds do not overlap: words that count blocks, or stop the run, are of one. */
                if (!peal_fused_await_(fused, r == 0 || mine->share.after_count == PEAL_FUSED_ALL,
                                       mine->share.after_count, mine->after, epoch))
                    return;
                if (r == 0 && peal_fused_ends_(fused))
                    return;
            }
            for (unsigned b = 0; b < mine->share.count; b++) {
                if (thread == 0) {
                    peal_fused_blocks_ = mine->head.blocks;
                    peal_fused_block_ = mine->share.first + b;
                }
                __syncthreads();
                peal_fused_call_(mine->head.function, launch[epoch & 1]);
                __syncthreads();
                if (peal_fused_failed_.kind || peal_fused_then_)
                    peal_fused_rest_(launch[epoch & 1]);
                if (peal_fused_failed_.kind)
                    return; /* who waits for this block's epoch sees why it does not come */
            }
            epoch++;
            if (thread == 0) /* pairs with the loads in peal_fused_reached_ */
                peal_release_gpu_(word, epoch);
        }
    }
}

#endif
