/* Points: which boxes of points `box:`, `border`, `halo` and ranges mean on a rank (SPEC §4). */
#include "scheduler/geometry/geometry.h"

peal_status ranges_of(const pass_context *pass, const peal_scope *scope, const peal_ranges *ranges,
                      peal_box *out)
{
    peal_box box = {.axis_count = ranges->axis_count, .hi = {1, 1, 1, 1}};
    for (int k = 0; k < ranges->axis_count; k++) {
        peal_status status =
            peal_expr_integer(ranges->low[k], scope, 0, &box.lo[k], pass->diagnostics);
        if (!status)
            status = peal_expr_integer(ranges->high[k], scope, 0, &box.hi[k], pass->diagnostics);
        if (!status && (box.hi[k] < box.lo[k] || box.lo[k] < INT32_MIN || box.hi[k] > INT32_MAX))
            status = peal_report(pass->diagnostics, PEAL_E_NEGATIVE_RANGE, ranges->source,
                                 "write [low, end] with low <= end",
                                 "the range [%lld, %lld) of axis %c has a negative extent",
                                 (long long)box.lo[k], (long long)box.hi[k], "xyzw"[k]);
        if (status)
            return status;
    }
    *out = box;
    return PEAL_STATUS_OK;
}

peal_status direction_of(const pass_context *pass, const peal_scope *scope,
                         const peal_direction *direction, int out[PEAL_RANK_AXES])
{
    for (int k = 0; k < PEAL_RANK_AXES; k++) {
        int64_t step = 0;
        if (k < direction->axis_count) {
            peal_status status =
                peal_expr_integer(direction->step[k], scope, 0, &step, pass->diagnostics);
            if (status)
                return status;
        }
        if (step < -1 || step > 1)
            return peal_report(pass->diagnostics, PEAL_E_DIRECTION_OUT_OF_RANGE, direction->source,
                               "each step is -1, 0 or 1",
                               "direction has a step of %lld along axis %c", (long long)step,
                               "xyz"[k]);
        out[k] = (int)step;
    }
    return PEAL_STATUS_OK;
}

/* The global box [0, size) grown by amount. */
static peal_box global_box(const field_shape *s, const int64_t amount[PEAL_AXES][2])
{
    peal_box box = {.axis_count = s->axis_count, .hi = {1, 1, 1, 1}};
    for (int k = 0; k < s->axis_count; k++) {
        box.lo[k] = -amount[k][0];
        box.hi[k] = s->size[k] + amount[k][1];
    }
    return box;
}

static peal_status grow_points(const common_input *c, const pass_context *pass, const rank_view *v,
                               const peal_points *p, const field_shape *s, box_list *out)
{
    int64_t amount[PEAL_AXES][2];
    peal_status status = amount_of(pass, &v->scope, &p->amount, amount);
    for (int k = 0; !status && k < s->axis_count; k++)
        for (int side = 0; side < 2; side++)
            if (amount[k][side] > s->halo[k][side] && !(k < PEAL_RANK_AXES && c->periodic[k]))
                status = peal_report(pass->diagnostics, PEAL_E_BOX_OUT_OF_BOUNDS, p->source,
                                     "grow by at most the field's halo",
                                     "the box grows %lld points beyond the end of `%s` along axis "
                                     "%c; its halo is %lld",
                                     (long long)amount[k][side], array_name(c, p->array), "xyzw"[k],
                                     (long long)s -> halo[k][side]);
    if (status)
        return status;
    peal_box grown = global_box(s, (const int64_t(*)[2])amount);
    out->box[0] = peal_box_intersect(&grown, &v->layout[p->array].own);
    out->count = 1;
    return PEAL_STATUS_OK;
}

