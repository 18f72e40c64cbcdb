/* What operators make of values. Integers stay exact: `+ - * **` report overflow, `/` rounds down,
 * `%` is never negative. A real operand makes the result real, and reals follow IEEE: dividing a
 * real by 0 gives inf or NaN, which is an error only where an integer is made of it. */
#include "base/operators.h"

#include "base/checked.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

const char *const peal_value_kind_names[] = {"an integer", "a real number", "a boolean", "a text"};

static const char too_large[] =
    "integers have 64 bits; write a real number (2.0 * n) if it need not be exact";

static peal_value integer_value(int64_t integer)
{
    return (peal_value){.kind = PEAL_INTEGER, .u.integer = integer};
}

static peal_value real_value(double real)
{
    return (peal_value){.kind = PEAL_REAL, .u.real = real};
}

static peal_value boolean_value(bool boolean)
{
    return (peal_value){.kind = PEAL_BOOLEAN, .u.boolean = boolean};
}

static bool is_number(const peal_value *value)
{
    return value->kind == PEAL_INTEGER || value->kind == PEAL_REAL;
}

static double as_real(const peal_value *value)
{
    return value->kind == PEAL_INTEGER ? (double)value->u.integer : value->u.real;
}

static const char *operator_name(peal_operator op)
{
    static const char *const names[] = {"-",   "not", "+",    "-",     "*",    "/",   "%",  "==",
                                        "!=",  "<",   "<=",   ">",     ">=",   "and", "or", "min",
                                        "max", "abs", "sqrt", "floor", "ceil", "if",  "**", "log2",
                                        "sin", "cos", "tan",  "exp",   "log",  "tanh"};
    return names[op];
}

peal_status peal_operator_wrong_kind(const peal_evaluation *e, const peal_expr *expr,
                                     const peal_value *value)
{
    return peal_report(e->diagnostics, PEAL_E_WRONG_VALUE_TYPE, expr->source, NULL,
                       "`%s` cannot take %s", operator_name(expr->op),
                       peal_value_kind_names[value->kind]);
}

/* "rank 1, step 3: " while running, "rank 1: " of what ranks make of it, else "". */
static const char *where_text(const peal_evaluation *e, const peal_expr *expr, char text[64])
{
    const peal_scope *s = e->scope;
    text[0] = 0;
    if (s->element && s->counter)
        snprintf(text, 64, "rank %d, step %" PRId64 ": ", s->rank, s->counter[0]);
    else if (s->ranks > 0 && peal_expr_uses(expr) & PEAL_USES_RANK)
        snprintf(text, 64, "rank %d: ", s->rank);
    return text;
}

static peal_status overflow_of_one(const peal_evaluation *e, const peal_expr *expr, int64_t a)
{
    char where[64];
    return peal_report(e->diagnostics, PEAL_E_INTEGER_OVERFLOW, expr->source, too_large,
                       "%s`%s` overflows: %s(%" PRId64 ")", where_text(e, expr, where),
                       operator_name(expr->op), operator_name(expr->op), a);
}

static peal_status overflow_of_two(const peal_evaluation *e, const peal_expr *expr, int64_t a,
                                   int64_t b)
{
    char where[64];
    return peal_report(e->diagnostics, PEAL_E_INTEGER_OVERFLOW, expr->source, too_large,
                       "%s`%s` overflows: %" PRId64 " %s %" PRId64, where_text(e, expr, where),
                       operator_name(expr->op), a, operator_name(expr->op), b);
}

static peal_status evaluate_negate(const peal_evaluation *e, const peal_expr *expr,
                                   const peal_value *value, peal_value *out)
{
    int64_t integer = 0;
    if (!is_number(value))
        return peal_operator_wrong_kind(e, expr, value);
    if (value->kind == PEAL_REAL)
        *out = real_value(-value->u.real);
    else if (__builtin_sub_overflow((int64_t)0, value->u.integer, &integer))
        return overflow_of_one(e, expr, value->u.integer);
    else
        *out = integer_value(integer);
    return PEAL_STATUS_OK;
}

static peal_status evaluate_rounding(const peal_evaluation *e, const peal_expr *expr,
                                     const peal_value *value, peal_value *out)
{
    if (value->kind == PEAL_INTEGER) {
        *out = *value;
        return PEAL_STATUS_OK;
    }
    double real = expr->op == PEAL_OPERATOR_FLOOR ? floor(value->u.real) : ceil(value->u.real);
    const double limit = 9223372036854775808.0; /* 2^63 */
    char where[64];
    if (!(real >= -limit && real < limit))
        return peal_report(e->diagnostics, PEAL_E_VALUE_OUT_OF_RANGE, expr->source, NULL,
                           "%s`%s` of %g is not an integer of 64 bits", where_text(e, expr, where),
                           operator_name(expr->op),
                           isnan(value->u.real) ? (double)NAN : value->u.real);
    *out = integer_value((int64_t)real);
    return PEAL_STATUS_OK;
}

