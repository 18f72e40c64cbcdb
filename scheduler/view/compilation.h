/* What the passes of a compilation share: the view of one rank, filled stage by stage.
 *
 * A pass is a function from the graph and earlier stages to a later stage of a rank_view. Views of
 * ranks that a rank exchanges messages with are made the same way, on demand, and kept: both ends
 * of a channel decide alike because they run the same pure functions on the same data. */
#ifndef PEAL_SCHEDULER_VIEW_COMPILATION_H
#define PEAL_SCHEDULER_VIEW_COMPILATION_H

#include "base/arena.h"
#include "base/box.h"
#include "base/checked.h"
#include "base/expression.h"
#include "base/meaning.h"
#include "scheduler/scheduler.h"

enum { PEAL_BOXES = 2 * PEAL_AXES + 1 }; /* most disjoint boxes that points are made of */

/* A list of disjoint boxes. */
typedef struct box_list {
    int count;
    peal_box box[PEAL_BOXES];
} box_list;

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

typedef struct node node;

/* Events that a statement may consist of: those of statement i are numbered from EVENTS * i. */
enum { EVENTS = 32 };

typedef struct node_list {
    node **item;
    int count, capacity;
} node_list;

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
    bool border;             /* LAUNCH: tiles that a message of the same body meets */
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
    int op;            /* first op it became */
};

typedef struct segment_map segment_map;
typedef struct message_table message_table; /* lookup.c */
typedef struct place_table place_table;

/* How a channel is lowered; decided by the two ends alike. */
typedef struct delivery {
    bool direct; /* pieces marked direct are stored in place */
    bool credit; /* the sender waits for explicit credits */
    int slots;
    int carrier; /* message of the receiver to the sender that carries the credit; -1: none needed
                  */
    const char *why; /* there is a credit, or none without a carrier */
} delivery;

/* credits.c: how many slots a staged message has. */
int message_slots(const peal_compilation *c, const rank_message *m);

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

typedef struct rank_view {
    int rank;
    int position[PEAL_RANK_AXES];
    peal_scope scope;
    int stage;                /* how many stages have been computed */
    peal_status status;       /* of the first that failed */
    peal_layout *layout;      /* stage 1; by array, hidden ones too (their extents: stage 2) */
    peal_schedule_task *task; /* stage 2 */
    int task_count, task_capacity;
    statement_view *statement;
    message_end *end; /* stage 2: explicit ones and those of reductions */
    int end_count;
    const message_end **sorted_end; /* by what identifies a message; made when asked for */
    rank_message *message; /* stage 3: incoming and outgoing, in the order of statements, peers */
    int message_count, message_capacity;
    int *program_order; /* messages in program order, sends of a statement before its receives */
    peal_piece **local; /* stage 3: by statement: images of my own points */
    int *local_count;
    node_list setup, step, finish; /* stage 4: in walk order */
    peal_schedule_loop outer;
    peal_schedule_loop *loop;
    int loop_count, loop_capacity;
    int decision_count;
    segment_map *segment;    /* stage 3, on demand */
    message_table *messages; /* stage 3, on demand */
    place_table *places;     /* stage 4, on demand */
    peal_schedule *schedule; /* stage 5 */
} rank_view;

/* Where a statement stands, by the id of its innermost loop's statement or one of these. */
enum { LOOP_SETUP = -1, LOOP_FINISH = -2, LOOP_OUTER = -3 };

/* conditions.h */
typedef struct condition_table condition_table;

/* A hidden array that a statement needs on every rank. */
typedef struct hidden_array {
    char *name;
    int statement;
    int item; /* which of its reductions */
    peal_type type;
} hidden_array;

struct peal_compilation {
    const peal_graph_data *graph;
    peal_machine machine;
    peal_mode mode;
    peal_diagnostics *diagnostics; /* where to report; NULL: nowhere, while something is tried */
    peal_arena *arena;             /* where to allocate */
    peal_diagnostics *own_diagnostics;
    peal_arena *own_arena, *scratch; /* one of these is `arena`; scratch NULL: none */
    peal_arena *halo_scratch;        /* of stale_reads.c; NULL: none */
    struct message_records *records; /* of a check that goes on; NULL: none */
    bool exhausted;                  /* there was no memory: views are not whole */
    int dims[PEAL_RANK_AXES];
    bool periodic[PEAL_RANK_AXES];
    const peal_statement **statement; /* by id */
    int *statement_loop;              /* by id: the innermost loop, or LOOP_* */
    int *statement_section;           /* by id: LOOP_* */
    bool *statement_plain;            /* by id: directly in its body, without `when` */
    hidden_array *hidden;
    int hidden_count, hidden_capacity;
    int *statement_hidden;        /* by id: first hidden array; -1: none */
    int *swap_group;              /* by array: -1 or a group */
    const peal_statement **mixed; /* communication whose `when` names the rank and counters */
    int mixed_count, mixed_capacity;
    const peal_statement **swap;
    int swap_count, swap_capacity;
    condition_table *conditions; /* of statements, on demand: conditions.c */
    bool within_repeat;          /* what was proved holds in the known steps alone */
    rank_view **view;            /* by rank, NULL until asked for */
    int64_t analysed_count;      /* ranks that peal_compilation_check has analysed so far */
    size_t check_bytes;          /* that peal_compilation_check needed at most beside the arena */
};

