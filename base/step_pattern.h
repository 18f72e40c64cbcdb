/* How conditions depend on the step, the counter of the outermost loop: what `explain` says of
 * modes that repeat recorded steps, and what such modes do, is decided here for both.
 *
 * A condition's *atoms* are the parts between its `and`, `or` and `not` that name the step. An atom
 * is periodic (`step % 10 < 3`, `(step + 1) % n == 0`), or has a threshold (`step == 0`,
 * `step + 1 >= n`), or neither. */
#ifndef PEAL_BASE_STEP_PATTERN_H
#define PEAL_BASE_STEP_PATTERN_H

#include "base/expression.h"

/* In the order of what can be said of later steps; an expression is as its worst atom is. */
typedef enum peal_step_kind {
    PEAL_STEP_UNNAMED,   /* it does not name the step */
    PEAL_STEP_PERIODIC,  /* the step is in remainders only */
    PEAL_STEP_THRESHOLD, /* the step, but for an added number, is compared with a number */
    PEAL_STEP_IRREGULAR  /* nothing of this kind */
} peal_step_kind;

/* Of a condition, or of any other value (then no part of it counts as an atom). expr NULL: it does
 * not name the step. */
peal_step_kind peal_step_kind_of(const peal_expr *expr);

/* Calls visit for each atom of a condition. */
void peal_step_atoms_visit(const peal_expr *expr, void (*visit)(void *user, const peal_expr *atom),
                           void *user);

/* An atom, with the numbers that its names stand for. */
typedef struct peal_step_atom {
    const peal_expr *expr;
    int64_t period;   /* steps, after which it is as before; 0: it has a threshold */
    bool is_steps;    /* the step alone decides: no inner counter, no value of a buffer */
    bool is_compared; /* it compares (step + offset) % period, or step + offset, with `against` */
    int64_t offset, against;
} peal_step_atom;

/* The names of `scope` but for counters and elements must be known. False: the atom is irregular,
 * or its period is no positive number below 2^40. */
bool peal_step_atom_prepare(const peal_expr *atom, const peal_scope *scope, peal_step_atom *out);

/* The number of steps after which a value is as before (1: it does not name the step); 0: there is
 * none, or it is no number below 2^40. */
int64_t peal_step_period(const peal_expr *expr, const peal_scope *scope);

/* The first step behind `step` in which an atom whose `is_steps` is set may have another value than
 * in `step`. INT64_MAX: there is none. */
int64_t peal_step_next_change(const peal_step_atom *atom, int64_t step);

#endif
