/* After how many iterations of a loop an expression of its counter has the same values again.
 *
 * Sums, quotients and multiples of a counter grow by as much every `period` iterations: `step / 4`
 * by 1 every 4. A remainder of such a value has a period; a comparison with a value that doesn't
 * grow is the same for ever from some iteration on. */
#include "scheduler/halos/halos.h"

#include "base/checked.h"

#include <inttypes.h>

enum { MOST_PERIOD = 1 << 16, MOST_TRIED = 4096 };

/* value(i + period) = value(i) + growth, for i >= from. */
typedef struct growth {
    int64_t period, growth, from;
} growth;

typedef struct period_search {
    int depth;
    const peal_scope *scope;
} period_search;

static bool subtract_overflows(int64_t a, int64_t b, int64_t *out)
{
    return b == INT64_MIN || peal_add_overflows(a, -b, out);
}

/* Both by their common period. */
static bool make_common(growth *a, growth *b)
{
    int64_t period = a->period / peal_greatest_divisor(a->period, b->period) * b->period;
    if (period > MOST_PERIOD ||
        peal_multiply_overflows(a->growth, period / a->period, &a->growth) ||
        peal_multiply_overflows(b->growth, period / b->period, &b->growth))
        return false;
    a->period = b->period = period;
    a->from = b->from = a->from > b->from ? a->from : b->from;
    return true;
}

/* A value that is known, without counters. */
static bool constant_of(const period_search *p, const peal_expr *e, int64_t *out)
{
    return !(peal_expr_uses(e) & (PEAL_USES_COUNTER | PEAL_USES_ELEMENT)) &&
           !peal_expr_integer(e, p->scope, 0, out, NULL);
}

static bool difference_at(const period_search *p, const peal_expr *e, int64_t at, int64_t *out)
{
    int64_t counter[LOOP_DEPTHS] = {0}, a, b;
    peal_scope scope = *p->scope;
    scope.counter = counter;
    scope.counter_count = LOOP_DEPTHS;
    counter[p->depth] = at;
    return !peal_expr_integer(e->operand[0], &scope, 0, &a, NULL) &&
           !peal_expr_integer(e->operand[1], &scope, 0, &b, NULL) && !subtract_overflows(a, b, out);
}

/* A comparison of values that grow apart, by `apart` in each iteration: from which iteration on it
 * doesn't change any more. */
static bool settle(const period_search *p, const peal_expr *e, int64_t apart, struct growth *out)
{
    int64_t most = 0, difference, after;
    for (int depth = 0; depth < LOOP_DEPTHS; depth++)
        if (depth != p->depth && peal_expr_names_counter(e, depth))
            return false;
    if (out->period > MOST_TRIED || peal_expr_uses(e) & PEAL_USES_ELEMENT)
        return false;
    for (int64_t i = 0; i < out->period; i++) {
        if (!difference_at(p, e, out->from + i, &difference) || difference == INT64_MIN)
            return false;
        most = imaxabs(difference) > most ? imaxabs(difference) : most;
    }
    if (peal_multiply_overflows(most / apart + 2, out->period, &after) ||
        peal_add_overflows(out->from, after, &out->from))
        return false;
    out->period = 1;
    out->growth = 0;
    return true;
}

static bool find_growth(const period_search *p, const peal_expr *e, growth *out);

static bool divide(const period_search *p, const peal_expr *e, growth *a)
{
    int64_t by;
    if (!constant_of(p, e->operand[1], &by) || by < 1 ||
        peal_multiply_overflows(a->period, by, &a->period) || a->period > MOST_PERIOD)
        return false;
    return true;
}

static bool take_remainder(const period_search *p, const peal_expr *e, growth *a)
{
    int64_t by;
    if (!constant_of(p, e->operand[1], &by) || by < 1 ||
        peal_multiply_overflows(a->period, by / peal_greatest_divisor(a->growth, by), &a->period) ||
        a->period > MOST_PERIOD)
        return false;
    a->growth = 0;
    return true;
}

static bool multiply(const period_search *p, const peal_expr *e, growth *a, const growth *b)
{
    int64_t by;
    if (!a->growth && !b->growth)
        return true;
    bool second = constant_of(p, e->operand[1], &by);
    if (!second && !constant_of(p, e->operand[0], &by))
        return false;
    return !peal_multiply_overflows(second ? a->growth : b->growth, by, &a->growth);
}

static bool find_growth_of_two(const period_search *p, const peal_expr *e, growth *out)
{
    growth a, b;
    if (!find_growth(p, e->operand[0], &a) || !find_growth(p, e->operand[1], &b) ||
        !make_common(&a, &b))
        return false;
    *out = a;
    switch (e->op) {
    case PEAL_OPERATOR_ADD:
        return !peal_add_overflows(a.growth, b.growth, &out->growth);
    case PEAL_OPERATOR_SUBTRACT:
        return !subtract_overflows(a.growth, b.growth, &out->growth);
    case PEAL_OPERATOR_MULTIPLY:
        return multiply(p, e, out, &b);
    case PEAL_OPERATOR_DIVIDE:
        return !b.growth && (!a.growth || divide(p, e, out));
    case PEAL_OPERATOR_MODULO:
        return !b.growth && (!a.growth || take_remainder(p, e, out));
    case PEAL_OPERATOR_EQUAL:
    case PEAL_OPERATOR_UNEQUAL:
    case PEAL_OPERATOR_LESS:
    case PEAL_OPERATOR_LESS_EQUAL:
    case PEAL_OPERATOR_GREATER:
    case PEAL_OPERATOR_GREATER_EQUAL:
        if (a.growth != b.growth)
            return !subtract_overflows(a.growth, b.growth, &out->growth) &&
                   out->growth > INT64_MIN && settle(p, e, imaxabs(out->growth), out);
        out->growth = 0;
        return true;
    default: /* and, or, min, max: of values that don't grow */
        return !a.growth && !b.growth;
    }
}

/* `if else` of values that don't grow. */
static bool find_growth_of_choice(const period_search *p, const peal_expr *e, growth *out)
{
    for (int i = 0; i < e->operand_count; i++) {
        growth one;
        if (!find_growth(p, e->operand[i], &one) || one.growth || !make_common(out, &one))
            return false;
    }
    return true;
}

static bool find_growth(const period_search *p, const peal_expr *e, growth *out)
{
    *out = (growth){.period = 1};
    if (!peal_expr_names_counter(e, p->depth))
        return true;
    if (e->kind == PEAL_EXPR_COUNTER) {
        out->growth = 1;
        return true;
    }
    if (e->operand_count == 2)
        return find_growth_of_two(p, e, out);
    if (e->op == PEAL_OPERATOR_CHOICE)
        return find_growth_of_choice(p, e, out);
    if (e->operand_count != 1 || !find_growth(p, e->operand[0], out))
        return false;
    if (e->op == PEAL_OPERATOR_NEGATE)
        return !subtract_overflows(0, out->growth, &out->growth);
    return !out->growth;
}

bool counter_period(const peal_expr *expr, int depth, const peal_scope *scope, int64_t *period,
                    int64_t *from)
{
    period_search p = {.depth = depth, .scope = scope};
    growth found, known = {.period = *period, .from = *from};
    if (!expr)
        return true;
    if (!find_growth(&p, expr, &found) || found.growth || !make_common(&known, &found))
        return false;
    *period = known.period;
    *from = known.from;
    return true;
}
