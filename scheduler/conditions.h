/* When statements happen: their conditions as terms, for matches and for cycles of waits. */
#ifndef PEAL_SCHEDULER_CONDITIONS_H
#define PEAL_SCHEDULER_CONDITIONS_H

#include "base/meaning.h"
#include "scheduler/compilation.h"

enum { LOOPS_AROUND = 8 };

/* When a statement happens, but for what depends on the rank alone. */
typedef struct statement_condition {
    peal_term when;                 /* its own, where it stands */
    peal_term plain;                /* the same if nothing were ever written */
    peal_term around[LOOPS_AROUND]; /* of the loops around it: that the loop happens, and has such
                                       an iteration; the outermost first */
    int loop[LOOPS_AROUND];         /* those, by id; LOOP_OUTER */
    int around_count;
} statement_condition;

struct condition_table {
    peal_meanings *meanings;
    statement_condition *of; /* by statement */
    peal_term step;          /* its counter */
};

/* Made when first asked for. */
const condition_table *conditions_of(peal_compilation *c);

typedef enum condition_match {
    CONDITIONS_AGREE,
    CONDITIONS_DIFFER,
    CONDITIONS_CHANGE,   /* one expression, but what it names is written in between */
    CONDITIONS_UNDECIDED /* they may be the same */
} condition_match;
/* Whether two statements of one body happen together. `writer`: what changes their condition, and
 * `array` what it writes. */
condition_match match_conditions(peal_compilation *c, const peal_statement *one,
                                 const peal_statement *other, const peal_statement **writer,
                                 int *array);

/* Conditions of all statements, numbered; those behind the last number are never taken not to hold.
 */
enum { MOST_CONDITIONS = 64 };
typedef struct cycle_conditions {
    peal_term term[MOST_CONDITIONS];
    int count;
    uint64_t *of; /* by statement: its own and those of loops around it */
    int statement_count;
} cycle_conditions;
void number_conditions(peal_compilation *c, cycle_conditions *out);
/* Statements that do not happen if the conditions `off` do not hold. */
void skip_statements(const cycle_conditions *k, uint64_t off, bool *skipped);
/* Whether the statements of a cycle of waits can happen in one iteration of the loops that have all
 * of them. PEAL_YES: in *step, or -1. PEAL_NO: in *reasons are conditions of theirs that never hold
 * together, none of which can be left out (none: they have no numbers). */
peal_meeting conditions_meet(peal_compilation *c, const cycle_conditions *k, const int *statement,
                             int count, uint64_t *reasons, int64_t *step);

#endif
