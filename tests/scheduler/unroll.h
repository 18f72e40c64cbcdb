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

enum { KEY = 9, UNROLL_EVENTS = 24000 };

typedef struct event {
    int rank, op;
    bool independent; /* of the other tiles of its launch */
    int64_t tile;
    int key[KEY]; /* place in the sequential order: section, step, then event and iteration by loop
                   */
} event;

typedef struct access {
    int event;
    int key[KEY];
    int memory_rank, storage; /* storage >= 1000000: staging of a channel's flag offset and slot */
    int64_t slot;
    peal_box box;
    bool write;
} access;

typedef struct unrolled {
    const peal_schedule **schedule;
    int ranks;
    event *event;
    int event_count;
    access *access;
    int access_count, access_capacity;
    int (*edge)[2];
    int edge_count, edge_capacity;
    int lost_rank, lost_wait; /* a wait that holds nothing back; -1 */
    int unmatched_waits;      /* that no write or more than one releases */
    bool overflow;
} unrolled;

/* Unrolls one rank's schedule into u; then, for all ranks, adds the edges that flags make. */
void unroll_rank(unrolled *u, int rank);
void unroll_connect_flags(unrolled *u);
void unroll_add_edge(unrolled *u, int from, int to);

/* How many conflicting pairs of accesses are not ordered; the first is described in text.
 * *overflow: too many events to tell (then 0). lost_wait: op of rank lost_rank whose wait gets
 * lost; -1: none.
 */
int unroll_races(const peal_schedule **schedules, int ranks, int lost_rank, int lost_wait,
                 char *text, size_t bytes, bool *overflow);

#endif
