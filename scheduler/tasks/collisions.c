/* Whether tiles of a task meet in what one of them writes, or in what one reads and one writes.
 *
 * Where the spec gives tiles, these are asked. Where it leaves them to peal, the answer has to hold
 * for every cut, since cuts differ by machine, mode and size of a rank's part: the finest one is
 * asked, whose tiles are single points, or as few as lie in one point of a coarser array. What its
 * tiles may do together, larger ones may. */
#include "scheduler/stories/stories.h"
#include "scheduler/tasks/tasks.h"

#include <string.h>

/* Whether two tiles of this extent that differ along axis k can meet in what one of them writes. */
static bool collides_along(const peal_access *a, const peal_reach *reach, int count,
                           const peal_tiling *t, int64_t extent, int k)
{
    if (t->box.hi[k] - t->box.lo[k] <= extent || a->footprint == PEAL_FOOTPRINT_PER_TILE ||
        peal_box_is_empty(&t->box))
        return false;
    for (int j = 0; j < count; j++) {
        const peal_reach_axis *axis = &reach[j].axis[k];
        if (axis->fixed || axis->low || axis->high || (extent * axis->num) % axis->den ||
            (t->box.lo[k] * axis->num) % axis->den)
            return true;
    }
    return false;
}

/* Whether what two pieces of the box write meets. */
static bool pieces_collide(const peal_schedule_task *t, const peal_reach *reach, int count,
                           const peal_box *stored)
{
    for (int i = 0; i < t->tiling_count; i++)
        for (int k = i + 1; k < t->tiling_count; k++)
            for (int j = 0; j < count * count; j++) {
                peal_box one = reach_range(&reach[j / count], &t->tiling[i].box, stored);
                peal_box other = reach_range(&reach[j % count], &t->tiling[k].box, stored);
                if (peal_box_meets(&one, &other))
                    return true;
            }
    return false;
}

/* The task with the tiles that are asked. */
static peal_schedule_task cut_finely(const common_input *c, const pass_context *pass,
                                     const rank_view *v, const peal_task_statement *task,
                                     const peal_schedule_task *t)
{
    peal_schedule_task fine = *t;
    int64_t multiple[PEAL_AXES];

    if (task->tile_given)
        return fine;
    tile_multiples(c, v, task, multiple);
    peal_tiling *tiling = PEAL_ARENA_ARRAY(pass->arena, peal_tiling, t->tiling_count);
    fine.tile_count = 0;
    for (int i = 0; i < t->tiling_count; i++) {
        int64_t count = 1;
        tiling[i] = t->tiling[i];
        tiling[i].first = fine.tile_count;
        for (int k = 0; k < PEAL_AXES; k++) {
            int64_t length = tiling[i].box.hi[k] - tiling[i].box.lo[k];
            tiling[i].extent[k] = multiple[k];
            tiling[i].count[k] = peal_ceil_divide(length, multiple[k]);
            count *= tiling[i].count[k]; /* points fit into 63 bits */
        }
        fine.tile_count += count;
    }
    fine.tiling = tiling;
    return fine;
}

int64_t tiles_asked(const common_input *c, const pass_context *pass, const rank_view *v,
                    const peal_task_statement *task, const peal_schedule_task *t)
{
    return cut_finely(c, pass, v, task, t).tile_count;
}

static peal_status report(const common_input *c, const pass_context *pass, const rank_view *v,
                          const peal_task_statement *task, const peal_schedule_task *t,
                          const peal_access *a, const peal_reach *reach, int count)
{
    const char *hint =
        task->tile_whole   ? "its box is in several pieces, each a tile: write a task for each, or "
                             "`independent: true` if they never meet in one element"
        : task->tile_given ? "write `tile: whole` to make it one tile, or `independent: true` if "
                             "the tiles never meet in one element"
                           : "peal may cut the task anywhere: write `tile: whole` to make it one "
                             "tile, or `independent: true` if its points never meet in one element";
    peal_story story = {0};
    if (peal_diagnostics_want(pass->diagnostics, PEAL_E_TILES_COLLIDE, a->source))
        tell_collision(c, v, t, a, reach, count, &story);
    return peal_report_story(pass->diagnostics, PEAL_E_TILES_COLLIDE, a->source, hint, &story,
                             "tiles of task `%s` touch what other tiles of it write in `%s`",
                             t->name, array_name(c, a->array));
}

