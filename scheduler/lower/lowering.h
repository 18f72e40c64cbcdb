/* The state of stage 5, shared by lower.c (ops) and connect.c (channels). */
#ifndef PEAL_SCHEDULER_LOWER_LOWERING_H
#define PEAL_SCHEDULER_LOWER_LOWERING_H

#include "scheduler/view/compilation.h"

typedef struct lowering {
    peal_compilation *c;
    rank_view *v;
    const segment_map *map;
    peal_schedule *schedule;
    peal_channel *channel;
    delivery *delivery; /* by message; of incoming ones as the sender decides */
    int *carried;       /* by outgoing message: the first whose credit it carries; -1 */
    int *next_carried;  /* by message: the next that is carried along with it; -1 */
    int *awaits;        /* by outgoing message: the incoming one that brings its credit; -1 */
    lowered_op *op;
    int count, capacity;
} lowering;

/* connect.c: the channels of a rank, and who carries whose credit. */
peal_status make_channels(lowering *l);

#endif
