/* Kernel tasks: their boxes, tiles and what a tile touches, on one rank; bounds and collisions are
 * checked. */
#include "scheduler/stories/stories.h"
#include "scheduler/tasks/tasks.h"

/* What helps: a halo as wide as the footprint wants it, where it is that which is too wide. */
static const char *wider_halo(const common_input *c, const rank_view *v, const peal_access *a,
                              const peal_box *range, int k, char *text, size_t bytes)
{
    const peal_layout *layout = &v->layout[a->array];
    int64_t below = layout->stored.lo[k] - range->lo[k],
            above = range->hi[k] - layout->stored.hi[k];
    int64_t more = below > above ? below : above;
    int64_t has = below > above ? layout->part.lo[k] - layout->stored.lo[k]
                                : layout->stored.hi[k] - layout->part.hi[k];
    bool grown = a->footprint == PEAL_FOOTPRINT_GROW || a->footprint == PEAL_FOOTPRINT_STAR;
    if (!grown || c->graph->arrays[a->array].kind != PEAL_ARRAY_FIELD)
        return "give the field a wider halo, or let the task touch or visit less";
    snprintf(text, bytes,
             "its halo there is %lld: give it one of %lld, or let the task touch or visit less",
             (long long)has, (long long)(has + more));
    return text;
}

static peal_status report_reach(const common_input *c, const pass_context *pass, const rank_view *v,
                                const peal_schedule_task *t, const peal_access *a,
                                const peal_box *visited, const peal_box *range, int k)
{
    const peal_box *stored = &v->layout[a->array].stored;
    peal_story story = {0};
    char hint[160];
    if (peal_diagnostics_want(pass->diagnostics, PEAL_E_HALO_TOO_NARROW, a->source))
        tell_reach(c, v, t, a, visited, range, &story);
    return peal_report_story(
        pass->diagnostics, PEAL_E_HALO_TOO_NARROW, a->source,
        wider_halo(c, v, a, range, k, hint, sizeof(hint)), &story,
        "task `%s` touches `%s` at [%lld, %lld) along axis %c; rank %d stores [%lld, %lld) there",
        t->name, array_name(c, a->array), (long long)range->lo[k], (long long)range->hi[k],
        "xyzw"[k], v -> rank, (long long)stored -> lo[k], (long long)stored -> hi[k]);
}

static peal_status check_bounds(const common_input *c, const pass_context *pass, const rank_view *v,
                                const peal_schedule_task *t, const peal_access *a,
                                const peal_reach *reach, int count)
{
    const peal_box *stored = &v->layout[a->array].stored;
    for (int i = 0; i < t->tiling_count; i++)
        for (int j = 0; j < count; j++) {
            peal_box range = reach_range(&reach[j], &t->tiling[i].box, stored);
            for (int k = 0; k < PEAL_AXES; k++)
                if (!peal_box_is_empty(&range) &&
                    (range.lo[k] < stored->lo[k] || range.hi[k] > stored->hi[k]))
                    return report_reach(c, pass, v, t, a, &t->tiling[i].box, &range, k);
        }
    return PEAL_STATUS_OK;
}

