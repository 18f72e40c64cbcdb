/* Halos that are read although their owners have changed them since they were last renewed.
 *
 * Halos are followed (halo_walk.c) on one rank of each neighbourhood: two ranks with neighbours of
 * the same classes have the same halos. Where ranks are not classed, or receive halos by messages
 * that go each its own way, all ranks are looked at. */
#include "scheduler/geometry/geometry.h"
#include "scheduler/halos/halos.h"

#include <stdio.h>

/* ---- What is told ---- */

typedef struct stale_region {
    int direction[PEAL_RANK_AXES];
    int64_t nearest, farthest;
    int cell; /* one of it */
} stale_region;

static int distance_of(const int direction[PEAL_RANK_AXES])
{
    return (direction[0] != 0) + (direction[1] != 0) + (direction[2] != 0);
}

static bool same_direction(const int a[PEAL_RANK_AXES], const int b[PEAL_RANK_AXES])
{
    return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

/* The stale points in one direction: a face rather than a corner. */
static stale_region find_region(const halo_stale_read *r)
{
    const halo_grid *g = r->map->name[r->effect->name].grid;
    stale_region out = {.cell = -1}, at;
    for (int i = 0; i < g->cells; i++) {
        if (!has_cell(r->cells, i))
            continue;
        locate_cell(g, i, at.direction, &at.nearest, &at.farthest);
        at.cell = i;
        if (out.cell < 0 || distance_of(at.direction) < distance_of(out.direction))
            out = at;
        else if (same_direction(at.direction, out.direction)) {
            out.nearest = at.nearest < out.nearest ? at.nearest : out.nearest;
            out.farthest = at.farthest > out.farthest ? at.farthest : out.farthest;
        }
    }
    return out;
}

static void write_region(const halo_stale_read *r, const stale_region *region, char *text,
                         size_t bytes)
{
    int array = r->map->name[r->effect->name].array;
    int axes = r->map->c->graph->arrays[array].axis_count, used = snprintf(text, bytes, "[");
    for (int k = 0; k < axes && k < PEAL_RANK_AXES; k++)
        used += snprintf(text + used, bytes - (size_t)used, "%s%d", k ? ", " : "",
                         region->direction[k]);
    if (region->nearest == region->farthest)
        snprintf(text + used, bytes - (size_t)used, "] at distance %lld",
                 (long long)region->nearest);
    else
        snprintf(text + used, bytes - (size_t)used, "] at distances %lld to %lld",
                 (long long)region->nearest, (long long)region->farthest);
}

static int owner_of(const halo_stale_read *r, const stale_region *region)
{
    for (int i = 0; i < r->map->neighbour_count; i++)
        if (same_direction(r->map->neighbour[i].direction, region->direction))
            return r->map->neighbour[i].rank;
    return r->map->rank;
}

static bool is_before(const halo_event *a, const halo_event *b)
{
    int64_t step[2] = {a->step, b->step};
    for (int i = 0; i < 2; i++) /* setup, steps, finish */
        step[i] = step[i] == PEAL_STORY_FINISH ? INT64_MAX : step[i];
    return step[0] != step[1] ? step[0] < step[1] : a->statement < b->statement;
}

/* late: it came after the last change, and yet the points are stale. */
static void tell_renewal(const halo_stale_read *r, const char *name, const halo_event *renewed,
                         bool late, peal_story *out)
{
    const peal_statement *s = r->map->c->statement[renewed->statement];
    const char *what =
        !late ? "renews these points of what is then"
        : s->kind == PEAL_STATEMENT_RECV
            ? "brings these points as they were when they were sent, in what is then"
            : "is not sure to be done then (its `when`, or a loop's); else it renews";
    peal_story_add(out, r->map->rank, renewed->step, s->source, "`%s` %s `%s`", s->name, what,
                   name);
}

/* In order: renewed (or never), changed, read. */
static void tell_events(const halo_stale_read *r, const stale_region *region, const char *where,
                        peal_story *out)
{
    const common_input *c = r->map->c;
    const halo_event *renewed = &r->renewed[region->cell], *changed = &r->changed[region->cell];
    const char *name = array_name(c, r->map->name[r->effect->name].array);
    int change = -1, owner = owner_of(r, region);
    bool renews = renewed->statement >= 0, changes = changed->statement >= 0;
    bool late = renews && changes && is_before(changed, renewed);
    if (renews && !late)
        tell_renewal(r, name, renewed, false, out);
    if (changes) {
        const peal_statement *s = c->statement[changed->statement];
        change = peal_story_add(out, owner, changed->step, s->source,
                                "`%s` changes them at their owner", s->name);
    }
    if (late)
        tell_renewal(r, name, renewed, true, out);
    int read = peal_story_add(out, r->map->rank, r->step, r->effect->source,
                              "`%s` reads `%s` in direction %s%s", r->statement->name, name, where,
                              renewed->statement >= 0 ? "" : ", which nothing has filled");
    peal_story_connect(out, read, "does not see", change);
}

/* Whether a task that changed the points at their owner visits ghost points of the field alone, and
 * how it names the field. */
static bool fills_ghosts(const halo_stale_read *r, const stale_region *region,
                         peal_access_mode *mode)
{
    const peal_statement *s = r->changed[region->cell].statement >= 0
                                  ? r->map->c->statement[r->changed[region->cell].statement]
                                  : NULL;
    int owner = owner_of(r, region), array = r->map->name[r->effect->name].array;
    const rank_view *v = NULL;
    for (int i = 0; i < r->map->neighbour_count; i++)
        if (r->map->neighbour[i].rank == owner)
            v = r->map->neighbour[i].view;
    if (!s || s->kind != PEAL_STATEMENT_TASK || !v || s->u.task.box.array != array)
        return false;
    const peal_schedule_task *t = &v->task[v->statement[s->id].task];
    bool outside = t->tiling_count > 0;
    for (int i = 0; i < t->tiling_count; i++)
        outside &= !peal_box_meets(&t->tiling[i].box, &v->layout[array].part);
    *mode = PEAL_READ_ACCESS;
    for (int i = 0; i < s->u.task.access_count; i++)
        if (s->u.task.access[i].array == array && s->u.task.access[i].mode != PEAL_READ_ACCESS &&
            s->u.task.access[i].footprint != PEAL_FOOTPRINT_INSIDE)
            *mode = s->u.task.access[i].mode;
    return outside && *mode != PEAL_READ_ACCESS;
}

/* What to do about it. */
static void write_hint(const halo_stale_read *r, const stale_region *region, char *hint,
                       size_t bytes)
{
    const char *name = array_name(r->map->c, r->map->name[r->effect->name].array);
    peal_access_mode mode;
    if (!fills_ghosts(r, region, &mode))
        snprintf(hint, bytes,
                 "exchange these points after their last change, before this task%s; if it is "
                 "meant so: {%.60s: {..., stale: ok}}",
                 distance_of(region->direction) > 1 ? " (`star` brings no corners)" : "", name);
    else if (mode == PEAL_UPDATE_ACCESS)
        snprintf(hint, bytes,
                 "all that `update` names counts as changed; a task that fills ghost points writes "
                 "them alone: box: {%.60s: {ghost: [-1, 0]}}, read: {%.60s: inside}, write: %.60s",
                 name, name, name);
    else
        snprintf(hint, bytes,
                 "fill ghost points before the exchange of `%.60s`, which then brings the "
                 "neighbours'",
                 name);
}

static void tell_stale(const halo_stale_read *r)
{
    peal_diagnostics *diagnostics = r->map->pass->diagnostics;
    peal_story story = {0};
    stale_region region = find_region(r);
    const char *name = array_name(r->map->c, r->map->name[r->effect->name].array);
    char where[100], step[32], hint[400];
    write_region(r, &region, where, sizeof(where));
    if (peal_diagnostics_want(diagnostics, PEAL_E_STALE_HALO, r->effect->source))
        tell_events(r, &region, where, &story);
    write_hint(r, &region, hint, sizeof(hint));
    peal_report_story(
        diagnostics, PEAL_E_STALE_HALO, r->effect->source, hint, &story,
        "task `%s` reads the halo of `%s` in direction %s in %s%s, which has changed since it was "
        "last renewed%s",
        r->statement->name, name, where, r->step >= 0 ? "" : "the ", peal_story_step(r->step, step),
        r->cautious ? ", as far as can be told: conditions were not followed from step to step, "
                      "which would take too long"
                    : "");
}

/* ---- Which ranks ---- */

/* False: no task can read a halo. */
static bool may_read_halos(const common_input *c)
{
    bool halo = false;
    for (int i = 0; i < c->graph->array_count; i++)
        halo |= c->graph->arrays[i].kind == PEAL_ARRAY_FIELD && c->graph->arrays[i].halo.given;
    return halo;
}

static peal_status check_rank(const common_input *c, const pass_context *pass,
                              condition_table *conditions, peal_arena *arena, int rank,
                              const rank_view *(*view_for)(void *user, int rank), void *user)
{
    halo_map m = {.c = c,
                  .pass = pass,
                  .conditions = conditions,
                  .arena = arena,
                  .rank = rank,
                  .view = view_for(user, rank)};
    int peer[27];
    find_neighbours(c, rank, peer);
    for (int number = 0; m.view && number < 27; number++) {
        halo_neighbour *n = &m.neighbour[m.neighbour_count];
        *n = (halo_neighbour){.direction = {number % 3 - 1, number / 3 % 3 - 1, number / 9 - 1}};
        n->rank = peer[number];
        if (number == 13 || n->rank < 0)
            continue;
        n->view = view_for(user, n->rank);
        if (!n->view)
            return PEAL_STATUS_OK; /* said by what looks at the rank */
        m.neighbour_count++;
    }
    if (!m.view)
        return PEAL_STATUS_OK;
    peal_status status = map_halos(&m);
    if (status || !m.any_read || !walk_halos(&m, tell_stale))
        return status;
    return peal_code_status(PEAL_E_STALE_HALO);
}

typedef struct class_views {
    const common_input *c;
    const rank_classes *classes;
    rank_view *const *view;
} class_views;

static const rank_view *view_of_class(void *user, int rank)
{
    const class_views *v = user;
    return v->view[class_of(v->c, v->classes, rank)];
}

static int neighbourhood_count(const rank_classes *classes)
{
    return classes->around_count[0] * classes->around_count[1] * classes->around_count[2];
}

/* What is known of one rank's halos; thrown away with it. NULL: no task may read any. */
static peal_arena *begin_halo_scratch(peal_compilation *c)
{
    if (may_read_halos(&c->common))
        c->halo_scratch = peal_arena_create_within(c->own_arena);
    return c->halo_scratch;
}

static void end_halo_scratch(peal_compilation *c)
{
    peal_arena_destroy(c->halo_scratch);
    c->halo_scratch = NULL;
}

peal_status check_halos_by_class(peal_compilation *c, const rank_classes *classes,
                                 rank_view *const *view)
{
    class_views views = {&c->common, classes, view};
    peal_arena *arena = begin_halo_scratch(c);
    peal_status first = PEAL_STATUS_OK;
    for (int i = 0; arena && i < neighbourhood_count(classes); i++) {
        int rank = neighbourhood_rank(&c->common, classes, i);
        peal_status status =
            check_rank(&c->common, &c->pass, c->conditions, arena, rank, view_of_class, &views);
        first = first ? first : status;
        peal_arena_clear(arena);
    }
    end_halo_scratch(c);
    return first;
}

static const rank_view *view_of_rank(void *user, int rank)
{
    return view_at(user, rank, STAGE_TASKS);
}

/* Messages that fill halos may go otherwise on ranks whose tasks are alike. */
static bool sends_fields(const common_input *c)
{
    for (int i = 0; i < c->graph->statement_count; i++) {
        const peal_statement *s = c->statement[i];
        if (s && s->kind == PEAL_STATEMENT_RECV &&
            c->graph->arrays[s->u.message.points.array].kind == PEAL_ARRAY_FIELD)
            return true;
    }
    return false;
}

/* Views that were made for a rank are thrown away with it. */
static void drop_views(const common_input *c, rank_views *views, int rank, const bool held[27])
{
    int peer[27];
    find_neighbours(c, rank, peer);
    for (int number = 0; number < 27; number++)
        if (peer[number] >= 0 && !held[number])
            views->of[peer[number]] = NULL;
}

static void note_views(const common_input *c, rank_views *views, int rank, bool held[27])
{
    int peer[27];
    find_neighbours(c, rank, peer);
    for (int number = 0; number < 27; number++)
        held[number] = peer[number] >= 0 && views->of[peer[number]];
}

peal_status check_halos_by_rank(peal_compilation *c, const rank_classes *classes)
{
    bool all = !classes || sends_fields(&c->common), held[27];
    int count = all ? c->common.machine.ranks : neighbourhood_count(classes);
    peal_arena *kept = c->pass.arena, *scratch = begin_halo_scratch(c);
    peal_status first = PEAL_STATUS_OK;
    for (int i = 0; scratch && i < count; i++) {
        int rank = all ? i : neighbourhood_rank(&c->common, classes, i);
        note_views(&c->common, &c->views, rank, held);
        c->pass.arena = scratch;
        peal_status status =
            check_rank(&c->common, &c->pass, c->conditions, scratch, rank, view_of_rank, &c->views);
        first = first ? first : status;
        c->pass.arena = kept;
        drop_views(&c->common, &c->views, rank, held);
        peal_arena_clear(scratch);
    }
    end_halo_scratch(c);
    return first;
}
