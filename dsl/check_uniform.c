/* What decides loops and communication at run time must be equal on all ranks.
 *
 * An abstract run keeps, for every array, whether its value is surely the same everywhere: zero
 * memory is, what allreduce gives is, and what `set` or a task without a box makes of such alone.
 * Loops run until nothing changes any more.
 *
 * Under a `when` that is known before the run, what is written is the same, or differs, only in the
 * iterations where it holds. So `allreduce` in every 100th step goes with `every: 100`, which is
 * tried step by step, but not with an `until` that is looked at in between. */
#include "base/expression.h"
#include "dsl/resolve.h"

#include <stdlib.h>
#include <string.h>

enum { TRIED_ITERATIONS = 4096 };

/* same, when NULL: always; same, when: in iterations where it holds; not same, when: but where it
 * holds; not same, NULL: perhaps never. */
typedef struct array_state {
    bool same;
    const peal_expr *when;
} array_state;

typedef struct uniform_check {
    peal_parser *parser;
    array_state *state;     /* by array */
    array_state verdict;    /* of the expression that is looked at */
    array_state value;      /* what write_value gives to the arrays that it visits */
    const peal_expr *under; /* the static `when` of the statement that is run */
    bool *warned;           /* by statement: a loop is run more than once */
} uniform_check;

static const array_state always = {true, NULL}, never = {false, NULL};

static void run_body(uniform_check *c, const peal_body *body);

static bool is_always(array_state state)
{
    return state.same && !state.when;
}

/* Both must be the same. */
static array_state both(const uniform_check *c, array_state a, array_state b)
{
    if (is_always(a))
        return b;
    if (is_always(b) || (a.same == b.same && peal_same_expression(c->parser, a.when, b.when)))
        return a;
    return never;
}

static void look_at_element(void *user, int array)
{
    uniform_check *c = user;
    c->verdict = both(c, c->verdict, c->state[array]);
}

static array_state state_of(uniform_check *c, const peal_expr *expr)
{
    c->verdict = peal_expr_uses(expr) & PEAL_USES_RANK ? never : always;
    peal_expr_elements(expr, look_at_element, c);
    return c->verdict;
}

static bool is_same(uniform_check *c, const peal_expr *expr)
{
    return is_always(state_of(c, expr));
}

/* What is left in an array after a write under a static condition. */
static array_state written(const uniform_check *c, array_state before, array_state value)
{
    bool matches = before.when && peal_same_expression(c->parser, before.when, c->under);
    if (!c->under)
        return value;
    if (value.when && !peal_same_expression(c->parser, value.when, c->under))
        return never;
    if (value.same)
        return is_always(before) || (matches && !before.same) ? always
                                                              : (array_state){true, c->under};
    return is_always(before) || (matches && !before.same) ? (array_state){false, c->under} : never;
}

static void write_value(void *user, int array)
{
    uniform_check *c = user;
    if (array >= 0)
        c->state[array] = written(c, c->state[array], c->value);
}

static void refuse(uniform_check *c, const peal_expr *expr, const char *what)
{
    peal_parser_report(
        c->parser, PEAL_E067, NULL, expr->source,
        "use values from allreduce, and what set or tasks without a box make of them",
        "%s may differ from rank to rank", what);
}

static array_state task_state(uniform_check *c, const peal_task_statement *task)
{
    array_state state = task->box.kind == PEAL_POINTS_ONE ? always : never;
    for (int i = 0; i < task->access_count; i++)
        if (task->access[i].mode != PEAL_WRITE_ACCESS)
            state = both(c, state, c->state[task->access[i].array]);
    for (int i = 0; i < task->argument_count; i++)
        state = both(c, state, state_of(c, task->argument[i]));
    return state;
}

/* Whether `when` holds in every iteration after which the loop looks at `until`. */
static bool holds_when_looked(const uniform_check *c, const peal_loop *loop, const peal_expr *when)
{
    int64_t counter[PEAL_LOOP_DEPTH] = {0}, every, repeat;
    peal_scope scope = {.graph = c->parser->data};
    if (peal_expr_integer(loop->every, &scope, 1, &every, NULL) || every < 1 ||
        peal_expr_integer(loop->repeat, &scope, 1, &repeat, NULL))
        return false;
    if (repeat > TRIED_ITERATIONS)
        repeat = TRIED_ITERATIONS > 2 * every ? TRIED_ITERATIONS : 2 * every;
    if (every > TRIED_ITERATIONS * 256)
        return false;
    scope.counter = counter;
    scope.counter_count = loop->depth + 1;
    for (int64_t k = every - 1; k < repeat; k += every) {
        bool holds[2];
        counter[loop->depth] = k;
        for (int i = 0; i < 2; i++) { /* whatever the loops around count */
            for (int d = 0; d < loop->depth; d++)
                counter[d] = i * 7;
            if (peal_expr_boolean(when, &scope, true, &holds[i], NULL) || !holds[i])
                return false;
        }
    }
    return true;
}

