/* Expressions as source text that the device runs (device/expression.h). */
#ifndef PEAL_CUDA_EXPRESSION_SOURCE_H
#define PEAL_CUDA_EXPRESSION_SOURCE_H

#include "base/expression.h"

#include <stdio.h>

/* Arrays of one element that expressions of one launch read: peal_launch.element by index. */
typedef struct peal_cuda_elements {
    int array[16]; /* PEAL_LAUNCH_ELEMENTS */
    int count;
    bool overflows; /* there are more */
} peal_cuda_elements;

/* Prints a C expression of type long long, double or int (a boolean) with the value of expr, over
 * `launch` (const peal_launch *) and `bad` (int *: set where base/expression.c would report). Parts
 * that no counter and no element changes become literals: the text may differ by rank. `scope` has
 * what the schedule knows. The kind of the value is *kind; wrong kinds are reported
 * (PEAL_E_WRONG_VALUE_TYPE). */
peal_status peal_cuda_expression_print(const peal_expr *expr, const peal_scope *scope,
                                       peal_cuda_elements *elements, FILE *out,
                                       peal_value_kind *kind, peal_diagnostics *diagnostics);

/* What a schedule knows. layout: room for schedule->array_count of them. */
void peal_cuda_scope_fill(const peal_schedule *schedule, peal_layout *layout, peal_scope *scope);

#endif