static peal_status rim_points(const pass_context *pass, const rank_view *v, const peal_points *p,
                              const field_shape *s, box_list *out)
{
    int64_t amount[PEAL_AXES][2];
    peal_status status = amount_of(pass, &v->scope, &p->amount, amount);
    if (status)
        return status;
    for (int k = 0; k < PEAL_AXES; k++) {
        if (amount[k][0] < 0 || amount[k][1] < 0)
            return peal_report(pass->diagnostics, PEAL_E_VALUE_OUT_OF_RANGE, p->source,
                               "a rim is how many points wide the field's border is: 1, or more",
                               "the rim is %lld points wide",
                               (long long)(amount[k][0] < 0 ? amount[k][0] : amount[k][1]));
        amount[k][0] = -amount[k][0], amount[k][1] = -amount[k][1];
    }
    peal_box inside = global_box(s, (const int64_t(*)[2])amount);
    subtract_box(&v->layout[p->array].part, &inside, out);
    return PEAL_STATUS_OK;
}

/* Axes for which no range is given are taken whole. */
static void whole_axes(const peal_box *all, peal_box *box)
{
    for (; box->axis_count < all->axis_count; box->axis_count++) {
        box->lo[box->axis_count] = all->lo[box->axis_count];
        box->hi[box->axis_count] = all->hi[box->axis_count];
    }
}

static peal_status range_points(const common_input *c, const pass_context *pass, const rank_view *v,
                                const peal_points *p, const field_shape *s, box_list *out)
{
    peal_box box;
    peal_status status = ranges_of(pass, &v->scope, &p->ranges, &box);
    if (status)
        return status;
    out->count = 1;
    if (p->array < 0) {
        out->box[0] = box;
        return PEAL_STATUS_OK;
    }
    const peal_layout *layout = &v->layout[p->array];
    if (c->graph->arrays[p->array].kind == PEAL_ARRAY_BUFFER) {
        whole_axes(&layout->stored, &box);
        if (!peal_box_contains(&layout->stored, &box))
            return peal_report(pass->diagnostics, PEAL_E_BOX_OUT_OF_BOUNDS, p->source,
                               "stay within the buffer's elements",
                               "[%lld, %lld) is outside `%s`, which has %lld elements on rank %d",
                               (long long)box.lo[0], (long long)box.hi[0], array_name(c, p->array),
                               (long long)layout->stored.hi[0], v->rank);
        out->box[0] = box;
        return PEAL_STATUS_OK;
    }
    int given = box.axis_count;
    whole_axes(&layout->own, &box);
    for (int k = 0; k < given; k++)
        if (box.lo[k] < -s->halo[k][0] || box.hi[k] > s->size[k] + s->halo[k][1])
            return peal_report(
                pass->diagnostics, PEAL_E_BOX_OUT_OF_BOUNDS, p->source,
                "stay within the field and its ghost points",
                "[%lld, %lld) along axis %c is outside `%s`, which has points [%lld, %lld) there",
                (long long)box.lo[k], (long long)box.hi[k], "xyzw"[k], array_name(c, p->array),
                (long long)-s->halo[k][0], (long long)(s->size[k] + s->halo[k][1]));
    out->box[0] = peal_box_intersect(&box, &layout->own);
    return PEAL_STATUS_OK;
}

/* The direction of a border, a halo or a ghost box, along the field's axes. */
static peal_status points_direction(const common_input *c, const pass_context *pass,
                                    const rank_view *v, const peal_points *p,
                                    int direction[PEAL_RANK_AXES])
{
    peal_status status = direction_of(pass, &v->scope, &p->direction, direction);
    for (int k = 0; !status && k < PEAL_RANK_AXES; k++)
        if (direction[k] && k >= c->graph->arrays[p->array].axis_count)
            status = peal_report(pass->diagnostics, PEAL_E_DIRECTION_OUT_OF_RANGE,
                                 p->direction.source, "use the field's axes only",
                                 "`%s` has no axis %c", array_name(c, p->array), "xyz"[k]);
    return status;
}

static peal_status directed_points(const common_input *c, const pass_context *pass,
                                   const rank_view *v, const peal_points *p, const field_shape *s,
                                   box_list *out)
{
    int direction[PEAL_RANK_AXES];
    peal_status status = points_direction(c, pass, v, p, direction);
    if (status)
        return status;
    if (halo_owner(c, v, p->array, direction) < 0)
        return PEAL_STATUS_OK;
    out->box[0] = p->kind == PEAL_POINTS_HALO ? halo_box(v, p->array, s->halo, direction)
                                              : border_box(v, p->array, s->halo, direction);
    out->count = 1;
    return PEAL_STATUS_OK;
}

