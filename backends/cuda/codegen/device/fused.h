/* The dispatcher of mode fused: one persistent kernel, whose blocks walk the list of work items and
 * do their partitions, each as soon as the blocks that it depends on have come so far. What a
 * partition does is what a block of a grid of its own would do (run.h, send.h), with its launch in
 * shared memory.
 *
 * Of work items whose shape the compiler knows (shaped.h) the dispatcher waits for what all of a
 * partition's tiles need, runs them in a loop, and adds to a flag once. Others are run a block
 * after the other.
 *
 * Order of memory. A block's epoch grows by st.release.gpu, behind a barrier, after all that the
 * block has stored for its partition; whoever waits loads it by ld.acquire.gpu, in front of a
 * barrier. An epoch that is e says that the block is through with all work items before number e of
 * the run, so it covers what older work items have stored or read as well; work items behind in
 * which the block has no partition count as done. Flags between devices are as in other modes
 * (run.h). */
#ifndef PEAL_DEVICE_FUSED_H
#define PEAL_DEVICE_FUSED_H

#include "peal/fused_launch.h"
#include "peal/jitter.h"
#include "peal/shaped.h"

/* Printed behind the user's kernels: switches over the functions, of a block of any launch, and of
 * some blocks of one whose shape is known, which the dispatcher has waited for. */
static __device__ __forceinline__ void peal_fused_call_(unsigned function,
                                                        const peal_launch &launch);
static __device__ __forceinline__ void peal_fused_shape_(unsigned shape, const peal_launch &launch,
                                                         const peal_blocks_of_ &blocks);

/* The kernel's parameter: its ranks, in the order of their blocks. */
struct peal_fused_ranks_ {
    peal_fused rank[PEAL_FUSED_RANKS];
};

/* All threads: what the block's rank is given. Of several ranks it is copied: what is found by a
 * pointer takes registers from all tasks. */
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

/* What a block has at hand for a work item. */
struct peal_fused_slot_ {
    peal_launch launch;
    peal_fused_head head;
    peal_fused_partition partition;
    const peal_fused_dependency *after;
    const peal_fused_add *adds;
};

/* What it keeps at hand: its partitions of all kinds, the names of the blocks that they come after,
 * what they add to flags, the work items' kinds, and where a work item's words go. */
struct peal_fused_partitions_ {
    peal_fused_partition partition[PEAL_FUSED_KINDS];
    peal_fused_add add[PEAL_FUSED_ADDS];
    peal_fused_dependency after[PEAL_FUSED_DEPENDENCIES];
    unsigned char kind[PEAL_FUSED_ITEMS];
    unsigned short place[sizeof(peal_launch) / sizeof(unsigned long long)];
};

/* Where a block is. In shared memory: what the compiler kept from work item to work item would lie
 * in local memory, whose lines the SM's cache loses with every acquiring load. */
struct peal_fused_now_ {
    /* From the barrier behind which a work item is run on, those of the next one of the block: */
    unsigned item, next;      /* and the one behind it */
    unsigned epoch;           /* the work item's number in all runs */
    peal_shared_ slot, other; /* where the work item is, and where the one behind it will be */
    peal_shared_ run;         /* from that barrier on: the work item that is run */
    long long rounds;
};

/* The compiler would keep where the slots are, in local memory. */
static __device__ __forceinline__ peal_fused_slot_ *
peal_fused_slot_at_(const volatile peal_shared_ &at)
{
    return (peal_fused_slot_ *)peal_shared_at_(at);
}

static __device__ __forceinline__ peal_fused_partition
peal_fused_partition_of_(const peal_fused &fused, unsigned kind)
{
    return ((const peal_fused_partition *)
                fused.partitions)[kind * peal_fused_grid_(fused) + peal_fused_me_(fused)];
}

/* All threads, at the begin: partitions of the first kinds, whose names and additions, as far as
 * there is room, are then counted from the begin of `after` and `add`. */
static __device__ __forceinline__ void peal_fused_keep_(const peal_fused &fused,
                                                        peal_fused_partitions_ *kept)
{
    unsigned names = 0, adds = 0;

    for (unsigned r = peal_thread_(); r < fused.item_count; r += PEAL_FUSED_THREADS)
        kept->kind[r] = (unsigned char)((const peal_fused_head *)fused.heads)[r].kind;
    for (unsigned i = peal_thread_(); i < fused.item_words; i += PEAL_FUSED_THREADS)
        kept->place[i] = ((const unsigned short *)fused.word_index)[i];
    for (unsigned k = 0; k < fused.kind_count && k < PEAL_FUSED_KINDS; k++) {
        peal_fused_partition partition = peal_fused_partition_of_(fused, k);
        const peal_fused_dependency *after =
            (const peal_fused_dependency *)fused.after + partition.after;
        unsigned count = partition.after_count;
        partition.after_kept = names + count <= PEAL_FUSED_DEPENDENCIES;
        if (partition.after_kept) {
            for (unsigned i = peal_thread_(); i < count; i += PEAL_FUSED_THREADS)
                kept->after[names + i] = after[i];
            partition.after = names;
            names += count;
        }
        partition.adds_kept = adds + partition.add_count <= PEAL_FUSED_ADDS;
        if (partition.adds_kept) {
            if (peal_thread_() < partition.add_count)
                kept->add[adds + peal_thread_()] =
                    ((const peal_fused_add *)fused.adds)[partition.adds + peal_thread_()];
            partition.adds = adds;
            adds += partition.add_count;
        }
        if (peal_thread_() == 0)
            kept->partition[k] = partition;
    }
}

