/* Which results are alike on any number of ranks: a fixed point over all statements, as if each
 * came before each, since loops bring what is computed anywhere. An approximation: an array that
 * some allreduce gives to all counts as alike, whatever else writes it. */
#include "runtime/verify/likeness.h"
#include "base/expression.h"

#include <stdlib.h>
#include <string.h>

/* What is known of an array so far; only ever more becomes true. */
typedef struct fact {
    bool own;     /* each rank has other contents */
    bool rounded; /* comes from a sum of reals */
    bool reduced; /* an allreduce gives all ranks the same: own or not */
    bool added;   /* by a sum over ranks */
    bool counts;  /* what all have alike was added over ranks: their number is in it */
} fact;

typedef struct search {
    const peal_graph_data *graph;
    fact *fact; /* by array */
    bool sends_rounded;
    bool around; /* whether loops around happen, and how often, is each rank's own */
    bool changed;
    peal_likeness *out;
} search;

static bool is_field(const search *s, int array)
{
    return s->graph->arrays[array].kind == PEAL_ARRAY_FIELD;
}

static bool is_own(const search *s, int array)
{
    return s->fact[array].counts || (s->fact[array].own && !s->fact[array].reduced);
}

static void learn(search *s, int array, bool own, bool rounded)
{
    fact *f = &s->fact[array], before = *f;
    f->own |= own && !is_field(s, array);
    f->rounded |= rounded;
    s->changed |= f->own != before.own || f->rounded != before.rounded;
}

/* ---- expressions ---- */

/* Whether the value may be another one on other ranks, or on other numbers of them. */
static bool is_own_value(const search *s, const peal_expr *expr, bool on_rank_0)
{
    if (!expr)
        return false;
    switch (expr->kind) {
    case PEAL_EXPR_RANK:
    case PEAL_EXPR_RANK_AXIS:
        return !on_rank_0;
    case PEAL_EXPR_RANKS:
    case PEAL_EXPR_RANKS_AXIS:
    case PEAL_EXPR_EXTENT:
    case PEAL_EXPR_ORIGIN:
    case PEAL_EXPR_COUNT:
        return true;
    case PEAL_EXPR_ELEMENT:
        return is_own(s, expr->index);
    default:
        break;
    }
    bool own = false;
    for (int i = 0; i < expr->operand_count && !own; i++)
        own = is_own_value(s, expr->operand[i], on_rank_0);
    return own;
}

static bool is_rounded_value(const search *s, const peal_expr *expr)
{
    if (!expr)
        return false;
    bool rounded = expr->kind == PEAL_EXPR_ELEMENT && s->fact[expr->index].rounded;
    for (int i = 0; i < expr->operand_count && !rounded; i++)
        rounded = is_rounded_value(s, expr->operand[i]);
    return rounded;
}

static bool rounds(const search *s, const peal_reduction *item)
{
    peal_type type = s->graph->arrays[item->array].type;
    return item->combine == PEAL_SUM && (type == PEAL_F64 || type == PEAL_F32);
}

/* ---- statements ---- */

static bool happens_by_rank(const search *s, const peal_statement *statement)
{
    return s->around || is_own_value(s, statement->when, false);
}

static void pass_task(search *s, const peal_statement *statement)
{
    const peal_task_statement *task = &statement->u.task;
    bool one = task->box.kind == PEAL_POINTS_ONE, own = happens_by_rank(s, statement);
    bool rounded = is_rounded_value(s, task->box.count);
    for (int i = 0; i < task->argument_count; i++) {
        own |= is_own_value(s, task->argument[i], false);
        rounded |= is_rounded_value(s, task->argument[i]);
    }
    for (int i = 0; i < task->access_count; i++) {
        const peal_access *a = &task->access[i];
        own |= a->mode != PEAL_WRITE_ACCESS && (is_field(s, a->array) || is_own(s, a->array));
        rounded |= a->mode != PEAL_WRITE_ACCESS && s->fact[a->array].rounded;
    }
    for (int i = 0; i < task->access_count; i++)
        if (task->access[i].mode != PEAL_READ_ACCESS)
            learn(s, task->access[i].array, own || !one, rounded);
    for (int i = 0; i < task->reduction_count; i++)
        learn(s, task->reduction[i].array, true, rounded || rounds(s, &task->reduction[i]));
}

