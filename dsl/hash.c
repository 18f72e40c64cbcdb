/* The hash of a graph's meaning (FNV-1a, 64 bits), and the equality of expressions.
 *
 * Every rank must have the same graph: hashes are compared at start. Places, the graph's name and
 * the spec's file name have no meaning; kernels' and data files' names do. */
#include "base/expression.h"
#include "dsl/resolve.h"

#include <string.h>

typedef uint64_t hash_state;

static void add_byte(hash_state *h, unsigned char byte)
{
    *h = (*h ^ byte) * 1099511628211u;
}

static void add_integer(hash_state *h, int64_t value)
{
    for (int i = 0; i < 8; i++)
        add_byte(h, (unsigned char)((uint64_t)value >> 8 * i));
}

static void add_text(hash_state *h, const char *text)
{
    add_integer(h, text ? (int64_t)strlen(text) : -1);
    for (; text && *text; text++)
        add_byte(h, (unsigned char)*text);
}

static void add_value(hash_state *h, const peal_value *value)
{
    int64_t bits = 0;
    add_integer(h, value->kind);
    if (value->kind == PEAL_TEXT) {
        add_text(h, value->u.text);
        return;
    }
    if (value->kind == PEAL_REAL)
        memcpy(&bits, &value->u.real, sizeof(bits));
    else
        bits = value->kind == PEAL_INTEGER ? value->u.integer : value->u.boolean;
    add_integer(h, bits);
}

static void add_expr(hash_state *h, const peal_expr *expr)
{
    if (!expr) {
        add_integer(h, -1);
        return;
    }
    add_integer(h, expr->kind);
    if (expr->kind == PEAL_EXPR_CONSTANT)
        add_value(h, &expr->value);
    add_integer(h, expr->op);
    add_integer(h, expr->index);
    add_integer(h, expr->axis);
    add_integer(h, expr->operand_count);
    for (int i = 0; i < expr->operand_count; i++)
        add_expr(h, expr->operand[i]);
}

static void add_exprs(hash_state *h, const peal_expr *const *list, int count)
{
    add_integer(h, count);
    for (int i = 0; i < count; i++)
        add_expr(h, list[i]);
}

static void add_amount(hash_state *h, const peal_amount *amount)
{
    add_integer(h, amount->given);
    add_exprs(h, amount->low, PEAL_AXES);
    add_exprs(h, amount->high, PEAL_AXES);
}

static void add_ranges(hash_state *h, const peal_ranges *ranges)
{
    add_integer(h, ranges->axis_count);
    add_exprs(h, ranges->low, PEAL_AXES);
    add_exprs(h, ranges->high, PEAL_AXES);
}

static void add_direction(hash_state *h, const peal_direction *direction)
{
    add_integer(h, direction->axis_count);
    add_exprs(h, direction->step, PEAL_RANK_AXES);
}

static void add_points(hash_state *h, const peal_points *points)
{
    add_integer(h, points->kind);
    add_integer(h, points->array);
    add_amount(h, &points->amount);
    add_ranges(h, &points->ranges);
    add_direction(h, &points->direction);
    add_integer(h, points->part);
    add_amount(h, &points->part_amount);
    add_expr(h, points->count);
    add_expr(h, points->maximum);
}

static void add_array(hash_state *h, const peal_array *array)
{
    add_text(h, array->name);
    add_integer(h, array->kind);
    add_integer(h, array->type);
    add_integer(h, array->axis_count);
    if (array->replicated) /* others have the hash that they had */
        add_integer(h, array->replicated);
    if (array->components)
        add_integer(h, 2 + array->components);
    add_exprs(h, array->size, PEAL_AXES);
    add_amount(h, &array->halo);
    add_exprs(h, array->align, PEAL_AXES);
    add_exprs(h, array->stagger, PEAL_AXES);
    add_exprs(h, array->coarsen, PEAL_AXES);
    add_expr(h, array->count);
    add_points(h, &array->points);
    add_text(h, array->file);
    add_exprs(h, array->values, array->value_count);
    add_integer(h, array->keep);
    add_integer(h, array->data != NULL); /* lent memory is outside the segment: layouts differ */
}

static void add_reductions(hash_state *h, const peal_reduction *item, int count)
{
    add_integer(h, count);
    for (int i = 0; i < count; i++) {
        add_integer(h, item[i].array);
        add_integer(h, item[i].combine);
    }
}

static void add_task(hash_state *h, const peal_task_statement *task)
{
    add_text(h, task->kernel);
    add_points(h, &task->box);
    add_integer(h, task->tile_given);
    add_integer(h, task->tile_whole);
    add_exprs(h, task->tile, PEAL_AXES);
    add_integer(h, task->access_count);
    for (int i = 0; i < task->access_count; i++) {
        const peal_access *access = &task->access[i];
        add_integer(h, access->array);
        add_integer(h, access->mode);
        add_integer(h, access->footprint);
        add_amount(h, &access->amount);
        add_ranges(h, &access->ranges);
        add_expr(h, access->per_tile);
        if (access->stale_is_meant)
            add_text(h, "stale");
    }
    add_reductions(h, task->reduction, task->reduction_count);
    add_exprs(h, task->argument, task->argument_count);
    add_integer(h, task->independent);
    /* addresses differ between processes; what they are of does not */
    if (task->cuda_function || task->enqueue) {
        add_integer(h, task->enqueue != NULL);
        add_integer(h, task->cuda_threads);
    }
}

