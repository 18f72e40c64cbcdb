/* What can be said of an expression without a value: what it depends on, of which kind it is. */
#include "base/expression.h"

#include <string.h>

unsigned peal_expr_uses(const peal_expr *expr)
{
    unsigned uses = 0;
    if (!expr)
        return 0;
    switch (expr->kind) {
    case PEAL_EXPR_RANK:
    case PEAL_EXPR_RANK_AXIS:
    case PEAL_EXPR_EXTENT:
    case PEAL_EXPR_ORIGIN:
    case PEAL_EXPR_COUNT:
        return PEAL_USES_RANK;
    case PEAL_EXPR_COUNTER:
        return PEAL_USES_COUNTER;
    case PEAL_EXPR_ELEMENT:
        return PEAL_USES_ELEMENT;
    default:
        for (int i = 0; i < expr->operand_count; i++)
            uses |= peal_expr_uses(expr->operand[i]);
        return uses;
    }
}

bool peal_expr_names_counter(const peal_expr *expr, int depth)
{
    if (!expr || expr->kind == PEAL_EXPR_COUNTER)
        return expr && expr->index == depth;
    for (int i = 0; i < expr->operand_count; i++)
        if (peal_expr_names_counter(expr->operand[i], depth))
            return true;
    return false;
}

static bool equal_values(const peal_value *a, const peal_value *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case PEAL_REAL:
        return !memcmp(&a->u.real, &b->u.real, sizeof(a->u.real));
    case PEAL_BOOLEAN:
        return a->u.boolean == b->u.boolean;
    default:
        return a->u.integer == b->u.integer;
    }
}

bool peal_expr_equal(const peal_expr *a, const peal_expr *b)
{
    if (!a || !b)
        return a == b;
    if (a->kind != b->kind || a->operand_count != b->operand_count)
        return false;
    if (a->kind == PEAL_EXPR_CONSTANT)
        return equal_values(&a->value, &b->value);
    bool same =
        a->kind == PEAL_EXPR_OPERATOR ? a->op == b->op : a->index == b->index && a->axis == b->axis;
    for (int i = 0; i < a->operand_count && same; i++)
        same = peal_expr_equal(a->operand[i], b->operand[i]);
    return same;
}

void peal_expr_elements(const peal_expr *expr, void (*visit)(void *user, int array), void *user)
{
    if (!expr)
        return;
    if (expr->kind == PEAL_EXPR_ELEMENT)
        visit(user, expr->index);
    for (int i = 0; i < expr->operand_count; i++)
        peal_expr_elements(expr->operand[i], visit, user);
}

bool peal_expr_reads(const peal_expr *expr, int array)
{
    if (!expr)
        return false;
    bool reads = expr->kind == PEAL_EXPR_ELEMENT && expr->index == array;
    for (int i = 0; i < expr->operand_count && !reads; i++)
        reads = peal_expr_reads(expr->operand[i], array);
    return reads;
}

static peal_value_kind kind_of_operator(const peal_expr *expr, const peal_graph_data *graph)
{
    switch (expr->op) {
    case PEAL_OPERATOR_NOT:
    case PEAL_OPERATOR_EQUAL:
    case PEAL_OPERATOR_UNEQUAL:
    case PEAL_OPERATOR_LESS:
    case PEAL_OPERATOR_LESS_EQUAL:
    case PEAL_OPERATOR_GREATER:
    case PEAL_OPERATOR_GREATER_EQUAL:
    case PEAL_OPERATOR_AND:
    case PEAL_OPERATOR_OR:
        return PEAL_BOOLEAN;
    case PEAL_OPERATOR_SQRT:
    case PEAL_OPERATOR_SIN:
    case PEAL_OPERATOR_COS:
    case PEAL_OPERATOR_TAN:
    case PEAL_OPERATOR_EXP:
    case PEAL_OPERATOR_LOG:
    case PEAL_OPERATOR_TANH:
        return PEAL_REAL;
    case PEAL_OPERATOR_CHOICE: {
        peal_value_kind one = peal_expr_kind_of(expr->operand[1], graph);
        peal_value_kind other = peal_expr_kind_of(expr->operand[2], graph);
        return one == PEAL_INTEGER && other == PEAL_REAL ? other : one;
    }
    case PEAL_OPERATOR_FLOOR:
    case PEAL_OPERATOR_CEIL:
        return PEAL_INTEGER;
    default:
        for (int i = 0; i < expr->operand_count; i++)
            if (peal_expr_kind_of(expr->operand[i], graph) == PEAL_REAL)
                return PEAL_REAL;
        return PEAL_INTEGER;
    }
}

peal_value_kind peal_expr_kind_of(const peal_expr *expr, const peal_graph_data *graph)
{
    switch (expr->kind) {
    case PEAL_EXPR_CONSTANT:
        return expr->value.kind;
    case PEAL_EXPR_PARAM:
        return graph->params[expr->index].value.kind;
    case PEAL_EXPR_ELEMENT: {
        peal_type type = graph->arrays[expr->index].type;
        return type == PEAL_F64 || type == PEAL_F32 ? PEAL_REAL : PEAL_INTEGER;
    }
    case PEAL_EXPR_OPERATOR:
        return kind_of_operator(expr, graph);
    default:
        return PEAL_INTEGER;
    }
}
