/* What a block waits for before it runs a partition: epochs, of which some may be behind by a
 * number of work items, and flags. Part of fused.h. An epoch is a block's (dispatch_tiles.h) or a
 * worker's (ticket_walker.h). */
#ifndef PEAL_DEVICE_FUSED_WAIT_H
#define PEAL_DEVICE_FUSED_WAIT_H

static __device__ __forceinline__ unsigned *peal_fused_epoch_(const peal_fused &fused,
                                                              unsigned block)
{
    return (unsigned *)fused.epochs + block * fused.epoch_words;
}

/* One thread: waits until the word has reached `epoch`; pairs with its peal_st_release_gpu_.
 * patient: many threads poll this word, so they sleep between polls and leave the memory to others.
 * False: a wait was given up. */
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

/* The blocks to wait for: those that `after` names, then a range of neighbours. */
struct peal_fused_before_ {
    unsigned named, count;       /* how many `after` names; how many there are in all */
    peal_fused_dependency first; /* the first of the range, and how far all of it may be behind */
};

static __device__ __forceinline__ peal_fused_before_
peal_fused_before_of_(const peal_fused_partition &partition)
{
    return {partition.after_count,
            (unsigned)partition.after_count + partition.range_count,
            {partition.range_first, partition.range_behind}};
}

/* Each thread: waits for its part of the epochs, other than that of `me`, and of the flags in
 * `waits`. The last warp waits for flags, a lane each; all threads wait for epochs. `after` is a
 * reference so that it is loaded where it is needed. Returns whether a wait was given up. */
static __device__ __forceinline__ int
peal_fused_wait_for_(const peal_fused &fused, const peal_launch &launch,
                     const peal_fused_dependency *const &after, const peal_fused_before_ &before,
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

#endif
