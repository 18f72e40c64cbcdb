/* Evaluates expressions: checked 64-bit integers, IEEE reals, booleans, texts.
 *
 * Integers stay exact: `+ - *` report overflow, `/` rounds down, `%` is never negative. A real
 * operand makes the result real, and reals follow IEEE: dividing a real by 0 gives inf or NaN,
 * which is an error only where an integer is made of it. `and`, `or` look at their right side only
 * if they need it. */
#include "base/expression.h"

#include "base/box.h"
#include "base/checked.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *const kind_names[] = {"an integer", "a real number", "a boolean", "a text"};

static const char too_large[] =
    "integers have 64 bits; write a real number (2.0 * n) if it need not be exact";

typedef struct evaluation {
    const peal_scope *scope;
    peal_diagnostics *diagnostics;
} evaluation;

static peal_status evaluate(const evaluation *e, const peal_expr *expr, peal_value *out);

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
    static const char *const names[] = {"-",  "not", "+",   "-",   "*",    "/",     "%",
                                        "==", "!=",  "<",   "<=",  ">",    ">=",    "and",
                                        "or", "min", "max", "abs", "sqrt", "floor", "ceil"};
    return names[op];
}

static peal_status wrong_kind(const evaluation *e, const peal_expr *expr, const peal_value *value)
{
    return peal_report(e->diagnostics, PEAL_E_WRONG_VALUE_TYPE, expr->source, NULL,
                       "`%s` cannot take %s", operator_name(expr->op), kind_names[value->kind]);
}

/* "rank 1, step 3: " while running, "rank 1: " of what ranks make of it, else "". */
static const char *where_text(const evaluation *e, const peal_expr *expr, char text[64])
{
    const peal_scope *s = e->scope;
    text[0] = 0;
    if (s->element && s->counter)
        snprintf(text, 64, "rank %d, step %" PRId64 ": ", s->rank, s->counter[0]);
    else if (s->ranks > 0 && peal_expr_uses(expr) & PEAL_USES_RANK)
        snprintf(text, 64, "rank %d: ", s->rank);
    return text;
}

static peal_status overflow_of_one(const evaluation *e, const peal_expr *expr, int64_t a)
{
    char where[64];
    return peal_report(e->diagnostics, PEAL_E_INTEGER_OVERFLOW, expr->source, too_large,
                       "%s`%s` overflows: %s(%" PRId64 ")", where_text(e, expr, where),
                       operator_name(expr->op), operator_name(expr->op), a);
}

static peal_status overflow_of_two(const evaluation *e, const peal_expr *expr, int64_t a, int64_t b)
{
    char where[64];
    return peal_report(e->diagnostics, PEAL_E_INTEGER_OVERFLOW, expr->source, too_large,
                       "%s`%s` overflows: %" PRId64 " %s %" PRId64, where_text(e, expr, where),
                       operator_name(expr->op), a, operator_name(expr->op), b);
}

static peal_status unknown(const evaluation *e, const peal_expr *expr, const char *what)
{
    return peal_report(e->diagnostics, PEAL_E_VALUE_NOT_KNOWN_YET, expr->source, NULL,
                       "the value of %s is not known here", what);
}

static peal_status evaluate_negate(const evaluation *e, const peal_expr *expr,
                                   const peal_value *value, peal_value *out)
{
    int64_t integer = 0;
    if (!is_number(value))
        return wrong_kind(e, expr, value);
    if (value->kind == PEAL_REAL)
        *out = real_value(-value->u.real);
    else if (__builtin_sub_overflow((int64_t)0, value->u.integer, &integer))
        return overflow_of_one(e, expr, value->u.integer);
    else
        *out = integer_value(integer);
    return PEAL_STATUS_OK;
}

