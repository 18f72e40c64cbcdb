/* The ops that another one may have to wait for, found by what they touch. */
#ifndef PEAL_SCHEDULER_LOWER_CANDIDATES_H
#define PEAL_SCHEDULER_LOWER_CANDIDATES_H

#include "scheduler/lower/lowering.h"

/* An op that touches an array, or one of the group whose number stands for it. */
typedef struct op_touch {
    int array, op;
} op_touch;

/* Sorts by array, then op, each once; returns how many they are. */
int sort_op_touches(op_touch *list, int count);
/* The first of a sorted list that is not before an op. */
int find_op_touch(const op_touch *list, int count, int array, int op);

static inline int group_of(const common_input *c, int array)
{
    return array >= 0 && array < c->graph->array_count ? c->swap_group[array] : -1;
}

/* A group's number is one of its arrays'. */
static inline int array_or_group(const common_input *c, int array)
{
    int group = group_of(c, array);
    return group >= 0 ? group : array;
}

/* The regions that an op stands in. */
enum { IN_SECTION = -1, IN_STEP = -2 };

typedef struct op_region {
    int loop; /* the innermost LOOP op around it; IN_STEP: the outermost loop; IN_SECTION */
    int when; /* 0: in no IF inside that loop; else those in IFs of one condition, which has one
                 value in an iteration, have one number; < 0: in another one */
} op_region;

typedef struct candidates candidates;

/* The ops of a rank. What is given is used until the arena ends. */
typedef struct candidates_of {
    const common_input *c;
    const pass_context *pass;
    const lowered_op *op;
    int count, step_first, step_end;
    const op_region *region; /* by op */
    const op_touch *swap;    /* by group, then op */
    int swap_count;
} candidates_of;

candidates *begin_candidates(const candidates_of *of);
/* Those for op b, ascending, until the next call: all that touch what it does, or where these are
 * many, without those for which another one stands. */
const int *find_candidates(candidates *p, int b, int *count);

#endif