/* Why no rank has ghost points there; NULL: some may. */
static const char *lack_of_ghosts(const common_input *c, const field_shape *s,
                                  const int direction[PEAL_RANK_AXES])
{
    bool any = false;
    for (int k = 0; k < PEAL_RANK_AXES; k++) {
        any |= direction[k] != 0;
        if (direction[k] && c->periodic[k])
            return "an axis of the direction is periodic, and has no end";
        if (direction[k] && s->halo[k][direction[k] > 0] == 0)
            return "its `halo` there is 0";
    }
    return any ? NULL : "the direction leads nowhere";
}

static peal_status ghost_points(const common_input *c, const pass_context *pass, const rank_view *v,
                                const peal_points *p, const field_shape *s, box_list *out)
{
    int direction[PEAL_RANK_AXES];
    peal_status status = points_direction(c, pass, v, p, direction);
    if (status)
        return status;
    const char *lack = lack_of_ghosts(c, s, direction);
    if (lack)
        return peal_report(pass->diagnostics, PEAL_E_UNSUITABLE_BOX, p->direction.source,
                           "a ghost box lies beyond an end of the domain at which the field has a "
                           "halo: {u: {ghost: [-1, 0]}}",
                           "`%s` has no ghost points there (rank %d): %s", array_name(c, p->array),
                           v->rank, lack);
    peal_box box = v->layout[p->array].own;
    for (int k = 0; k < PEAL_RANK_AXES; k++) {
        if (!direction[k])
            continue;
        if (has_neighbour(c, v, p->array, k, direction[k] > 0))
            return PEAL_STATUS_OK;
        if (direction[k] < 0)
            box.hi[k] = 0;
        else
            box.lo[k] = s->size[k];
    }
    out->box[0] = box;
    out->count = 1;
    return PEAL_STATUS_OK;
}

peal_status beside_ghosts(const common_input *c, const pass_context *pass, const rank_view *v,
                          const peal_points *p, int array, peal_box *out)
{
    int direction[PEAL_RANK_AXES];
    field_shape ghosts, inside;
    peal_status status = shape_of(c, pass, &v->scope, p->array, &ghosts);
    status = status ? status : shape_of(c, pass, &v->scope, array, &inside);
    status = status ? status : points_direction(c, pass, v, p, direction);
    for (int k = 0; !status && k < PEAL_AXES; k++) {
        out->lo[k] = out->hi[k] = 0;
        if (k >= PEAL_RANK_AXES || k >= c->graph->arrays[array].axis_count || !direction[k])
            continue;
        bool end = direction[k] > 0;
        int64_t size = inside.size[k], width = ghosts.halo[k][end];
        width = width < size ? width : size;
        out->lo[k] = end ? size - width : 0;
        out->hi[k] = out->lo[k] + width;
    }
    return status;
}

/* My part less what lies within the halo's width of a neighbouring rank. */
static peal_box interior_of(const common_input *c, const rank_view *v, int array,
                            const field_shape *s)
{
    peal_box box = v->layout[array].own;
    for (int k = 0; k < s->axis_count; k++) {
        int64_t width = s->halo[k][0] > s->halo[k][1] ? s->halo[k][0] : s->halo[k][1];
        if (has_neighbour(c, v, array, k, 0))
            box.lo[k] += width;
        if (has_neighbour(c, v, array, k, 1))
            box.hi[k] -= width;
    }
    return box;
}

