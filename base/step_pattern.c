/* How conditions depend on the step (step_pattern.h). */
#include "base/step_pattern.h"

#include "base/checked.h"

enum { DYNAMIC = PEAL_USES_COUNTER | PEAL_USES_ELEMENT };

#define MOST_PERIOD (INT64_C(1) << 40)

/* ---- what an expression is made of ---- */

static bool is_operator(const peal_expr *expr, peal_operator op)
{
    return expr->kind == PEAL_EXPR_OPERATOR && expr->op == op;
}

static bool names_step(const peal_expr *expr)
{
    return peal_expr_names_counter(expr, 0);
}

static bool is_static(const peal_expr *expr)
{
    return !(peal_expr_uses(expr) & DYNAMIC);
}

/* Whether a value is a multiple of the step, and something without it. */
static bool is_linear(const peal_expr *expr)
{
    if (!names_step(expr) || expr->kind == PEAL_EXPR_COUNTER)
        return true;
    if (expr->kind != PEAL_EXPR_OPERATOR)
        return false;
    switch (expr->op) {
    case PEAL_OPERATOR_NEGATE:
        return is_linear(expr->operand[0]);
    case PEAL_OPERATOR_ADD:
    case PEAL_OPERATOR_SUBTRACT:
        return is_linear(expr->operand[0]) && is_linear(expr->operand[1]);
    case PEAL_OPERATOR_MULTIPLY:
        return (is_static(expr->operand[0]) && is_linear(expr->operand[1])) ||
               (is_static(expr->operand[1]) && is_linear(expr->operand[0]));
    default:
        return false;
    }
}

/* Whether a value is the step and a number. */
static bool is_shifted_step(const peal_expr *expr)
{
    if (expr->kind == PEAL_EXPR_COUNTER)
        return expr->index == 0;
    if (is_operator(expr, PEAL_OPERATOR_ADD))
        return (is_shifted_step(expr->operand[0]) && is_static(expr->operand[1])) ||
               (is_static(expr->operand[0]) && is_shifted_step(expr->operand[1]));
    return is_operator(expr, PEAL_OPERATOR_SUBTRACT) && is_shifted_step(expr->operand[0]) &&
           is_static(expr->operand[1]);
}

static bool is_periodic(const peal_expr *expr)
{
    if (!names_step(expr))
        return true;
    if (is_operator(expr, PEAL_OPERATOR_MODULO) && is_linear(expr->operand[0]) &&
        is_static(expr->operand[1]))
        return true;
    for (int i = 0; i < expr->operand_count; i++)
        if (!is_periodic(expr->operand[i]))
            return false;
    return expr->kind == PEAL_EXPR_OPERATOR;
}

static bool compares(const peal_expr *expr)
{
    return expr->kind == PEAL_EXPR_OPERATOR && expr->op >= PEAL_OPERATOR_EQUAL &&
           expr->op <= PEAL_OPERATOR_GREATER_EQUAL;
}

static bool joins(const peal_expr *expr)
{
    return is_operator(expr, PEAL_OPERATOR_AND) || is_operator(expr, PEAL_OPERATOR_OR) ||
           is_operator(expr, PEAL_OPERATOR_NOT);
}

/* The side of a comparison of the shifted step, or of its remainder, with a number; -1: neither. */
static int compared_side(const peal_expr *atom)
{
    for (int i = 0; i < 2 && compares(atom); i++) {
        const peal_expr *side = atom->operand[i];
        if (is_operator(side, PEAL_OPERATOR_MODULO) && is_static(side->operand[1]))
            side = side->operand[0];
        if (is_shifted_step(side) && is_static(atom->operand[1 - i]))
            return i;
    }
    return -1;
}

static peal_step_kind kind_of_atom(const peal_expr *atom)
{
    if (is_periodic(atom))
        return PEAL_STEP_PERIODIC;
    return compared_side(atom) >= 0 ? PEAL_STEP_THRESHOLD : PEAL_STEP_IRREGULAR;
}

void peal_step_atoms_visit(const peal_expr *expr, void (*visit)(void *user, const peal_expr *atom),
                           void *user)
{
    if (!names_step(expr))
        return;
    if (!joins(expr)) {
        visit(user, expr);
        return;
    }
    for (int i = 0; i < expr->operand_count; i++)
        peal_step_atoms_visit(expr->operand[i], visit, user);
}

static void find_worst(void *user, const peal_expr *atom)
{
    peal_step_kind *worst = user, here = kind_of_atom(atom);
    *worst = here > *worst ? here : *worst;
}

peal_step_kind peal_step_kind_of(const peal_expr *expr)
{
    peal_step_kind worst = PEAL_STEP_UNNAMED;

    peal_step_atoms_visit(expr, find_worst, &worst);
    return worst;
}

/* ---- with numbers ---- */

