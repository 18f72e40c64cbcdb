/* What decides loops and communication at run time must be equal on all ranks.
 *
 * An abstract run keeps, for every array, the condition under which its value may differ from rank
 * to rank: zero memory never does, nor what allreduce gives or all load from one file, nor what
 * `set` or a task without a box makes of such alone. A write under a `when` changes the condition
 * only there, so a value that is computed and reduced under one and the same `when` is equal
 * everywhere. Conditions are terms (base/meaning.h): that two meet is decided by arithmetic. They
 * belong to their iteration. Loops run until nothing changes any more. */
#include "base/expression.h"
#include "base/meaning.h"
#include "dsl/resolve.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_REFUSED = 64, LONGEST_CONDITION = 400 };

/* When an array differs, and why. */
typedef struct array_state {
    peal_term differs;
    const peal_statement *by; /* what each rank does in its own way; NULL: it began so */
    int root;                 /* the array that it did that to */
} array_state;

typedef struct uniform_check {
    peal_parser *parser;
    peal_meanings *m;
    peal_scope scope; /* neither rank nor ranks are known */
    peal_program_point point;
    peal_term counter[PEAL_LOOP_DEPTH];
    array_state *state; /* by array */
    array_state value;  /* what write_value gives to the arrays that it visits */
    peal_term when;     /* of the statement that is run, and where that differs */
    array_state when_state;
    peal_term path; /* what holds here: the loops' iterations, `when` of loops */
    peal_term never, always;
    const peal_statement *at; /* what is run */
    bool *warned;             /* by statement: a loop is run more than once */
    const peal_expr *refused[MOST_REFUSED];
    int refused_count;
} uniform_check;

static void run_body(uniform_check *c, const peal_body *body);

/* ---- States ---- */

static bool may_hold(const uniform_check *c, peal_term condition)
{
    peal_term all[2] = {c->path, condition};
    if (condition == c->never || condition == c->always)
        return condition == c->always;
    return peal_terms_meet(c->m, all, 2, NULL, 0).answer != PEAL_NO;
}

/* Differs where one of both does; the first is told to be why. */
static array_state either(const uniform_check *c, array_state a, array_state b)
{
    array_state out = a.differs == c->never ? b : a;
    out.differs = peal_term_or(c->m, a.differs, b.differs);
    return out;
}

typedef struct element_visit {
    const uniform_check *c;
    array_state found;
} element_visit;

/* Of what is made of an array. */
static array_state state_of_array(const uniform_check *c, int array)
{
    array_state state = c->state[array];
    if (state.root < 0)
        state.root = array;
    return state;
}

static void look_at_element(void *user, int array)
{
    element_visit *v = user;
    v->found = either(v->c, v->found, state_of_array(v->c, array));
}

static array_state state_of(const uniform_check *c, const peal_expr *expr)
{
    element_visit v = {c, {.differs = c->never, .root = -1}};
    if (peal_expr_uses(expr) & PEAL_USES_RANK)
        v.found.differs = c->always;
    else
        peal_expr_elements(expr, look_at_element, &v);
    return v.found;
}

static void write_value(void *user, int array)
{
    uniform_check *c = user;
    if (array < 0)
        return;
    array_state before = c->state[array], after = c->value;
    array_state out = after.differs == c->never ? before : after;
    out.differs = peal_term_select(c->m, c->when, after.differs, before.differs);
    out = either(c, out, c->when_state);
    if (peal_term_size(c->m, out.differs) > LONGEST_CONDITION)
        out.differs = c->always;
    c->state[array] = out;
}

/* ---- What is wrong ---- */

typedef struct culprit_search {
    const uniform_check *c;
    peal_term where;
    int array; /* -1: none so far */
} culprit_search;

static void find_culprit(void *user, int array)
{
    culprit_search *f = user;
    peal_term both = peal_term_and(f->c->m, f->where, f->c->state[array].differs);
    if (f->array < 0 && may_hold(f->c, both))
        f->array = array;
}

static const char when_of_message[] = "`when` of communication";