/* What everybody has afterwards; of a rooted one rank 0, if it is the root. */
static bool gives_all(const search *s, const peal_rank_reduction *reduce)
{
    const peal_scope scope = {.graph = s->graph};
    int64_t root = -1;
    if (reduce->along >= 0)
        return false;
    return !reduce->root || (!peal_expr_integer(reduce->root, &scope, -1, &root, NULL) && !root);
}

static void pass_reduce(search *s, const peal_statement *statement)
{
    const peal_rank_reduction *reduce = &statement->u.reduce;
    bool all = gives_all(s, reduce) && !happens_by_rank(s, statement);
    for (int i = 0; i < reduce->item_count; i++) {
        int array = reduce->item[i].array;
        s->changed |= all && !s->fact[array].reduced;
        s->fact[array].reduced |= all;
        s->fact[array].added |= reduce->item[i].combine == PEAL_SUM;
        learn(s, array, !all, rounds(s, &reduce->item[i]));
    }
}

static void pass_message(search *s, const peal_statement *statement)
{
    int array = statement->u.message.points.array;
    if (statement->kind == PEAL_STATEMENT_RECV) {
        learn(s, array, true, s->sends_rounded);
        return;
    }
    s->changed |= s->fact[array].rounded && !s->sends_rounded;
    s->sends_rounded |= s->fact[array].rounded;
}

static bool names_ranks(const char *file)
{
    return strstr(file, "{rank") != NULL;
}

/* Grows where needed; false: no memory. Of columns with one name, the least alike counts. */
static bool add_column(search *s, const char *name, peal_alike alike, peal_type type)
{
    peal_likeness *out = s->out;
    peal_alike_column *known = peal_likeness_column(out, name);
    if (known) {
        known->alike = alike > known->alike ? alike : known->alike;
        known->type = type == PEAL_F32 ? type : known->type;
        return true;
    }
    peal_alike_column *more = realloc(out->column, ((size_t)out->column_count + 1) * sizeof(*more));
    if (!more)
        return false;
    out->column = more;
    more[out->column_count++] = (peal_alike_column){.name = name, .alike = alike, .type = type};
    return true;
}

static void pass(search *s, const peal_statement *statement)
{
    switch (statement->kind) {
    case PEAL_STATEMENT_TASK:
        pass_task(s, statement);
        break;
    case PEAL_STATEMENT_SEND:
    case PEAL_STATEMENT_RECV:
        pass_message(s, statement);
        break;
    case PEAL_STATEMENT_REDUCE:
        pass_reduce(s, statement);
        break;
    case PEAL_STATEMENT_SWAP: {
        int a = statement->u.swap.first, b = statement->u.swap.second;
        bool own = is_own(s, a) || is_own(s, b) || happens_by_rank(s, statement);
        bool rounded = s->fact[a].rounded || s->fact[b].rounded;
        learn(s, a, own, rounded);
        learn(s, b, own, rounded);
        break;
    }
    case PEAL_STATEMENT_SET:
        learn(s, statement->u.set.array,
              is_own_value(s, statement->u.set.value, false) || happens_by_rank(s, statement),
              is_rounded_value(s, statement->u.set.value));
        break;
    case PEAL_STATEMENT_LOAD:
        learn(s, statement->u.file.array,
              names_ranks(statement->u.file.file) || happens_by_rank(s, statement), false);
        break;
    default:
        break;
    }
}

static void pass_body(search *s, const peal_body *body,
                      void (*visit)(search *, const peal_statement *))
{
    for (int i = 0; i < body->count; i++) {
        const peal_statement *statement = body->statement[i];
        bool around = s->around;
        if (statement->kind == PEAL_STATEMENT_REPEAT) {
            s->around |= is_own_value(s, statement->when, false) ||
                         is_own_value(s, statement->u.loop.repeat, false) ||
                         is_own_value(s, statement->u.loop.until, false);
            pass_body(s, &statement->u.loop.body, visit);
            s->around = around;
        } else {
            visit(s, statement);
        }
    }
}

