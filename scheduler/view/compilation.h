/* What the passes of a compilation share: what is compiled, its statements and arrays by number,
 * and the views of ranks.
 *
 * A pass is a function from the graph and earlier stages to a later stage of a rank_view. What it
 * reads and writes are its parameters: the common input, a context to allocate and report in, the
 * views of other ranks, the conditions of statements, the view that it fills. Views of ranks that a
 * rank exchanges messages with are made the same way, on demand, and kept: both ends of a channel
 * decide alike because they run the same pure functions on the same data.
 */
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

/* How far senders may be ahead of receivers: what the check over all ranks finds for those who make
 * channels. By statement. */
typedef struct message_leads {
    int *receive_above; /* of a send: the first that receives from it and stands above it; -1 */
    int *sender;        /* a rank that sends it so */
    int *ahead;         /* of communication: messages of a channel that may be on their way at once,
                           where every rank does what it can; 1 without a check */
} message_leads;

/* What all ranks have in common: what is compiled, indexed. No pass changes it, but the check fills
 * `leads`. */
typedef struct common_input {
    const peal_graph_data *graph;
    peal_machine machine;
    const peal_machine_traits *traits; /* the machine's, never NULL */
    peal_mode mode;
    int dims[PEAL_RANK_AXES];
    bool periodic[PEAL_RANK_AXES];
    const int64_t *cut[PEAL_RANK_AXES]; /* dims + 1 points: 0, where parts end; NULL: equal parts */
    const peal_statement **statement;   /* by id */
    int *statement_loop;                /* by id: the innermost loop, or LOOP_* */
    int *statement_section;             /* by id: LOOP_* */
    bool *statement_awaited;            /* by id: some `after` names it */
    hidden_array *hidden;
    int hidden_count, hidden_capacity;
    int *statement_hidden;        /* by id: first hidden array; -1: none */
    int *swap_group;              /* by array: -1 or a group */
    const peal_statement **mixed; /* communication whose `when` names the rank and counters */
    int mixed_count, mixed_capacity;
    const peal_statement **swap;
    int swap_count, swap_capacity;
    message_leads leads;
} common_input;

/* What a pass writes to besides the view. */
typedef struct pass_context {
    peal_arena *arena;             /* where it allocates */
    peal_diagnostics *diagnostics; /* where it reports; NULL: nowhere, while something is tried */
} pass_context;

/* The views of ranks, for passes that look at others. */
typedef struct rank_views {
    rank_view **of; /* by rank, NULL until asked for */
    /* Make views: compilation.c knows the passes. */
    rank_view *(*make)(struct rank_views *views, int rank, int stage);
    rank_view *(*make_ends)(struct rank_views *views, const pass_context *pass, int rank);
    peal_compilation *owner;
} rank_views;

/* A rank's view, computed up to a stage. NULL after a diagnostic. */
static inline rank_view *view_at(rank_views *views, int rank, int stage)
{
    return views->make(views, rank, stage);
}
/* Geometry and message ends alone, in a view that is not kept; its status says whether they are
 * good. */
static inline rank_view *view_of_ends(const pass_context *pass, rank_views *views, int rank)
{
    return views->make_ends(views, pass, rank);
}

/* All of it: for the list of passes, and for checks that drive them. */
struct peal_compilation {
    common_input common;
    pass_context pass; /* where passes allocate and report now */
    rank_views views;
    condition_table *conditions;
    peal_diagnostics *own_diagnostics;
    peal_arena *own_arena, *scratch; /* one of these is the pass's; scratch NULL: none */
    peal_arena *halo_scratch;        /* of stale_reads.c; NULL: none */
    struct end_table *ends;          /* of a check that goes on; NULL: none */
    int64_t limit_ns;                /* of a call's processor time; 0: none */
    bool exhausted;                  /* there was no memory or time: views are not whole */
    bool knows_leads;                /* a check has filled them, or they are all 1 */
    int64_t analysed_count;          /* ranks that peal_compilation_check has analysed so far */
    size_t check_bytes; /* that peal_compilation_check needed at most beside the arena */
};

/* views.c */
rank_view *create_view(const common_input *c, const pass_context *pass, int rank);
/* Allocates from an arena of its own until end_scratch. */
void begin_scratch(peal_compilation *c);
void end_scratch(peal_compilation *c);

/* index.c */
void index_graph(common_input *c, const pass_context *pass);
int array_total(const common_input *c);
const char *array_name(const common_input *c, int array);
peal_type array_type(const common_input *c, int array);
/* A buffer that is counted, not shaped by a `box:`. */
bool is_plain_buffer(const common_input *c, int array);
/* Whether a statement communicates, or one in it. */
bool has_messages(const peal_statement *s);
/* Whether a statement communicates under a `when` that names the rank and loop counters. */
bool differs_by_rank_and_counter(const peal_statement *s);

/* Whether iterations are recorded once and repeated as they are: nothing can be left out of them
 * then. */
static inline bool peal_is_repeated(const common_input *c)
{
    return c->mode == PEAL_MODE_GRAPH || (c->mode == PEAL_MODE_FUSED && c->traits->repeats_fused);
}

#endif
