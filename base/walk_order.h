/* Program order among the walks of several ranks: which of two stands earlier in the program that
 * all ranks have.
 *
 * By step, then by place and iteration from loop to loop inwards. What counts as a place depends on
 * who asks: `serial` walks as the program is written, so there it is the event of the next op. The
 * other modes move sends up and receives down; there it is the earliest event of those whose
 * messages the walk still has to send or to receive in what is left of the innermost loop's body:
 * whatever a rank sends from there on has no earlier place. */
#ifndef PEAL_BASE_WALK_ORDER_H
#define PEAL_BASE_WALK_ORDER_H

#include "base/walk.h"

typedef struct peal_walk_order {
    const peal_schedule *schedule;
    int *key;    /* by op, and one behind the last */
    int *around; /* by op, and one behind: LOOP op of the innermost loop that counts; -1: none */
} peal_walk_order;

/* Where a walk stands. */
typedef struct peal_walk_place {
    const peal_walk_order *order;
    int position;
    int64_t step;                     /* counter 0 */
    const peal_walk_loop_state *loop; /* by the schedule's loop */
} peal_walk_place;

/* messages: places are those of messages, and loops without any don't count. */
void peal_walk_order_create(const peal_schedule *schedule, peal_arena *arena, bool messages,
                            peal_walk_order *out);
/* < 0: `a` stands earlier, 0: both alike. Neither has come to the end of the setup or finish. */
int peal_walk_compare(const peal_walk_place *a, const peal_walk_place *b);

#endif
