/* Whether a graph can run in a mode, and if not why: the table of `peal explain`. What
 * depends on ranks or on the backend is found later. */
#include "base/expression.h"
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

static bool is_decided_late(const peal_expr *expr)
{
    return expr && peal_expr_uses(expr) & PEAL_USES_ELEMENT;
}

/* A loop that may end after any iteration, and swaps once in each. */
static bool ends_amid_swaps(const peal_loop *loop)
{
    int swaps = 0;
    bool always = !loop->every ||
                  (loop->every->kind == PEAL_EXPR_CONSTANT &&
                   loop->every->value.kind == PEAL_INTEGER && loop->every->value.u.integer == 1);

    for (int i = 0; i < loop->body.count; i++)
        swaps += loop->body.statement[i]->kind == PEAL_STATEMENT_SWAP;
    return loop->until && always && swaps % 2 != 0;
}

/* Why a graph of launches cannot hold a statement of the loop; NULL: it can. skipped: a condition
 * of the run may skip it. */
static const char *graph_obstacle(const peal_statement *s, bool skipped)
{
    if (s->kind == PEAL_STATEMENT_LOAD || s->kind == PEAL_STATEMENT_SAVE)
        return "reads or writes a file, which only the host can do";
    if (is_aperiodic(s->when))
        return "has a `when` without a period: only `step % n` repeats itself in a graph";
    if (s->kind == PEAL_STATEMENT_REPEAT && is_aperiodic(s->u.loop.repeat))
        return "is repeated a number of times that depends on the step";
    if (s->kind == PEAL_STATEMENT_SWAP && skipped)
        return "swaps under a `when` that reads a buffer";
    if (s->kind == PEAL_STATEMENT_REPEAT && ends_amid_swaps(&s->u.loop))
        return "may end where its `swap` has not come round: give it `every: 2`";
    return NULL;
}

/* The first statement of the loop that a graph cannot hold, in words; NULL: there is none. The text
 * is good until the thread's next question. */
static const char *first_obstacle(const peal_body *body, bool skipped)
{
    static _Thread_local char text[200];
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        bool here = skipped || is_decided_late(s->when);
        const char *why = graph_obstacle(s, here), *inner = NULL;
        if (why && s->source.line > 0)
            snprintf(text, sizeof(text), "`%s` in line %d %s", s->name, s->source.line, why);
        else if (why)
            snprintf(text, sizeof(text), "`%s` %s", s->name, why);
        if (why)
            return text;
        if (s->kind == PEAL_STATEMENT_REPEAT)
            inner = first_obstacle(&s->u.loop.body, here);
        if (inner)
            return inner;
    }
    return NULL;
}

const char *peal_graph_refuses(const peal_graph_data *graph, peal_mode mode, bool accelerated)
{
    /* What an accelerator has recorded it repeats as it is. */
    bool repeats = mode == PEAL_MODE_GRAPH || (mode == PEAL_MODE_FUSED && accelerated);
    return repeats ? first_obstacle(&graph->step.body, false) : NULL;
}

static bool acts_late(const peal_graph_data *graph, const peal_expr *lag)
{
    const peal_value *value = lag && lag->kind == PEAL_EXPR_CONSTANT ? &lag->value
                              : lag && lag->kind == PEAL_EXPR_PARAM
                                  ? &graph->params[lag->index].value
                                  : NULL;
    return lag && !(value && value->kind == PEAL_INTEGER && value->u.integer == 0);
}

/* The first thing in the loop that the host must know before it goes on; NULL: nothing. */
static const char *first_drain(const peal_graph_data *graph, const peal_body *body)
{
    static _Thread_local char text[120];

    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        bool loops = s->kind == PEAL_STATEMENT_REPEAT;
        const char *what = is_decided_late(s->when) ? "`when`"
                           : loops && s->u.loop.until && !acts_late(graph, s->u.loop.lag)
                               ? "`until`"
                               : NULL;
        if (what) {
            snprintf(text, sizeof(text), "waits for the GPU at each look at the %s of line %d",
                     what, s->source.line);
            return text;
        }
        const char *inner = loops ? first_drain(graph, &s->u.loop.body) : NULL;
        if (inner)
            return inner;
    }
    return NULL;
}

const char *peal_graph_drains(const peal_graph_data *graph, peal_mode mode)
{
    if (mode != PEAL_MODE_STREAM)
        return NULL;
    if (graph->step.until && !acts_late(graph, graph->step.lag))
        return "waits for the GPU at each look at `until`; `lag: 1` would not";
    return first_drain(graph, &graph->step.body);
}
