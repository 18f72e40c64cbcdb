/* The kernel of `--lower order=tiles` and `order=grid`: blocks have fixed partitions. Each block
 * walks the list of work items, round after round, and runs its own partition of each, as soon as
 * the blocks that this partition depends on are far enough. With order=tiles those are the blocks
 * whose tiles it reads or overwrites (dataflow); with order=grid they are all blocks (a barrier).
 * The host puts the difference into the lists of dependencies, so the kernel is the same:
 * fused/dispatchers/tiles.c and grid.c say more, and where the ideas come from.
 *
 * Invariants. All blocks are resident at the same time, and each runs its work items in the order
 * of the list; a partition waits for older work items only, and for messages sent before it in the
 * order of all ranks. So the oldest partition that is not done can always run. An epoch is a
 * block's, and only that block stores it. A round, and a span, begins when all blocks are through
 * with the one before. */
#ifndef PEAL_DEVICE_DISPATCH_TILES_H
#define PEAL_DEVICE_DISPATCH_TILES_H

#include "peal/fused.h"

#ifdef PEAL_FUSED_IS_WIDE
typedef unsigned short peal_tiles_kind_;
enum {
    PEAL_TILES_IS_WIDE_ = 1,
    PEAL_TILES_ITEMS_ = PEAL_FUSED_WIDE_ITEMS,
    PEAL_TILES_KINDS_ = PEAL_FUSED_WIDE_KINDS
};
#else
typedef unsigned char peal_tiles_kind_;
enum {
    PEAL_TILES_IS_WIDE_ = 0,
    PEAL_TILES_ITEMS_ = PEAL_FUSED_ITEMS,
    PEAL_TILES_KINDS_ = PEAL_FUSED_ITEM_KINDS
};
#endif

/* So many work items a block passes at once, while it runs one: it does not wait for that. */
enum { PEAL_TILES_MOST_PASSED_ = 16 };

/* What a block keeps in shared memory for the whole run: its partitions of the first kinds, the
 * blocks that these depend on, what they add to flags, of which kinds it has no tiles, the kind of
 * each work item, and where each word of a packed launch belongs. */
struct peal_tiles_kept_ {
    peal_fused_partition partition[PEAL_FUSED_KINDS];
    peal_fused_add add[PEAL_FUSED_ADDS];
    peal_fused_dependency after[PEAL_FUSED_DEPENDENCIES];
    bool idle[PEAL_TILES_KINDS_];
    peal_tiles_kind_ kind[PEAL_TILES_ITEMS_];
    unsigned short place[sizeof(peal_launch) / sizeof(unsigned long long)];
};

/* Where a block is in its walk. This lies in shared memory: the compiler would keep it in local
 * memory from one work item to the next, and every acquiring load makes the SM's cache forget local
 * memory. */
struct peal_tiles_walk_ {
    /* Behind the barrier that ends a wait, all but `run` are about the next work item already. */
    peal_shared_ slot, other; /* the slot of the work item, and the one for the next */
    peal_shared_ run;         /* the slot of the work item that is run */
    unsigned epoch;           /* the work item's number, counted over all rounds */
    bool begins;              /* a round begins with it, */
    bool asks;                /* and the host is asked whether the run is over */
    bool over;                /* there is none */
    peal_shared_ filled;      /* the slot that is being filled, */
    unsigned filled_turn;     /* for this turn */
    /* The next one in which the block has tiles, or with which a span begins: */
    unsigned item, number; /* as `epoch` is of the one before */
    unsigned span, left;   /* its span, and work items of that from it on */
    unsigned turn;
    bool opens, looks, ends; /* as `begins`, `asks` and `over` */
};

/* volatile: else the compiler would keep the slots' addresses in local memory. */
static __device__ __forceinline__ peal_fused_slot_ *
peal_tiles_slot_at_(const volatile peal_shared_ &at)
{
    return (peal_fused_slot_ *)peal_shared_at_(at);
}

static __device__ __forceinline__ const peal_fused_partition *
peal_tiles_partition_at_(const peal_fused &fused, unsigned kind)
{
    return (const peal_fused_partition *)fused.partitions + kind * peal_fused_grid_(fused) +
           peal_fused_me_(fused);
}