static void add_message(hash_state *h, const peal_message_statement *message)
{
    add_points(h, &message->points);
    add_integer(h, message->peers.kind);
    add_direction(h, &message->peers.direction);
    add_expr(h, message->peers.rank);
    add_exprs(h, message->peers.ranks, message->peers.rank_count);
    add_integer(h, message->peers.list);
    add_integer(h, message->peers.axis);
    add_expr(h, message->tag);
    add_integer(h, message->offsets);
    add_expr(h, message->offset);
    add_integer(h, message->count);
}

static void add_body(hash_state *h, const peal_body *body);

static void add_loop(hash_state *h, const peal_loop *loop)
{
    add_text(h, loop->counter);
    add_expr(h, loop->repeat);
    add_expr(h, loop->until);
    add_expr(h, loop->every);
    add_expr(h, loop->lag);
    add_body(h, &loop->body);
}

static void add_kind(hash_state *h, const peal_statement *s)
{
    switch (s->kind) {
    case PEAL_STATEMENT_TASK:
        add_task(h, &s->u.task);
        break;
    case PEAL_STATEMENT_EXCHANGE:
        for (int i = 0; i < s->u.exchange.item_count; i++) {
            add_integer(h, s->u.exchange.item[i].array);
            if (s->u.exchange.item[i].into >= 0)
                add_integer(h, s->u.exchange.item[i].into);
            add_integer(h, s->u.exchange.item[i].footprint);
            add_amount(h, &s->u.exchange.item[i].amount);
        }
        break;
    case PEAL_STATEMENT_SEND:
    case PEAL_STATEMENT_RECV:
        add_message(h, &s->u.message);
        break;
    case PEAL_STATEMENT_REDUCE:
        add_reductions(h, s->u.reduce.item, s->u.reduce.item_count);
        add_expr(h, s->u.reduce.root);
        add_integer(h, s->u.reduce.along);
        break;
    case PEAL_STATEMENT_SWAP:
        add_integer(h, s->u.swap.first);
        add_integer(h, s->u.swap.second);
        break;
    case PEAL_STATEMENT_SET:
        add_integer(h, s->u.set.array);
        add_expr(h, s->u.set.value);
        break;
    case PEAL_STATEMENT_PRINT:
        for (int i = 0; i < s->u.print.item_count; i++) {
            add_text(h, s->u.print.item[i].name);
            add_expr(h, s->u.print.item[i].value);
        }
        break;
    case PEAL_STATEMENT_LOAD:
    case PEAL_STATEMENT_SAVE:
        add_integer(h, s->u.file.array);
        add_text(h, s->u.file.file);
        break;
    case PEAL_STATEMENT_REPEAT:
        add_loop(h, &s->u.loop);
        break;
    }
}

static void add_body(hash_state *h, const peal_body *body)
{
    add_integer(h, body->count);
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        add_integer(h, s->kind);
        add_text(h, s->name);
        add_expr(h, s->when);
        add_integer(h, s->after_count);
        for (int k = 0; k < s->after_count; k++)
            add_integer(h, s->after[k]);
        add_kind(h, s);
    }
}

static void add_texts(hash_state *h, const char *const *text, int count)
{
    add_integer(h, count);
    for (int i = 0; i < count; i++)
        add_text(h, text[i]);
}

uint64_t peal_hash_graph(const peal_graph_data *data)
{
    hash_state h = 14695981039346656037u;
    add_integer(&h, data->param_count);
    for (int i = 0; i < data->param_count; i++) {
        add_text(&h, data->params[i].name);
        add_value(&h, &data->params[i].value);
    }
    add_integer(&h, data->topology.given);
    add_integer(&h, data->topology.axis_count);
    for (int k = 0; k < PEAL_RANK_AXES; k++) {
        add_expr(&h, data->topology.dims[k]);
        add_integer(&h, data->topology.periodic[k]);
        add_integer(&h, data->topology.cut_count[k]);
        for (int i = 0; i < data->topology.cut_count[k]; i++)
            add_expr(&h, data->topology.cut[k][i]);
    }
    add_integer(&h, data->array_count);
    for (int i = 0; i < data->array_count; i++)
        add_array(&h, &data->arrays[i]);
    add_texts(&h, data->kernels, data->kernel_count);
    add_integer(&h, data->fma);
    add_texts(&h, data->require, data->require_count);
    add_body(&h, &data->setup);
    add_loop(&h, &data->step);
    add_body(&h, &data->finish);
    return h;
}
