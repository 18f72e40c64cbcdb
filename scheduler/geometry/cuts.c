/* What may be cut: along which axes more than one rank gives every field and tile a meaning that
 * does not depend on the number of ranks.
 *
 * A field without an axis that is cut would have a copy on each rank of a column, and a task that
 * visits its points would have only its rank's part of that axis of other fields. A tile that is
 * larger than a rank's part never has the points that it was written for. */
#include "scheduler/geometry/geometry.h"

#include <string.h>

static bool is_field(const common_input *c, int array)
{
    return array >= 0 && c->graph->arrays[array].kind == PEAL_ARRAY_FIELD;
}

/* The points that the largest tile of a task may have along an axis; 0: it says nothing that is
 * known for all ranks. */
static int64_t tile_along(const common_input *c, const peal_task_statement *task, int axis,
                          const int dims[PEAL_RANK_AXES])
{
    peal_scope scope = {.graph = c->graph, .ranks = c->machine.ranks};
    int64_t points;
    memcpy(scope.dims, dims, sizeof(scope.dims));
    const peal_expr *tile = task->tile[axis];
    if (!task->tile_given || task->tile_whole || !tile || peal_expr_uses(tile) ||
        peal_expr_integer(tile, &scope, 0, &points, NULL))
        return 0;
    return points;
}

static int64_t largest_part(const field_shape *shape, int axis, int ranks)
{
    int64_t most = 0, lo, hi;
    int step = shape->cut[axis] || ranks < 2 ? 1 : ranks - 1; /* equal parts: the ends will do */
    for (int position = 0; position < ranks; position += step) {
        part_along(shape, axis, position, ranks, &lo, &hi);
        most = hi - lo > most ? hi - lo : most;
    }
    return most;
}

/* The first axis along which a tile is larger than all parts; -1: none. */
static int tile_too_large(const common_input *c, const peal_task_statement *task,
                          const field_shape *shape, const int dims[PEAL_RANK_AXES])
{
    for (int k = 0; k < shape->axis_count && k < PEAL_RANK_AXES; k++)
        if (dims[k] > 1 && tile_along(c, task, k, dims) > largest_part(shape, k, dims[k]))
            return k;
    return -1;
}

void read_cut_rules(const common_input *c, const pass_context *pass, cut_rules *out)
{
    int arrays = c->graph->array_count;
    const pass_context quiet = {pass->arena, NULL}; /* whoever makes layouts reports */
    peal_scope scope = {.graph = c->graph, .ranks = c->machine.ranks};
    *out = (cut_rules){.shape = PEAL_ARENA_ARRAY(pass->arena, field_shape, arrays + 1),
                       .known = PEAL_ARENA_ARRAY(pass->arena, bool, arrays + 1)};
    for (int i = 0; i < arrays; i++) {
        if (!is_field(c, i))
            continue;
        if (c->graph->arrays[i].replicated)
            continue; /* it decides nothing */
        out->known[i] = !shape_of(c, &quiet, &scope, i, &out->shape[i]);
        for (int k = c->graph->arrays[i].axis_count; k < PEAL_RANK_AXES; k++)
            out->uncut[k] = true;
    }
}

int cut_suits(const common_input *c, const cut_rules *rules, const int dims[PEAL_RANK_AXES])
{
    for (int k = 0; k < PEAL_RANK_AXES; k++)
        if (dims[k] > 1 && rules->uncut[k])
            return 0;
    for (int i = 0; i < c->graph->statement_count; i++) {
        const peal_statement *s = c->statement[i];
        int array = s && s->kind == PEAL_STATEMENT_TASK ? s->u.task.box.array : -1;
        if (is_field(c, array) && rules->known[array] &&
            tile_too_large(c, &s->u.task, &rules->shape[array], dims) >= 0)
            return 1;
    }
    return 2;
}

/* ---- Reports ---- */

static peal_status check_fields(const common_input *c, const pass_context *pass)
{
    peal_status first = PEAL_STATUS_OK;
    for (int i = 0; i < c->graph->array_count; i++) {
        const peal_array *a = &c->graph->arrays[i];
        int axis = a->axis_count;
        while (axis < PEAL_RANK_AXES && c->dims[axis] < 2)
            axis++;
        if (!is_field(c, i) || axis >= PEAL_RANK_AXES || a->replicated)
            continue;
        peal_status status = peal_report(
            pass->diagnostics, PEAL_E_FIELD_LACKS_CUT_AXIS, a->source,
            "give it that axis, cut another one (`topology: {dims: ...}`), or say `replicated: "
            "true` if "
            "every rank is to have all of it",
            "field `%s` has no axis %c, which the topology cuts in %d: each of these ranks would "
            "have a copy of its own",
            a->name, "xyz"[axis], c -> dims[axis]);
        first = first ? first : status;
    }
    return first;
}

static peal_status check_tile(const common_input *c, const pass_context *pass,
                              const cut_rules *rules, const peal_statement *s)
{
    int array = s->u.task.box.array;
    if (!is_field(c, array) || !rules->known[array])
        return PEAL_STATUS_OK;
    int axis = tile_too_large(c, &s->u.task, &rules->shape[array], c->dims);
    if (axis < 0)
        return PEAL_STATUS_OK;
    return peal_report(
        pass->diagnostics, PEAL_E_TILE_LARGER_THAN_PART, s->u.task.tile[axis]->source,
        "make the tile smaller, cut another axis (`topology: {dims: ...}`), or run on fewer ranks",
        "a tile of task `%s` has %lld points along axis %c, but the %d ranks there have at most "
        "%lld of `%s` each",
        s->name, (long long)tile_along(c, &s->u.task, axis, c->dims), "xyz"[axis], c -> dims[axis],
        (long long)largest_part(&rules->shape[array], axis, c->dims[axis]),
        c -> graph -> arrays[array].name);
}

peal_status check_cuts(const common_input *c, const pass_context *pass)
{
    cut_rules rules;
    read_cut_rules(c, pass, &rules);
    peal_status first = check_fields(c, pass);
    for (int i = 0; i < c->graph->statement_count; i++) {
        const peal_statement *s = c->statement[i];
        if (!s || s->kind != PEAL_STATEMENT_TASK)
            continue;
        peal_status status = check_tile(c, pass, &rules, s);
        first = first ? first : status;
    }
    return first;
}
