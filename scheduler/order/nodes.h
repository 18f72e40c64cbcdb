/* Nodes: the units of the walk order, what they touch, and which have to stay in order. */
#ifndef PEAL_SCHEDULER_ORDER_NODES_H
#define PEAL_SCHEDULER_ORDER_NODES_H

#include "scheduler/view/compilation.h"

typedef enum node_kind {
    NODE_LAUNCH,
    NODE_SEND,
    NODE_RECV,
    NODE_LOCAL,
    NODE_SWAP,
    NODE_IF,
    NODE_LOOP
} node_kind;

/* What a node touches: for dependences and for the order. Arrays at and above array_total() are
 * virtual: they stand for the console, for `after`, for staging memory and for the end of a
 * neighbour's setup. */
typedef struct touch {
    int array;
    bool write;
    int64_t per_tile; /* > 0: tile k touches its own elements only, so many; tiles of one task that
                         touch equally many never meet there. -1: partials, one a tile */
    int tiling;       /* of the node's task; -1: a fixed box */
    int range;        /* of the node's ranges */
    const peal_reach *reach; /* the task's; NULL: a fixed box */
    peal_box box;            /* all that is touched by the range's tiles; or the fixed box */
} touch;

/* Events that a statement may consist of: those of statement i are numbered from EVENTS * i. */
enum { EVENTS = 32 };

/* A unit of the walk order; becomes one or a few ops. */
struct node {
    node_kind kind;
    int statement;
    int event;
    const char *label;
    peal_source source;
    int task;               /* LAUNCH */
    peal_tile_range *range; /* LAUNCH */
    int range_count;
    bool border;             /* LAUNCH: tiles that a message of the same body meets, */
    bool rest;               /* and those that none meets */
    bool last;               /* LAUNCH: nothing of its body may come after it */
    int message;             /* SEND, RECV: index into the view's messages */
    const peal_piece *piece; /* LOCAL */
    int piece_count;
    int first, second;          /* SWAP */
    const peal_expr *condition; /* IF */
    int decision;               /* IF, or -1 */
    int loop;                   /* LOOP: index of the schedule's loops */
    node_list body;             /* IF, LOOP */
    touch *touch;
    int touch_count, touch_capacity;
    bool sends;        /* IF, LOOP: has a send inside */
    bool communicates; /* IF, LOOP: may wait for another rank: has a receive, or a loop's sends */
};

/* ---- nodes.c, walk_order.c ---- */

peal_status make_nodes(const common_input *c, const pass_context *pass, rank_view *v);
void order_body(const common_input *c, const pass_context *pass, const rank_view *v,
                node_list *body);

/* ---- border_tiles.c ---- */

/* Splits launches that messages meet into border tiles and the rest. */
void split_border_tiles(const common_input *c, const pass_context *pass, const rank_view *v,
                        node_list *body);

/* ---- touches.c ---- */

void add_node(const pass_context *pass, node_list *list, node *n);
void add_touch(const pass_context *pass, node *n, touch t);
void touch_launch(const common_input *c, const pass_context *pass, const rank_view *v, node *n);
touch fixed_touch(int array, bool write, const peal_box *box);
touch virtual_touch(int array, bool write);
bool touches_conflict(const touch *a, const touch *b);

/* ---- precedence.c ---- */

/* Nodes of a body, by index: the second must not come before the first. */
typedef struct node_pair {
    int first, second;
} node_pair;

/* Pairs whose order stands for that of all nodes of a body that conflict: sorted, each once. */
node_pair *find_precedence(const pass_context *pass, const node_list *body, int *count);

/* ---- tile_maps.c ---- */

/* Tiles of A's touch that a tile of B's touch meets; false: none ever. */
bool map_tiles(const touch *a, const peal_tiling *at, const peal_tile_range *ar, const touch *b,
               const peal_tiling *bt, const peal_tile_range *br, peal_map_axis map[PEAL_AXES]);

/* ---- Virtual arrays ---- */

static inline int console_array(const common_input *c)
{
    return array_total(c);
}
static inline int after_array(const common_input *c, int statement)
{
    return array_total(c) + 1 + statement;
}
static inline int ready_array(const common_input *c, int rank)
{
    return array_total(c) + 1 + c->graph->statement_count + rank;
}
static inline int staging_array(const common_input *c, int message)
{
    return array_total(c) + 1 + c->graph->statement_count + c->machine.ranks + message;
}
static inline int received_array(const common_input *c, const rank_view *v, int message)
{
    return staging_array(c, v->message_count + message);
}
static inline int decision_array(int decision)
{
    return -1 - decision;
}

#endif
