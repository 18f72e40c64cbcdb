/* Unrolls schedules, tile by tile, into events and what orders them, and finds accesses to the same
 * memory that nothing orders as the sequential meaning does.
 *
 * The events of all ranks form a graph: dependence maps, messages, the fixed order of one channel's
 * ops and of one tile's instances. Each pair of accesses to the same memory, one of them a write,
 * must be connected in the right direction. With every tile on a worker of its own, this is the
 * least order that any executor keeps. */
#ifndef PEAL_TESTS_SCHEDULER_UNROLL_H
#define PEAL_TESTS_SCHEDULER_UNROLL_H

#include "base/box.h"

#include <peal/plugin/schedule.h>

enum { KEY = 9, UNROLL_EVENTS = 24000, UNROLL_STEPS = 5, UNROLL_RANKS = 8 };

/* Storages that are none: staging of a channel's flag offset, what a decision says, what is
 * printed. */
enum { STAGING = 1000000, DECISIONS = 900000, CONSOLE = 800000 };

typedef struct event {
    int rank, op;
    int independent; /* a task whose tiles never meet: 1 + its number, else 0 */
    int64_t tile;
    int key[KEY]; /* place in the sequential order: section, step, then event and iteration by loop
                   */
} event;

typedef struct access {
    int event;
    int key[KEY];
    int memory_rank, storage; /* or one of those above */
    int64_t slot;
    peal_box box;
    bool write;
    bool update; /* reads what it writes */
} access;

/* A copy, cell by cell, x first in both boxes: a box of an array, or of a staging slot, whose cells
 * are counted from the begin of a message's piece. */
typedef struct place_of_copy {
    int memory_rank, storage;
    int64_t slot;
    peal_box box;
} place_of_copy;

typedef struct transfer {
    int event;
    place_of_copy from, to;
} transfer;

typedef struct flag_event {
    int rank;
    int64_t offset; /* in the receiver's (credit: the sender's) segment of rank */
    uint64_t message;
    int event;
    bool write, credit;
    int slots;
} flag_event;

/* What an unrolled schedule lacks: an op of one rank does nothing and nobody waits for it, or, if
 * it is a wait, it holds nothing back. */
typedef struct unroll_loss {
    int rank, op; /* -1: nothing */
    bool wait_only;
} unroll_loss;

typedef struct unrolled {
    const peal_schedule *const *schedule;
    int ranks, steps;
    event *event;
    int event_count;
    access *access;
    int access_count, access_capacity;
    transfer *transfer;
    int transfer_count, transfer_capacity;
    flag_event *flag;
    int flag_count, flag_capacity;
    int (*edge)[2];
    int edge_count, edge_capacity;
    int *binding[UNROLL_RANKS]; /* by array: its storage in the end */
    unroll_loss loss;
    int unmatched_waits; /* that no write or more than one releases */
    bool overflow;
} unrolled;

/* Unrolls the schedules of all ranks into u, which lacks `loss`; without the edges that flags make.
 */
void unroll_begin(unrolled *u, const peal_schedule *const *schedules, int ranks, int steps,
                  unroll_loss loss);
void unroll_end(unrolled *u);
void unroll_connect_flags(unrolled *u);
void unroll_add_edge(unrolled *u, int from, int to);
/* Events in an order that respects the edges; false: a cycle. */
bool unroll_sort(const unrolled *u, int *order);

extern const unroll_loss no_loss;

/* How many conflicting pairs of accesses are not ordered; the first is described in text.
 * *overflow: too many events to tell (then 0). */
int unroll_races(const peal_schedule *const *schedules, int ranks, unroll_loss loss, char *text,
                 size_t bytes, bool *overflow);

#endif
