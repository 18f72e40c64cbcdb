/* What decides loops and communication at run time must be equal on all ranks.
 *
 * An abstract run keeps, for every buffer, whether its value is surely the same everywhere: zero
 * memory is, what allreduce gives is, and what `set` or a task without a box makes of such alone.
 * Loops run until nothing changes any more. A `when` known before the run (and equal on all ranks)
 * is taken to hold where it matters: `allreduce` every 100 steps and `every: 100` belong together.
 */
#include "base/expression.h"
#include "dsl/resolve.h"

#include <stdlib.h>
#include <string.h>

typedef struct uniform_check {
    peal_parser *parser;
    bool *same;   /* by array */
    bool verdict; /* of the expression that is looked at */
    bool value;   /* what write_same gives to the arrays that it visits */
} uniform_check;

static void run_body(uniform_check *c, const peal_body *body);

static void look_at_element(void *user, int array)
{
    uniform_check *c = user;
    c->verdict = c->verdict && c->same[array];
}

static bool is_same(uniform_check *c, const peal_expr *expr)
{
    c->verdict = !(peal_expr_uses(expr) & PEAL_USES_RANK);
    peal_expr_elements(expr, look_at_element, c);
    return c->verdict;
}

static void write_same(void *user, int array)
{
    uniform_check *c = user;
    if (array >= 0)
        c->same[array] = c->value;
}

static void refuse(uniform_check *c, const peal_expr *expr, const char *what)
{
    peal_parser_report(
        c->parser, PEAL_E067, NULL, expr->source,
        "use values from allreduce, and what set or tasks without a box make of them",
        "%s may differ from rank to rank", what);
}

static bool task_is_same(uniform_check *c, const peal_task_statement *task)
{
    bool same = task->box.kind == PEAL_POINTS_ONE;
    for (int i = 0; i < task->access_count && same; i++)
        same = task->access[i].mode == PEAL_WRITE_ACCESS || c->same[task->access[i].array];
    for (int i = 0; i < task->argument_count && same; i++)
        same = is_same(c, task->argument[i]);
    return same;
}

static void run_loop(uniform_check *c, const peal_loop *loop)
{
    size_t count = (size_t)c->parser->data->array_count;
    bool *entry = malloc(count + 1), changed = true;
    peal_value repeat;
    if (!entry)
        return;
    while (changed) {
        changed = false;
        memcpy(entry, c->same, count);
        run_body(c, &loop->body);
        if (loop->until && !is_same(c, loop->until))
            refuse(c, loop->until, "`until`");
        for (size_t i = 0; i < count; i++)
            changed = changed || (entry[i] && !c->same[i]);
        for (size_t i = 0; i < count && changed; i++)
            c->same[i] = c->same[i] && entry[i];
    }
    bool surely = peal_constant_value(c->parser, loop->repeat, &repeat) && repeat.u.integer > 0;
    for (size_t i = 0; i < count && loop->repeat && !surely; i++)
        c->same[i] = c->same[i] && entry[i]; /* the body may not run at all */
    free(entry);
}

static void run_statement(uniform_check *c, const peal_statement *s)
{
    c->value = false;
    switch (s->kind) {
    case PEAL_STATEMENT_TASK:
        c->value = task_is_same(c, &s->u.task);
        break;
    case PEAL_STATEMENT_REDUCE:
        c->value = !s->u.reduce.root && s->u.reduce.along < 0;
        break;
    case PEAL_STATEMENT_SET:
        c->value = is_same(c, s->u.set.value);
        break;
    case PEAL_STATEMENT_SWAP: {
        bool first = c->same[s->u.swap.first];
        c->same[s->u.swap.first] = c->same[s->u.swap.second];
        c->same[s->u.swap.second] = first;
        return;
    }
    case PEAL_STATEMENT_REPEAT:
        run_loop(c, &s->u.loop);
        return;
    default:
        break;
    }
    peal_statement_writes(s, write_same, c);
}

static bool is_collective(const uniform_check *c, const peal_statement *s)
{
    bool file = s->kind == PEAL_STATEMENT_LOAD || s->kind == PEAL_STATEMENT_SAVE;
    if (file)
        return c->parser->arrays[s->u.file.array].kind == PEAL_ARRAY_FIELD;
    return s->kind == PEAL_STATEMENT_SWAP || s->kind == PEAL_STATEMENT_REPEAT;
}

static bool is_communication(const peal_statement *s)
{
    return s->kind == PEAL_STATEMENT_EXCHANGE || s->kind == PEAL_STATEMENT_SEND ||
           s->kind == PEAL_STATEMENT_RECV || s->kind == PEAL_STATEMENT_REDUCE;
}

static void run_conditional(uniform_check *c, const peal_statement *s)
{
    size_t count = (size_t)c->parser->data->array_count;
    bool same = is_same(c, s->when), runtime = peal_expr_uses(s->when) & PEAL_USES_ELEMENT;
    if (!same && is_collective(c, s))
        refuse(c, s->when, "`when` of a swap, a loop or a field's file");
    else if (!same && runtime && is_communication(s))
        refuse(c, s->when, "`when` of communication");
    bool *before = malloc(count + 1);
    if (!before)
        return;
    memcpy(before, c->same, count);
    run_statement(c, s);
    if (!same) {
        c->value = false;
        peal_statement_writes(s, write_same, c);
    }
    for (size_t i = 0; i < count && (runtime || !same); i++)
        c->same[i] = c->same[i] && before[i];
    free(before);
}

static void run_body(uniform_check *c, const peal_body *body)
{
    for (int i = 0; i < body->count; i++)
        if (body->statement[i]->when)
            run_conditional(c, body->statement[i]);
        else
            run_statement(c, body->statement[i]);
}

static bool starts_same(const peal_array *array)
{
    if (array->kind == PEAL_ARRAY_FIELD || (array->file && strchr(array->file, '{')))
        return false;
    for (int i = 0; i < array->value_count; i++)
        if (peal_expr_uses(array->values[i]) & PEAL_USES_RANK)
            return false;
    return true;
}

void peal_check_uniform(peal_parser *parser)
{
    peal_graph_data *data = parser->data;
    uniform_check c = {.parser = parser};
    c.same = calloc((size_t)data->array_count + 1, sizeof(*c.same));
    if (!c.same)
        return;
    for (int i = 0; i < data->array_count; i++)
        c.same[i] = starts_same(&data->arrays[i]);
    run_body(&c, &data->setup);
    run_loop(&c, &data->step);
    run_body(&c, &data->finish);
    free(c.same);
}
