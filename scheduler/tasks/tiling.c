/* Tiling: how a box is cut into tiles when the spec doesn't say.
 *
 * The rule depends on the box alone (and on whether ranks run on accelerators), never on the mode
 * or the number of workers: tasks with reductions must have the same tiles in every mode. Tiles of
 * others may be larger or smaller: as asked for, or thin in mode fused. x stays whole (but for
 * those on accelerators); rows, then planes, are gathered until a tile has about as many points as
 * a core's cache takes; the last axis is cut so far that border tiles can go first. */
#include "scheduler/tasks/tasks.h"

#include <string.h>

enum { LEAST_POINTS = 256, MOST_POINTS = 16384, SLABS = 8 };

/* On an accelerator a tile is a block's work: eight points for each of its 256 threads. Where there
 * are partials, tiles are as they are, so they are those that blocks are fastest at, by number of
 * axes: of large boxes PEAL_WHOLE_2_X and so on (backends/cuda/codegen/device/launch.h); else
 * smaller ones, since a thread that may not load ahead waits for memory once a point: one point a
 * thread, and more, along the last axis, where one wave of blocks would not do. */
/* In mode fused free tiles of three axes have as many rows as flat tiles of blocks (launch.h): they
 * say no more than how thick borders are, whose blocks all others wait for. */
enum {
    MOST_POINTS_OF_BLOCK = 2048,
    FLAT_ROWS = 8,
    LARGE_BOX = 1 << 19,
    WAVE_OF_BLOCKS = 200,
    MOST_ROWS = 8
};
static const int64_t tile_of_block[4][PEAL_AXES] = {[2] = {128, 16, 1, 1}, [3] = {64, 4, 8, 1}};
static const int64_t small_tile[4][PEAL_AXES] = {[2] = {64, 4, 1, 1}, [3] = {64, 4, 1, 1}};

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

static void choose_tile(const peal_box *box, int64_t tile[PEAL_AXES])
{
    int axes = box->axis_count;
    int64_t points = 1, most = WAVE_OF_BLOCKS, rows = 1;

    for (int k = 0; k < PEAL_AXES; k++)
        points *= box->hi[k] - box->lo[k];
    memcpy(tile, points < LARGE_BOX ? small_tile[axes] : tile_of_block[axes],
           PEAL_AXES * sizeof(*tile));
    for (int k = 0; k < PEAL_AXES; k++)
        most *= tile[k];
    while (points < LARGE_BOX && 2 * (box->hi[0] - box->lo[0]) <= tile[0]) {
        tile[0] /= 2; /* threads that would be beside the box */
        tile[1] *= 2;
    }
    while (points < LARGE_BOX && rows < MOST_ROWS && 2 * rows * most <= points)
        rows *= 2;
    tile[axes - 1] *= rows;
}

/* False: the task's tiles are not those of blocks. */
static bool choose_blocks(const peal_compilation *c, const peal_task_statement *task,
                          const int64_t multiple[PEAL_AXES], peal_tiling *t)
{
    int axes = t->box.axis_count, last = last_axis(&t->box);
    int64_t points = 1, tile[PEAL_AXES];

    if (!c->machine.accelerator || task->reduction_count == 0 || task->tile_whole ||
        task->tile_given || axes < 2 || axes > 3)
        return false;
    choose_tile(&t->box, tile);
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

void choose_tiling(const peal_compilation *c, const peal_task_statement *task,
                   const int64_t tile[PEAL_AXES], const int64_t multiple[PEAL_AXES], peal_tiling *t)
{
    int64_t points = 1, most = c->machine.accelerator ? MOST_POINTS_OF_BLOCK : MOST_POINTS;
    int last = last_axis(&t->box);
    bool thin = c->machine.accelerator && c->mode == PEAL_MODE_FUSED && t->box.axis_count == 3;

    if (thin && tiles_are_free(task))
        most = FLAT_ROWS * (t->box.hi[0] - t->box.lo[0]);
    if (c->machine.tile_points > 0 && tiles_are_free(task))
        most = c->machine.tile_points;
    if (choose_blocks(c, task, multiple, t))
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