/* `where`: when the expression is looked at. */
static void refuse(uniform_check *c, const peal_expr *expr, peal_term where, const char *what)
{
    culprit_search f = {c, where, -1};
    peal_arena *arena = c->parser->graph->arena;
    for (int i = 0; i < c->refused_count; i++)
        if (c->refused[i] == expr)
            return;
    if (c->refused_count < MOST_REFUSED)
        c->refused[c->refused_count++] = expr;
    peal_expr_elements(expr, find_culprit, &f);
    const char *why = "it depends on the rank";
    if (f.array >= 0) {
        const array_state *state = &c->state[f.array];
        const char *name = c->parser->arrays[f.array].name;
        const char *made =
            state->root >= 0 && state->root != f.array
                ? peal_arena_print(arena, ", made of `%s`", c->parser->arrays[state->root].name)
                : "";
        why = state->by
                  ? peal_arena_print(arena,
                                     "it names `%s`%s, to which `%s` (line %d) gives "
                                     "a value of each rank's own",
                                     name, made, state->by->name, state->by->source.line)
                  : peal_arena_print(
                        arena,
                        "it names `%s`%s (line %d), whose contents are a "
                        "rank's own",
                        name, made,
                        c->parser->arrays[state->root >= 0 ? state->root : f.array].source.line);
    }
    bool is_mixed =
        what == when_of_message && f.array < 0 && peal_expr_uses(expr) & PEAL_USES_ELEMENT;
    peal_parser_report(
        c->parser, PEAL_E_DECISION_DIFFERS_BY_RANK, NULL, expr->source,
        is_mixed ? "leave the rank in this `when`, in a `repeat: 1` whose `when` has the rest"
                 : "use values from allreduce, and what set or tasks without a box make of them",
        "%s may differ from rank to rank: %s", what, why);
}

/* ---- Statements ---- */

static array_state task_state(const uniform_check *c, const peal_statement *s)
{
    const peal_task_statement *task = &s->u.task;
    array_state state = {.differs = c->never, .root = -1};
    if (!peal_visits_the_same(c->parser, task))
        return (array_state){.differs = c->always, .by = s, .root = -1};
    for (int i = 0; i < task->access_count; i++)
        if (task->access[i].mode != PEAL_WRITE_ACCESS)
            state = either(c, state, state_of_array(c, task->access[i].array));
    for (int i = 0; i < task->argument_count; i++)
        state = either(c, state, state_of(c, task->argument[i]));
    return state;
}

/* The value that a statement gives to what it writes. */
static array_state value_of(const uniform_check *c, const peal_statement *s)
{
    array_state own = {.differs = c->always, .by = s, .root = -1};
    switch (s->kind) {
    case PEAL_STATEMENT_TASK:
        own = task_state(c, s);
        break;
    case PEAL_STATEMENT_SET:
        own = state_of(c, s->u.set.value);
        break;
    case PEAL_STATEMENT_LOAD: /* of one file by all ranks, which nobody saves meanwhile
                                 (PEAL_E_FILE_RACE) */
        if ((c->parser->arrays[s->u.file.array].kind == PEAL_ARRAY_BUFFER ||
             c->parser->arrays[s->u.file.array].replicated) &&
            !peal_template_names(s->u.file.file, "rank"))
            own = (array_state){.differs = c->never, .root = -1};
        break;
    case PEAL_STATEMENT_REDUCE:
        if (!s->u.reduce.root && s->u.reduce.along < 0)
            own.differs = c->never;
        break;
    default:
        break;
    }
    if (!own.by) /* by an expression with the rank, or what began so */
        own.by = own.root < 0 ? s : NULL;
    return own;
}

/* Only what is known to be different: with conditions that cannot be compared the value is mostly
 * right. */
