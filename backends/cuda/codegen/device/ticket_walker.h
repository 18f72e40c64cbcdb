/* The kernel of `--lower order=tickets` and `order=paper`: blocks take work as they become free.
 * The host has listed all partitions of a round (fused/dispatchers/ticket_list.c). A block takes a
 * *ticket*, the next number of the launch, by an atomic addition, runs the partition that the list
 * has there, and takes the next ticket. Partitions belong to *workers* in the place of blocks.
 * There may be more workers than blocks, so a block whose tiles are done early takes more
 * partitions. The two orders differ in the list and in how much of it a launch has:
 * fused/dispatchers/tickets.c and paper.c say more, and where the ideas come from.
 *
 * Invariants. A partition waits for partitions that come before it in the list, and for messages,
 * but for nothing else. A ticket is taken by a block that runs already, and each block runs its
 * tickets in the order in which it took them. So the lowest ticket that is not done is the one its
 * block is at, and nothing of this rank holds it up: one resident block is enough, and the order in
 * which the hardware starts blocks does not matter.
 *
 * An epoch is a worker's: it says with which work items that worker is through, and is stored as in
 * dispatch_tiles.h. A partition also waits for its own worker's epoch, since another block may have
 * run that worker's partition before. Rounds do not overlap: the first ticket of a round waits for
 * all workers, asks whether the run is over, and releases the word `begun`, which each block
 * acquires before it runs another ticket of the round. */
#ifndef PEAL_DEVICE_TICKET_WALKER_H
#define PEAL_DEVICE_TICKET_WALKER_H

#include "peal/fused.h"

/* A buffer in shared memory for a ticket. */
struct peal_ticket_ {
    peal_fused_slot_ slot;
    unsigned item, worker, kind;
    unsigned round;       /* epoch of work item 0 */
    unsigned epoch, next; /* the one that its partition waits for; the one that it publishes */
    bool is_none;         /* the launch has no more tickets */
};

/* Where a block is: in shared memory, for the reason given in dispatch_tiles.h. */
struct peal_ticket_walk_ {
    /* Slots. Behind the barrier at the end of a wait, `at` is that of the next ticket already,
     * `other` is free for the one after it, and `run` is that of the ticket that is run. */
    peal_shared_ at, other, run;
    unsigned begun;           /* the word `begun` as the block last saw it */
    unsigned long long first; /* number of the first ticket in the round of the latest ticket, */
    unsigned round;           /* and the epoch at which that round begins */
    unsigned short place[sizeof(peal_launch) / sizeof(unsigned long long)];
};

static __device__ __forceinline__ peal_ticket_ *peal_ticket_at_(const volatile peal_shared_ &at)
{
    return (peal_ticket_ *)peal_shared_at_(at);
}

static __device__ __forceinline__ peal_fused_words *peal_ticket_words_(const peal_fused &fused)
{
    return (peal_fused_words *)fused.tickets.words;
}

/* One thread: takes the next ticket of the launch. */
static __device__ __forceinline__ void
peal_ticket_take_(const peal_fused &fused, peal_ticket_walk_ *own, peal_ticket_ *ticket)
{
    const unsigned count = fused.tickets.count;
    const unsigned long long number = atomicAdd(&peal_ticket_words_(fused)->taken, 1ull);

    ticket->is_none = number >= (unsigned long long)fused.tickets.rounds * count;
    if (ticket->is_none)
        return;
    for (; number - own->first >= count; own->first += count)
        own->round += fused.item_count;
    const peal_fused_ticket entry =
        ((const peal_fused_ticket *)fused.tickets.list)[number - own->first];
    ticket->item = entry.item;
    ticket->worker = entry.worker;
    ticket->round = own->round;
    ticket->epoch = own->round + entry.item;
    ticket->next = own->round + entry.next;
    ticket->kind = entry.kind;
}

