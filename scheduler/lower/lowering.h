/* Stage 5: nodes become ops, and ops wait for each other. */
#ifndef PEAL_SCHEDULER_LOWER_LOWERING_H
#define PEAL_SCHEDULER_LOWER_LOWERING_H

#include "scheduler/order/nodes.h"

/* ---- lower.c ---- */

peal_status make_schedule(const common_input *c, const pass_context *pass, rank_views *views,
                          rank_view *v);
/* A schedule of arrays and tasks alone; needs STAGE_TASKS. */
peal_status make_outline(const common_input *c, const pass_context *pass, rank_view *v,
                         const peal_schedule **out);

/* ---- dependences.c ---- */

typedef struct lowered_op {
    peal_op op;
    const node *node;
    touch *touch; /* what it does; others wait for it */
    int touch_count;
    touch *extra; /* what only it waits for: credits that it carries, a neighbour's setup */
    int extra_count;
    int same_as;            /* an earlier op that waits for the same; -1: none */
    bool waits_for_nothing; /* a WAIT: what it writes was ordered by the sender */
} lowered_op;

/* Whether two ops are border and rest of one launch of a task. */
static inline bool are_one_launch(const lowered_op *a, const lowered_op *b)
{
    return ((a->op.border && b->op.rest) || (a->op.rest && b->op.border)) &&
           a->op.task == b->op.task;
}

void make_dependences(const common_input *c, const pass_context *pass, rank_view *v, lowered_op *op,
                      int count, int step_first, int step_end);

/* ---- candidates.c ---- */

/* Ops that touch an array, from which on most dependences on them are left to others that stand
 * between. Tests change it. */
extern int many_touches;

#endif