static void look_at_print(uniform_check *c, const peal_statement *s)
{
    for (int i = 0; i < s->u.print.item_count; i++) {
        const peal_print_item *item = &s->u.print.item[i];
        peal_term differs = state_of(c, item->value).differs;
        peal_term all[3] = {c->path, c->when, differs};
        if (c->warned[s->id] || differs == c->never ||
            (differs != c->always && peal_terms_meet(c->m, all, 3, NULL, 0).answer != PEAL_YES))
            continue;
        c->warned[s->id] = true;
        peal_warn(c->parser->diagnostics, PEAL_E_PRINT_DIFFERS_BY_RANK, item->value->source,
                  "print what allreduce gives; rank 0's value is printed",
                  "column `%s` may differ from rank to rank", item->name);
    }
}

/* The copies of a replicated field are equal, or it is refused. */
static void look_at_copies(void *user, int array)
{
    uniform_check *c = user;
    if (array < 0 || !c->parser->arrays[array].replicated || !may_hold(c, c->state[array].differs))
        return;
    const array_state *state = &c->state[array];
    bool reads = state->root >= 0 && state->root != array;
    const char *name = reads ? c->parser->arrays[state->root].name : "";
    if (!c->warned[c->at->id])
        peal_parser_report(c->parser, PEAL_E_COPIES_DIFFER, NULL, c->at->source,
                           "make it of replicated fields and of what allreduce gives; `when` too",
                           "the ranks' copies of `%s` may differ behind `%s`: %s%s%s",
                           c->parser->arrays[array].name, c->at->name,
                           reads ? "it reads `" : "each rank does it in its own way", name,
                           reads ? "`, which is not the same on all ranks" : "");
    c->warned[c->at->id] = true;
    c->state[array] = (array_state){.differs = c->never, .root = -1};
}

/* All ranks get the same values, whoever has them. */
static void run_copy(uniform_check *c, const peal_statement *s)
{
    for (int i = 0; i < s->u.exchange.item_count; i++) {
        int from = s->u.exchange.item[i].array, into = s->u.exchange.item[i].into;
        bool all = c->parser->arrays[into].replicated;
        c->value = (array_state){.differs = all ? c->never : c->always, .by = s, .root = -1};
        if (all && c->parser->arrays[from].replicated)
            c->value = state_of_array(c, from);
        write_value(c, into);
        if (c->when_state.differs == c->never) /* else that has been told */
            look_at_copies(c, into);
    }
}

static void run_swap(uniform_check *c, const peal_statement *s)
{
    int first = s->u.swap.first, second = s->u.swap.second;
    array_state old = c->state[first];
    c->value = c->state[second];
    write_value(c, first);
    c->value = old;
    write_value(c, second);
}

/* ---- Loops ---- */

static void mark_array(void *user, int array)
{
    if (array >= 0)
        ((bool *)user)[array] = true;
}

static void mark_statement(void *user, const peal_statement *s)
{
    peal_statement_writes(s, mark_array, user);
}

/* Conditions belong to their iteration: what may differ in one (in those that `ends` tells) is
 * taken to differ in what follows. */
static void end_iteration(const uniform_check *c, const bool *written, int count, peal_term ends,
                          array_state *state)
{
    for (int i = 0; i < count; i++) {
        peal_term differs = peal_term_and(c->m, ends, state[i].differs);
        if (written[i])
            state[i].differs = differs != c->never && may_hold(c, differs) ? c->always : c->never;
    }
}

/* Which iteration may be the last; with `until` any. */
static peal_term last_iteration(const uniform_check *c, const peal_loop *loop)
{
    peal_term last =
        loop->repeat ? peal_meaning_of(c->m, loop->repeat, &c->point) : peal_term_integer(c->m, 1);
    peal_term next = peal_term_operator(c->m, PEAL_OPERATOR_ADD, c->counter[loop->depth],
                                        peal_term_integer(c->m, 1));
    return loop->until || loop->depth == 0
               ? c->always
               : peal_term_operator(c->m, PEAL_OPERATOR_EQUAL, next, last);
}

static void check_until(uniform_check *c, const peal_loop *loop)
{
    peal_term looked = peal_term_looks(c->m, loop, &c->point);
    peal_term differs = state_of(c, loop->until).differs;
    if (may_hold(c, peal_term_and(c->m, looked, differs)))
        refuse(c, loop->until, looked, "`until`");
}

