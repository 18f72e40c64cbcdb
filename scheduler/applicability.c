/* Whether a graph can run in a mode, and if not why (DESIGN §5: the applicability table). What
 * depends on ranks or on the backend is found later. */
#include "scheduler/scheduler.h"

#include <stdio.h>

/* Whether the outermost counter stands anywhere but in a remainder: such a value has no period. */
static bool is_aperiodic(const peal_expr *expr)
{
    if (!expr)
        return false;
    if (expr->kind == PEAL_EXPR_COUNTER)
        return expr->index == 0;
    if (expr->kind == PEAL_EXPR_OPERATOR && expr->op == PEAL_OPERATOR_MODULO &&
        expr->operand[0]->kind == PEAL_EXPR_COUNTER)
        return is_aperiodic(expr->operand[1]);
    for (int i = 0; i < expr->operand_count; i++)
        if (is_aperiodic(expr->operand[i]))
            return true;
    return false;
}

/* Why a graph of launches cannot hold a statement of the loop; NULL: it can. */
static const char *graph_obstacle(const peal_statement *s)
{
    if (s->kind == PEAL_STATEMENT_LOAD || s->kind == PEAL_STATEMENT_SAVE)
        return "reads or writes a file, which only the host can do";
    if (is_aperiodic(s->when))
        return "has a `when` without a period: only `step % n` repeats itself in a graph";
    if (s->kind == PEAL_STATEMENT_REPEAT && is_aperiodic(s->u.loop.repeat))
        return "is repeated a number of times that depends on the step";
    return NULL;
}

/* The first statement of the loop that a graph cannot hold, in words; NULL: there is none. The text
 * is good until the thread's next question. */
static const char *first_obstacle(const peal_body *body)
{
    static _Thread_local char text[200];
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        const char *why = graph_obstacle(s), *inner = NULL;
        if (why && s->source.line > 0)
            snprintf(text, sizeof(text), "`%s` in line %d %s", s->name, s->source.line, why);
        else if (why)
            snprintf(text, sizeof(text), "`%s` %s", s->name, why);
        if (why)
            return text;
        if (s->kind == PEAL_STATEMENT_REPEAT)
            inner = first_obstacle(&s->u.loop.body);
        if (inner)
            return inner;
    }
    return NULL;
}

const char *peal_graph_refuses(const peal_graph_data *graph, peal_mode mode)
{
    return mode == PEAL_MODE_GRAPH ? first_obstacle(&graph->step.body) : NULL;
}
