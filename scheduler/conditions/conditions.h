/* When statements happen: their conditions as terms, for matches and for cycles of waits. */
#ifndef PEAL_SCHEDULER_CONDITIONS_CONDITIONS_H
#define PEAL_SCHEDULER_CONDITIONS_CONDITIONS_H

#include "base/meaning.h"
#include "scheduler/view/compilation.h"

enum { LOOPS_AROUND = 8 };

/* ---- rank_conditions.c ---- */

/* What is left, on a rank, of conditions that name the rank and loop counters. */
peal_status make_conditions(const common_input *c, const pass_context *pass,
                            condition_table *conditions, rank_view *v);
/* False: a condition that never holds on this rank keeps the statement from ever happening here. */
bool is_active(const rank_view *v, const peal_statement *s);

/* What is known of a condition on a rank before the run: counters and values of buffers are not. */
typedef enum condition_truth { CONDITION_FALSE, CONDITION_TRUE, CONDITION_OPEN } condition_truth;
condition_truth condition_known(const peal_expr *e, const peal_scope *scope);

/* ---- conditions.c ---- */

/* When a statement happens, but for what depends on the rank alone. Where its own condition names
 * the rank and counters, condition_on() has it. */
typedef struct statement_condition {
    peal_term when;                 /* its own, where it stands */
    peal_term plain;                /* the same if nothing were ever written */
    peal_term around[LOOPS_AROUND]; /* of the loops around it: that the loop happens, and has such
                                       an iteration; the outermost first */
    int loop[LOOPS_AROUND];         /* those, by id; LOOP_OUTER */
    int around_count;
    peal_term counter[LOOPS_AROUND + 1]; /* by depth */
    int counter_count;
    peal_term asked; /* the last that was asked on a rank; 0: none */
    bool never;      /* the answer */
} statement_condition;

/* Made when first asked for. */
struct condition_table {
    const common_input *c;
    peal_arena *arena;
    bool within_repeat;      /* something that was proved holds in the known steps alone */
    bool ends_at_repeat;     /* what was proved of `finish` holds behind `repeat` steps alone */
    peal_meanings *meanings; /* NULL: nobody has asked */
    statement_condition *of; /* by statement */
    peal_term step;          /* its counter */
    peal_term within;        /* that it is one of the known steps; 0: they are not known */
};

/* How many steps a spec has; -1: not known before it runs, or a program starts as many as it wants.
 */
int64_t known_steps(const common_input *c);
condition_table *create_conditions(const common_input *c, peal_arena *arena);
const condition_table *conditions_of(condition_table *table);

/* The term of what is left of a statement's condition on a rank, and whether that never holds. */
peal_term condition_on(condition_table *conditions, const peal_statement *s, const peal_expr *when,
                       bool *never);

/* A statement of one rank: its condition there, 0 if that does not depend on the rank. */
typedef struct condition_end {
    const peal_statement *s;
    peal_term term;
} condition_end;

typedef enum condition_match {
    CONDITIONS_AGREE,
    CONDITIONS_DIFFER,
    CONDITIONS_CHANGE,   /* one expression, but what it names is written in between */
    CONDITIONS_UNDECIDED /* they may be the same */
} condition_match;
/* Whether two statements of one body happen together. `writer`: what changes their condition, and
 * `array` what it writes. */
condition_match match_conditions(const common_input *c, condition_table *conditions,
                                 const condition_end *one, const condition_end *other,
                                 const peal_statement **writer, int *array);

/* The most iterations that a loop has each time it is come to, within `most`; -1: more, or it
 * cannot be decided. */
int64_t most_iterations(condition_table *conditions, const peal_statement *loop, int64_t most);

/* Conditions of all statements, numbered; those behind the last number are never taken not to hold.
 * In a view are the numbers of what differs by rank. */
enum { MOST_CONDITIONS = 64 };
typedef struct cycle_conditions {
    peal_term term[MOST_CONDITIONS];
    int count;
    uint64_t *of; /* by statement: its own and those of loops around it */
} cycle_conditions;
void number_conditions(const common_input *c, const pass_context *pass, rank_views *views,
                       condition_table *conditions, cycle_conditions *out);
/* Whether a statement does not happen on a rank if the conditions `off` do not hold. */
static inline bool is_skipped(const cycle_conditions *k, const rank_view *v, int statement,
                              uint64_t off)
{
    return ((k->of[statement] | v->statement[statement].numbers) & off) != 0;
}
/* Whether the statements of a cycle of waits can happen in one iteration of the loops that have all
 * of them. PEAL_YES: in *step, or -1. PEAL_NO: in *reasons are conditions of theirs that never hold
 * together, none of which can be left out (none: they have no numbers). */
peal_meeting conditions_meet(const common_input *c, condition_table *conditions,
                             const cycle_conditions *k, const condition_end *end, int count,
                             uint64_t *reasons, int64_t *step);

#endif