/* One warp, which has no other such duty: takes a ticket, and begins to copy what it needs. */
static __device__ __forceinline__ void
peal_ticket_fetch_(const peal_fused &fused, peal_ticket_walk_ *own, peal_ticket_ *ticket)
{
    const int lane = peal_thread_() - (PEAL_FUSED_THREADS - 64);

    if (lane < 0 || lane >= 32)
        return;
    if (lane == 0)
        peal_ticket_take_(fused, own, ticket);
    __syncwarp();
    if (ticket->is_none || ticket->worker == PEAL_TICKET_BEGIN)
        return;
    const unsigned long long *partition =
        (const unsigned long long *)((const peal_fused_partition *)fused.partitions +
                                     ticket->kind * fused.tickets.workers + ticket->worker);
    const int words = sizeof(peal_fused_partition) / sizeof(*partition);
    static_assert(sizeof(peal_fused_partition) % sizeof(*partition) == 0, "fetched by words");
    peal_fused_fetch_item_(fused, own->place, ticket->item, lane, 32, &ticket->slot.launch,
                           &ticket->slot.head);
    if (lane >= 2 && lane < 2 + words)
        peal_fetch_to_((unsigned long long *)&ticket->slot.partition + lane - 2,
                       partition + lane - 2);
}

/* All threads: wait until the ticket's round has begun, which a block does once a round; pairs with
 * peal_ticket_begin_. False: it will not begin, or a wait was given up. */
static __device__ __forceinline__ bool
peal_ticket_has_begun_(const peal_fused &fused, peal_ticket_walk_ *own, unsigned round)
{
    const peal_fused_words *words = peal_ticket_words_(fused);
    const unsigned begun = round + fused.tickets.item + 1;
    int ends = 0;

    if (own->begun == begun)
        return true;
    if (peal_thread_() == 0)
        ends = !peal_fused_reached_(fused, &words->begun, begun, false) ||
               *(const volatile unsigned *)&words->over != 0;
    if (__syncthreads_or(ends) != 0)
        return false;
    if (peal_thread_() == 0)
        own->begun = begun; /* others read it behind the next barrier */
    return true;
}

/* All threads: wait until the partition may run; ends with a barrier. False: the block has to end.
 */
static __device__ __forceinline__ bool
peal_ticket_await_(const peal_fused &fused, peal_ticket_walk_ *own, const peal_ticket_ &ticket)
{
    const peal_fused_slot_ &slot = ticket.slot;

    if (!peal_ticket_has_begun_(fused, own, ticket.round))
        return false;
    const peal_fused_dependency *after =
        (const peal_fused_dependency *)fused.after + slot.partition.after;
    return __syncthreads_or(peal_fused_wait_for_(fused, slot.launch, after,
                                                 peal_fused_before_of_(slot.partition),
                                                 PEAL_TICKET_BEGIN, peal_fused_waits_(slot),
                                                 ticket.epoch)) == 0;
}

/* All threads, with the first ticket of a round: wait until all workers are through with the round
 * before, then begin this one. In the first round of a launch, epochs are not waited for but
 * stored: a run that was stopped before its end has left older ones. False: the block has to end.
 */
static __device__ __noinline__ bool peal_ticket_begin_(const peal_fused &fused,
                                                       const peal_ticket_ &ticket)
{
    const bool is_first = ticket.round == fused.first;
    peal_fused_words *words = peal_ticket_words_(fused);
    int ends = 0;

    for (unsigned i = peal_thread_(); i < fused.tickets.workers; i += PEAL_FUSED_THREADS) {
        unsigned *word = peal_fused_epoch_(fused, i);
        if (is_first)
            peal_st_release_gpu_(word,
                                 fused.first + ((const unsigned short *)fused.tickets.first)[i]);
        else if (!peal_fused_reached_(fused, word, ticket.epoch, false))
            ends = 1;
    }
    if (__syncthreads_or(ends) != 0)
        return false;
    if (peal_thread_() == 0) {
        ends = peal_fused_is_over_(fused, true);
        if (ends)
            *(volatile unsigned *)&words->over = 1;
        /* Pairs with the loads in peal_ticket_has_begun_. */
        peal_st_release_gpu_(&words->begun, ticket.epoch + 1);
    }
    return __syncthreads_or(ends) == 0;
}

/* One thread, when the block takes no more tickets: the last block to come here resets the words
 * for the next launch. */