/* One abstract iteration, whatever its number. True: it leaves more that differs, for the next one;
 * else the state is that behind the loop. */
static bool run_iteration(uniform_check *c, const peal_statement *s, const bool *written, int count)
{
    const peal_loop *loop = &s->u.loop;
    array_state *entry = PEAL_ARENA_ARRAY(c->parser->graph->arena, array_state, 2 * count + 2),
                *next;
    peal_term path = c->path, *outside = c->point.element;
    bool changed = false;
    c->counter[loop->depth] = loop->depth == 0 /* a run may have more steps than `repeat` */
                                  ? peal_term_counter_endless(c->m)
                                  : peal_term_counter(c->m, loop->repeat, &c->point);
    c->point.element = PEAL_ARENA_ARRAY(c->parser->graph->arena, peal_term, count + 1);
    memcpy(c->point.element, outside, (size_t)count * sizeof(*outside));
    memcpy(entry, c->state, (size_t)count * sizeof(*entry));
    c->point.counter_count = loop->depth + 1;
    peal_program_point_pass(c->m, &c->point, s, c->always);
    c->path = peal_term_and(c->m, path, peal_term_domain(c->m, c->counter[loop->depth]));
    run_body(c, &loop->body);
    if (loop->until)
        check_until(c, loop);
    next = entry + count;
    memcpy(next, c->state, (size_t)count * sizeof(*next));
    end_iteration(c, written, count, c->always, next);
    for (int i = 0; i < count; i++)
        changed |= entry[i].differs == c->never && next[i].differs != c->never;
    for (int i = 0; i < count && changed; i++) /* the next one begins like either */
        c->state[i] = either(c, entry[i], next[i]);
    if (!changed)
        end_iteration(c, written, count, last_iteration(c, loop), c->state);
    c->point.element = outside;
    c->point.counter_count = loop->depth;
    c->path = path;
    return changed;
}

static void run_loop(uniform_check *c, const peal_statement *s)
{
    const peal_loop *loop = &s->u.loop;
    int count = c->parser->data->array_count;
    array_state *before = PEAL_ARENA_ARRAY(c->parser->graph->arena, array_state, count + 1);
    bool *written = PEAL_ARENA_ARRAY(c->parser->graph->arena, bool, count + 1);
    array_state when_state = c->when_state;
    peal_term path = c->path, when = c->when, runs = c->when;
    if (loop->repeat)
        runs = peal_term_and(c->m, runs,
                             peal_term_operator(c->m, PEAL_OPERATOR_GREATER,
                                                peal_meaning_of(c->m, loop->repeat, &c->point),
                                                peal_term_integer(c->m, 0)));
    peal_body_walk(&loop->body, mark_statement, written);
    memcpy(before, c->state, (size_t)count * sizeof(*before));
    c->path = peal_term_and(c->m, path, runs);
    end_iteration(c, written, count, c->always, c->state);
    while (run_iteration(c, s, written, count))
        continue;
    c->path = path;
    c->when = runs; /* the body may not run at all */
    c->when_state = when_state;
    for (int i = 0; i < count; i++)
        if (written[i]) {
            c->value = c->state[i];
            c->state[i] = before[i];
            write_value(c, i);
        }
    c->when = when;
    c->when_state = when_state;
}

/* The images in a replicated field's halo are each rank's own to fill. */
static bool is_collective(const uniform_check *c, const peal_statement *s)
{
    if (s->kind == PEAL_STATEMENT_LOAD || s->kind == PEAL_STATEMENT_SAVE)
        return c->parser->arrays[s->u.file.array].kind == PEAL_ARRAY_FIELD;
    for (int i = 0; s->kind == PEAL_STATEMENT_EXCHANGE && i < s->u.exchange.item_count; i++)
        if (c->parser->arrays[s->u.exchange.item[i].array].replicated)
            return true;
    return s->kind == PEAL_STATEMENT_SWAP || s->kind == PEAL_STATEMENT_REPEAT || peal_is_copy(s);
}