/* compilation.c: a rank's view, computed up to a stage (1 geometry, 2 tasks, 3 messages, 4 order, 5
 * schedule). NULL after a diagnostic. */
rank_view *view_at(peal_compilation *c, int rank, int stage);
/* Geometry and message ends alone, in a view that is not kept; its status says whether they are
 * good. */
rank_view *view_of_ends(peal_compilation *c, int rank);
int array_total(const peal_compilation *c);
const char *array_name(const peal_compilation *c, int array);
peal_type array_type(const peal_compilation *c, int array);

/* compilation.c: where the guard of the compilation's arena goes on; reports
 * PEAL_E_COMPILE_OUT_OF_MEMORY, once. */
peal_status out_of_memory(peal_compilation *c);
/* Allocates from an arena of its own until end_scratch. */
void begin_scratch(peal_compilation *c);
void end_scratch(peal_compilation *c);

/* topology.c */
peal_status choose_dims(peal_compilation *c);
/* The rank at position + direction, or -1: nobody. */
int neighbour(const peal_compilation *c, const int position[PEAL_RANK_AXES],
              const int direction[PEAL_RANK_AXES]);
/* The neighbours of a rank in all directions (13: itself); -1: nobody. */
void find_neighbours(const peal_compilation *c, int rank, int peer[27]);
/* Whether there is a neighbour (perhaps myself) below (side 0) or above (side 1) along an axis of a
 * field. */
bool has_neighbour(const peal_compilation *c, const rank_view *v, int axis, int side);

/* geometry.c: stage 1 */
typedef struct field_shape {
    int axis_count;
    int64_t size[PEAL_AXES];  /* points along the axis, all ranks: coarsened and staggered */
    int64_t whole[PEAL_AXES]; /* points before coarsening and staggering: what is cut */
    int64_t halo[PEAL_AXES][2];
    int64_t align[PEAL_AXES], stagger[PEAL_AXES], coarsen[PEAL_AXES];
} field_shape;
peal_status shape_of(peal_compilation *c, const peal_scope *scope, int array, field_shape *out);
void part_along(const peal_compilation *c, const field_shape *shape, int axis, int position,
                int ranks, int64_t *lo, int64_t *hi);
peal_status make_geometry(peal_compilation *c, rank_view *v);
/* swaps.c: whether arrays that are swapped are alike on a rank. */
peal_status check_swaps(peal_compilation *c, const rank_view *v);
/* Bytes: what caches move at a time, on CPUs two lines at once. */
enum { MEMORY_LINE = 128 };

peal_status set_dense_layout(peal_compilation *c, peal_layout *layout, const peal_box *stored,
                             peal_type type, peal_source source, const char *name);
int ranks_along(const peal_compilation *c, int axis);

/* points.c */
peal_status amount_of(peal_compilation *c, const peal_scope *scope, const peal_amount *amount,
                      int64_t out[PEAL_AXES][2]);
peal_status ranges_of(peal_compilation *c, const peal_scope *scope, const peal_ranges *ranges,
                      peal_box *out);
peal_status direction_of(peal_compilation *c, const peal_scope *scope,
                         const peal_direction *direction, int out[PEAL_RANK_AXES]);
peal_status points_of(peal_compilation *c, rank_view *v, const peal_points *points, box_list *out);
/* my halo points in a direction (halo amounts given), and which of my points the neighbour there
 * has in its halo */
peal_box halo_box(const rank_view *v, int array, const int64_t amount[PEAL_AXES][2],
                  const int *direction);
peal_box border_box(const rank_view *v, int array, const int64_t amount[PEAL_AXES][2],
                    const int *direction);
void subtract_box(const peal_box *from, const peal_box *what, box_list *out);

/* tasks.c: stage 2 */
peal_status make_tasks(peal_compilation *c, rank_view *v);
/* A buffer that is counted, not shaped by a `box:`. */
bool is_plain_buffer(const peal_compilation *c, int array);
int add_task(peal_compilation *c, rank_view *v, const peal_statement *s, peal_task_kind kind);
peal_box reach_range(const peal_reach *reach, const peal_box *box, const peal_box *stored);
/* Tiles must not share a point of a coarser array that the task touches: their extents are
 * multiples of these. */
