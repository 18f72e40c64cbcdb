/* What all dispatchers of mode fused share: how a block of the persistent kernel runs its partition
 * of a work item. A dispatcher (dispatch_tiles.h, ticket_walker.h) has the kernel itself: its loop
 * chooses the next partition and waits for what that depends on. A partition runs the tiles that
 * blocks of a grid of their own would run (run.h, send.h), with the launch in shared memory.
 *
 * The compiler knows the shape of most work items (shaped.h). Of these the dispatcher waits once
 * for all tiles of the partition, runs the tiles in a loop, and adds to each flag once. Tiles of
 * other work items are run one after the other by functions that read the launch.
 *
 * Order of memory. An epoch is stored by st.release.gpu, behind a barrier, after all that the block
 * has stored for its partition. Whoever waits for it loads it by ld.acquire.gpu, in front of a
 * barrier. Epoch e says that all work items before number e of the run are done, so it covers what
 * older work items have stored or read as well. Work items that come next and in which there is no
 * partition count as done. Flags between devices are as in other modes (run.h). */
#ifndef PEAL_DEVICE_FUSED_H
#define PEAL_DEVICE_FUSED_H

#include "peal/fused_launch.h"
#include "peal/jitter.h"
#include "peal/shaped.h"

/* Turns of the list, which is once in memory (fused_launch.h). */
#ifndef PEAL_FUSED_TURNS
#define PEAL_FUSED_TURNS 1
#endif
/* Blocks that an SM is to hold: the fewer, the more registers each thread has. */
#ifndef PEAL_FUSED_ON_SM
#define PEAL_FUSED_ON_SM PEAL_FUSED_BLOCKS
#endif

/* The host prints these two behind the user's kernels. Each is a switch: the first over functions
 * that run one block of any launch, the second over shapes, whose function runs some blocks of a
 * launch once the dispatcher has waited for what they need. */
static __device__ __forceinline__ void peal_fused_call_(unsigned function,
                                                        const peal_launch &launch);
static __device__ __forceinline__ void peal_fused_shape_(unsigned shape, const peal_launch &launch,
                                                         const peal_blocks_of_ &blocks);

/* The kernel's parameter: its ranks, in the order of their blocks. */
struct peal_fused_ranks_ {
    peal_fused rank[PEAL_FUSED_RANKS];
    /* Of a rank that is alone, behind its first. */
    peal_fused_span more[PEAL_FUSED_RANKS == 1 ? PEAL_FUSED_SPANS - 1 : 1];
};

/* All threads: the parameter of the block's rank. With several ranks it is copied to shared memory:
 * a pointer to it would take registers from all tasks. */
static __device__ __forceinline__ const peal_fused &peal_fused_mine_(const peal_fused_ranks_ &ranks,
                                                                     peal_fused *copy)
{
    const int words = sizeof(peal_fused) / sizeof(unsigned long long);
    unsigned rank = 0;

    if (PEAL_FUSED_RANKS == 1)
        return ranks.rank[0];
    while (rank + 1 < PEAL_FUSED_RANKS && blockIdx.x >= ranks.rank[rank + 1].begin)
        rank++;
    if (peal_thread_() < words)
        ((unsigned long long *)copy)[peal_thread_()] =
            ((const unsigned long long *)&ranks.rank[rank])[peal_thread_()];
    __syncthreads();
    return *copy;
}

/* The block's number within its rank, and how many the rank has. */
static __device__ __forceinline__ unsigned peal_fused_me_(const peal_fused &fused)
{
    return PEAL_FUSED_RANKS == 1 ? blockIdx.x : blockIdx.x - fused.begin;
}

static __device__ __forceinline__ unsigned peal_fused_grid_(const peal_fused &fused)
{
    return PEAL_FUSED_RANKS == 1 ? gridDim.x : fused.grid;
}

/* A buffer in shared memory for a work item: its launch, and the block's partition of it. */
struct peal_fused_slot_ {
    peal_launch launch;
    peal_fused_head head;
    peal_fused_partition partition;
    const peal_fused_dependency *after;
    const peal_fused_add *adds;
};

/* The growth of the words of the work item that is being fetched. */
__shared__ unsigned long long
    peal_fused_growth_[PEAL_FUSED_TURNS > 1 ? sizeof(peal_launch) / sizeof(unsigned long long) : 1];

