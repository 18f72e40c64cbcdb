/* The view of one rank, filled stage by stage. */
#ifndef PEAL_SCHEDULER_VIEW_RANK_VIEW_H
#define PEAL_SCHEDULER_VIEW_RANK_VIEW_H

#include "base/box.h"
#include "base/expression.h"
#include "base/meaning.h"

#include <peal/plugin/schedule.h>

/* One end of a message, as its statement on this rank says it. */
typedef struct message_end {
    bool outgoing;
    int statement;
    int peer;
    peal_term condition; /* of the statement on its rank; 0: the same on all ranks */
    int64_t tag;
    bool directed;
    int direction[PEAL_RANK_AXES]; /* the sender's */
    int array;
    peal_box box;
    int64_t peer_index; /* which of the statement's peers: of its run-time counts */
} message_end;

/* The sender's direction as a number, 0 to 26; -1: none. */
static inline int32_t end_direction(const message_end *e)
{
    return e->directed ? e->direction[0] + 1 + 3 * (e->direction[1] + 1) + 9 * (e->direction[2] + 1)
                       : -1;
}

/* What identifies an explicit message, and what must agree at both ends. */
typedef struct end_summary {
    int64_t tag, count;
    int32_t from, to, statement;
    int32_t direction; /* the sender's, 0 to 26; -1: none */
    peal_term condition;
} end_summary;

/* One end of a channel before it is lowered. */
typedef struct rank_message {
    bool outgoing;
    int statement;
    int phase; /* numbers the messages of a statement that makes several: reductions in two shots,
                  or up and down a tree */
    const char *part; /* says which of these, for the name; NULL: the only one */
    int peer;
    int64_t tag;
    int direction[PEAL_RANK_AXES];
    bool directed;
    int own_statement; /* the statement of this end; `statement` is the sender's, the name of the
                          channel */
    bool application_reads; /* no task reads the halo: the application does, between runs */
    peal_piece *piece;
    int piece_count;
} rank_message;

typedef struct node node; /* order/nodes.h */

typedef struct node_list {
    node **item;
    int count, capacity;
} node_list;

typedef struct message_table message_table; /* messages/message_index.c */
typedef struct walk_index walk_index;       /* order/walk_index.c */
typedef struct read_boxes read_boxes;       /* messages/exchange.c */
typedef struct segment_map segment_map;     /* channels/channels.h */

/* What one statement became on one rank. */
typedef struct statement_view {
    int task;      /* index of its kernel or built-in task; -1 */
    int levels;    /* a reduction up and down a tree: of how many levels; 0: no tree */
    int first_end; /* explicit messages */
    /* stage 1: of communication whose `when` names the rank and counters */
    const peal_expr *when; /* what is left of it on this rank; NULL: it is no such statement */
    peal_term condition;   /* that; 0 */
    uint64_t numbers;      /* that, by its number in a search for cycles of waits */
    bool never;            /* it does not hold in any iteration */
} statement_view;

/* What has been computed of a rank. */
enum {
    STAGE_GEOMETRY = 1, /* where its arrays lie, and its conditions */
    STAGE_TASKS,        /* boxes, tiles, footprints; ends of messages */
    STAGE_MESSAGES,     /* who sends which points to whom */
    STAGE_ORDER,        /* nodes in walk order */
    STAGE_SCHEDULE      /* ops, dependences, memory */
};

typedef struct rank_view {
    int rank;
    int position[PEAL_RANK_AXES];
    peal_scope scope;
    int stage;          /* the last that has been computed; 0: none */
    peal_status status; /* of the first that failed */
    /* STAGE_GEOMETRY */
    peal_layout *layout; /* by array, hidden ones too (their extents: STAGE_TASKS) */
    /* STAGE_TASKS */
    peal_schedule_task *task;
    int task_count, task_capacity;
    statement_view *statement;
    message_end *end;
    int end_count;
    const message_end **sorted_end; /* by what identifies a message; made when asked for */
    read_boxes **reads;             /* by array; on demand */
    /* STAGE_MESSAGES */
    rank_message *message; /* incoming and outgoing, in the order of statements, peers */
    int message_count, message_capacity;
    int *first_of; /* by statement: the first message that it sends or receives here; -1: none */
    int *next_of;  /* by message: the next of its statement; -1 */
    int *program_order; /* messages in program order, sends of a statement before its receives */
    peal_piece **local; /* by statement: images of my own points */
    int *local_count;
    message_table *messages; /* on demand */
    segment_map *segment;    /* on demand */
    /* STAGE_ORDER */
    node_list setup, step, finish; /* in walk order */
    peal_schedule_loop outer;
    peal_schedule_loop *loop;
    int loop_count, loop_capacity;
    int decision_count;
    walk_index *walk; /* on demand */
    /* STAGE_SCHEDULE */
    peal_schedule *schedule;
} rank_view;

static inline end_summary summarize_end(const rank_view *v, const message_end *e)
{
    return (end_summary){.tag = e->tag,
                         .count = peal_box_points(&e->box),
                         .from = e->outgoing ? v->rank : e->peer,
                         .to = e->outgoing ? e->peer : v->rank,
                         .statement = e->statement,
                         .direction = end_direction(e),
                         .condition = e->condition};
}

#endif
