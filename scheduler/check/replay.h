/* What a search for circles of waits goes through: the messages of each rank in program order,
 * loops between a receive and a send below it iteration by iteration (unroll.c). */
#ifndef PEAL_SCHEDULER_CHECK_REPLAY_H
#define PEAL_SCHEDULER_CHECK_REPLAY_H

#include "scheduler/check/check.h"
#include "scheduler/conditions/conditions.h"

/* A message in program order. */
typedef struct occurrence {
    int message, round; /* how often it stood there before */
    bool certain;       /* it happens: arithmetic says so of this iteration, on this rank */
} occurrence;

/* The messages of one rank. */
typedef struct rank_order {
    occurrence
        *item;     /* in program order (sends of a statement first), without what never happens */
    int count, at; /* of these; the next */
    int *start;    /* by message, and one behind: where its rounds are in `place` */
    int *place;    /* where a round of a message is among the items; -1: it never happens */
    int *partner;  /* by message: of a receive, the sender's first message that may be its send;
                      -1: none; UNKNOWN_PARTNER: not looked for */
} rank_order;

enum { UNKNOWN_PARTNER = -2 };

typedef struct replay {
    const common_input *c;
    const pass_context *pass;
    rank_views *views;
    condition_table *conditions;
    int *rounds;       /* by statement: of a loop, iterations that are replayed */
    bool *unrolled;    /* by statement: it stands in a loop with several */
    rank_order *order; /* by rank */
    int64_t at_step;   /* the outermost counter; -1: any */
    bool names_step;   /* it decides whether something in an unrolled loop happens */
    bool limited;      /* `rounds` and `missed` are set: they are the same in every step */
    int missed;        /* a loop of which too few iterations are replayed; 0: none */
    const cycle_conditions *numbered;
    uint64_t off[2]; /* those that are taken not to hold, in even rounds of unrolled loops and in
                        odd ones; elsewhere those that are in both */
    int64_t step;    /* in which a cycle was found to be; -1: any */
    int *waiting;    /* ranks to look at again */
    int waiting_count;
    bool *waits; /* by rank: it is among them */
} replay;

/* Sets the orders of all ranks, for the step `at_step`; the first time, how many iterations. */
void set_orders(replay *r);

#endif
