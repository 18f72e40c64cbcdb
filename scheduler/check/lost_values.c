/* Values that nobody reads before all of them are written anew, in specs that run by themselves: a
 * `copy` or a `swap` was forgotten, or the task that wrote them. */
#include "scheduler/check/check.h"
#include "scheduler/tasks/tasks.h"

typedef struct lost_search {
    const common_input *c;
    const pass_context *pass;
    const peal_statement **writer; /* by array: whose values nobody has read yet; NULL: none */
    bool *told;                    /* by statement */
} lost_search;

/* Whether a condition is known to be so on all ranks and in all rounds. NULL: always true. */
static bool is_known(const lost_search *l, const peal_expr *when, bool value)
{
    const peal_scope scope = {.graph = l->c->graph, .ranks = l->c->machine.ranks};
    bool found = true;

    if (when && peal_expr_uses(when))
        return false;
    return !peal_expr_boolean(when, &scope, true, &found, NULL) && found == value;
}

static void forget(void *user, int array)
{
    if (array >= 0)
        ((lost_search *)user)->writer[array] = NULL;
}

/* What a loop touches may be read there, or written in any order. */
static void forget_all(lost_search *l, const peal_body *body)
{
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        peal_statement_writes(s, forget, l);
        for (int k = 0; k < l->c->graph->array_count; k++)
            if (l->writer[k] && statement_reads(s, k))
                forget(l, k);
        if (s->kind == PEAL_STATEMENT_REPEAT)
            forget_all(l, &s->u.loop.body);
    }
}

/* Whether it writes all points of the field, on all ranks, each time it is done. */
static bool writes_all(const lost_search *l, const peal_statement *s, const peal_access *a)
{
    const peal_points *box = &s->u.task.box;

    return a->mode == PEAL_WRITE_ACCESS && a->footprint == PEAL_FOOTPRINT_TILE && !a->per_tile &&
           box->kind == PEAL_POINTS_ALL && box->part == PEAL_PART_ALL && box->array == a->array &&
           is_known(l, s->when, true);
}

static void overwrites(lost_search *l, const peal_statement *s, int array)
{
    const peal_statement *writer = l->writer[array];

    if (!writer || l->told[writer->id])
        return;
    l->told[writer->id] = true;
    peal_warn(
        l->pass->diagnostics, PEAL_E_OVERWRITTEN_UNREAD, writer->source,
        "is a `copy` or a `swap` missing between them? Else leave the first one out",
        "what `%s` writes into `%s` is overwritten by `%s` (line %d) before anything reads it",
        writer->name, array_name(l->c, array), s->name, s->source.line);
}

static void look_at_task(lost_search *l, const peal_statement *s)
{
    for (int i = 0; i < s->u.task.access_count; i++) {
        const peal_access *a = &s->u.task.access[i];
        if (l->c->graph->arrays[a->array].kind != PEAL_ARRAY_FIELD || a->mode == PEAL_READ_ACCESS)
            continue;
        if (writes_all(l, s, a))
            overwrites(l, s, a->array);
        l->writer[a->array] = s;
    }
}

static void look_at(lost_search *l, const peal_statement *s)
{
    if (is_known(l, s->when, false))
        return;
    for (int k = 0; k < l->c->graph->array_count; k++)
        if (l->writer[k] && statement_reads(s, k))
            forget(l, k);
    if (s->kind == PEAL_STATEMENT_TASK)
        look_at_task(l, s);
    else
        peal_statement_writes(s, forget, l);
}

static void look_at_body(lost_search *l, const peal_body *body)
{
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        if (s->kind != PEAL_STATEMENT_REPEAT) {
            look_at(l, s);
            continue;
        }
        lost_search inner = *l;
        inner.writer =
            PEAL_ARENA_ARRAY(l->pass->arena, const peal_statement *, l->c->graph->array_count + 1);
        look_at_body(&inner, &s->u.loop.body);
        forget_all(l, &s->u.loop.body);
    }
}

/* Values written in `setup` may be lost in the first step; those of the last step are results. */
void warn_of_lost_values(const common_input *c, const pass_context *pass)
{
    const peal_graph_data *g = c->graph;
    lost_search l = {.c = c, .pass = pass};

    if (!g->is_alone)
        return;
    l.writer = PEAL_ARENA_ARRAY(pass->arena, const peal_statement *, g->array_count + 1);
    l.told = PEAL_ARENA_ARRAY(pass->arena, bool, g->statement_count + 1);
    look_at_body(&l, &g->setup);
    look_at_body(&l, &g->step.body);
}