/* Whether all numbers of a linear value are integers: a remainder comes round after as many steps
 * as its divisor says only then. */
static bool is_integral(const peal_expr *expr, const peal_scope *scope)
{
    int64_t number;

    if (expr->kind == PEAL_EXPR_COUNTER)
        return true;
    if (is_static(expr))
        return !peal_expr_integer(expr, scope, 0, &number, NULL);
    for (int i = 0; i < expr->operand_count; i++)
        if (!is_integral(expr->operand[i], scope))
            return false;
    return expr->kind == PEAL_EXPR_OPERATOR;
}

int64_t peal_step_period(const peal_expr *expr, const peal_scope *scope)
{
    int64_t period = 1, own;

    if (!names_step(expr))
        return 1;
    if (!is_periodic(expr))
        return 0;
    if (is_operator(expr, PEAL_OPERATOR_MODULO) && is_linear(expr->operand[0])) {
        bool known = is_integral(expr->operand[0], scope) &&
                     !peal_expr_integer(expr->operand[1], scope, 0, &own, NULL);
        return known && own > 0 && own < MOST_PERIOD ? own : 0;
    }
    for (int i = 0; i < expr->operand_count; i++) {
        own = peal_step_period(expr->operand[i], scope);
        if (own == 0)
            return 0;
        own /= peal_greatest_divisor(period, own);
        if (own >= MOST_PERIOD / period)
            return 0;
        period *= own;
    }
    return period;
}

/* A number's floor. A change at `against - offset` of real numbers is at the difference of their
 * floors or one later, as it is of integers. */
static bool floor_of(const peal_expr *expr, const peal_scope *scope, int64_t *out)
{
    const double most = 4e15; /* where all integers are real numbers, too */
    double number;

    if (!peal_expr_integer(expr, scope, 0, out, NULL))
        return true;
    if (peal_expr_real(expr, scope, 0, &number, NULL) || !(number > -most && number < most))
        return false;
    *out = (int64_t)number - (number < (double)(int64_t)number);
    return true;
}

/* The numbers of a comparison. */
static bool find_numbers(const peal_expr *atom, const peal_scope *scope, peal_step_atom *out)
{
    int side = compared_side(atom);
    static const int64_t zero[1];

    if (side < 0)
        return false;
    const peal_expr *shifted = atom->operand[side];
    if (is_operator(shifted, PEAL_OPERATOR_MODULO))
        shifted = shifted->operand[0];
    peal_scope first = *scope;
    first.counter = zero;
    first.counter_count = 1;
    return floor_of(shifted, &first, &out->offset) &&
           floor_of(atom->operand[1 - side], scope, &out->against);
}

/* Whether the step alone decides: the other names are the same in all steps. */
static bool is_of_step(const peal_expr *expr)
{
    if (expr->kind == PEAL_EXPR_ELEMENT || (expr->kind == PEAL_EXPR_COUNTER && expr->index > 0))
        return false;
    for (int i = 0; i < expr->operand_count; i++)
        if (!is_of_step(expr->operand[i]))
            return false;
    return true;
}

bool peal_step_atom_prepare(const peal_expr *atom, const peal_scope *scope, peal_step_atom *out)
{
    peal_step_kind kind = kind_of_atom(atom);

    *out = (peal_step_atom){.expr = atom, .is_steps = is_of_step(atom)};
    out->is_compared = find_numbers(atom, scope, out);
    if (kind == PEAL_STEP_PERIODIC)
        out->period = peal_step_period(atom, scope);
    return kind == PEAL_STEP_PERIODIC    ? out->period > 0
           : kind == PEAL_STEP_THRESHOLD ? out->is_compared
                                         : false;
}

/* Counted from `step`, which is never negative, when a remainder or a number first is `at`. */
static int64_t steps_to(const peal_step_atom *atom, int64_t step, int64_t at)
{
    int64_t away;

    if (__builtin_sub_overflow(at, step, &away) ||
        __builtin_sub_overflow(away, atom->offset, &away))
        return INT64_MAX;
    if (atom->period > 0)
        away = (away % atom->period + atom->period) % atom->period;
    return away > 0 ? away : atom->period > 0 ? atom->period : INT64_MAX;
}

int64_t peal_step_next_change(const peal_step_atom *atom, int64_t step)
{
    int64_t least = INT64_MAX;
    int64_t after = atom->against < INT64_MAX ? atom->against + 1 : atom->against;
    const int64_t at[] = {atom->against, after, 0};

    if (!atom->is_compared)
        return atom->period == 1 ? INT64_MAX : step + 1;
    for (int i = 0; i < (atom->period > 0 ? 3 : 2); i++) {
        int64_t steps = steps_to(atom, step, at[i]);
        least = steps < least ? steps : least;
    }
    return least < INT64_MAX - step ? step + least : INT64_MAX;
}