static void pass_all(search *s, void (*visit)(search *, const peal_statement *))
{
    pass_body(s, &s->graph->setup, visit);
    pass_body(s, &s->graph->step.body, visit);
    pass_body(s, &s->graph->finish, visit);
}

/* ---- results ---- */

static peal_alike alike_of(bool own, bool rounded)
{
    return own ? PEAL_OWN_OF_RANK : rounded ? PEAL_SAME_BUT_ROUNDING : PEAL_SAME_BITS;
}

static bool reads_f32(const search *s, const peal_expr *expr)
{
    bool reads =
        expr && expr->kind == PEAL_EXPR_ELEMENT && s->graph->arrays[expr->index].type == PEAL_F32;
    for (int i = 0; expr && i < expr->operand_count && !reads; i++)
        reads = reads_f32(s, expr->operand[i]);
    return reads;
}

/* Of files and rows, once all arrays are known. */
static void conclude(search *s, const peal_statement *statement)
{
    if (statement->kind == PEAL_STATEMENT_SAVE)
        s->out->statement[statement->id] = names_ranks(statement->u.file.file)
                                               ? PEAL_OWN_OF_RANK
                                               : s->out->array[statement->u.file.array];
    if (statement->kind != PEAL_STATEMENT_PRINT)
        return;
    for (int i = 0; i < statement->u.print.item_count; i++) {
        const peal_print_item *item = &statement->u.print.item[i];
        s->changed |= !add_column(s, item->name,
                                  alike_of(s->around || is_own_value(s, item->value, true),
                                           is_rounded_value(s, item->value)),
                                  reads_f32(s, item->value) ? PEAL_F32 : PEAL_F64);
    }
}

/* What buffers begin with. */
static void begin(search *s)
{
    for (int a = 0; a < s->graph->array_count; a++) {
        const peal_array *array = &s->graph->arrays[a];
        bool own = is_own_value(s, array->count, false) || array->data ||
                   array->points.kind != PEAL_POINTS_ONE ||
                   (array->file && names_ranks(array->file));
        for (int i = 0; i < array->value_count; i++)
            own |= is_own_value(s, array->values[i], false);
        learn(s, a, own, false);
    }
}

static void settle(search *s)
{
    do {
        s->changed = false;
        pass_all(s, pass);
    } while (s->changed);
}

peal_likeness *peal_likeness_create(const peal_graph_data *graph)
{
    size_t arrays = (size_t)graph->array_count, statements = (size_t)graph->statement_count;
    peal_likeness *out = calloc(1, sizeof(*out));
    search s = {.graph = graph, .fact = calloc(arrays + 1, sizeof(*s.fact)), .out = out};
    if (out) {
        out->array = calloc(arrays + 1, sizeof(*out->array));
        out->statement = calloc(statements + 1, sizeof(*out->statement));
    }
    if (!out || !s.fact || !out->array || !out->statement) {
        free(s.fact);
        peal_likeness_destroy(out);
        return NULL;
    }
    begin(&s);
    settle(&s);
    for (int a = 0; a < graph->array_count; a++)
        s.fact[a].counts = s.fact[a].added && !s.fact[a].own;
    settle(&s); /* with what follows from it */
    for (int a = 0; a < graph->array_count; a++)
        out->array[a] = alike_of(is_own(&s, a), s.fact[a].rounded);
    s.changed = false;
    pass_all(&s, conclude);
    free(s.fact);
    if (!s.changed)
        return out;
    peal_likeness_destroy(out);
    return NULL;
}

void peal_likeness_destroy(peal_likeness *likeness)
{
    if (!likeness)
        return;
    free(likeness->array);
    free(likeness->statement);
    free(likeness->column);
    free(likeness);
}

peal_alike_column *peal_likeness_column(const peal_likeness *likeness, const char *name)
{
    for (int i = 0; i < likeness->column_count; i++)
        if (!strcmp(likeness->column[i].name, name))
            return &likeness->column[i];
    return NULL;
}
