/* How a reduction over ranks goes, as one rank sees it. */
#ifndef PEAL_SCHEDULER_TASKS_REDUCTION_PLAN_H
#define PEAL_SCHEDULER_TASKS_REDUCTION_PLAN_H

#include "scheduler/view/compilation.h"

enum { WIDTH = 16 /* more members than this climb a tree */ };

typedef struct reduction_plan {
    int member_count, me; /* ranks that take part; my number among them */
    int first, stride;    /* member k is rank first + k * stride */
    bool two_shot;
    int levels; /* of the tree; 0: none */
    int root;   /* -1: everyone */
} reduction_plan;

peal_status plan_reduction(const common_input *c, const pass_context *pass, const rank_view *v,
                           const peal_statement *s, int item, reduction_plan *out);
/* The rank of a member. */
int rank_of(const reduction_plan *plan, int member);
/* The elements of a vector that a member folds: all, but in two shots. */
int64_t slice_start(const reduction_plan *plan, int64_t count, int member);
int64_t slice_end(const reduction_plan *plan, int64_t count, int member);
/* Members between the contributors of a level. */
int64_t unit_of(int level);
/* How many contributions, mine included, I fold on a level of the tree; 0: none. */
int contributors(const reduction_plan *plan, int level);
/* A number that is equal for ranks whose messages of a reduction go equally far, in rank numbers.
 * False: to a rank that is the same for all. */
bool reduction_role(const common_input *c, const pass_context *pass, rank_views *views,
                    const peal_statement *s, int rank, uint64_t *out);

#endif