/* How many times a whole number can be halved: exact, or an error. */
static peal_status evaluate_log2(const peal_evaluation *e, const peal_expr *expr, int64_t integer,
                                 peal_value *out)
{
    int exponent = 0;
    char where[64];
    while (exponent < 62 && integer > INT64_C(1) << exponent)
        exponent++;
    if (integer != INT64_C(1) << exponent)
        return peal_report(e->diagnostics, PEAL_E_VALUE_OUT_OF_RANGE, expr->source,
                           "of any number: log2(1.0 * n)",
                           "%s`log2` of %" PRId64 ", which is no power of 2",
                           where_text(e, expr, where), integer);
    *out = integer_value(exponent);
    return PEAL_STATUS_OK;
}

static double evaluate_function(peal_operator op, double real)
{
    switch (op) {
    case PEAL_OPERATOR_SQRT:
        return sqrt(real);
    case PEAL_OPERATOR_SIN:
        return sin(real);
    case PEAL_OPERATOR_COS:
        return cos(real);
    case PEAL_OPERATOR_TAN:
        return tan(real);
    case PEAL_OPERATOR_EXP:
        return exp(real);
    case PEAL_OPERATOR_LOG:
        return log(real);
    default:
        return tanh(real);
    }
}

static peal_status evaluate_unary(const peal_evaluation *e, const peal_expr *expr,
                                  const peal_value *value, peal_value *out)
{
    if (expr->op == PEAL_OPERATOR_NOT) {
        if (value->kind != PEAL_BOOLEAN)
            return peal_operator_wrong_kind(e, expr, value);
        *out = boolean_value(!value->u.boolean);
        return PEAL_STATUS_OK;
    }
    if (!is_number(value))
        return peal_operator_wrong_kind(e, expr, value);
    switch (expr->op) {
    case PEAL_OPERATOR_NEGATE:
        return evaluate_negate(e, expr, value, out);
    case PEAL_OPERATOR_ABSOLUTE:
        if (value->kind == PEAL_REAL)
            *out = real_value(fabs(value->u.real));
        else if (value->u.integer < 0)
            return evaluate_negate(e, expr, value, out);
        else
            *out = *value;
        return PEAL_STATUS_OK;
    case PEAL_OPERATOR_FLOOR:
    case PEAL_OPERATOR_CEIL:
        return evaluate_rounding(e, expr, value, out);
    case PEAL_OPERATOR_LOG2:
        if (value->kind == PEAL_INTEGER)
            return evaluate_log2(e, expr, value->u.integer, out);
        *out = real_value(log2(value->u.real));
        return PEAL_STATUS_OK;
    default:
        *out = real_value(evaluate_function(expr->op, as_real(value)));
        return PEAL_STATUS_OK;
    }
}

/* floor(a / b) and the remainder in [0, |b|); b is not 0. True: overflow. */
static bool divide_overflows(int64_t a, int64_t b, int64_t *quotient, int64_t *remainder)
{
    *quotient = 0;
    *remainder = 0;
    if (b == -1)
        return __builtin_sub_overflow((int64_t)0, a, quotient);
    *remainder = a % b;
    *quotient = a / b - (*remainder != 0 && (*remainder < 0) != (b < 0));
    if (*remainder < 0)
        *remainder = b < 0 ? *remainder - b : *remainder + b;
    return false;
}

/* a to the b, which is not negative. */
static bool power_overflows(int64_t a, int64_t b, int64_t *out)
{
    bool overflows = false;
    if (a >= -1 && a <= 1)
        b = b ? 2 - b % 2 : 0; /* all there is to tell apart */
    for (*out = 1; b > 0 && !overflows; b--)
        overflows = peal_multiply_overflows(*out, a, out);
    return overflows;
}

static peal_status evaluate_integers(const peal_evaluation *e, const peal_expr *expr, int64_t a,
                                     int64_t b, peal_value *out)
{
    int64_t result = 0, quotient, remainder;
    bool overflows = false;
    char where[64];
    switch (expr->op) {
    case PEAL_OPERATOR_ADD:
        overflows = peal_add_overflows(a, b, &result);
        break;
    case PEAL_OPERATOR_SUBTRACT:
        overflows = __builtin_sub_overflow(a, b, &result);
        break;
    case PEAL_OPERATOR_MULTIPLY:
        overflows = peal_multiply_overflows(a, b, &result);
        break;
    case PEAL_OPERATOR_POWER:
        if (b < 0)
            return peal_report(e->diagnostics, PEAL_E_VALUE_OUT_OF_RANGE, expr->source,
                               "of a real number: 2.0 ** -1",
                               "%sthe exponent of a whole number is %" PRId64,
                               where_text(e, expr, where), b);
        overflows = power_overflows(a, b, &result);
        break;
    default:
        if (b == 0)
            return peal_report(e->diagnostics, PEAL_E_DIVISION_BY_ZERO, expr->source,
                               e->scope->element
                                   ? "let a `when`, or an `and` before it, leave these values out"
                                   : NULL,
                               "%s`%s` by zero: %" PRId64 " %s 0", where_text(e, expr, where),
                               operator_name(expr->op), a, operator_name(expr->op));
        overflows = divide_overflows(a, b, &quotient, &remainder);
        if (expr->op == PEAL_OPERATOR_MODULO) {
            overflows = false;
            result = remainder;
        } else
            result = quotient;
    }
    if (overflows)
        return overflow_of_two(e, expr, a, b);
    *out = integer_value(result);
    return PEAL_STATUS_OK;
}

