/* Waits for a word that another thread or process stores: spin, then yield, then sleep.
 *
 * Every wait polls the abort word and has the deadline. The fast path is one acquire load. It pairs
 * with the release store in host_word_store, by which flags, credits and counts of tiles and ops
 * are stored. */
#ifndef PEAL_HOST_WAIT_H
#define PEAL_HOST_WAIT_H

#include "backends/host/host.h"

typedef enum host_wait_kind {
    HOST_WAIT_FLAG,    /* a message */
    HOST_WAIT_CREDIT,  /* the receiver has consumed a message */
    HOST_WAIT_TILES,   /* another worker's tiles of an op */
    HOST_WAIT_VERDICT, /* of a run-time condition */
    HOST_WAIT_READERS, /* walks that have not read an old verdict yet */
    HOST_WAIT_QUEUE,   /* room in a lane's queue, or work in it */
    HOST_WAIT_WORKERS  /* the other workers of a rank at a join */
} host_wait_kind;

/* Who waits for what, for the report of a deadline. */
typedef struct host_wait {
    host_rank *rank;
    host_wait_kind kind;
    int worker;
    int op;       /* the op that waits; -1: none */
    int other_op; /* TILES: the op that it waits for */
    int64_t step;
    uint64_t message;
} host_wait;

/* Waits until the word has reached the value, cyclically. False: the job was aborted, or the
 * deadline has passed, which is recorded in the plan. */
bool host_wait_slow(const host_wait *wait, const peal_dispatch_word *word, uint64_t value);

static inline bool host_word_reached(const peal_dispatch_word *word, uint64_t value)
{
    return peal_dispatch_reached(PEAL_DISPATCH_LOAD_ACQUIRE(word), value);
}

/* Pairs with the acquire load of host_word_reached: a thread that sees the value also sees
 * everything that this thread did before. */
static inline void host_word_store(peal_dispatch_word *word, uint64_t value)
{
    PEAL_DISPATCH_STORE_RELEASE(word, value);
}

/* Adds the report of a failed wait to the caller's diagnostics. */
peal_status host_failure_report(host_plan *plan);

/* Delays by up to some microseconds at random, for the jitter hook; advances the state. */
void host_jitter(uint64_t *state);
uint64_t host_random(uint64_t *state);

#endif