/* So many threads: a work item and its head, on their way. */
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
    if (thread < 2)
        peal_fetch_to_((unsigned long long *)to + thread, head + thread);
}

/* All threads: what the block needs for a work item, on its way to a slot. */
static __device__ __forceinline__ void peal_fused_fetch_(const peal_fused &fused,
                                                         const peal_fused_partitions_ &kept,
                                                         unsigned item, peal_fused_slot_ *slot)
{
    const int thread = peal_thread_();

    peal_fused_fetch_item_(fused, kept.place, item, thread, PEAL_FUSED_THREADS, &slot->launch,
                           &slot->head);
    if (thread == 32) {
        const unsigned kind = kept.kind[item];
        peal_fused_partition partition =
            kind < PEAL_FUSED_KINDS ? kept.partition[kind] : peal_fused_partition_of_(fused, kind);
        slot->after =
            (partition.after_kept ? kept.after : (const peal_fused_dependency *)fused.after) +
            partition.after;
        slot->adds =
            (partition.adds_kept ? kept.add : (const peal_fused_add *)fused.adds) + partition.adds;
        slot->partition = partition;
    }
}

#include "peal/fused_wait.h"

/* What a function has left to the dispatcher: all threads, behind a barrier. */
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
    /* A wait that was given up there. */
    if (!failed.kind && peal_fused_failed_.kind > 0 && peal_thread_() == 0)
        peal_report_failure_now_(&launch, peal_fused_failed_.kind, peal_fused_failed_.wait,
                                 peal_fused_failed_.expected, peal_fused_failed_.seen);
    __syncthreads();
}

/* One thread, at the begin of a round: whether the run is over; looks: by the host, too. */
static __device__ __forceinline__ int peal_fused_is_over_(const peal_fused &fused, bool looks)
{
    if (looks && fused.control && peal_ld_relaxed_sys_(fused.control) != 0)
        atomicExch(&peal_given_up, 1u);
    return *(volatile unsigned *)&peal_given_up != 0 ||
           (fused.stop && *(volatile unsigned *)fused.stop != 0);
}

/* All threads, at the begin of a round, when all blocks are through with the one before: whether
 * the run is over. One block looks whether the host has ended it. What DECIDE has stored is behind
 * the epochs; its next store is behind this block's. */
static __device__ __forceinline__ bool peal_fused_ends_(const peal_fused &fused)
{
    int over = 0;

    if (peal_thread_() == 0)
        over = peal_fused_is_over_(fused, peal_fused_me_(fused) == peal_fused_grid_(fused) - 1);
    return __syncthreads_or(over) != 0;
}

/* All threads, when the blocks that the partition depends on have come so far: waits for flags,
 * unless the run has stopped: peers send nothing any more then. False: the partition does nothing.
 */
static __device__ __noinline__ bool peal_fused_enters_(const peal_launch &launch, unsigned waits)
{
    return *(volatile unsigned *)launch.stop == 0 && (waits == 0 || peal_wait_(&launch, waits));
}

/* All threads: the partition of a launch of any kind, one block after the other. Called, so that
 * what its functions need costs the others nothing. False: this block of the kernel is to end. */
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

/* Which flags the dispatcher waits for together with blocks: where the run may have stopped, and
 * where a function waits itself, none. */
static __device__ __forceinline__ unsigned peal_fused_waits_(const peal_fused_slot_ &slot)
{
    return (slot.head.function >= PEAL_FUSED_SHAPES || slot.head.alone) && !slot.launch.stop
               ? slot.partition.waits
               : 0;
}

/* All threads: the block's partition of a work item. Of one that is stopped nobody waits for
 * messages, so flags that went on would go round before a slower peer has looked at what it still
 * waits for. Each thread that adds has stored itself that nothing is added. False: this block of
 * the kernel is to end. */
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
    return true; /* what has failed is seen behind the next barrier */
}

/* The first warp: whether this block's arrival is the launch's last; then all that others have
 * stored comes before what it stores. */
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

/* The first warp: flags that are no sums, if the block is the last of those that send. */
static __device__ __noinline__ void peal_fused_store_flags_()
{
    const peal_flag_ flag = peal_fused_flag_[peal_thread_()];

    peal_fused_flag_[peal_thread_()].word = 0;
    __syncwarp();
    if (peal_fused_is_last_() && flag.word)
        peal_st_release_sys_(flag.word, flag.value);
    __syncwarp();
}