static double evaluate_reals(peal_operator op, double a, double b)
{
    switch (op) {
    case PEAL_OPERATOR_ADD:
        return a + b;
    case PEAL_OPERATOR_SUBTRACT:
        return a - b;
    case PEAL_OPERATOR_MULTIPLY:
        return a * b;
    case PEAL_OPERATOR_DIVIDE:
        return a / b;
    case PEAL_OPERATOR_POWER:
        return pow(a, b);
    default: {
        double remainder = fmod(a, b);
        return remainder < 0 ? remainder + fabs(b) : remainder;
    }
    }
}

/* -1, 0, 1; 2: not ordered (NaN). */
static int compare_numbers(const peal_value *a, const peal_value *b)
{
    if (a->kind == PEAL_INTEGER && b->kind == PEAL_INTEGER)
        return (a->u.integer > b->u.integer) - (a->u.integer < b->u.integer);
    double x = as_real(a), y = as_real(b);
    if (isnan(x) || isnan(y))
        return 2;
    return (x > y) - (x < y);
}

static peal_status evaluate_comparison(const peal_evaluation *e, const peal_expr *expr,
                                       const peal_value *a, const peal_value *b, peal_value *out)
{
    bool equality = expr->op == PEAL_OPERATOR_EQUAL || expr->op == PEAL_OPERATOR_UNEQUAL;
    int order;
    if (is_number(a) && is_number(b))
        order = compare_numbers(a, b);
    else if (equality && a->kind == PEAL_BOOLEAN && b->kind == PEAL_BOOLEAN)
        order = a->u.boolean != b->u.boolean;
    else if (equality && a->kind == PEAL_TEXT && b->kind == PEAL_TEXT)
        order = strcmp(a->u.text, b->u.text) != 0;
    else
        return peal_report(e->diagnostics, PEAL_E_WRONG_VALUE_TYPE, expr->source, NULL,
                           "`%s` cannot compare %s with %s", operator_name(expr->op),
                           peal_value_kind_names[a->kind], peal_value_kind_names[b->kind]);
    switch (expr->op) {
    case PEAL_OPERATOR_EQUAL:
        *out = boolean_value(order == 0);
        break;
    case PEAL_OPERATOR_UNEQUAL:
        *out = boolean_value(order != 0);
        break;
    case PEAL_OPERATOR_LESS:
        *out = boolean_value(order == -1);
        break;
    case PEAL_OPERATOR_LESS_EQUAL:
        *out = boolean_value(order == -1 || order == 0);
        break;
    case PEAL_OPERATOR_GREATER:
        *out = boolean_value(order == 1);
        break;
    default:
        *out = boolean_value(order == 0 || order == 1);
    }
    return PEAL_STATUS_OK;
}

static peal_status evaluate_binary(const peal_evaluation *e, const peal_expr *expr,
                                   const peal_value *a, const peal_value *b, peal_value *out)
{
    if (expr->op >= PEAL_OPERATOR_EQUAL && expr->op <= PEAL_OPERATOR_GREATER_EQUAL)
        return evaluate_comparison(e, expr, a, b, out);
    if (!is_number(a) || !is_number(b))
        return peal_operator_wrong_kind(e, expr, is_number(a) ? b : a);
    if (a->kind == PEAL_INTEGER && b->kind == PEAL_INTEGER)
        return evaluate_integers(e, expr, a->u.integer, b->u.integer, out);
    *out = real_value(evaluate_reals(expr->op, as_real(a), as_real(b)));
    return PEAL_STATUS_OK;
}

/* Integers if all operands are; NaN wins. */
static peal_status evaluate_extremum(const peal_evaluation *e, const peal_expr *expr,
                                     const peal_value *operand, peal_value *out)
{
    const peal_value *best = operand;
    bool real = false;
    for (int i = 0; i < expr->operand_count; i++) {
        const peal_value *value = &operand[i];
        if (!is_number(value))
            return peal_operator_wrong_kind(e, expr, value);
        real = real || value->kind == PEAL_REAL;
        int order = compare_numbers(value, best);
        bool nan = value->kind == PEAL_REAL && isnan(value->u.real);
        if (nan || order == (expr->op == PEAL_OPERATOR_MINIMUM ? -1 : 1))
            best = value;
    }
    *out = real ? real_value(as_real(best)) : *best;
    return PEAL_STATUS_OK;
}

peal_status peal_operator_apply(const peal_evaluation *e, const peal_expr *expr,
                                const peal_value *operand, peal_value *out)
{
    if (expr->op == PEAL_OPERATOR_MINIMUM || expr->op == PEAL_OPERATOR_MAXIMUM)
        return evaluate_extremum(e, expr, operand, out);
    if (expr->operand_count == 2)
        return evaluate_binary(e, expr, &operand[0], &operand[1], out);
    return evaluate_unary(e, expr, &operand[0], out);
}
