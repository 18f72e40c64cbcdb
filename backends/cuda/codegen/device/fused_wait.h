/* What a block of the dispatcher waits for before its partition of a work item: epochs of other
 * blocks, some of which may be behind, and flags. Part of fused.h, whose slots it uses. */
#ifndef PEAL_DEVICE_FUSED_WAIT_H
#define PEAL_DEVICE_FUSED_WAIT_H

static __device__ __forceinline__ unsigned *peal_fused_epoch_(const peal_fused &fused,
                                                              unsigned block)
{
    return (unsigned *)fused.epochs + block * fused.epoch_words;
}

/* One thread: until an epoch has come so far; pairs with its peal_st_release_gpu_. patient: others
 * poll the same, while somebody needs the memory. False: a wait was given up. */
static __device__ __forceinline__ bool
peal_fused_reached_(const peal_fused &fused, const unsigned *word, unsigned epoch, bool patient)
{
    for (unsigned polls = 1; (int)(peal_ld_acquire_gpu_(word) - epoch) < 0; polls++) {
        peal_relax_(patient ? ~0u : polls);
        if (polls % PEAL_POLLS_A_LOOK_ != 0)
            continue;
        if (*(volatile unsigned *)&peal_given_up != 0)
            return false;
        if (fused.control && peal_ld_relaxed_sys_(fused.control) != 0) {
            atomicExch(&peal_given_up, 1u);
            return false;
        }
    }
    return true;
}

/* Blocks that are waited for: those of `after`, then those of a range. */
struct peal_fused_before_ {
    unsigned named, count;       /* in all */
    peal_fused_dependency first; /* of the range */
};

static __device__ __forceinline__ peal_fused_before_
peal_fused_before_of_(const peal_fused_partition &partition)
{
    return {partition.after_count,
            (unsigned)partition.after_count + partition.range_count,
            {partition.range_first, partition.range_behind}};
}

/* What each thread looks for: until the blocks, but this one, have come as far as they must, and
 * the flags of `waits` are there. The last warp looks for flags, the others for blocks. `after` is
 * loaded where it is needed. Whether a wait was given up. */
static __device__ __forceinline__ int peal_fused_look_(const peal_fused &fused,
                                                       const peal_launch &launch,
                                                       const peal_fused_dependency *const &after,
                                                       const peal_fused_before_ &before,
                                                       unsigned me, unsigned waits, unsigned epoch)
{
    const int thread = peal_thread_(), wait = PEAL_FUSED_THREADS - 1 - thread;
    int given_up = 0;

    for (unsigned i = thread; i < before.count; i += PEAL_FUSED_THREADS) {
        const bool named = i < before.named;
        const peal_fused_dependency name = named ? after[i] : before.first;
        const unsigned block = named ? name.block : name.block + i - before.named;
        if (block != me && !peal_fused_reached_(fused, peal_fused_epoch_(fused, block),
                                                epoch - name.behind, !named))
            given_up = 1;
    }
    if (wait < 32 && (waits >> wait & 1) && !peal_wait_one_(&launch, wait))
        given_up = 1;
    return given_up;
}

/* All threads: until what the partition depends on is there; a barrier. Rounds do not overlap:
 * words that count blocks, or stop the run, are of one. */
static __device__ __forceinline__ bool peal_fused_await_(const peal_fused &fused,
                                                         const peal_fused_slot_ &slot, bool begins,
                                                         unsigned waits, unsigned epoch)
{
    peal_fused_before_ before = peal_fused_before_of_(slot.partition);

    if (begins)
        before = {0, peal_fused_grid_(fused), {0, 0}};
    return __syncthreads_or(peal_fused_look_(fused, slot.launch, slot.after, before,
                                             peal_fused_me_(fused), waits, epoch)) == 0;
}

#endif