void tile_multiples(peal_compilation *c, const rank_view *v, const peal_task_statement *task,
                    int64_t multiple[PEAL_AXES]);
/* collisions.c: PEAL_E_TILES_COLLIDE if tiles of the task, however it is cut where the spec doesn't
 * say, touch what others write through access a. */
peal_status check_collisions(peal_compilation *c, const rank_view *v,
                             const peal_task_statement *task, const peal_schedule_task *t,
                             const peal_access *a, const peal_reach *reach, int count);
/* How many tiles there are; where the spec doesn't say how many there may be. */
int64_t tiles_asked(peal_compilation *c, const rank_view *v, const peal_task_statement *task,
                    const peal_schedule_task *t);
/* Whether the task may be cut between any two points. */
bool task_is_divisible(const peal_task_statement *task, const peal_schedule_task *t);
/* tiling.c */
void choose_tiling(const peal_compilation *c, const peal_task_statement *task,
                   const int64_t tile[PEAL_AXES], const int64_t multiple[PEAL_AXES],
                   peal_tiling *tiling);
/* Whether nothing but speed depends on the tiles of a task. */
bool tiles_are_free(const peal_task_statement *task);
/* set_values.c: PEAL_E_SET_OUT_OF_RANGE for values of `set` that are known and do not fit. */
peal_status check_set_values(peal_compilation *c);
/* live_reductions.c */
const peal_expr *reduction_needed(peal_compilation *c, const peal_statement *s);
/* Whether the loop does nothing with an array but reduce it over ranks and print it: then it need
 * not wait for it; and whether all that a reduction over ranks gives is so. */
bool array_is_reported(const peal_compilation *c, int array);
bool reduction_is_reported(const peal_compilation *c, const peal_statement *s);
/* Calls visit for each array whose value a statement reads in an expression (args, set,
 * until, when, print) */
void statement_elements(const peal_statement *s, void (*visit)(void *user, int array), void *user);

/* messages.c, match_ends.c: stage 2 (ends) and 3 */
peal_status make_ends(peal_compilation *c, rank_view *v);
peal_status make_messages(peal_compilation *c, rank_view *v);
/* file_races.c: that no order of ranks decides what is in a file. */
peal_status check_files(peal_compilation *c);
/* What identifies an explicit message, and what must agree at both ends. */
typedef struct message_record {
    int64_t tag, count;
    int32_t from, to, statement;
    int32_t direction; /* the sender's, 0 to 26; -1: none */
    peal_term condition;
} message_record;
static inline int32_t end_direction(const message_end *e)
{
    return e->directed ? e->direction[0] + 1 + 3 * (e->direction[1] + 1) + 9 * (e->direction[2] + 1)
                       : -1;
}
message_record record_of(const rank_view *v, const message_end *e);
peal_status check_pair(peal_compilation *c, const message_record *from, const message_record *to);
peal_status report_unmatched(peal_compilation *c, const message_record *r, bool outgoing);
peal_status report_ambiguous(peal_compilation *c, const message_record *r, bool outgoing,
                             int count);
/* check.c: the checks, rank by rank; peal_compilation_check() proves by classes where it can. */
peal_status check_each_rank(peal_compilation *c);
/* partners.c: makes the messages of all ranks, if some may not take part in what others need. */
peal_status check_partners(peal_compilation *c);
/* expressions.c: what expressions make of loop counters and ranks; once for all ranks. */
/* `try_ranks`: their geometry is known to be good. */
peal_status check_values(peal_compilation *c, bool try_ranks);
/* deadlock.c: replays one pass of all ranks; a cycle of waits is reported. */
peal_status find_deadlock(peal_compilation *c);
/* Whether no cycle can be, by the directions of the messages of all classes' ranks, which match;
 * false: perhaps. */
bool directions_show_no_cycle(peal_compilation *c, rank_view *const *view, int count);
/* The other end of an explicit message, owned by the peer's view. */
peal_status match_end(peal_compilation *c, rank_view *v, const message_end *end,
                      const message_end **twin);
/* rank_conditions.c: whether a statement communicates under a `when` that names the rank and loop
 * counters; what is left of these on a rank. */
bool differs_by_rank_and_counter(const peal_statement *s);
peal_status make_conditions(peal_compilation *c, rank_view *v);
/* False: a condition that never holds on this rank keeps the statement from ever happening here. */
bool is_active(const rank_view *v, const peal_statement *s);
/* Reports a statement between all ranks that another rank never runs, or under another condition.
 */
peal_status check_partner(peal_compilation *c, const rank_view *v, const rank_view *other,
                          const peal_statement *s);
/* exchange.c */
/* Whether any task or message of a rank reads an array's halo, under any name that swaps give it.
 */