static peal_status evaluate_rounding(const evaluation *e, const peal_expr *expr,
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

static peal_status evaluate_unary(const evaluation *e, const peal_expr *expr,
                                  const peal_value *value, peal_value *out)
{
    if (expr->op == PEAL_OPERATOR_NOT) {
        if (value->kind != PEAL_BOOLEAN)
            return wrong_kind(e, expr, value);
        *out = boolean_value(!value->u.boolean);
        return PEAL_STATUS_OK;
    }
    if (!is_number(value))
        return wrong_kind(e, expr, value);
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
    case PEAL_OPERATOR_SQRT:
        *out = real_value(sqrt(as_real(value)));
        return PEAL_STATUS_OK;
    default:
        return evaluate_rounding(e, expr, value, out);
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

static peal_status evaluate_integers(const evaluation *e, const peal_expr *expr, int64_t a,
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

static peal_status evaluate_comparison(const evaluation *e, const peal_expr *expr,
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
                           kind_names[a->kind], kind_names[b->kind]);
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

static peal_status evaluate_arithmetic(const evaluation *e, const peal_expr *expr, peal_value *out)
{
    peal_value a, b;
    peal_status status = evaluate(e, expr->operand[0], &a);
    if (!status)
        status = evaluate(e, expr->operand[1], &b);
    if (status)
        return status;
    if (expr->op >= PEAL_OPERATOR_EQUAL && expr->op <= PEAL_OPERATOR_GREATER_EQUAL)
        return evaluate_comparison(e, expr, &a, &b, out);
    if (!is_number(&a) || !is_number(&b))
        return wrong_kind(e, expr, is_number(&a) ? &b : &a);
    if (a.kind == PEAL_INTEGER && b.kind == PEAL_INTEGER)
        return evaluate_integers(e, expr, a.u.integer, b.u.integer, out);
    *out = real_value(evaluate_reals(expr->op, as_real(&a), as_real(&b)));
    return PEAL_STATUS_OK;
}

/* Integers if all operands are; NaN wins. */
static peal_status evaluate_extremum(const evaluation *e, const peal_expr *expr, peal_value *out)
{
    peal_value best = integer_value(0);
    bool real = false;
    for (int i = 0; i < expr->operand_count; i++) {
        peal_value value;
        peal_status status = evaluate(e, expr->operand[i], &value);
        if (status)
            return status;
        if (!is_number(&value))
            return wrong_kind(e, expr, &value);
        real = real || value.kind == PEAL_REAL;
        int order = i == 0 ? 0 : compare_numbers(&value, &best);
        bool nan = value.kind == PEAL_REAL && isnan(value.u.real);
        if (i == 0 || nan || order == (expr->op == PEAL_OPERATOR_MINIMUM ? -1 : 1))
            best = value;
    }
    *out = real ? real_value(as_real(&best)) : best;
    return PEAL_STATUS_OK;
}

static peal_status evaluate_logic(const evaluation *e, const peal_expr *expr, peal_value *out)
{
    for (int i = 0; i < 2; i++) {
        peal_status status = evaluate(e, expr->operand[i], out);
        if (status)
            return status;
        if (out->kind != PEAL_BOOLEAN)
            return wrong_kind(e, expr, out);
        if (out->u.boolean == (expr->op == PEAL_OPERATOR_OR))
            break;
    }
    return PEAL_STATUS_OK;
}

static peal_status evaluate_operator(const evaluation *e, const peal_expr *expr, peal_value *out)
{
    peal_value value;
    switch (expr->op) {
    case PEAL_OPERATOR_AND:
    case PEAL_OPERATOR_OR:
        return evaluate_logic(e, expr, out);
    case PEAL_OPERATOR_MINIMUM:
    case PEAL_OPERATOR_MAXIMUM:
        return evaluate_extremum(e, expr, out);
    default:
        if (expr->operand_count == 2)
            return evaluate_arithmetic(e, expr, out);
        break;
    }
    peal_status status = evaluate(e, expr->operand[0], &value);
    return status ? status : evaluate_unary(e, expr, &value, out);
}

static peal_status evaluate_layout(const evaluation *e, const peal_expr *expr, peal_value *out)
{
    if (!e->scope->layout)
        return unknown(e, expr,
                       expr->kind == PEAL_EXPR_COUNT ? "a buffer's count" : "a rank's part");
    const peal_box *part = &e->scope->layout[expr->index].part;
    if (expr->kind == PEAL_EXPR_COUNT)
        *out = integer_value(peal_box_points(part));
    else if (expr->kind == PEAL_EXPR_EXTENT)
        *out = integer_value(part->hi[expr->axis] - part->lo[expr->axis]);
    else
        *out = integer_value(part->lo[expr->axis]);
    return PEAL_STATUS_OK;
}

static peal_status evaluate(const evaluation *e, const peal_expr *expr, peal_value *out)
{
    const peal_scope *scope = e->scope;
    switch (expr->kind) {
    case PEAL_EXPR_CONSTANT:
        *out = expr->value;
        return PEAL_STATUS_OK;
    case PEAL_EXPR_PARAM:
        if (!scope->graph)
            return unknown(e, expr, "a param");
        *out = scope->graph->params[expr->index].value;
        return PEAL_STATUS_OK;
    case PEAL_EXPR_RANK:
    case PEAL_EXPR_RANKS:
        if (scope->ranks < 1)
            return unknown(e, expr, expr->kind == PEAL_EXPR_RANK ? "`rank`" : "`ranks`");
        *out = integer_value(expr->kind == PEAL_EXPR_RANK ? scope->rank : scope->ranks);
        return PEAL_STATUS_OK;
    case PEAL_EXPR_RANK_AXIS:
    case PEAL_EXPR_RANKS_AXIS:
        if (scope->dims[expr->axis] < 1)
            return unknown(e, expr, "a rank's place in the topology");
        *out = integer_value(expr->kind == PEAL_EXPR_RANK_AXIS ? scope->position[expr->axis]
                                                               : scope->dims[expr->axis]);
        return PEAL_STATUS_OK;
    case PEAL_EXPR_COUNTER:
        if (!scope->counter || expr->index >= scope->counter_count)
            return unknown(e, expr, expr->index ? "a loop's counter" : "`step`");
        *out = integer_value(scope->counter[expr->index]);
        return PEAL_STATUS_OK;
    case PEAL_EXPR_EXTENT:
    case PEAL_EXPR_ORIGIN:
    case PEAL_EXPR_COUNT:
        return evaluate_layout(e, expr, out);
    case PEAL_EXPR_ELEMENT:
        if (!scope->element)
            return unknown(e, expr, "a buffer, which only the run has,");
        *out = scope->element(scope->user, expr->index);
        return PEAL_STATUS_OK;
    case PEAL_EXPR_OPERATOR:
        return evaluate_operator(e, expr, out);
    }
    return peal_report(e->diagnostics, PEAL_E_INTERNAL, expr->source, NULL,
                       "expression of no kind");
}

peal_status peal_expr_evaluate(const peal_expr *expr, const peal_scope *scope, peal_value *out,
                               peal_diagnostics *diagnostics)
{
    evaluation e = {scope, diagnostics};
    peal_value value;
    peal_status status = evaluate(&e, expr, &value);
    if (!status)
        *out = value;
    return status;
}

static peal_status expected(const peal_expr *expr, const char *what, const peal_value *value,
                            peal_diagnostics *diagnostics)
{
    return peal_report(diagnostics, PEAL_E_WRONG_VALUE_TYPE, expr->source, NULL,
                       "expected %s, found %s", what, kind_names[value->kind]);
}

peal_status peal_expr_integer(const peal_expr *expr, const peal_scope *scope, int64_t missing,
                              int64_t *out, peal_diagnostics *diagnostics)
{
    peal_value value = integer_value(missing);
    peal_status status =
        expr ? peal_expr_evaluate(expr, scope, &value, diagnostics) : PEAL_STATUS_OK;
    if (!status && value.kind != PEAL_INTEGER)
        status = expected(expr, kind_names[PEAL_INTEGER], &value, diagnostics);
    if (!status)
        *out = value.u.integer;
    return status;
}

peal_status peal_expr_real(const peal_expr *expr, const peal_scope *scope, double missing,
                           double *out, peal_diagnostics *diagnostics)
{
    peal_value value = real_value(missing);
    peal_status status =
        expr ? peal_expr_evaluate(expr, scope, &value, diagnostics) : PEAL_STATUS_OK;
    if (!status && !is_number(&value))
        status = expected(expr, "a number", &value, diagnostics);
    if (!status)
        *out = as_real(&value);
    return status;
}

peal_status peal_expr_boolean(const peal_expr *expr, const peal_scope *scope, bool missing,
                              bool *out, peal_diagnostics *diagnostics)
{
    peal_value value = boolean_value(missing);
    peal_status status =
        expr ? peal_expr_evaluate(expr, scope, &value, diagnostics) : PEAL_STATUS_OK;
    if (!status && value.kind != PEAL_BOOLEAN)
        status = expected(expr, kind_names[PEAL_BOOLEAN], &value, diagnostics);
    if (!status)
        *out = value.u.boolean;
    return status;
}
