/* Work for nothing, in specs that run by themselves (a program may look at any array): tasks that
 * compute the same again in each round of a loop, as when a `swap` was forgotten, and fields that
 * somebody writes and nobody reads. */
#include "scheduler/check/check.h"
#include "scheduler/conditions/conditions.h"
#include "scheduler/tasks/tasks.h"

#include <stdio.h>

typedef struct loop_search {
    const common_input *c;
    const pass_context *pass;
    bool *told;   /* by statement */
    int *writers; /* by array: statements of the loop that change it, exchanges left out */
    bool changes; /* what is looked at is changed in the loop */
} loop_search;

/* ---- what changes in a loop ---- */

static void count_writer(void *user, int array)
{
    if (array >= 0)
        ((loop_search *)user)->writers[array]++;
}

static void count_writers(loop_search *l, const peal_body *body)
{
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        if (s->kind == PEAL_STATEMENT_REPEAT)
            count_writers(l, &s->u.loop.body);
        else if (s->kind != PEAL_STATEMENT_EXCHANGE || peal_is_copy(s))
            peal_statement_writes(s, count_writer, l);
    }
}

static void look_at_element(void *user, int array)
{
    loop_search *l = user;
    l->changes |= l->writers[array] > 0;
}

static bool names_counter(const peal_expr *e)
{
    return e && peal_expr_uses(e) & PEAL_USES_COUNTER;
}

/* ---- tasks that compute the same again ---- */

/* Whether all that a task starts from is the same in each round, and what it writes stays. */
static bool computes_the_same(loop_search *l, const peal_statement *s)
{
    const peal_task_statement *task = &s->u.task;
    l->changes = names_counter(task->box.count); /* other boxes cannot */
    peal_expr_elements(task->box.count, look_at_element, l);
    for (int i = 0; i < task->argument_count; i++) {
        l->changes |= names_counter(task->argument[i]);
        peal_expr_elements(task->argument[i], look_at_element, l);
    }
    for (int i = 0; i < task->access_count; i++) {
        const peal_access *a = &task->access[i];
        l->changes |= l->writers[a->array] > (a->mode == PEAL_WRITE_ACCESS);
    }
    return !l->changes && task->access_count > 0;
}

static bool is_alike(const common_input *c, const pass_context *pass, int a, int b)
{
    const peal_scope scope = {.graph = c->graph, .ranks = c->machine.ranks};
    const pass_context quiet = {pass->arena, NULL};
    field_shape one, other;
    if (a == b || c->graph->arrays[a].kind != PEAL_ARRAY_FIELD ||
        c->graph->arrays[b].kind != PEAL_ARRAY_FIELD ||
        c->graph->arrays[a].type != c->graph->arrays[b].type ||
        c->graph->arrays[a].components != c->graph->arrays[b].components ||
        shape_of(c, &quiet, &scope, a, &one) || shape_of(c, &quiet, &scope, b, &other) ||
        one.axis_count != other.axis_count)
        return false;
    for (int k = 0; k < one.axis_count; k++)
        if (one.size[k] != other.size[k])
            return false;
    return true;
}

/* The fields that a swap may have been meant to exchange. */
static bool find_swap(const common_input *c, const pass_context *pass,
                      const peal_task_statement *task, int pair[2])
{
    for (int r = 0; r < task->access_count; r++)
        for (int w = 0; w < task->access_count; w++) {
            pair[0] = task->access[r].array;
            pair[1] = task->access[w].array;
            if (task->access[r].mode == PEAL_READ_ACCESS &&
                task->access[w].mode == PEAL_WRITE_ACCESS && is_alike(c, pass, pair[0], pair[1]))
                return true;
        }
    return false;
}

static void warn_of_task(const loop_search *l, const peal_statement *s)
{
    const common_input *c = l->c;
    int pair[2];
    char hint[300] = "do it once, in `setup`";
    l->told[s->id] = true;
    if (find_swap(c, l->pass, &s->u.task, pair))
        snprintf(hint, sizeof(hint),
                 "is `swap: [%.100s, %.100s]` missing? Else do it once, in `setup`",
                 array_name(c, pair[0]), array_name(c, pair[1]));
    peal_warn(l->pass->diagnostics, PEAL_E_SAME_AGAIN, s->source, hint,
              "task `%s` computes the same in each round of its loop: nothing there changes what "
              "it reads",
              s->name);
}

