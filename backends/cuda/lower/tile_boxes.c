/* The boxes of points of a LAUNCH, cut into the tiles of a grid: into the schedule's own tiles
 * (exact), or into tiles whose shape the backend chooses (free, tile_shape.c). */
#include "backends/cuda/codegen/task_traits.h"
#include "backends/cuda/lower/plan.h"
#include "backends/cuda/lower/tile_shape.h"
#include "base/box.h"

#include <string.h>

/* The number of blocks that an SM is sure to hold at a time (PEAL_BLOCKS_ in device/kernel.h). */
enum { WAVE = 3 };

void peal_cuda_box_exact(const peal_schedule_task *task, const peal_tile_range *range,
                         peal_launch_box *out)
{
    const peal_tiling *tiling = &task->tiling[range->tiling];
    int64_t step = 1;

    memset(out, 0, sizeof(*out));
    out->tile = tiling->first;
    out->blocks = 1;
    for (int k = 0; k < PEAL_AXES; k++) {
        int64_t hi = tiling->box.lo[k] + range->hi[k] * tiling->extent[k];
        out->lo[k] = (int)(tiling->box.lo[k] + range->lo[k] * tiling->extent[k]);
        out->hi[k] = (int)(hi < tiling->box.hi[k] ? hi : tiling->box.hi[k]);
        out->extent[k] = (int)tiling->extent[k];
        out->count[k] = (unsigned)(range->hi[k] - range->lo[k]);
        out->tile_step[k] = (unsigned)step;
        out->tile += range->lo[k] * step;
        step *= tiling->count[k];
        out->blocks *= out->count[k];
    }
}

int peal_cuda_rows_alignment(const peal_schedule_array *array, uint64_t zero, int64_t begin)
{
    const uint64_t columns = PEAL_WHOLE_COLUMNS, bytes = peal_type_bytes(array->type);
    uint64_t first = zero + (uint64_t)begin * bytes;

    for (int k = 1; k < array->layout.stored.axis_count; k++)
        if ((uint64_t)array->layout.stride[k] % columns != 0)
            return PEAL_UNALIGNED;
    if (first % bytes != 0)
        return PEAL_UNALIGNED;
    return first / bytes % columns ? PEAL_ALIGNED_ODD : PEAL_ALIGNED;
}

/* Joins b to a if they differ along one axis only and touch there. False: they do not. */
static bool join_boxes(peal_launch_box *a, const peal_launch_box *b)
{
    int along = -1;
    for (int k = 0; k < PEAL_AXES; k++) {
        if (a->lo[k] == b->lo[k] && a->hi[k] == b->hi[k])
            continue;
        if (along >= 0 || (a->hi[k] != b->lo[k] && b->hi[k] != a->lo[k]))
            return false;
        along = k;
    }
    if (along < 0)
        return false;
    a->lo[along] = a->lo[along] < b->lo[along] ? a->lo[along] : b->lo[along];
    a->hi[along] = a->hi[along] > b->hi[along] ? a->hi[along] : b->hi[along];
    return true;
}

static int join_all(peal_launch_box *box, int count)
{
    for (int i = 0; i < count; i++)
        for (int j = i + 1; j < count; j++)
            if (join_boxes(&box[i], &box[j])) {
                box[j] = box[--count];
                i = -1;
                break;
            }
    return count;
}

static int64_t points_of(const peal_launch_box *box)
{
    int64_t points = 1;
    for (int k = 0; k < PEAL_AXES; k++)
        points *= box->hi[k] - box->lo[k];
    return points;
}

/* How many points the box begins behind the beginning of a line of memory, in the task's first
 * field; 0: that differs from row to row. */
static int lead_of(const peal_cuda_rank *rank, const peal_schedule_task *task,
                   const peal_launch_box *box)
{
    enum { LINE = 128, SECTOR = 32 };
    const peal_schedule *schedule = rank->schedule;

    for (int i = 0; i < task->access_count; i++) {
        int array = task->access[i].array;
        if (!peal_cuda_access_is_moved(schedule, &task->access[i]))
            continue;
        const peal_layout *layout = &schedule->array[array].layout;
        int64_t bytes = (int64_t)peal_type_bytes(schedule->array[array].type);
        uint64_t first = rank->first[array] + (uint64_t)(rank->origin[array] + box->lo[0] * bytes);
        return layout->stride[1] * bytes % SECTOR ? 0 : (int)(first % LINE / (uint64_t)bytes);
    }
    return 0;
}

/* The least number of tiles that a launch should have, to fill `waves` waves. A quarter of a wave
 * of flat tiles is enough, since a thread of theirs has all of its loads in flight at a time. */
static int least_blocks_of(const peal_cuda_plan *plan, int whole, int waves)
{
    return whole == PEAL_WHOLE_FLAT ? plan->device->sm_count / 4 : waves * plan->device->sm_count;
}

static int64_t points_of_task(const peal_schedule_task *task)
{
    int64_t points = 0;

    for (int i = 0; i < task->tiling_count; i++)
        points += peal_box_points(&task->tiling[i].box);
    return points;
}