/* `threads` threads: begin to copy a work item and its head into a slot. place: where each word of
 * the packed launch belongs. */
static __device__ __forceinline__ void
peal_fused_fetch_item_(const peal_fused &fused, const unsigned short *place, unsigned item,
                       int thread, int threads, peal_launch *launch, peal_fused_head *to)
{
    const unsigned long long *from =
        (const unsigned long long *)fused.items + (unsigned long long)item * fused.item_words;
    const unsigned long long *head =
        (const unsigned long long *)((const peal_fused_head *)fused.heads + item);

    for (unsigned i = thread; i < fused.item_words; i += threads)
        peal_fetch_to_((unsigned long long *)launch + place[i], from + i);
    for (unsigned i = thread; PEAL_FUSED_TURNS > 1 && i < fused.item_words; i += threads)
        peal_fetch_to_(&peal_fused_growth_[i],
                       from + (unsigned long long)fused.item_count * fused.item_words + i);
    if (thread < 2)
        peal_fetch_to_((unsigned long long *)to + thread, head + thread);
}

/* What is added to a word in that turn. */
static __device__ __forceinline__ unsigned long long peal_fused_grown_(unsigned long long growth,
                                                                       unsigned turn)
{
    const unsigned rounds = (unsigned)growth & PEAL_FUSED_GROWTH_ROUNDS;

    return (rounds > 0 ? turn & ((1u << rounds) - 1) : turn) * (growth - rounds);
}

/* All threads, once what each of them has fetched is there, which is all that it reads here: makes
 * the launch that of its turn. */
static __device__ __forceinline__ void peal_fused_grow_(const peal_fused &fused,
                                                        const unsigned short *place,
                                                        peal_launch *launch, unsigned turn)
{
    for (unsigned i = peal_thread_(); PEAL_FUSED_TURNS > 1 && i < fused.item_words;
         i += PEAL_FUSED_THREADS)
        ((unsigned long long *)launch)[place[i]] += peal_fused_grown_(peal_fused_growth_[i], turn);
}

#include "peal/fused_wait.h"

/* All threads, behind a barrier: what a function has left for the dispatcher to do. */
static __device__ __noinline__ void peal_fused_rest_(const peal_launch &launch)
{
    const peal_fused_failure_ failed = peal_fused_failed_;
    const int then = peal_fused_then_;

    __syncthreads();
    if (peal_thread_() == 0)
        peal_fused_then_ = PEAL_THEN_NOTHING_;
    if (failed.kind > 0 && peal_thread_() == 0)
        peal_report_failure_now_(&launch, failed.kind, failed.wait, failed.expected, failed.seen);
    if (!failed.kind && then == PEAL_THEN_SEND_)
        peal_send_last_(&launch);
    else if (!failed.kind && then == PEAL_THEN_PASS_)
        peal_pass_(&launch);
    __syncthreads();
    /* That may have given up a wait. */
    if (!failed.kind && peal_fused_failed_.kind > 0 && peal_thread_() == 0)
        peal_report_failure_now_(&launch, peal_fused_failed_.kind, peal_fused_failed_.wait,
                                 peal_fused_failed_.expected, peal_fused_failed_.seen);
    __syncthreads();
}

/* One thread, at the begin of a round: whether the run is over. looks: ask the host, too. */
static __device__ __forceinline__ int peal_fused_is_over_(const peal_fused &fused, bool looks)
{
    if (looks && fused.control && peal_ld_relaxed_sys_(fused.control) != 0)
        atomicExch(&peal_given_up, 1u);
    return *(volatile unsigned *)&peal_given_up != 0 ||
           (fused.stop && *(volatile unsigned *)fused.stop != 0);
}

/* All threads, once the epochs that the partition depends on have been reached: waits for flags,
 * unless the run has stopped, since peers send nothing then. False: the partition does nothing. */
static __device__ __noinline__ bool peal_fused_enters_(const peal_launch &launch, unsigned waits)
{
    return *(volatile unsigned *)launch.stop == 0 && (waits == 0 || peal_wait_(&launch, waits));
}

/* All threads: runs the partition of a launch of any kind, one block of its grid after the other.
 * It is not inlined, so that registers for its functions cost shapes nothing. False: this block of
 * the kernel has to end. */
