/* Systems of linear equations and inequalities of whole numbers: has one a solution?
 *
 * The method is the omega test (Pugh, "The omega test: a fast and practical integer programming
 * algorithm for dependence analysis", 1991): equations are solved by column operations, as in
 * Euclid's algorithm, so remainders meet as the Chinese remainder theorem says; inequalities are
 * eliminated one variable after the other, with exact, dark and real shadows and splinters. */
#ifndef PEAL_BASE_LINEAR_H
#define PEAL_BASE_LINEAR_H

#include <stdbool.h>
#include <stdint.h>

__extension__ typedef __int128 peal_wide;

enum { PEAL_LINEAR_VARIABLES = 16, PEAL_LINEAR_ROWS = 48 };

/* Sum of factor[i] * variable i, and a constant; is zero, or is not negative. */
typedef struct peal_linear_row {
    peal_wide factor[PEAL_LINEAR_VARIABLES];
    peal_wide constant;
    bool is_equation;
} peal_linear_row;

typedef struct peal_linear_system {
    peal_linear_row row[PEAL_LINEAR_ROWS];
    int row_count, variable_count;
} peal_linear_system;

typedef enum peal_answer { PEAL_NO, PEAL_YES, PEAL_PERHAPS } peal_answer;

/* PEAL_PERHAPS: numbers or rows become too many to say. */
peal_answer peal_linear_solvable(const peal_linear_system *system);
/* The least value, from 0 to `most`, that a variable has in any solution; false: there is none, or
 * it cannot be found. */
bool peal_linear_least(const peal_linear_system *system, int variable, int64_t most, int64_t *out);

#endif