/* The share of `blocks` that the points of some boxes have in all of the task's. */
static int share_of(const peal_schedule_task *task, const peal_launch_box *box, int count,
                    int blocks)
{
    int64_t points = 0, all = points_of_task(task);

    for (int i = 0; i < count; i++)
        points += points_of(&box[i]);
    return all > 0 ? (int)((blocks * points + all - 1) / all) : blocks;
}

/* Mode fused: the largest tiles that give each SM one. Borders of tasks with reductions are as
 * thick as the schedule's tiles. They get their share of the blocks only; cut smaller, there would
 * be more tiles than blocks (5-point relaxation of 1024^2 on 2 H100). */
static void cut_for_one_kernel(const peal_cuda_rank *rank, const peal_schedule_task *task,
                               peal_cuda_op *out)
{
    int whole = peal_cuda_task_whole(task), least_blocks = least_blocks_of(rank->plan, whole, 1);

    if (task->reduction_count > 0)
        least_blocks = share_of(task, out->free, out->free_count, least_blocks);
    for (int rows = PEAL_CUDA_MOST_ROWS; rows > 0; rows /= 2) {
        int64_t blocks = 0;
        for (int i = 0; i < out->free_count; i++) {
            peal_cuda_box_cut(0, rows, out->kernel->threads, whole,
                              lead_of(rank, task, &out->large[i]), &out->large[i]);
            blocks += out->large[i].blocks;
        }
        if (blocks >= least_blocks)
            return;
    }
}

/* Whether few blocks of free shape, in one wave, would do all of a task. */
static bool is_small(const peal_cuda_rank *rank, const peal_schedule_task *task,
                     const int threads[3])
{
    int64_t each = (int64_t)threads[0] * threads[1] * threads[2] * PEAL_CUDA_MOST_ROWS;

    return points_of_task(task) <= each * WAVE * rank->plan->device->sm_count;
}

/* Whole tiles if there are enough of them, because a thread then has more points; else tiles of
 * free shape. The thick borders of tasks with reductions get their share of the blocks here, too,
 * where all are in a wave (1024^2 on 2 H100: 9.3 us a step, 7.6 so; in larger ones small tiles let
 * borders be sent sooner). */
static void cut_free(const peal_cuda_rank *rank, const peal_schedule_task *task,
                     const peal_cuda_op *op, peal_launch_box *box)
{
    int whole = task->reduction_count == 0 ? peal_cuda_task_whole(task) : 0;
    int64_t points = 1;
    int least_blocks = WAVE * rank->plan->device->sm_count;

    if (task->reduction_count > 0 && is_small(rank, task, op->kernel->threads))
        least_blocks = share_of(task, box, 1, least_blocks);
    if (whole)
        peal_cuda_box_cut(least_blocks_of(rank->plan, whole, WAVE), PEAL_CUDA_MOST_ROWS,
                          op->kernel->threads, whole, lead_of(rank, task, box), box);
    for (int k = 0; k < 3; k++) {
        whole = box->hi[k] - box->lo[k] < box->extent[k] ? 0 : whole;
        points *= box->extent[k];
    }
    if (!whole || points < (whole == PEAL_WHOLE_FLAT ? 1024 : 2048))
        peal_cuda_box_cut(least_blocks, PEAL_CUDA_MOST_ROWS, op->kernel->threads, 0, 0, box);
}

void peal_cuda_tile_boxes_bind(peal_cuda_rank *rank, const peal_op *op, peal_cuda_op *out)
{
    const peal_cuda_plan *plan = rank->plan;
    const peal_schedule_task *task = out->task;
    int64_t points = 0;
    int whole = peal_cuda_task_whole(task);

    out->exact = PEAL_ARENA_ARRAY(plan->arena, peal_launch_box, op->range_count + 1);
    out->free = PEAL_ARENA_ARRAY(plan->arena, peal_launch_box, op->range_count + 1);
    for (int i = 0; i < op->range_count; i++) {
        peal_cuda_box_exact(task, &op->range[i], &out->exact[out->exact_count]);
        out->exact_count += out->exact[out->exact_count].blocks > 0;
    }
    memcpy(out->free, out->exact, (size_t)out->exact_count * sizeof(*out->free));
    out->free_count = out->exact_count;
    if (!task->mergeable)
        return;
    out->free_count = join_all(out->free, out->free_count);
    if (!out->kernel)
        return; /* the application's own work, which chooses its grid */
    for (int i = 0; i < out->free_count; i++) {
        points += points_of(&out->free[i]);
        cut_free(rank, task, out, &out->free[i]);
    }
    bool fused = plan->one_kernel;
    int64_t least = whole == PEAL_WHOLE_FLAT ? plan->options.plain_flat_points
                    : out->kernel->light     ? plan->options.plain_light_points
                                             : plan->options.plain_points;
    if (!fused && (!out->kernel->communication_free || points < least))
        return;
    out->large = PEAL_ARENA_ARRAY(plan->arena, peal_launch_box, out->free_count + 1);
    memcpy(out->large, out->free, (size_t)out->free_count * sizeof(*out->large));
    if (fused)
        cut_for_one_kernel(rank, task, out);
    for (int i = 0; i < out->free_count && !fused; i++)
        peal_cuda_box_cut(least_blocks_of(plan, whole, WAVE), PEAL_CUDA_MOST_ROWS,
                          out->kernel->threads, whole, lead_of(rank, task, &out->large[i]),
                          &out->large[i]);
}
