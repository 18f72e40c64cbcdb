/* Evaluates expressions: checked 64-bit integers, IEEE reals, booleans, texts. `and`, `or` look at
 * their right side only if they need it, `if else` at one of its values. */
#include "base/expression.h"

#include "base/box.h"
#include "base/operators.h"

static peal_status evaluate(const peal_evaluation *e, const peal_expr *expr, peal_value *out);

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

static peal_status unknown(const peal_evaluation *e, const peal_expr *expr, const char *what)
{
    return peal_report(e->diagnostics, PEAL_E_VALUE_NOT_KNOWN_YET, expr->source, NULL,
                       "the value of %s is not known here", what);
}

static peal_status evaluate_logic(const peal_evaluation *e, const peal_expr *expr, peal_value *out)
{
    for (int i = 0; i < 2; i++) {
        peal_status status = evaluate(e, expr->operand[i], out);
        if (status)
            return status;
        if (out->kind != PEAL_BOOLEAN)
            return peal_operator_wrong_kind(e, expr, out);
        if (out->u.boolean == (expr->op == PEAL_OPERATOR_OR))
            break;
    }
    return PEAL_STATUS_OK;
}

/* Two numbers of which one is real give a real one, whichever is taken. */
static peal_status evaluate_choice(const peal_evaluation *e, const peal_expr *expr, peal_value *out)
{
    peal_value holds;
    peal_status status = evaluate(e, expr->operand[0], &holds);
    if (!status && holds.kind != PEAL_BOOLEAN)
        status = peal_operator_wrong_kind(e, expr, &holds);
    if (!status)
        status = evaluate(e, expr->operand[holds.u.boolean ? 1 : 2], out);
    if (!status && out->kind == PEAL_INTEGER && e->scope->graph &&
        peal_expr_kind_of(expr, e->scope->graph) == PEAL_REAL)
        *out = real_value((double)out->u.integer);
    return status;
}

static peal_status evaluate_operator(const peal_evaluation *e, const peal_expr *expr,
                                     peal_value *out)
{
    peal_value operand[PEAL_EXPR_OPERANDS];
    peal_status status = PEAL_STATUS_OK;
    if (expr->op == PEAL_OPERATOR_AND || expr->op == PEAL_OPERATOR_OR)
        return evaluate_logic(e, expr, out);
    if (expr->op == PEAL_OPERATOR_CHOICE)
        return evaluate_choice(e, expr, out);
    for (int i = 0; i < expr->operand_count && !status; i++)
        status = evaluate(e, expr->operand[i], &operand[i]);
    return status ? status : peal_operator_apply(e, expr, operand, out);
}

static peal_status evaluate_layout(const peal_evaluation *e, const peal_expr *expr, peal_value *out)
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

static peal_status evaluate(const peal_evaluation *e, const peal_expr *expr, peal_value *out)
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
    peal_evaluation e = {scope, diagnostics};
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
                       "expected %s, found %s", what, peal_value_kind_names[value->kind]);
}

peal_status peal_expr_integer(const peal_expr *expr, const peal_scope *scope, int64_t missing,
                              int64_t *out, peal_diagnostics *diagnostics)
{
    peal_value value = integer_value(missing);
    peal_status status =
        expr ? peal_expr_evaluate(expr, scope, &value, diagnostics) : PEAL_STATUS_OK;
    if (!status && value.kind != PEAL_INTEGER)
        status = expected(expr, peal_value_kind_names[PEAL_INTEGER], &value, diagnostics);
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
    if (!status && value.kind > PEAL_REAL)
        status = expected(expr, "a number", &value, diagnostics);
    if (!status)
        *out = value.kind == PEAL_INTEGER ? (double)value.u.integer : value.u.real;
    return status;
}

peal_status peal_expr_boolean(const peal_expr *expr, const peal_scope *scope, bool missing,
                              bool *out, peal_diagnostics *diagnostics)
{
    peal_value value = boolean_value(missing);
    peal_status status =
        expr ? peal_expr_evaluate(expr, scope, &value, diagnostics) : PEAL_STATUS_OK;
    if (!status && value.kind != PEAL_BOOLEAN)
        status = expected(expr, peal_value_kind_names[PEAL_BOOLEAN], &value, diagnostics);
    if (!status)
        *out = value.u.boolean;
    return status;
}
