/* Tiling: how a box is cut into tiles when the spec doesn't say.
 *
 * The rule depends on the box and the machine's traits alone, never on the mode or the number of
 * workers: tasks with reductions must have the same tiles in every mode. Tiles of others may be
 * larger or smaller: as asked for, or thin in mode fused, but whole planes of small boxes. x stays
 * whole (but where the machine prefers a tile); rows, then planes, are gathered until a tile has
 * about as many points as suit the machine; the last axis is cut so far that border tiles can go
 * first. */
#include "scheduler/tasks/tasks.h"

#include <string.h>

enum { LEAST_POINTS = 256, SLABS = 8 };

static int64_t round_up(int64_t value, int64_t multiple)
{
    return peal_ceil_divide(value, multiple) * multiple;
}

static void set_extent(peal_tiling *t, int k, int64_t extent, int64_t multiple)
{
    int64_t length = t->box.hi[k] - t->box.lo[k];
    if (extent < 1)
        extent = 1;
    if (extent > length)
        extent = length;
    int64_t count = peal_ceil_divide(length, extent);
    extent = round_up(peal_ceil_divide(length, count), multiple); /* tiles of even size */
    t->extent[k] = extent;
    t->count[k] = peal_ceil_divide(length, extent);
}

/* The last axis with more than one point. */
static int last_axis(const peal_box *box)
{
    int last = 0;
    for (int k = 0; k < PEAL_AXES; k++)
        if (box->hi[k] - box->lo[k] > 1)
            last = k;
    return last;
}

/* Along the last axis: so many, or less if there are few of them. */
static int64_t slab_of(int64_t extent, int64_t length, int64_t points)
{
    int64_t slab = peal_ceil_divide(length, SLABS), least = peal_ceil_divide(LEAST_POINTS, points);

    slab = slab > least ? slab : least;
    return extent < slab ? extent : slab;
}

/* Of a task with reductions: false: the machine prefers none. */
static bool preferred_tile(const peal_machine_traits *traits, const peal_box *box,
                           int64_t tile[PEAL_AXES])
{
    int axes = box->axis_count;
    int64_t points = 1, wave = traits->wave, grow = 1;

    for (int k = 0; k < PEAL_AXES; k++)
        points *= box->hi[k] - box->lo[k];
    bool small = points < traits->large_box;
    memcpy(tile, small ? traits->small_tile[axes] : traits->large_tile[axes],
           PEAL_AXES * sizeof(*tile));
    if (!tile[0])
        return false;
    for (int k = 0; k < PEAL_AXES; k++)
        wave *= tile[k];
    while (small && 2 * (box->hi[0] - box->lo[0]) <= tile[0]) {
        tile[0] /= 2; /* what would lie beside the box */
        tile[1] *= 2;
    }
    while (small && grow < traits->most_grow && 2 * grow * wave <= points)
        grow *= 2;
    tile[axes - 1] *= grow;
    return true;
}

/* False: the task is cut as those without reductions are. */
static bool cut_as_preferred(const peal_machine_traits *traits, const peal_task_statement *task,
                             const int64_t multiple[PEAL_AXES], peal_tiling *t)
{
    int last = last_axis(&t->box);
    int64_t points = 1, tile[PEAL_AXES];

    if (task->reduction_count == 0 || task->tile_whole || task->tile_given ||
        !preferred_tile(traits, &t->box, tile))
        return false;
    for (int k = 0; k < PEAL_AXES; k++) {
        int64_t length = t->box.hi[k] - t->box.lo[k], extent = tile[k];
        if (k == last)
            extent = slab_of(extent, length, points);
        set_extent(t, k, extent, multiple[k]);
        if (extent == tile[k] && extent <= length && extent % multiple[k] == 0) {
            t->extent[k] = extent;
            t->count[k] = peal_ceil_divide(length, extent);
        }
        points *= t->extent[k];
    }
    return true;
}

bool tiles_are_free(const peal_task_statement *task)
{
    bool per_tile = false;
    for (int i = 0; i < task->access_count; i++)
        per_tile |= task->access[i].footprint == PEAL_FOOTPRINT_PER_TILE;
    return task->reduction_count == 0 && !per_tile;
}

/* How many points a tile may have. */
static int64_t most_points(const common_input *c, const peal_task_statement *task,
                           const peal_box *box)
{
    const peal_machine_traits *traits = c->traits;
    bool fused = c->mode == PEAL_MODE_FUSED && box->axis_count == 3;

    if (tiles_are_free(task) && c->machine.tile_points > 0)
        return c->machine.tile_points;
    if (!tiles_are_free(task) || !fused || !traits->fused_rows)
        return traits->tile_points;
    int64_t points = traits->fused_rows * (box->hi[0] - box->lo[0]);
    bool few = peal_box_points(box) <= traits->fused_box;
    return few && points < traits->fused_points ? traits->fused_points : points;
}

void choose_tiling(const common_input *c, const peal_task_statement *task,
                   const int64_t tile[PEAL_AXES], const int64_t multiple[PEAL_AXES], peal_tiling *t)
{
    int64_t points = 1, most = most_points(c, task, &t->box);
    int last = last_axis(&t->box);

    if (cut_as_preferred(c->traits, task, multiple, t))
        return;
    for (int k = 0; k < PEAL_AXES; k++) {
        int64_t length = t->box.hi[k] - t->box.lo[k], extent = length;
        if (task->tile_whole)
            extent = length;
        else if (task->tile_given) {
            t->extent[k] = tile[k] < length ? tile[k] : length;
            t->count[k] = peal_ceil_divide(length, t->extent[k]);
            continue;
        } else if (k > 0 || last == 0) {
            extent = most / points;
            if (k == last)
                extent = slab_of(extent, length, points);
        }
        set_extent(t, k, extent, multiple[k]);
        points *= t->extent[k];
        if (points > most)
            points = most;
    }
}