/* All points of the box, over all ranks. */
static peal_status global_points(const pass_context *pass, const rank_view *v, const peal_points *p,
                                 const field_shape *s, peal_box *out)
{
    int64_t amount[PEAL_AXES][2] = {{0}};
    peal_status status = PEAL_STATUS_OK;
    if (p->kind == PEAL_POINTS_GROW)
        status = amount_of(pass, &v->scope, &p->amount, amount);
    *out = global_box(s, (const int64_t(*)[2])amount);
    peal_box ranges;
    if (p->kind != PEAL_POINTS_RANGES)
        return status;
    status = ranges_of(pass, &v->scope, &p->ranges, &ranges);
    for (int k = 0; !status && k < s->axis_count; k++) {
        bool given = k < ranges.axis_count;
        out->lo[k] = given ? ranges.lo[k] : -s->halo[k][0];
        out->hi[k] = given ? ranges.hi[k] : s->size[k] + s->halo[k][1];
    }
    return status;
}

/* Cuts [*lo, *hi) to the points of [low, high) and, if periodic, their images; false: these are
 * several pieces. */
static bool cut_with_images(int64_t low, int64_t high, bool periodic, int64_t size, int64_t *lo,
                            int64_t *hi)
{
    int64_t from = *lo, to = *hi, end = from;
    bool any = false;
    if (periodic)
        low = low > 0 ? low : 0, high = high < size ? high : size;
    for (int image = periodic ? -1 : 0; image <= (periodic ? 1 : 0); image++) {
        int64_t first = low + image * size, last = high + image * size;
        first = first > from ? first : from;
        last = last < to ? last : to;
        if (first >= last)
            continue;
        if (any && first != end)
            return false;
        *lo = any ? *lo : first;
        *hi = end = last;
        any = true;
    }
    if (!any)
        *hi = *lo;
    return true;
}

static peal_status extend_part(const common_input *c, const pass_context *pass, const rank_view *v,
                               const peal_points *p, const field_shape *s, box_list *list)
{
    int64_t amount[PEAL_AXES][2];
    peal_box all, box = v->layout[p->array].own;
    peal_status status = amount_of(pass, &v->scope, &p->part_amount, amount);
    if (!status)
        status = global_points(pass, v, p, s, &all);
    bool one_piece = p->kind != PEAL_POINTS_RIM;
    for (int k = 0; !status && k < s->axis_count; k++) {
        for (int side = 0; side < 2; side++) {
            if (amount[k][side] < 0 || amount[k][side] > s->halo[k][side])
                return peal_report(
                    pass->diagnostics, PEAL_E_BOX_OUT_OF_BOUNDS, p->source,
                    amount[k][side] < 0
                        ? "extend by 0 points or more; `grow` with a negative amount shrinks a box"
                        : "extend by at most the field's halo",
                    "`part` extends %lld points along axis %c; the halo of `%s` is %lld",
                    (long long)amount[k][side], "xyzw"[k], array_name(c, p->array),
                    (long long)s -> halo[k][side]);
            if (has_neighbour(c, v, p->array, k, side))
                *(side ? &box.hi[k] : &box.lo[k]) += side ? amount[k][1] : -amount[k][0];
        }
        bool periodic = k < PEAL_RANK_AXES && c->periodic[k];
        one_piece &=
            cut_with_images(all.lo[k], all.hi[k], periodic, s->size[k], &box.lo[k], &box.hi[k]);
    }
    if (!status && !one_piece)
        status = peal_report(pass->diagnostics, PEAL_E_UNSUITABLE_BOX, p->source,
                             "use a box that is one piece with its images",
                             "the points of `part` are several boxes on rank %d", v->rank);
    list->box[0] = box;
    list->count = 1;
    return status;
}

static peal_status take_part(const common_input *c, const pass_context *pass, const rank_view *v,
                             const peal_points *p, const field_shape *s, box_list *list)
{
    if (p->part == PEAL_PART_ALL)
        return PEAL_STATUS_OK;
    if (p->part == PEAL_PART_EXTENDED)
        return extend_part(c, pass, v, p, s, list);
    if (list->count > 1)
        return peal_report(pass->diagnostics, PEAL_E_UNSUITABLE_BOX, p->source,
                           "use `part` with a box that is one piece",
                           "`part` of a rim of several pieces");
    peal_box inside = interior_of(c, v, p->array, s);
    if (!list->count)
        return PEAL_STATUS_OK;
    peal_box box = list->box[0];
    list->count = 0;
    if (p->part == PEAL_PART_INTERIOR) {
        list->box[0] = peal_box_intersect(&box, &inside);
        list->count = 1;
    } else
        subtract_box(&box, &inside, list);
    return PEAL_STATUS_OK;
}