static peal_status add_access(const common_input *c, const pass_context *pass, const rank_view *v,
                              const peal_task_statement *task, int index, const peal_access *a,
                              peal_task_access *out)
{
    peal_schedule_task *t = &v->task[index];
    int box_axes = t->tiling_count ? t->tiling[0].box.axis_count : PEAL_AXES, count;
    peal_reach *reach = PEAL_ARENA_ARRAY(pass->arena, peal_reach, PEAL_AXES);
    peal_status status = reaches_of(c, pass, v, task, box_axes, a, reach, &count);
    *out = (peal_task_access){.array = a->array,
                              .mode = a->mode,
                              .stale_is_meant = a->stale_is_meant,
                              .reach_count = count,
                              .reach = reach};
    if (!status && a->footprint == PEAL_FOOTPRINT_PER_TILE) {
        int64_t have = v->layout[a->array].stored.hi[0], need;
        if (!is_plain_buffer(c, a->array))
            return peal_report(pass->diagnostics, PEAL_E_HALO_TOO_NARROW, a->source,
                               "use a buffer without `box`",
                               "`per_tile` counts elements; `%s` has coordinates",
                               array_name(c, a->array));
        status = peal_expr_integer(a->per_tile, &v->scope, 1, &out->per_tile, pass->diagnostics);
        int64_t tiles = tiles_asked(c, pass, v, task, t);
        if (!status && (out->per_tile < 1 || peal_multiply_overflows(out->per_tile, tiles, &need) ||
                        need > have))
            status = peal_report(
                pass->diagnostics, PEAL_E_HALO_TOO_NARROW, a->source,
                task->tile_given || tiles < 2
                    ? "make the buffer as large as tiles * per_tile"
                    : "peal may cut the task anywhere: give it tiles (`tile: 64`), or make the "
                      "buffer as large as tiles * per_tile",
                "`%s` has %lld elements; %lld tiles of %lld need more", array_name(c, a->array),
                (long long)have, (long long)tiles, (long long)out->per_tile);
    }
    if (!status)
        status = check_bounds(c, pass, v, t, a, reach, count);
    if (!status)
        status = check_collisions(c, pass, v, task, t, a, reach, count);
    return status;
}

static peal_status cut_into_tiles(const common_input *c, const pass_context *pass,
                                  const rank_view *v, const peal_task_statement *task,
                                  const box_list *boxes, peal_schedule_task *t)
{
    int64_t tile[PEAL_AXES], multiple[PEAL_AXES], count;
    tile_multiples(c, v, task, multiple);
    for (int k = 0; k < PEAL_AXES; k++) {
        peal_status status =
            peal_expr_integer(task->tile[k], &v->scope, INT32_MAX, &tile[k], pass->diagnostics);
        if (!status && tile[k] < 1)
            status =
                peal_report(pass->diagnostics, PEAL_E_INVALID_TILE_EXTENT, task->tile[k]->source,
                            "give extents of at least 1", "a tile of %lld points along axis %c",
                            (long long)tile[k], "xyzw"[k]);
        if (status)
            return status;
    }
    peal_tiling *tiling = PEAL_ARENA_ARRAY(pass->arena, peal_tiling, boxes->count);
    t->tile_count = 0;
    for (int i = 0; i < boxes->count; i++) {
        tiling[i].box = boxes->box[i];
        choose_tiling(c, task, tile, multiple, &tiling[i]);
        tiling[i].first = t->tile_count;
        count = 1;
        bool overflow = false;
        for (int k = 0; k < PEAL_AXES; k++)
            overflow |= peal_multiply_overflows(count, tiling[i].count[k], &count);
        if (overflow || peal_add_overflows(t->tile_count, count, &t->tile_count))
            return peal_report(pass->diagnostics, PEAL_E_SIZE_OUT_OF_RANGE, task->box.source,
                               "use larger tiles", "the number of tiles overflows 63 bits");
    }
    t->tiling = tiling;
    t->tiling_count = boxes->count;
    return PEAL_STATUS_OK;
}

