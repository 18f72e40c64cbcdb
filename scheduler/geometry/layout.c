/* Stage 1, geometry: which points of every array a rank owns and stores, and how they lie in
 * memory. */
#include "scheduler/geometry/geometry.h"

#include <string.h>

/* Rows of so many lines are padded. */
enum { SHORTEST_PADDED_LINES = 4 };

peal_status set_dense_layout(const pass_context *pass, peal_layout *layout, const peal_box *stored,
                             peal_type type, peal_source source, const char *name)
{
    int64_t elements = 1;
    bool overflow = false;
    for (int k = 0; k < PEAL_AXES; k++) {
        layout->stride[k] = elements;
        overflow |= peal_multiply_overflows(elements, stored->hi[k] - stored->lo[k], &elements);
    }
    overflow |= peal_multiply_overflows(elements, (int64_t)peal_type_bytes(type), &layout->bytes);
    if (overflow || layout->bytes > INT64_MAX / 4)
        return peal_report(pass->diagnostics, PEAL_E_SIZE_OUT_OF_RANGE, source,
                           "make it smaller, or use more ranks",
                           "the memory of `%s` on one rank overflows 62 bits", name);
    layout->stored = *stored;
    return PEAL_STATUS_OK;
}

static bool is_anything_lent(const peal_graph_data *graph)
{
    for (int i = 0; i < graph->array_count; i++)
        if (graph->arrays[i].data)
            return true;
    return false;
}

/* Long rows begin where the machine wants them to: those of the part, not of the halo
 * (lay_out_arrays). They are as many whole units of `align`: an exchange has points of several
 * components. */
static peal_status pad_rows(const common_input *c, const pass_context *pass, peal_layout *layout,
                            const peal_array *a, const field_shape *s)
{
    peal_box padded = layout->stored;
    const int64_t line = c->traits->row_bytes / (int64_t)peal_type_bytes(a->type);
    const int64_t unit = s->align[0] % s->coarsen[0] ? 1 : s->align[0] / s->coarsen[0];
    const int64_t each = line ? line / peal_greatest_divisor(line, unit) * unit : 0;
    const int64_t length = padded.hi[0] - padded.lo[0];

    if (!each || a->axis_count < 2 || length < SHORTEST_PADDED_LINES * line ||
        is_anything_lent(c->graph))
        return PEAL_STATUS_OK;
    padded.hi[0] = padded.lo[0] + (length + each - 1) / each * each;
    peal_box stored = layout->stored;
    peal_status status = set_dense_layout(pass, layout, &padded, a->type, a->source, a->name);
    layout->stored = stored;
    return status;
}

static peal_status check_part(const common_input *c, const pass_context *pass, const rank_view *v,
                              int array, const field_shape *s, int k, int64_t extent)
{
    const peal_array *a = &c->graph->arrays[array];
    if (extent < 1)
        return peal_report(pass->diagnostics, PEAL_E_MORE_RANKS_THAN_POINTS, a->source,
                           "use fewer ranks along this axis, or a larger field",
                           "field `%s`: %lld points (align %lld) along axis %c are too few for %d "
                           "ranks: rank %d has "
                           "none",
                           a->name, (long long)s->whole[k], (long long)s->align[k], "xyzw"[k],
                           ranks_along(c, array, k), v -> rank);
    bool below = has_neighbour(c, v, array, k, 0), above = has_neighbour(c, v, array, k, 1);
    /* the neighbour below stores halo[1] of mine, the one above halo[0] */
    if ((below && s->halo[k][1] > extent) || (above && s->halo[k][0] > extent))
        return peal_report(pass->diagnostics, PEAL_E_HALO_TOO_WIDE,
                           a->halo.source.line ? a->halo.source : a->source,
                           "use a narrower halo, fewer ranks along this axis, or a larger field",
                           "field `%s`: the halo of %lld and %lld points along axis %c is wider "
                           "than the %lld points "
                           "of rank %d",
                           a->name, (long long)s->halo[k][0], (long long)s->halo[k][1], "xyzw"[k],
                           (long long)extent, v -> rank);
    return PEAL_STATUS_OK;
}