static peal_status points_of_array(const common_input *c, const pass_context *pass,
                                   const rank_view *v, const peal_points *p, box_list *out)
{
    field_shape s = {0};
    bool is_field = c->graph->arrays[p->array].kind == PEAL_ARRAY_FIELD;
    peal_status status = is_field ? shape_of(c, pass, &v->scope, p->array, &s) : PEAL_STATUS_OK;
    if (status)
        return status;
    if (!is_field && p->kind != PEAL_POINTS_ALL && p->kind != PEAL_POINTS_RANGES)
        return peal_report(pass->diagnostics, PEAL_E_UNSUITABLE_BOX, p->source,
                           "only fields have ends, borders and halos", "`%s` is a buffer",
                           array_name(c, p->array));
    switch (p->kind) {
    case PEAL_POINTS_ALL:
        out->box[0] = v->layout[p->array].part;
        out->count = 1;
        break;
    case PEAL_POINTS_GROW:
        status = grow_points(c, pass, v, p, &s, out);
        break;
    case PEAL_POINTS_RIM:
        status = rim_points(pass, v, p, &s, out);
        break;
    case PEAL_POINTS_RANGES:
        status = range_points(c, pass, v, p, &s, out);
        break;
    case PEAL_POINTS_GHOST:
        status = ghost_points(c, pass, v, p, &s, out);
        break;
    default:
        status = directed_points(c, pass, v, p, &s, out);
        break;
    }
    return status || !is_field ? status : take_part(c, pass, v, p, &s, out);
}

/* What may be visited. */
static peal_status counted_points(const pass_context *pass, const rank_view *v,
                                  const peal_points *p, box_list *out)
{
    int64_t most;
    peal_status status = peal_expr_integer(p->maximum, &v->scope, 0, &most, pass->diagnostics);
    if (status)
        return status;
    if (most < 1 || most >= INT32_MAX)
        return peal_report(pass->diagnostics, PEAL_E_SIZE_OUT_OF_RANGE, p->maximum->source,
                           "give 1 or more, and fewer than 2^31 points",
                           "a box of at most %lld points on rank %d", (long long)most, v->rank);
    out->box[0] = (peal_box){.axis_count = 1, .hi = {most, 1, 1, 1}};
    out->count = 1;
    return PEAL_STATUS_OK;
}

peal_status points_of(const common_input *c, const pass_context *pass, const rank_view *v,
                      const peal_points *points, box_list *out)
{
    peal_status status = PEAL_STATUS_OK;
    out->count = 0;
    if (points->kind == PEAL_POINTS_ONE) {
        out->box[0] = (peal_box){.axis_count = 0, .hi = {1, 1, 1, 1}};
        out->count = 1;
    } else if (points->kind == PEAL_POINTS_COUNT)
        status = counted_points(pass, v, points, out);
    else if (points->array >= 0)
        status = points_of_array(c, pass, v, points, out);
    else
        status = range_points(c, pass, v, points, NULL, out);
    int kept = 0;
    for (int i = 0; !status && i < out->count; i++)
        if (!peal_box_is_empty(&out->box[i]))
            out->box[kept++] = out->box[i];
    out->count = kept;
    return status;
}

int axes_of_points(const common_input *c, const rank_view *v, int array)
{
    return array < c->graph->array_count && c->graph->arrays[array].components
               ? c->graph->arrays[array].axis_count
               : v->layout[array].stored.axis_count;
}

void leave_components(const common_input *c, const peal_points *points, box_list *list)
{
    if (points->array < 0 || !c->graph->arrays[points->array].components)
        return;
    int axes = c->graph->arrays[points->array].axis_count;
    for (int i = 0; i < list->count; i++) {
        list->box[i].axis_count = axes;
        list->box[i].lo[axes] = 0;
        list->box[i].hi[axes] = 1;
    }
}
