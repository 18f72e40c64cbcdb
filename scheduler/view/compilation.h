/* What the passes of a compilation share: what is compiled, its statements and arrays by number,
 * and the views of ranks.
 *
 * A pass is a function from the graph and earlier stages to a later stage of a rank_view. Views of
 * ranks that a rank exchanges messages with are made the same way, on demand, and kept: both ends
 * of a channel decide alike because they run the same pure functions on the same data. */
#ifndef PEAL_SCHEDULER_VIEW_COMPILATION_H
#define PEAL_SCHEDULER_VIEW_COMPILATION_H

#include "base/arena.h"
#include "base/checked.h"
#include "scheduler/scheduler.h"
#include "scheduler/view/rank_view.h"

/* Where a statement stands, by the id of its innermost loop's statement or one of these. */
enum { LOOP_SETUP = -1, LOOP_FINISH = -2, LOOP_OUTER = -3 };

typedef struct condition_table condition_table; /* conditions/conditions.h */

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
    const peal_machine_traits *traits; /* the machine's, never NULL */
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
    /* Make views: compilation.c knows the passes. */
    rank_view *(*make_view)(peal_compilation *c, int rank, int stage);
    rank_view *(*make_view_of_ends)(peal_compilation *c, int rank);
    rank_view **view;       /* by rank, NULL until asked for */
    int64_t analysed_count; /* ranks that peal_compilation_check has analysed so far */
    size_t check_bytes;     /* that peal_compilation_check needed at most beside the arena */
};

/* A rank's view, computed up to a stage. NULL after a diagnostic. */
static inline rank_view *view_at(peal_compilation *c, int rank, int stage)
{
    return c->make_view(c, rank, stage);
}
/* Geometry and message ends alone, in a view that is not kept; its status says whether they are
 * good. */
static inline rank_view *view_of_ends(peal_compilation *c, int rank)
{
    return c->make_view_of_ends(c, rank);
}

/* views.c */
rank_view *create_view(peal_compilation *c, int rank);
/* Allocates from an arena of its own until end_scratch. */
void begin_scratch(peal_compilation *c);
void end_scratch(peal_compilation *c);

/* index.c */
void index_graph(peal_compilation *c);
int array_total(const peal_compilation *c);
const char *array_name(const peal_compilation *c, int array);
peal_type array_type(const peal_compilation *c, int array);
/* A buffer that is counted, not shaped by a `box:`. */
bool is_plain_buffer(const peal_compilation *c, int array);
/* Whether a statement communicates under a `when` that names the rank and loop counters. */
bool differs_by_rank_and_counter(const peal_statement *s);

/* Whether iterations are recorded once and repeated as they are: nothing can be left out of them
 * then. */
static inline bool peal_is_repeated(const peal_compilation *c)
{
    return c->mode == PEAL_MODE_GRAPH || (c->mode == PEAL_MODE_FUSED && c->traits->repeats_fused);
}

#endif