/* Two warps, behind a barrier: flags, then the epoch, which comes behind them: who adds to a flag
 * for a later message waits for it. Flags pair with the loads in peal_wait_one_ of the receiver,
 * the epoch with those in peal_fused_reached_. alone: nobody else adds, so neither comes first. */
static __device__ __forceinline__ void peal_fused_tell_(const peal_fused_add *adds, unsigned count,
                                                        bool alone, unsigned *word, unsigned epoch)
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
    __syncwarp(); /* before lanes wait for others, who may wait for this */
}

/* The block's next work item behind one: of those in which it has no partition it is through at
 * once. All blocks begin a round together. */
static __device__ __forceinline__ unsigned
peal_fused_next_(const peal_fused &fused, const peal_fused_partitions_ &kept, unsigned item)
{
    do
        item++;
    while (item < fused.item_count && kept.kind[item] < PEAL_FUSED_KINDS &&
           kept.partition[kept.kind[item]].count == 0);
    return item < fused.item_count ? item : 0;
}

/* A thread of a warp that does nothing else alone. */
static __device__ __forceinline__ bool peal_fused_counts_()
{
    return peal_thread_() == PEAL_FUSED_THREADS - 33;
}

/* One thread, when all have read where the block is: to the next work item. */
static __device__ __forceinline__ void
peal_fused_go_on_(const peal_fused &fused, const peal_fused_partitions_ &kept, peal_fused_now_ *now)
{
    if (!peal_fused_counts_())
        return;
    const peal_shared_ slot = now->slot;
    const unsigned item = now->next;
    now->slot = now->other;
    now->other = slot;
    now->epoch += (item ? item : fused.item_count) - now->item;
    now->rounds -= item == 0;
    now->item = item;
    now->next = peal_fused_next_(fused, kept, item);
}

#ifdef PEAL_FUSED_TICKETS
#include "peal/tickets.h"
#else

/* All blocks: the work items, round after round. A slot is filled while the work item before is
 * run. */
extern "C" __global__ void __launch_bounds__(PEAL_FUSED_THREADS, PEAL_FUSED_BLOCKS)
    peal_fused_kernel(const __grid_constant__ peal_fused_ranks_ ranks)
{
    __shared__ peal_fused copy;
    const peal_fused &fused = peal_fused_mine_(ranks, &copy);
    __shared__ peal_fused_slot_ slots[2];
    __shared__ peal_fused_partitions_ kept;
    __shared__ peal_fused_now_ now;
    bool goes_on = true;

    peal_fused_keep_(fused, &kept);
    __syncthreads();
    if (peal_thread_() < 32)
        peal_fused_flag_[peal_thread_()].word = 0;
    if (peal_thread_() == 0) {
        peal_fused_failed_.kind = peal_fused_then_ = 0;
        peal_fused_arrival_.count = 0;
        now.slot = peal_shared_of_(&slots[0]);
        now.other = peal_shared_of_(&slots[1]);
        now.epoch = fused.first;
        now.item = 0;
        now.next = peal_fused_next_(fused, kept, 0);
        now.rounds = fused.rounds;
        /* A run that was stopped before its end has left the words behind. */
        peal_st_release_gpu_(peal_fused_epoch_(fused, peal_fused_me_(fused)), fused.first);
    }
    __syncthreads();
    peal_fused_fetch_(fused, kept, 0, &slots[0]);
    peal_fetched_();
    __syncthreads();
    while (goes_on && now.rounds > 0) {
        const peal_fused_slot_ &slot = *peal_fused_slot_at_(now.slot);
        const bool begins = now.item == 0;
        peal_fused_fetch_(fused, kept, now.next, peal_fused_slot_at_(now.other));
        if (peal_fused_counts_())
            now.run = now.slot;
        goes_on = peal_fused_await_(fused, slot, begins, peal_fused_waits_(slot), now.epoch);
        peal_fused_go_on_(fused, kept, &now);
        if (goes_on && begins && peal_fused_ends_(fused))
            return;
        peal_fused_pause_(now.epoch);
        goes_on = goes_on && peal_fused_run_(*peal_fused_slot_at_(now.run));
        peal_fused_pause_(now.epoch);
        /* Behind the barrier others may fetch into the slot. */
        const peal_fused_slot_ &done = *peal_fused_slot_at_(now.run);
        const peal_fused_add *adds = done.adds;
        const unsigned add_count = done.partition.add_count;
        const bool alone = done.head.alone != 0;
        peal_fetched_();
        __syncthreads();
        goes_on = goes_on && !peal_fused_failed_.kind;
        if (goes_on && peal_thread_() < 64)
            peal_fused_tell_(adds, add_count, alone,
                             peal_fused_epoch_(fused, peal_fused_me_(fused)), now.epoch);
    }
    /* Who waits for this block's epoch sees why it does not come. */
    if (peal_fused_failed_.kind)
        peal_fused_rest_(peal_fused_slot_at_(now.run)->launch);
}
#endif
#endif