peal_status check_collisions(const common_input *c, const pass_context *pass, const rank_view *v,
                             const peal_task_statement *task, const peal_schedule_task *t,
                             const peal_access *a, const peal_reach *reach, int count)
{
    if (a->mode == PEAL_READ_ACCESS || task->independent)
        return PEAL_STATUS_OK;
    const peal_schedule_task asked = cut_finely(c, pass, v, task, t);
    bool collides = a->footprint != PEAL_FOOTPRINT_PER_TILE &&
                    pieces_collide(&asked, reach, count, &v->layout[a->array].stored);
    for (int i = 0; i < asked.tiling_count; i++)
        for (int k = 0; k < PEAL_AXES; k++)
            collides |=
                collides_along(a, reach, count, &asked.tiling[i], asked.tiling[i].extent[k], k);
    return collides ? report(c, pass, v, task, &asked, a, reach, count) : PEAL_STATUS_OK;
}

static peal_status report_overlap(const common_input *c, const pass_context *pass,
                                  const rank_view *v, const peal_schedule_task *t,
                                  const peal_access *reader, const peal_box *read,
                                  const peal_access *writer, const peal_box *written)
{
    peal_story story = {0};
    if (peal_diagnostics_want(pass->diagnostics, PEAL_E_TILES_COLLIDE, writer->source))
        tell_overlap(c, v, t, reader, read, writer, written, &story);
    return peal_report_story(
        pass->diagnostics, PEAL_E_TILES_COLLIDE, writer->source,
        "points that a tile both reads and writes are listed once, under `update`; an array that "
        "stands under `read`, too, is read where no tile writes it",
        &story, "task `%s` writes points of `%s` that it reads", t->name,
        array_name(c, writer->array));
}

/* What all tiles of a piece of the box touch by one reach of an access. */
static peal_box piece_range(const peal_task_access *access, int reach, const peal_box *piece,
                            int64_t tiles, const peal_box *stored)
{
    int64_t end;
    peal_box range = reach_range(&access->reach[reach], piece, stored);
    if (access->per_tile > 0 && !peal_multiply_overflows(access->per_tile, tiles, &end) &&
        end < range.hi[0])
        range.hi[0] = end;
    return range;
}

/* Whatever the tiles are: what all of a piece of the box reads, against what all of one writes. */
peal_status check_overlaps(const common_input *c, const pass_context *pass, const rank_view *v,
                           const peal_task_statement *task, const peal_schedule_task *t)
{
    for (int pair = 0; pair < task->access_count * task->access_count; pair++) {
        int r = pair / task->access_count, w = pair % task->access_count;
        const peal_access *reader = &task->access[r], *writer = &task->access[w];
        if (reader->mode != PEAL_READ_ACCESS || writer->mode == PEAL_READ_ACCESS ||
            reader->array != writer->array)
            continue;
        const peal_box *stored = &v->layout[reader->array].stored;
        const peal_task_access *reads = &t->access[r], *writes = &t->access[w];
        int64_t tiles = tiles_asked(c, pass, v, task, t);
        for (int i = 0; i < t->tiling_count * t->tiling_count; i++)
            for (int j = 0; j < reads->reach_count * writes->reach_count; j++) {
                peal_box read = piece_range(reads, j / writes->reach_count,
                                            &t->tiling[i / t->tiling_count].box, tiles, stored);
                peal_box written = piece_range(writes, j % writes->reach_count,
                                               &t->tiling[i % t->tiling_count].box, tiles, stored);
                if (peal_box_meets(&read, &written))
                    return report_overlap(c, pass, v, t, reader, &read, writer, &written);
            }
    }
    return PEAL_STATUS_OK;
}

bool task_is_divisible(const peal_task_statement *task, const peal_schedule_task *t)
{
    for (int i = 0; i < task->access_count && !task->independent; i++)
        for (int g = 0; g < t->tiling_count; g++)
            for (int k = 0; k < PEAL_AXES; k++)
                if (task->access[i].mode != PEAL_READ_ACCESS &&
                    collides_along(&task->access[i], t->access[i].reach, t->access[i].reach_count,
                                   &t->tiling[g], 1, k))
                    return false;
    return true;
}