static peal_status lay_out_field(const common_input *c, const pass_context *pass, rank_view *v,
                                 int array)
{
    const peal_array *a = &c->graph->arrays[array];
    peal_layout *layout = &v->layout[array];
    field_shape s;
    peal_status status = shape_of(c, pass, &v->scope, array, &s);
    const int axes = peal_stored_axes(a);
    peal_box part = {.axis_count = axes, .hi = {1, 1, 1, 1}}, own, stored;
    for (int k = 0; !status && k < axes; k++) {
        int position = k < PEAL_RANK_AXES ? v->position[k] : 0;
        part_along(&s, k, position, ranks_along(c, array, k), &part.lo[k], &part.hi[k]);
        status = check_part(c, pass, v, array, &s, k, part.hi[k] - part.lo[k]);
    }
    if (status)
        return status;
    own = stored = part;
    for (int k = 0; k < axes; k++)
        for (int side = 0; side < 2; side++) {
            int64_t *grown = side ? &stored.hi[k] : &stored.lo[k];
            *grown += side ? s.halo[k][1] : -s.halo[k][0];
            if (!has_neighbour(c, v, array, k, side))
                *(side ? &own.hi[k] : &own.lo[k]) = *grown;
        }
    layout->part = part;
    layout->own = own;
    status = set_dense_layout(pass, layout, &stored, a->type, a->source, a->name);
    return status ? status : pad_rows(c, pass, layout, a, &s);
}

static peal_status buffer_count(const common_input *c, const pass_context *pass, const rank_view *v,
                                int array, int64_t *count)
{
    const peal_array *a = &c->graph->arrays[array];
    if (a->file || a->values) {
        peal_constant constant;
        if (!c->graph->constant)
            return peal_report(pass->diagnostics, PEAL_E_INTERNAL, a->source, NULL,
                               "`%s` has no contents", a->name);
        peal_status status =
            c->graph->constant(c->graph, array, v->rank, c->machine.ranks, false, &constant);
        *count = constant.count;
        return status;
    }
    peal_status status = peal_expr_integer(a->count, &v->scope, 1, count, pass->diagnostics);
    if (!status && *count < 0)
        status = peal_report(pass->diagnostics, PEAL_E_INVALID_BUFFER_EXTENT, a->count->source,
                             "a buffer has 0 or more elements",
                             "buffer `%s` has %lld elements on rank %d", a->name, (long long)*count,
                             v->rank);
    return status;
}

static peal_status lay_out_buffer(const common_input *c, const pass_context *pass, rank_view *v,
                                  int array)
{
    const peal_array *a = &c->graph->arrays[array];
    peal_layout *layout = &v->layout[array];
    peal_box stored = {.axis_count = 1, .hi = {1, 1, 1, 1}};
    peal_status status = PEAL_STATUS_OK;
    if (a->points.kind != PEAL_POINTS_ONE) {
        box_list list;
        status = points_of(c, pass, v, &a->points, &list);
        leave_components(c, &a->points, &list);
        if (!status && list.count > 1)
            status = peal_report(pass->diagnostics, PEAL_E_INVALID_BUFFER_EXTENT, a->points.source,
                                 "give a box that is one piece",
                                 "the points of buffer `%s` are %d boxes on rank %d", a->name,
                                 list.count, v->rank);
        if (!status && list.count == 1)
            stored = list.box[0];
        else
            stored.hi[0] = 0;
    } else
        status = buffer_count(c, pass, v, array, &stored.hi[0]);
    if (status)
        return status;
    layout->part = layout->own = stored;
    return set_dense_layout(pass, layout, &stored, a->type, a->source, a->name);
}

peal_status make_geometry(const common_input *c, const pass_context *pass, rank_view *v)
{
    peal_status first = PEAL_STATUS_OK;
    v->layout = PEAL_ARENA_ARRAY(pass->arena, peal_layout, array_total(c));
    v->scope.layout = v->layout;
    for (int round = 0; round < 2; round++) /* boxes of buffers may use the extents of fields */
        for (int i = 0; i < c->graph->array_count; i++) {
            if ((c->graph->arrays[i].kind == PEAL_ARRAY_FIELD) != (round == 0) || (first && round))
                continue;
            peal_status status =
                round == 0 ? lay_out_field(c, pass, v, i) : lay_out_buffer(c, pass, v, i);
            if (status && !first)
                first = status;
        }
    return first ? first : check_swaps(c, pass, v);
}
