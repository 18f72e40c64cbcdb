/* Operators of expressions on values, for the evaluator (expression.c). */
#ifndef PEAL_BASE_OPERATORS_H
#define PEAL_BASE_OPERATORS_H

#include "base/expression.h"

typedef struct peal_evaluation {
    const peal_scope *scope;
    peal_diagnostics *diagnostics; /* NULL: nothing is said */
} peal_evaluation;

/* "an integer", ..., by kind. */
extern const char *const peal_value_kind_names[];

/* What an operator makes of its operands' values. Not of `and`, `or` and `if else`, whose operands
 * are not all looked at. PEAL_STATUS_SPEC after a diagnostic. */
peal_status peal_operator_apply(const peal_evaluation *e, const peal_expr *expr,
                                const peal_value *operand, peal_value *out);
/* Says that the operator takes no such value. */
peal_status peal_operator_wrong_kind(const peal_evaluation *e, const peal_expr *expr,
                                     const peal_value *value);

#endif