static __device__ __forceinline__ void peal_ticket_leave_(const peal_fused &fused)
{
    peal_fused_words *words = peal_ticket_words_(fused);

    peal_fence_acq_rel_gpu_();
    if (atomicAdd(&words->left, 1u) != peal_fused_grid_(fused) - 1)
        return;
    peal_fence_acq_rel_gpu_(); /* its stores come after the other blocks' loads of the words */
    words->taken = 0;
    words->over = words->left = 0;
}

static __device__ __forceinline__ void
peal_ticket_prepare_(const peal_fused &fused, peal_ticket_walk_ *own, const peal_ticket_ *tickets)
{
    for (unsigned i = peal_thread_(); i < fused.item_words; i += PEAL_FUSED_THREADS)
        own->place[i] = ((const unsigned short *)fused.word_index)[i];
    if (peal_thread_() < 32)
        peal_fused_flag_[peal_thread_()].word = 0;
    if (peal_thread_() == 0) {
        peal_fused_failed_.kind = peal_fused_then_ = 0;
        peal_fused_arrival_.count = 0;
        own->at = peal_shared_of_(&tickets[0]);
        own->other = peal_shared_of_(&tickets[1]);
        own->begun = fused.first + fused.tickets.item;
        own->first = 0;
        own->round = fused.first;
    }
    __syncthreads();
}

/* One thread, once all threads have read where the block is: moves to the next ticket. */
static __device__ __forceinline__ void peal_ticket_go_on_(peal_ticket_walk_ *own)
{
    if (!peal_fused_counts_())
        return;
    own->at = own->other;
    own->other = own->run;
}

/* All blocks: run tickets of their rank, one after the other. The next ticket is taken, and its
 * slot filled, while the block waits for the current one's dependencies and runs it. */
extern "C" __global__ void __launch_bounds__(PEAL_FUSED_THREADS, PEAL_FUSED_ON_SM)
    peal_fused_kernel(const __grid_constant__ peal_fused_ranks_ ranks)
{
    __shared__ peal_fused copy;
    const peal_fused &fused = peal_fused_mine_(ranks, &copy);
    __shared__ peal_ticket_ tickets[2];
    __shared__ peal_ticket_walk_ own;
    bool goes_on = true;

    peal_ticket_prepare_(fused, &own, tickets);
    peal_ticket_fetch_(fused, &own, &tickets[0]);
    peal_fetched_();
    __syncthreads();
    while (goes_on && !peal_ticket_at_(own.at)->is_none) {
        const peal_ticket_ &ticket = *peal_ticket_at_(own.at);
        const bool begins = ticket.worker == PEAL_TICKET_BEGIN;
        peal_ticket_fetch_(fused, &own, peal_ticket_at_(own.other));
        if (peal_fused_counts_())
            own.run = own.at;
        goes_on = begins ? peal_ticket_begin_(fused, ticket)
                         : peal_ticket_await_(fused, &own, ticket); /* with a barrier, both */
        peal_ticket_go_on_(&own);
        peal_fused_pause_(own.round);
        goes_on = goes_on && (begins || peal_fused_run_(peal_ticket_at_(own.run)->slot));
        peal_fused_pause_(own.round);
        /* Read now: behind the barrier other threads may fetch into the slot. */
        const peal_ticket_ *done = peal_ticket_at_(own.run);
        const peal_fused_add *adds = (const peal_fused_add *)fused.adds + done->slot.partition.adds;
        const unsigned add_count = done->slot.partition.add_count, next = done->next;
        unsigned *word = peal_fused_epoch_(fused, done->worker);
        peal_fetched_();
        __syncthreads();
        goes_on = goes_on && !peal_fused_failed_.kind;
        if (goes_on && !begins && peal_thread_() < 32)
            peal_fused_publish_(adds, add_count, false, word, next);
    }
    /* Blocks that wait for this epoch are told why it does not come. */
    if (peal_fused_failed_.kind)
        peal_fused_rest_(peal_ticket_at_(own.run)->slot.launch);
    __syncthreads();
    if (peal_thread_() == 0)
        peal_ticket_leave_(fused);
}

#endif