static bool is_communication(const peal_statement *s)
{
    return s->kind == PEAL_STATEMENT_EXCHANGE || s->kind == PEAL_STATEMENT_SEND ||
           s->kind == PEAL_STATEMENT_RECV || s->kind == PEAL_STATEMENT_REDUCE;
}

/* Whether it happens may differ from rank to rank. */
static void look_at_when(uniform_check *c, const peal_statement *s)
{
    bool runtime = s->when && peal_expr_uses(s->when) & PEAL_USES_ELEMENT;
    c->when = peal_meaning_of(c->m, s->when, &c->point);
    c->when_state = state_of(c, s->when);
    if (!may_hold(c, c->when_state.differs))
        c->when_state.differs = c->never;
    else if (is_collective(c, s))
        refuse(c, s->when, c->always,
               "`when` of a swap, a loop, a copy, a replicated field's exchange or a field's file");
    else if (runtime && is_communication(s))
        refuse(c, s->when, c->always, when_of_message);
    if (!c->when_state.by && c->when_state.root < 0)
        c->when_state.by = s;
}

static void run_statement(uniform_check *c, const peal_statement *s)
{
    look_at_when(c, s);
    c->at = s;
    peal_term when = c->when;
    switch (s->kind) {
    case PEAL_STATEMENT_SWAP:
        run_swap(c, s);
        break;
    case PEAL_STATEMENT_REPEAT:
        run_loop(c, s);
        break;
    case PEAL_STATEMENT_PRINT:
        look_at_print(c, s);
        break;
    case PEAL_STATEMENT_EXCHANGE: /* a halo has what its owner has, or an image */
        if (peal_is_copy(s))
            run_copy(c, s);
        break;
    default:
        c->value = value_of(c, s);
        peal_statement_writes(s, write_value, c);
        peal_statement_writes(s, look_at_copies, c);
    }
    peal_program_point_pass(c->m, &c->point, s, when);
}

static void run_body(uniform_check *c, const peal_body *body)
{
    for (int i = 0; i < body->count; i++)
        run_statement(c, body->statement[i]);
}

static bool starts_same(const peal_array *array)
{
    if (array->replicated && !array->data)
        return true;
    if (array->kind == PEAL_ARRAY_FIELD || (array->file && strchr(array->file, '{')))
        return false;
    for (int i = 0; i < array->value_count; i++)
        if (peal_expr_uses(array->values[i]) & PEAL_USES_RANK)
            return false;
    return true;
}

static void run_graph(uniform_check *c)
{
    const peal_graph_data *data = c->parser->data;
    peal_statement step = {.kind = PEAL_STATEMENT_REPEAT, .u.loop = data->step};
    c->always = peal_term_boolean(c->m, true);
    c->never = peal_term_boolean(c->m, false);
    c->path = c->always;
    c->point = (peal_program_point){.scope = &c->scope,
                                    .counter = c->counter,
                                    .element = PEAL_ARENA_ARRAY(c->parser->graph->arena, peal_term,
                                                                data->array_count + 1)};
    peal_program_point_forget_all(c->m, &c->point);
    for (int i = 0; i < data->array_count; i++)
        c->state[i] = (array_state){.differs = starts_same(&data->arrays[i]) ? c->never : c->always,
                                    .root = -1};
    run_body(c, &data->setup);
    c->when = c->always;
    c->when_state = (array_state){.differs = c->never, .root = -1};
    run_loop(c, &step);
    peal_program_point_pass(c->m, &c->point, &step, c->always);
    run_body(c, &data->finish);
}

void peal_check_uniform(peal_parser *parser)
{
    peal_graph_data *data = parser->data;
    uniform_check c = {.parser = parser, .scope = {.graph = data, .rank = -1}};
    peal_arena *arena = parser->graph->arena;
    c.state = PEAL_ARENA_ARRAY(arena, array_state, data->array_count + 1);
    c.warned = PEAL_ARENA_ARRAY(arena, bool, data->statement_count + 1);
    c.m = peal_meanings_create(data, arena);
    run_graph(&c);
}