static void check_until(uniform_check *c, const peal_loop *loop)
{
    array_state state = state_of(c, loop->until);
    if (is_always(state) || (state.same && state.when && holds_when_looked(c, loop, state.when)))
        return;
    refuse(c, loop->until, "`until`");
}

/* Conditions belong to their iteration. */
static void end_iteration(uniform_check *c, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!is_always(c->state[i]))
            c->state[i] = never;
}

static void run_loop(uniform_check *c, const peal_loop *loop)
{
    size_t count = (size_t)c->parser->data->array_count;
    array_state *entry = PEAL_ARENA_ARRAY(c->parser->graph->arena, array_state, count + 1);
    const peal_expr *under = c->under;
    bool changed = true;
    peal_value repeat;
    end_iteration(c, count);
    while (changed) {
        changed = false;
        memcpy(entry, c->state, count * sizeof(*entry));
        c->under = NULL;
        run_body(c, &loop->body);
        if (loop->until)
            check_until(c, loop);
        end_iteration(c, count);
        for (size_t i = 0; i < count; i++)
            changed = changed || (entry[i].same && !c->state[i].same);
        for (size_t i = 0; i < count && changed; i++)
            c->state[i] = entry[i].same ? c->state[i] : never;
    }
    c->under = under;
    bool surely = peal_constant_value(c->parser, loop->repeat, &repeat) && repeat.u.integer > 0;
    for (size_t i = 0; i < count && ((loop->repeat && !surely) || under); i++)
        c->state[i] = entry[i].same ? c->state[i] : never; /* the body may not run at all */
}

/* Only what is known to be different, or may never have been the same: with conditions that cannot
 * be compared the value is mostly right. */
static void look_at_print(uniform_check *c, const peal_statement *s)
{
    for (int i = 0; i < s->u.print.item_count; i++) {
        const peal_print_item *item = &s->u.print.item[i];
        array_state state = state_of(c, item->value);
        if (c->warned[s->id] || state.same || state.when)
            continue;
        c->warned[s->id] = true;
        peal_warn(c->parser->diagnostics, PEAL_E064, item->value->source,
                  "print what allreduce gives; rank 0's value is printed",
                  "column `%s` may differ from rank to rank", item->name);
    }
}

static void run_statement(uniform_check *c, const peal_statement *s)
{
    c->value = never;
    switch (s->kind) {
    case PEAL_STATEMENT_TASK:
        c->value = task_state(c, &s->u.task);
        break;
    case PEAL_STATEMENT_REDUCE:
        c->value = !s->u.reduce.root && s->u.reduce.along < 0 ? always : never;
        break;
    case PEAL_STATEMENT_SET:
        c->value = state_of(c, s->u.set.value);
        break;
    case PEAL_STATEMENT_SWAP: {
        array_state first = c->state[s->u.swap.first];
        c->state[s->u.swap.first] = c->state[s->u.swap.second];
        c->state[s->u.swap.second] = first;
        if (c->under) /* swapped or not: both must be the same anyway */
            c->state[s->u.swap.first] = c->state[s->u.swap.second] =
                both(c, first, c->state[s->u.swap.first]);
        return;
    }
    case PEAL_STATEMENT_REPEAT:
        run_loop(c, &s->u.loop);
        return;
    case PEAL_STATEMENT_PRINT:
        look_at_print(c, s);
        return;
    default:
        break;
    }
    peal_statement_writes(s, write_value, c);
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
    if (same && !runtime) {
        c->under = s->when;
        run_statement(c, s);
        c->under = NULL;
        return;
    }
    array_state *before = PEAL_ARENA_ARRAY(c->parser->graph->arena, array_state, count + 1);
    memcpy(before, c->state, count * sizeof(*before));
    run_statement(c, s);
    c->value = never;
    if (!same)
        peal_statement_writes(s, write_value, c);
    for (size_t i = 0; i < count; i++)
        c->state[i] = both(c, c->state[i], before[i]);
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
    c.state = PEAL_ARENA_ARRAY(parser->graph->arena, array_state, data->array_count + 1);
    c.warned = PEAL_ARENA_ARRAY(parser->graph->arena, bool, data->statement_count + 1);
    for (int i = 0; i < data->array_count; i++)
        c.state[i].same = starts_same(&data->arrays[i]);
    run_body(&c, &data->setup);
    run_loop(&c, &data->step);
    run_body(&c, &data->finish);
}