bool halo_is_read(const peal_compilation *c, const rank_view *v, int array);
/* stale_reads.c: warns of exchanges that nobody reads, from one rank's point of view. */
void warn_of_halos(peal_compilation *c, const rank_view *v);
peal_status check_exchange(peal_compilation *c, const rank_view *v, const peal_statement *s);
peal_status add_exchange(peal_compilation *c, rank_view *v, const peal_statement *s);
/* reductions.c */
peal_status make_reduction(peal_compilation *c, rank_view *v, const peal_statement *s);
peal_status add_reduction_messages(peal_compilation *c, rank_view *v, const peal_statement *s);
/* A number that is equal for ranks whose messages of a reduction go equally far, in rank numbers.
 * False: to a rank that is the same for all. */
bool reduction_role(peal_compilation *c, const peal_statement *s, int rank, uint64_t *out);
peal_status report_uneven(peal_compilation *c, const peal_statement *s, const peal_reduction *item,
                          const int rank[2], const int64_t count[2]);
rank_message *add_message(peal_compilation *c, rank_view *v, rank_message m);
/* The points of a piece in the receiver's coordinates. */
peal_box piece_target(const peal_piece *piece);
void add_piece(peal_compilation *c, rank_message *m, peal_piece piece);

/* nodes.c, walk_order.c: stage 4 */
peal_status make_nodes(peal_compilation *c, rank_view *v);
void order_body(peal_compilation *c, rank_view *v, node_list *body);
void split_body(peal_compilation *c, rank_view *v, node_list *body);
void add_node(peal_compilation *c, node_list *list, node *n);
void add_touch(peal_compilation *c, node *n, touch t);
void touch_launch(peal_compilation *c, rank_view *v, node *n);
bool touches_conflict(const touch *a, const touch *b);
bool nodes_conflict(const node *a, const node *b);

/* Virtual arrays. */
static inline int console_array(const peal_compilation *c)
{
    return array_total(c);
}
static inline int after_array(const peal_compilation *c, int statement)
{
    return array_total(c) + 1 + statement;
}
static inline int ready_array(const peal_compilation *c, int rank)
{
    return array_total(c) + 1 + c->graph->statement_count + rank;
}
static inline int staging_array(const peal_compilation *c, int message)
{
    return array_total(c) + 1 + c->graph->statement_count + c->machine.ranks + message;
}
static inline int received_array(const peal_compilation *c, const rank_view *v, int message)
{
    return staging_array(c, v->message_count + message);
}
static inline int decision_array(int decision)
{
    return -1 - decision;
}
touch fixed_touch(int array, bool write, const peal_box *box);
touch virtual_touch(int array, bool write);

/* credits.c: how an outgoing message of rank `sender` is delivered; both ends decide alike. */
peal_status deliver(peal_compilation *c, int sender, int message_index, delivery *out);
/* Whether a piece is long enough, where it goes, to be stored in place. */
bool piece_wants_direct(const peal_compilation *c, const rank_view *receiver, int sender,
                        const peal_piece *piece);

/* segment_map.c: where everything lies in a rank's segment; needs stage 3. */
struct segment_map {
    int64_t *array;   /* by array; -1: lent */
    int64_t *flag;    /* by message: incoming ones */
    int64_t *staging; /* by message: slot 0 */
    int64_t *slot_bytes;
    int64_t *credit; /* by message: outgoing ones */
    int *peer;       /* ranks that it exchanges messages with, ascending */
    int64_t *ready;  /* by peer: flag that says the peer's setup is done */
    int peer_count;
    int64_t mailbox; /* where the arrays end */
    int64_t bytes;
};
const segment_map *map_segment(peal_compilation *c, rank_view *v);

/* lower.c, dependences.c: stage 5 */
peal_status make_schedule(peal_compilation *c, rank_view *v);
/* A schedule of arrays and tasks alone; needs stage 2. */
peal_status make_outline(peal_compilation *c, rank_view *v, const peal_schedule **out);
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
void make_dependences(peal_compilation *c, rank_view *v, lowered_op *op, int count, int step_first,
                      int step_end);
/* Tiles of A's touch that a tile of B's touch meets; false: none ever. */
bool map_tiles(const touch *a, const peal_tiling *at, const peal_tile_range *ar, const touch *b,
               const peal_tiling *bt, const peal_tile_range *br, peal_map_axis map[PEAL_AXES]);

/* Whether some iterations are recorded once and repeated by the device: nothing can be left out of
 * them then. */
static inline bool peal_is_repeated(const peal_compilation *c)
{
    return c->mode == PEAL_MODE_GRAPH || (c->mode == PEAL_MODE_FUSED && c->machine.accelerator);
}

#endif
