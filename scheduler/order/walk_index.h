/* Where the nodes of a rank stand in its walk, and what uses an array there: tables of a rank's
 * view, made when first asked for; they need STAGE_ORDER. */
#ifndef PEAL_SCHEDULER_ORDER_WALK_INDEX_H
#define PEAL_SCHEDULER_ORDER_WALK_INDEX_H

#include "scheduler/order/nodes.h"

/* A body in which a message's node stands, and where. */
typedef struct node_position {
    const node_list *body; /* NULL: nowhere */
    int number;            /* of the body, among those of the steps; -1: it is in none of them */
    int position;
    int loop;    /* id of the loop statement; LOOP_* */
    int section; /* LOOP_SETUP, LOOP_OUTER, LOOP_FINISH */
    bool in_if;
} node_position;

const node_position *node_position_of(const common_input *c, const pass_context *pass, rank_view *v,
                                      int message);

/* A node of the steps that touches an array, under one of the names that swaps give it. */
typedef struct array_use {
    int array; /* the number that names of the group share */
    int body;  /* number */
    int position;
    const node *node;
} array_use;

/* All uses of an array in the steps, by body and position. Swaps are among them. */
const array_use *uses_of(const common_input *c, const pass_context *pass, rank_view *v, int array,
                         int *count);
/* Those in one body. */
const array_use *uses_in(const common_input *c, const pass_context *pass, rank_view *v, int array,
                         int body, int *count);
/* Swaps of the array's group in one body. */
const array_use *swaps_in(const common_input *c, const pass_context *pass, rank_view *v, int array,
                          int body, int *count);

/* After how many iterations the swaps of a body give all arrays back their names; 0: more. */
int rotation_of(const common_input *c, const pass_context *pass, rank_view *v,
                const node_list *body, int number);

#endif
