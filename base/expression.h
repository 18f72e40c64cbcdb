/* Values of expressions and of text templates. Parsing is dsl/'s; this is what every later stage
 * uses. */
#ifndef PEAL_BASE_EXPRESSION_H
#define PEAL_BASE_EXPRESSION_H

#include "base/arena.h"
#include "base/diagnostic.h"

#include <peal/plugin/schedule.h>

/* What the names of an expression stand for. Members that are not known yet are NULL or 0: an
 * expression that needs one is reported (E04x). */
typedef struct peal_scope {
    const peal_graph_data *graph;
    int rank, ranks;
    int position[PEAL_RANK_AXES]; /* rx ry rz */
    int dims[PEAL_RANK_AXES];     /* Rx Ry Rz */
    const int64_t *counter;       /* loop counters by depth */
    int counter_count;
    const peal_layout *layout; /* by array: parts and counts */
    /* The value of the buffer of one element `array`, now; NULL: run-time names are not allowed
     * here. */
    peal_value (*element)(void *user, int array);
    void *user;
} peal_scope;

/* Evaluates. Reports overflow, division by zero, wrong kinds, unknown names with the place of the
 * operator. `diagnostics` may be NULL. `*out` is set only on PEAL_STATUS_OK. */
peal_status peal_expr_evaluate(const peal_expr *expr, const peal_scope *scope, peal_value *out,
                               peal_diagnostics *diagnostics);
/* The same, and the value must be an integer / is converted to a real / must be a boolean. expr
 * NULL: `missing`. */
peal_status peal_expr_integer(const peal_expr *expr, const peal_scope *scope, int64_t missing,
                              int64_t *out, peal_diagnostics *diagnostics);
peal_status peal_expr_real(const peal_expr *expr, const peal_scope *scope, double missing,
                           double *out, peal_diagnostics *diagnostics);
peal_status peal_expr_boolean(const peal_expr *expr, const peal_scope *scope, bool missing,
                              bool *out, peal_diagnostics *diagnostics);

/* What an expression depends on. */
enum {
    PEAL_USES_RANK = 1,    /* rank, rx .., u.nx, u.x0, b.count: may differ by rank */
    PEAL_USES_COUNTER = 2, /* loop counters */
    PEAL_USES_ELEMENT = 4  /* run-time values of buffers */
};
unsigned peal_expr_uses(const peal_expr *expr);
/* Whether the counter of the loop at a depth (0: the step) is in expr. expr NULL: it is not. */
bool peal_expr_names_counter(const peal_expr *expr, int depth);
/* Whether two expressions are the same, term by term: where both are evaluated at once they have
 * one value. NULL equals NULL. */
bool peal_expr_equal(const peal_expr *a, const peal_expr *b);
/* Calls visit for every ELEMENT of expr (with its array). expr NULL: nothing. */
void peal_expr_elements(const peal_expr *expr, void (*visit)(void *user, int array), void *user);
/* Whether the value of buffer `array` is in expr. */
bool peal_expr_reads(const peal_expr *expr, int array);
/* The kind that the expression's value will have: integer, real, boolean (by operators, params and
 * buffers' types). */
peal_value_kind peal_expr_kind_of(const peal_expr *expr, const peal_graph_data *graph);

/* Replaces {rank}, {step} and other loop counters and params in a template: "u-{step}.npy",
 * integers with leading zeros to a width: "u-{step:06}.npy". `counter_name` gives the names of
 * counters by depth. Result in the arena. Unknown names are reported. */
peal_status peal_template_expand(const char *text, const peal_scope *scope,
                                 const char *const *counter_name, peal_source source,
                                 peal_arena *arena, const char **out,
                                 peal_diagnostics *diagnostics);
enum { PEAL_TEMPLATE_NAME_BYTES = 64, PEAL_TEMPLATE_MOST_DIGITS = 20 };
/* The placeholder at text[0] == '{': its name, and the least number of digits (0: as many as the
 * number has). Returns what stands behind it; NULL: it is none. */
const char *peal_template_placeholder(const char *text, char name[PEAL_TEMPLATE_NAME_BYTES],
                                      int *width);
/* Whether a template has a placeholder of this name. */
bool peal_template_names(const char *text, const char *name);

#endif
