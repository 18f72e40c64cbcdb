/* What expressions mean: terms that are equal where the values are, and whether conditions meet.
 *
 * A term is an expression whose names stand for values, not for places: params are constants, a
 * loop counter is a variable, and the value of a buffer is a variable that is made anew wherever
 * the buffer is written. Terms are simplified and kept once, so equal numbers mean equal values.
 * Whether conditions can hold at once is decided by arithmetic (base/linear.h), never by trying
 * steps. */
#ifndef PEAL_BASE_MEANING_H
#define PEAL_BASE_MEANING_H

#include "base/expression.h"
#include "base/linear.h"

typedef struct peal_meanings peal_meanings;
typedef int peal_term; /* 0: none */

/* In the arena, and gone with it. */
peal_meanings *peal_meanings_create(const peal_graph_data *graph, peal_arena *arena);

peal_term peal_term_integer(peal_meanings *m, int64_t value);
peal_term peal_term_boolean(peal_meanings *m, bool value);
/* A value of its own. `settled`: it takes every value that its domain allows, as a loop counter
 * does; else the run decides which. */
peal_term peal_term_variable(peal_meanings *m, peal_value_kind kind, bool settled);
/* A condition that holds for a variable's values, such as 0 <= step and step < repeat. */
void peal_term_limit(peal_meanings *m, peal_term variable, peal_term domain);
peal_term peal_term_operator(peal_meanings *m, peal_operator op, peal_term a, peal_term b);
peal_term peal_term_not(peal_meanings *m, peal_term a);
peal_term peal_term_and(peal_meanings *m, peal_term a, peal_term b);
peal_term peal_term_or(peal_meanings *m, peal_term a, peal_term b);
/* a where the condition holds, else b. */
peal_term peal_term_select(peal_meanings *m, peal_term condition, peal_term a, peal_term b);
/* That condition. 0: none. */
peal_term peal_term_domain(const peal_meanings *m, peal_term variable);
peal_value_kind peal_term_kind(const peal_meanings *m, peal_term term);

int peal_term_size(const peal_meanings *m, peal_term term);     /* parts, written out */
bool peal_term_is_true(const peal_meanings *m, peal_term term); /* always, by its form */

/* What names stand for at a point of the program. */
typedef struct peal_program_point {
    const peal_scope *scope;  /* ranks, dims: 0 if unknown; `rank` < 0: any */
    const peal_term *counter; /* by depth */
    int counter_count;
    peal_term *element;                 /* by array */
    peal_term position[PEAL_RANK_AXES]; /* rx ry rz as values of their own; 0: not so */
} peal_program_point;

/* The term of an expression; NULL: true. */
peal_term peal_meaning_of(peal_meanings *m, const peal_expr *expr, const peal_program_point *point);
/* Values of all arrays that nobody knows. */
void peal_program_point_forget_all(peal_meanings *m, const peal_program_point *point);
/* Goes past a statement that happens where `when` holds: what it writes has other values. */
void peal_program_point_pass(peal_meanings *m, const peal_program_point *point,
                             const peal_statement *s, peal_term when);
/* Makes the counter of a loop a variable of its own: from 0, below `repeat`; or without an end. */
peal_term peal_term_counter_endless(peal_meanings *m);
peal_term peal_term_counter(peal_meanings *m, const peal_expr *repeat,
                            const peal_program_point *point);

/* When a loop looks at its `until`: behind which iterations. */
peal_term peal_term_looks(peal_meanings *m, const peal_loop *loop, const peal_program_point *point);

/* Whether conditions hold at once for some values. */
typedef struct peal_meeting {
    peal_answer answer;
    bool depends_on_run; /* PEAL_PERHAPS only because values are known when it runs */
    bool is_shown;       /* value[] is an example */
    int64_t value[8];    /* of the variables that were asked for */
} peal_meeting;
/* With PEAL_YES, example values for `shown_count` (at most 8) variables. */
peal_meeting peal_terms_meet(peal_meanings *m, const peal_term *condition, int count,
                             const peal_term *shown, int shown_count);
/* Whether two terms always have the same value, where `where` holds (0: everywhere). */
bool peal_terms_equal(peal_meanings *m, peal_term a, peal_term b, peal_term where);

/* Calls visit(user, array) for what a statement itself writes (loops: nothing). An array may be
 * -1. */
void peal_statement_writes(const peal_statement *statement, void (*visit)(void *user, int array),
                           void *user);

#endif