static __device__ __noinline__ bool peal_fused_blocks_of_(const peal_fused_slot_ &slot)
{
    for (unsigned b = 0; b < slot.partition.count; b++) {
        if (peal_thread_() == 0) {
            peal_fused_blocks_ = slot.head.blocks;
            peal_fused_block_ = slot.partition.first + b * slot.partition.stride;
        }
        __syncthreads();
        peal_fused_call_(slot.head.function, slot.launch);
        __syncthreads();
        if (peal_fused_failed_.kind || peal_fused_then_)
            peal_fused_rest_(slot.launch);
        if (peal_fused_failed_.kind)
            return false;
    }
    return true;
}

/* Which flags the dispatcher waits for at the same time as for epochs. None where the run may have
 * stopped, and none where a function waits by itself. */
static __device__ __forceinline__ unsigned peal_fused_waits_(const peal_fused_slot_ &slot)
{
    return (slot.head.function >= PEAL_FUSED_SHAPES || slot.head.alone) && !slot.launch.stop
               ? slot.partition.waits
               : 0;
}

/* All threads: runs the partition in a slot. Once the run has stopped, nothing is added to flags:
 * nobody waits for messages then, so flags that still grew could wrap before a slower peer has
 * looked at the value that it waits for. All threads store add_count, so each thread that adds sees
 * its own store. False: this block of the kernel has to end. */
static __device__ __forceinline__ bool peal_fused_run_(peal_fused_slot_ &slot)
{
    peal_fused_partition &partition = slot.partition;

    if (slot.head.function < PEAL_FUSED_SHAPES)
        return peal_fused_blocks_of_(slot);
    if (!slot.launch.stop || peal_fused_enters_(slot.launch, partition.waits))
        peal_fused_shape_(slot.head.function - PEAL_FUSED_SHAPES, slot.launch,
                          {partition.first, partition.first + partition.count * partition.stride,
                           partition.stride, slot.head.back != 0});
    else
        partition.add_count = 0;
    return true; /* a failure is seen behind the next barrier */
}

/* The first warp: counts this block's arrival; whether it is the last of the launch. If so, all
 * that other blocks have stored comes before what this one stores next. */
static __device__ __forceinline__ bool peal_fused_is_last_()
{
    peal_arrival_ *arrival = &peal_fused_arrival_;

    if (peal_thread_() == 0) {
        peal_fence_acq_rel_sys_(); /* releases this block's stores to the last one's fence */
        arrival->is_last =
            atomicAdd(arrival->arrived, arrival->count) + arrival->count == arrival->senders;
        if (arrival->is_last) {
            *arrival->arrived = 0;
            peal_fence_acq_rel_gpu_();
        }
        arrival->count = 0;
    }
    __syncwarp();
    return arrival->is_last != 0;
}

/* The first warp: stores flags that are no sums, if the block is the last one to send. */
static __device__ __noinline__ void peal_fused_store_flags_()
{
    const peal_flag_ flag = peal_fused_flag_[peal_thread_()];

    peal_fused_flag_[peal_thread_()].word = 0;
    __syncwarp();
    if (peal_fused_is_last_() && flag.word)
        peal_st_release_sys_(flag.word, flag.value);
    __syncwarp();
}

/* Two warps, behind a barrier: adds to flags, then releases the epoch. The order matters, since a
 * block that adds to the same flag for a later message waits for this epoch. Flags pair with the
 * loads in peal_wait_one_ of the receiver, the epoch with those in peal_fused_reached_. alone: no
 * other block adds to these flags, so two warps may store both at the same time. */
static __device__ __forceinline__ void peal_fused_publish_(const peal_fused_add *adds,
                                                           unsigned count, bool alone,
                                                           unsigned *word, unsigned epoch)
{
    const int thread = peal_thread_();

    if (thread < 32) {
        if (thread < count)
            peal_red_add_release_sys_(adds[thread].word, adds[thread].value);
        __syncwarp();
        if (peal_fused_arrival_.count > 0)
            peal_fused_store_flags_();
    }
    peal_fused_pause_(epoch);
    if (thread == (alone ? 32 : 0))
        peal_st_release_gpu_(word, epoch);
    __syncwarp(); /* other lanes go on to wait for blocks that may wait for this epoch */
}

/* The one thread that moves the block to its next work item. Its warp has no other such duty. */
static __device__ __forceinline__ bool peal_fused_counts_()
{
    return peal_thread_() == PEAL_FUSED_THREADS - 33;
}

#endif
