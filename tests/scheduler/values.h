/* What unrolled schedules compute, with symbols for numbers: a tile's results are a hash of all
 * that it reads, a copy moves them. Two runs with equal results let the same values flow through
 * the same tiles.
 *
 * From one order of the events, or from every order that an executor may take: events begin when
 * what they depend on is done, and waits when the flag has been written; nothing else holds them.
 */
#ifndef PEAL_TESTS_SCHEDULER_VALUES_H
#define PEAL_TESTS_SCHEDULER_VALUES_H

#include "tests/scheduler/unroll.h"

#include <stdint.h>

typedef struct values values;

/* For an unrolled schedule, with or without the edges that flags make. */
values *values_create(const unrolled *u);
void values_destroy(values *v);

/* The results of one order: hash of what is defined after a run, of decisions and of what was
 * printed. */
uint64_t values_in_order(values *v, const int *order);

/* The results of schedules that lack something, in an order that their edges allow; false: there is
 * none. */
bool values_of(const peal_schedule *const *schedules, int ranks, int steps, unroll_loss loss,
               uint64_t *results);

typedef enum verdict {
    ALWAYS_EQUAL, /* every order ends, with these results */
    DIFFERS,
    STUCK,   /* some order comes to where nothing can begin */
    TOO_MANY /* states to visit; none of those visited was bad */
} verdict;

/* One order at random; u without the edges that flags make. ALWAYS_EQUAL, DIFFERS or STUCK. */
verdict values_in_random_order(values *v, uint64_t expected, uint64_t *state);

/* Every order; u without the edges that flags make. *states: how many were visited. */
verdict values_in_every_order(values *v, uint64_t expected, int64_t most, int64_t *states);

#endif