/* All threads, when the kernel begins: fills `kept` with partitions of the first kinds. As far as
 * there is room, their dependencies and additions are copied too, and `after` and `adds` then count
 * from the begin of the copies. */
static __device__ __forceinline__ void peal_tiles_keep_(const peal_fused &fused,
                                                        peal_tiles_kept_ *kept)
{
    unsigned names = 0, adds = 0;

    for (unsigned r = peal_thread_(); r < fused.item_count; r += PEAL_FUSED_THREADS)
        kept->kind[r] = (peal_tiles_kind_)((const peal_fused_head *)fused.heads)[r].kind;
    for (unsigned i = peal_thread_(); i < fused.item_words; i += PEAL_FUSED_THREADS)
        kept->place[i] = ((const unsigned short *)fused.word_index)[i];
    for (unsigned k = peal_thread_(); k < fused.kind_count; k += PEAL_FUSED_THREADS)
        kept->idle[k] = peal_tiles_partition_at_(fused, k)->count == 0;
    for (unsigned k = 0; k < fused.kind_count && k < PEAL_FUSED_KINDS; k++) {
        peal_fused_partition partition = *peal_tiles_partition_at_(fused, k);
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

static_assert(sizeof(peal_launch) % 8 == 0 && sizeof(peal_fused_head) % 8 == 0 &&
                  sizeof(peal_fused_partition) % 8 == 0,
              "partitions are copied by words");

/* One thread, with the partition there: what it waits for, and adds to. */
static __device__ __forceinline__ void peal_tiles_find_lists_(const peal_fused &fused,
                                                              const peal_tiles_kept_ &kept,
                                                              peal_fused_slot_ *slot)
{
    const peal_fused_partition partition = slot->partition;

    slot->after = (partition.after_kept ? kept.after : (const peal_fused_dependency *)fused.after) +
                  partition.after;
    slot->adds =
        (partition.adds_kept ? kept.add : (const peal_fused_add *)fused.adds) + partition.adds;
}

/* All threads: begin to copy into a slot all that the block needs for a work item. Of a wide list
 * that is more often a partition that is not kept: nobody waits for that either. */
static __device__ __forceinline__ void peal_tiles_fetch_(const peal_fused &fused,
                                                         const peal_tiles_kept_ &kept,
                                                         unsigned item, peal_fused_slot_ *slot)
{
    const int thread = peal_thread_();

    peal_fused_fetch_item_(fused, kept.place, item, thread, PEAL_FUSED_THREADS, &slot->launch,
                           &slot->head);
    if (thread != 32)
        return;
    const unsigned kind = kept.kind[item];
    slot->after = NULL;
    if (kind < PEAL_FUSED_KINDS || !PEAL_TILES_IS_WIDE_) {
        slot->partition =
            kind < PEAL_FUSED_KINDS ? kept.partition[kind] : *peal_tiles_partition_at_(fused, kind);
        peal_tiles_find_lists_(fused, kept, slot);
    } else {
        const unsigned long long *from =
            (const unsigned long long *)peal_tiles_partition_at_(fused, kind);
        for (unsigned i = 0; i < sizeof(slot->partition) / sizeof(*from); i++)
            peal_fetch_to_((unsigned long long *)&slot->partition + i, from + i);
    }
}

/* All threads, once what each of them has begun to copy is there: the rest of a fetch. */
static __device__ __forceinline__ void peal_tiles_fetched_(const peal_fused &fused,
                                                           const peal_tiles_kept_ &kept,
                                                           peal_fused_slot_ *slot, unsigned turn)
{
    peal_fused_grow_(fused, kept.place, &slot->launch, turn);
    if (PEAL_TILES_IS_WIDE_ && peal_thread_() == 32 && !slot->after)
        peal_tiles_find_lists_(fused, kept, slot);
}

/* All threads: wait until the partition may run; ends with a barrier. The first work item of a
 * round waits for all blocks: words that count blocks, or stop the run, belong to one round. False:
 * a wait was given up. */
static __device__ __forceinline__ bool peal_tiles_await_(const peal_fused &fused,
                                                         const peal_fused_slot_ &slot, bool begins,
                                                         unsigned waits, unsigned epoch)
{
    peal_fused_before_ before = peal_fused_before_of_(slot.partition);

    if (begins)
        before = {0, peal_fused_grid_(fused), {0, 0}};
    return __syncthreads_or(peal_fused_wait_for_(fused, slot.launch, slot.after, before,
                                                 peal_fused_me_(fused), waits, epoch)) == 0;
}

/* All threads, at the begin of a round, when all blocks are through with the one before: whether
 * the run is over. asks: one block asks the host. DECIDE's store to the stop word comes before the
 * epochs that were waited for, and its next store comes after this block's epoch: so all blocks see
 * the same. */
static __device__ __forceinline__ bool peal_tiles_end_(const peal_fused &fused, bool asks)
{
    int over = 0;

    if (peal_thread_() == 0)
        over = peal_fused_is_over_(fused,
                                   asks && peal_fused_me_(fused) == peal_fused_grid_(fused) - 1);
    return __syncthreads_or(over) != 0;
}

/* A rank's span of a launch; without work items: there is none. */
static __device__ __forceinline__ peal_fused_span peal_tiles_span_(const peal_fused_ranks_ &ranks,
                                                                   const peal_fused &fused,
                                                                   unsigned index)
{
    return index == 0                                          ? fused.span
           : PEAL_FUSED_RANKS == 1 && index < PEAL_FUSED_SPANS ? ranks.more[index - 1]
                                                               : peal_fused_span{};
}

/* One thread: makes the first work item of span `index` the next one. What comes before the first
 * span is done when the kernel begins, so amid a round it waits for no older work item than its own
 * launch's. Later spans begin as rounds do. */
static __device__ __forceinline__ void peal_tiles_open_(const peal_fused_ranks_ &ranks,
                                                        const peal_fused &fused,
                                                        peal_tiles_walk_ *walk, unsigned index)
{
    const peal_fused_span span = peal_tiles_span_(ranks, fused, index);

    walk->span = index;
    walk->item = span.first;
    walk->left = span.items;
    walk->opens = index > 0 || span.first == span.begin;
    walk->looks = span.asks != 0;
    walk->turn = span.turn;
    walk->ends = span.items == 0;
}

/* The same thread: goes on from the next work item to the one behind it in which the block has
 * tiles, or with which a round begins. The block is through with those between at once. */
static __device__ __forceinline__ void peal_tiles_pass_(const peal_fused_ranks_ &ranks,
                                                        const peal_fused &fused,
                                                        const peal_tiles_kept_ &kept,
                                                        peal_tiles_walk_ *walk)
{
    const peal_fused_span span = peal_tiles_span_(ranks, fused, walk->span);
    unsigned item = walk->item, left = walk->left;

    if (walk->ends)
        return;
    const unsigned most = left > PEAL_TILES_MOST_PASSED_ ? left - PEAL_TILES_MOST_PASSED_ : 0;
    do {
        item++;
        left--;
    } while (left > most && item < span.end && kept.idle[kept.kind[item]]);
    walk->number += walk->left - left;
    if (left == 0) {
        peal_tiles_open_(ranks, fused, walk, walk->span + 1);
        return;
    }
    walk->left = left;
    walk->opens = item == span.end;
    walk->item = item == span.end ? span.begin : item;
    if (PEAL_FUSED_TURNS > 1 && walk->opens)
        walk->turn = walk->turn + 1 < PEAL_FUSED_TURNS ? walk->turn + 1 : 0;
}

/* One thread, once all threads have read `walk`: moves it to the next work item. */
static __device__ __forceinline__ void peal_tiles_go_on_(const peal_fused_ranks_ &ranks,
                                                         const peal_fused &fused,
                                                         const peal_tiles_kept_ &kept,
                                                         peal_tiles_walk_ *walk)
{
    if (!peal_fused_counts_())
        return;
    const peal_shared_ slot = walk->slot;
    walk->slot = walk->other;
    walk->other = slot;
    walk->epoch = walk->number;
    walk->begins = walk->opens;
    walk->asks = walk->looks;
    walk->over = walk->ends;
    peal_tiles_pass_(ranks, fused, kept, walk);
}

/* One thread, when the kernel begins. */
static __device__ __forceinline__ void peal_tiles_begin_(const peal_fused_ranks_ &ranks,
                                                         const peal_fused &fused,
                                                         const peal_tiles_kept_ &kept,
                                                         peal_tiles_walk_ *walk)
{
    walk->epoch = walk->number = fused.first;
    peal_tiles_open_(ranks, fused, walk, 0);
    walk->begins = walk->opens;
    walk->asks = walk->looks;
    walk->over = walk->ends;
    peal_tiles_pass_(ranks, fused, kept, walk);
}

/* All blocks: run the work items of the launch's spans, one span after the other, round after
 * round. The slot of the next work item is filled while the one before waits and is run. */
extern "C" __global__ void __launch_bounds__(PEAL_FUSED_THREADS, PEAL_FUSED_ON_SM)
    peal_fused_kernel(const __grid_constant__ peal_fused_ranks_ ranks)
{
    __shared__ peal_fused copy;
    const peal_fused &fused = peal_fused_mine_(ranks, &copy);
    __shared__ peal_fused_slot_ slots[2];
    __shared__ peal_tiles_kept_ kept;
    __shared__ peal_tiles_walk_ walk;
    bool goes_on = true;

    peal_tiles_keep_(fused, &kept);
    __syncthreads();
    if (peal_thread_() < 32)
        peal_fused_flag_[peal_thread_()].word = 0;
    if (peal_thread_() == 0) {
        peal_fused_failed_.kind = peal_fused_then_ = 0;
        peal_fused_arrival_.count = 0;
        walk.slot = peal_shared_of_(&slots[0]);
        walk.other = peal_shared_of_(&slots[1]);
        peal_tiles_begin_(ranks, fused, kept, &walk);
        /* A run that was stopped before its end has left an older epoch. */
        peal_st_release_gpu_(peal_fused_epoch_(fused, peal_fused_me_(fused)), fused.first);
    }
    __syncthreads();
    peal_tiles_fetch_(fused, kept, fused.span.first, &slots[0]);
    peal_fetched_();
    peal_tiles_fetched_(fused, kept, &slots[0], fused.span.turn);
    __syncthreads();
    while (goes_on && !walk.over) {
        const peal_fused_slot_ &slot = *peal_tiles_slot_at_(walk.slot);
        const bool begins = walk.begins, asks = walk.asks;
        peal_tiles_fetch_(fused, kept, walk.item, peal_tiles_slot_at_(walk.other));
        if (peal_fused_counts_()) {
            walk.run = walk.slot;
            walk.filled = walk.other;
            walk.filled_turn = walk.turn;
        }
        goes_on = peal_tiles_await_(fused, slot, begins, peal_fused_waits_(slot), walk.epoch);
        peal_tiles_go_on_(ranks, fused, kept, &walk);
        if (goes_on && begins && peal_tiles_end_(fused, asks))
            return;
        peal_fused_pause_(walk.epoch);
        goes_on = goes_on && peal_fused_run_(*peal_tiles_slot_at_(walk.run));
        peal_fused_pause_(walk.epoch);
        /* Read now: behind the barrier other threads may fetch into the slot. */
        const peal_fused_slot_ &done = *peal_tiles_slot_at_(walk.run);
        const peal_fused_add *adds = done.adds;
        const unsigned add_count = done.partition.add_count;
        const bool alone = done.head.alone != 0;
        peal_fetched_();
        if (PEAL_TILES_IS_WIDE_ || PEAL_FUSED_TURNS > 1)
            peal_tiles_fetched_(fused, kept, peal_tiles_slot_at_(walk.filled), walk.filled_turn);
        __syncthreads();
        goes_on = goes_on && !peal_fused_failed_.kind;
        if (goes_on && peal_thread_() < 64)
            peal_fused_publish_(adds, add_count, alone,
                                peal_fused_epoch_(fused, peal_fused_me_(fused)), walk.epoch);
    }
    /* Blocks that wait for this epoch are told why it does not come. */
    if (peal_fused_failed_.kind)
        peal_fused_rest_(peal_tiles_slot_at_(walk.run)->launch);
}

#endif