/* Rounds of a loop, as far as they are known; -1: not. */
static int64_t rounds_of(const common_input *c, const peal_loop *loop)
{
    const peal_scope scope = {.graph = c->graph, .ranks = c->machine.ranks};
    int64_t count = 1;
    if (loop == &c->graph->step)
        return known_steps(c);
    return peal_expr_integer(loop->repeat, &scope, 1, &count, NULL) ? -1 : count;
}

/* Tasks of a loop; those of inner ones that go round more than once are looked at there. */
static void look_at_body(loop_search *l, const peal_body *body)
{
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        if (s->kind == PEAL_STATEMENT_TASK && computes_the_same(l, s))
            warn_of_task(l, s);
        else if (s->kind == PEAL_STATEMENT_REPEAT && rounds_of(l->c, &s->u.loop) == 1)
            look_at_body(l, &s->u.loop.body);
    }
}

static void look_at_loops(const common_input *c, const pass_context *pass, bool *told,
                          const peal_body *body, const peal_loop *loop)
{
    loop_search l = {.c = c, .pass = pass, .told = told};
    int64_t rounds = loop ? rounds_of(c, loop) : 1;
    if (rounds < 0 || rounds > 1) {
        l.writers = PEAL_ARENA_ARRAY(pass->arena, int, c->graph->array_count + 1);
        count_writers(&l, body);
        look_at_body(&l, body);
    }
    for (int i = 0; i < body->count; i++)
        if (body->statement[i]->kind == PEAL_STATEMENT_REPEAT)
            look_at_loops(c, pass, told, &body->statement[i]->u.loop.body,
                          &body->statement[i]->u.loop);
}

/* ---- fields that nobody reads ---- */

static bool body_reads(const peal_body *body, int array)
{
    bool reads = false;
    for (int i = 0; i < body->count && !reads; i++) {
        const peal_statement *s = body->statement[i];
        reads = statement_reads(s, array) ||
                (s->kind == PEAL_STATEMENT_SWAP &&
                 (s->u.swap.first == array || s->u.swap.second == array)) ||
                (s->kind == PEAL_STATEMENT_REPEAT && body_reads(&s->u.loop.body, array));
    }
    return reads;
}

static const peal_statement *writer_in(const peal_body *body, int array)
{
    const peal_statement *found = NULL;
    for (int i = 0; i < body->count && !found; i++) {
        const peal_statement *s = body->statement[i];
        if (s->kind == PEAL_STATEMENT_REPEAT)
            found = writer_in(&s->u.loop.body, array);
        for (int k = 0; s->kind == PEAL_STATEMENT_TASK && k < s->u.task.access_count; k++)
            if (s->u.task.access[k].array == array && s->u.task.access[k].mode == PEAL_WRITE_ACCESS)
                found = s;
    }
    return found;
}

static void look_at_field(const common_input *c, const pass_context *pass, const bool *told,
                          int field)
{
    const peal_graph_data *g = c->graph;
    const peal_statement *later = writer_in(&g->step.body, field);
    const peal_statement *writer = later ? later : writer_in(&g->setup, field);
    char hint[300] = "save it, or leave it out";
    if (!writer || told[writer->id] || body_reads(&g->step.body, field) ||
        body_reads(&g->finish, field) || (!later && body_reads(&g->setup, field)))
        return;
    for (int i = 0; i < writer->u.task.access_count; i++) {
        int other = writer->u.task.access[i].array;
        if (writer->u.task.access[i].mode == PEAL_READ_ACCESS && is_alike(c, pass, other, field))
            snprintf(hint, sizeof(hint),
                     "is `swap: [%.100s, %.100s]` missing? Else save it, or leave it out",
                     array_name(c, other), array_name(c, field));
    }
    peal_warn(pass->diagnostics, PEAL_E_NEVER_READ, writer->source, hint,
              "`%s`, which task `%s` writes, is never read", array_name(c, field), writer->name);
}

void warn_of_idle_tasks(const common_input *c, const pass_context *pass)
{
    const peal_graph_data *g = c->graph;
    if (!g->is_alone)
        return;
    bool *told = PEAL_ARENA_ARRAY(pass->arena, bool, g->statement_count + 1);
    look_at_loops(c, pass, told, &g->setup, NULL);
    look_at_loops(c, pass, told, &g->step.body, &g->step);
    look_at_loops(c, pass, told, &g->finish, NULL);
    for (int i = 0; i < g->array_count; i++)
        if (g->arrays[i].kind == PEAL_ARRAY_FIELD)
            look_at_field(c, pass, told, i);
}