static peal_status add_reductions(const common_input *c, const pass_context *pass, rank_view *v,
                                  const peal_statement *s, int index)
{
    const peal_task_statement *task = &s->u.task;
    peal_task_reduction *reduction =
        PEAL_ARENA_ARRAY(pass->arena, peal_task_reduction, task->reduction_count);
    const peal_expr *needed = task->reduction_count ? reduction_needed(c, pass, s) : NULL;
    peal_status status = PEAL_STATUS_OK;
    for (int i = 0; !status && i < task->reduction_count; i++) {
        int array = task->reduction[i].array, partials = c->statement_hidden[s->id] + i;
        peal_box stored = {.axis_count = 1, .hi = {v->task[index].tile_count, 1, 1, 1}};
        reduction[i] = (peal_task_reduction){array, partials, task->reduction[i].combine};
        status = set_dense_layout(pass, &v->layout[partials], &stored, array_type(c, partials),
                                  s->source, s->name);
        v->layout[partials].part = v->layout[partials].own = stored;
        int fold = add_task(c, pass, v, s, PEAL_TASK_FOLD);
        v->task[fold].array = array;
        v->task[fold].gather = partials;
        v->task[fold].contributions = v->task[index].tile_count;
        v->task[fold].combine = reduction[i].combine;
        v->task[fold].needed = needed;
        v->task[fold].reported = array_is_reported(c, array);
    }
    v->task[index].reduction = reduction;
    v->task[index].reduction_count = task->reduction_count;
    v->task[index].needed = needed;
    return status;
}

/* Arguments and counts are read when a tile starts, in which order nobody says: tiles that may
 * write the same element would change each other's. */
static peal_status check_arguments(const common_input *c, const pass_context *pass,
                                   const peal_task_statement *task, const char *name)
{
    peal_status status = PEAL_STATUS_OK;
    for (int i = -1; i < task->argument_count && task->independent; i++)
        for (int k = 0; k < task->access_count; k++) {
            const peal_access *a = &task->access[k];
            const peal_expr *read = i < 0 ? task->box.count : task->argument[i];
            if (a->mode != PEAL_READ_ACCESS && read && peal_expr_reads(read, a->array))
                status =
                    peal_report(pass->diagnostics, PEAL_E_ARGUMENT_CHANGED_BY_TILES, read->source,
                                "copy it to another buffer first: {set: old, value: ...}",
                                "%s of the independent task `%s` reads `%s`, which the "
                                "task writes",
                                i < 0 ? "`count`" : "`args`", name, array_name(c, a->array));
        }
    return status;
}

peal_status make_kernel_task(const common_input *c, const pass_context *pass, rank_view *v,
                             const peal_statement *s)
{
    const peal_task_statement *task = &s->u.task;
    box_list boxes;
    peal_status status = points_of(c, pass, v, &task->box, &boxes);
    if (status)
        return status;
    leave_components(c, &task->box, &boxes);
    int index = add_task(c, pass, v, s, PEAL_TASK_KERNEL);
    v->statement[s->id].task = index;
    peal_schedule_task *t = &v->task[index];
    t->kernel = task->kernel;
    t->function = task->function;
    t->cuda_function = task->cuda_function;
    t->cuda_threads = task->cuda_threads;
    t->enqueue = task->enqueue;
    t->user = task->user;
    t->count = task->box.count;
    t->argument = task->argument;
    t->argument_count = task->argument_count;
    t->argument_is_real = PEAL_ARENA_ARRAY(pass->arena, bool, task->argument_count);
    for (int i = 0; i < task->argument_count; i++)
        t->argument_is_real[i] = peal_expr_kind_of(task->argument[i], c->graph) == PEAL_REAL;
    status = cut_into_tiles(c, pass, v, task, &boxes, t);
    peal_task_access *access = PEAL_ARENA_ARRAY(pass->arena, peal_task_access, task->access_count);
    for (int i = 0; i < task->access_count; i++) {
        peal_status found =
            status ? status : add_access(c, pass, v, task, index, &task->access[i], &access[i]);
        status = status ? status : found;
        t->has_components |= c->graph->arrays[task->access[i].array].components > 0;
    }
    t->access = access;
    t->access_count = task->access_count;
    if (!status)
        status = check_overlaps(c, pass, v, task, t);
    if (!status)
        status = check_arguments(c, pass, task, t->name);
    t->mergeable = !task->tile_given && !status && task_is_divisible(task, t);
    for (int i = 0; i < task->access_count; i++)
        t->mergeable &= access[i].per_tile == 0;
    return status ? status : add_reductions(c, pass, v, s, index);
}
