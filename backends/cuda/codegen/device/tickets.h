/* The dispatcher of mode fused that hands out work as it comes: each block of a rank takes a
 * ticket, which is the next partition of its rank's list, runs it, and takes another one. Shares
 * are of *workers*, as otherwise of blocks (fused.h): there may be more of them than blocks, so a
 * block whose tiles are quickly done takes more of them.
 *
 * The list is in an order that the dependences allow: a partition waits for partitions in front of
 * it, and for messages. Tickets are taken by blocks that run, each in its order, so the lowest one
 * that is not done yet is what some block is at, and nothing of this device holds it up.
 *
 * A worker's epoch says with which work items it is through, as a block's does in fused.h, and it
 * is stored in the same way; each partition waits for its worker's own epoch, too, since another
 * block may have run the one before. Rounds do not overlap: the first ticket of each waits for all
 * workers, looks whether the run is over, and releases the word `begun`, which whoever has another
 * ticket of the round acquires first. */
#ifndef PEAL_DEVICE_TICKETS_H
#define PEAL_DEVICE_TICKETS_H

/* What a block has at hand for a ticket. */
struct peal_ticket_ {
    peal_fused_slot_ slot;
    unsigned item, worker, kind;
    unsigned round;       /* epoch of work item 0 */
    unsigned epoch, next; /* that its partition waits for; that it publishes */
    bool is_none;         /* the launch has no more tickets */
};

/* Where a block is: in shared memory, as peal_fused_now_. */
struct peal_tickets_ {
    peal_shared_ at, other; /* from the barrier on behind which a ticket is run, the next one's, and
                               that of the one behind it */
    peal_shared_ run;       /* from that barrier on, that of the one that is run */
    unsigned begun;         /* `begun` as it was seen */
    unsigned long long first; /* of the round of the latest ticket: the number of its first one, */
    unsigned round;           /* and its epoch */
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

/* One thread: the next ticket of all that the launch has. */
static __device__ __forceinline__ void peal_ticket_take_(const peal_fused &fused,
                                                         peal_tickets_ *own, peal_ticket_ *ticket)
{
    const unsigned count = fused.tickets.count;
    const unsigned long long number = atomicAdd(&peal_ticket_words_(fused)->taken, 1ull);

    ticket->is_none = number >= (unsigned long long)fused.rounds * count;
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

/* One warp, which does nothing else alone: takes a ticket, and has what it needs on its way. */
static __device__ __forceinline__ void peal_ticket_fetch_(const peal_fused &fused,
                                                          peal_tickets_ *own, peal_ticket_ *ticket)
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

/* All threads: until the ticket's round has begun, which a block looks for once; pairs with
 * peal_ticket_begin_. False: it will not, or a wait was given up. */
static __device__ __forceinline__ bool peal_ticket_has_begun_(const peal_fused &fused,
                                                              peal_tickets_ *own, unsigned round)
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
        own->begun = begun; /* behind a barrier; others look behind the next */
    return true;
}

/* All threads: until what the partition depends on is there; a barrier. False: the block is to end.
 */
static __device__ __forceinline__ bool
peal_ticket_await_(const peal_fused &fused, peal_tickets_ *own, const peal_ticket_ &ticket)
{
    const peal_fused_slot_ &slot = ticket.slot;

    if (!peal_ticket_has_begun_(fused, own, ticket.round))
        return false;
    const peal_fused_dependency *after =
        (const peal_fused_dependency *)fused.after + slot.partition.after;
    return __syncthreads_or(
               peal_fused_look_(fused, slot.launch, after, peal_fused_before_of_(slot.partition),
                                PEAL_TICKET_BEGIN, peal_fused_waits_(slot), ticket.epoch)) == 0;
}

/* All threads, with the first ticket of a round: until all workers are through with the one before;
 * then it begins. In front of the launch's first round their epochs are set to where it begins: a
 * run that was stopped before its end has left them behind. */
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

/* One thread, when the block takes no more: the last one to come here leaves the words as the next
 * launch is to find them. */
static __device__ __forceinline__ void peal_ticket_leave_(const peal_fused &fused)
{
    peal_fused_words *words = peal_ticket_words_(fused);

    peal_fence_acq_rel_gpu_();
    if (atomicAdd(&words->left, 1u) != peal_fused_grid_(fused) - 1)
        return;
    peal_fence_acq_rel_gpu_(); /* what it stores comes behind what the others have looked at */
    words->taken = 0;
    words->over = words->left = 0;
}

static __device__ __forceinline__ void
peal_ticket_prepare_(const peal_fused &fused, peal_tickets_ *own, const peal_ticket_ *tickets)
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

/* One thread, when all have read where the block is: to the next ticket. */
static __device__ __forceinline__ void peal_ticket_go_on_(peal_tickets_ *own)
{
    if (!peal_fused_counts_())
        return;
    own->at = own->other;
    own->other = own->run;
}

/* All blocks: a ticket of their rank after the other. The next one is taken, and its slot filled,
 * while the block waits for what this one's partition depends on, and runs it. */
extern "C" __global__ void __launch_bounds__(PEAL_FUSED_THREADS, PEAL_FUSED_BLOCKS)
    peal_fused_kernel(const __grid_constant__ peal_fused_ranks_ ranks)
{
    __shared__ peal_fused copy;
    const peal_fused &fused = peal_fused_mine_(ranks, &copy);
    __shared__ peal_ticket_ tickets[2];
    __shared__ peal_tickets_ own;
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
        /* Behind the barrier others may fetch into the slot. */
        const peal_ticket_ *done = peal_ticket_at_(own.run);
        const peal_fused_add *adds = (const peal_fused_add *)fused.adds + done->slot.partition.adds;
        const unsigned add_count = done->slot.partition.add_count, next = done->next;
        unsigned *word = peal_fused_epoch_(fused, done->worker);
        peal_fetched_();
        __syncthreads();
        goes_on = goes_on && !peal_fused_failed_.kind;
        if (goes_on && !begins && peal_thread_() < 32)
            peal_fused_tell_(adds, add_count, false, word, next);
    }
    /* Who waits for this partition's epoch sees why it does not come. */
    if (peal_fused_failed_.kind)
        peal_fused_rest_(peal_ticket_at_(own.run)->slot.launch);
    __syncthreads();
    if (peal_thread_() == 0)
        peal_ticket_leave_(fused);
}

#endif
