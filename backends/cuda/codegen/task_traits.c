/* What the kernel of a task looks like, from its schedule alone. */
#include "backends/cuda/codegen/task_traits.h"

#include "backends/cuda/codegen/device/launch.h"

#include <string.h>

int peal_cuda_task_axes(const peal_schedule_task *task)
{
    return task->tiling_count > 0 ? task->tiling[0].box.axis_count : 1;
}

/* The task reads nothing beside a point along z, so threads that march along z would have nothing
 * to keep. Tasks with partials have one kind of whole tiles, that of the schedule's. */
static bool is_flat(const peal_schedule_task *task)
{
    for (int i = 0; i < task->access_count; i++)
        for (int k = 0; k < task->access[i].reach_count; k++) {
            const peal_reach_axis *axis = &task->access[i].reach[k].axis[2];
            if (axis->fixed || axis->num != axis->den || axis->low != 0 || axis->high != 0)
                return false;
        }
    return task->reduction_count == 0;
}

int peal_cuda_task_whole(const peal_schedule_task *task)
{
    int axes = peal_cuda_task_axes(task);

    /* A whole tile's rows and columns are unrolled: with components there is too much at once. */
    return task->has_components ? 0
           : axes == 2          ? PEAL_WHOLE_2
           : axes != 3          ? 0
           : is_flat(task)      ? PEAL_WHOLE_FLAT
                                : PEAL_WHOLE_3;
}

bool peal_cuda_task_is_light(const peal_schedule *schedule, const peal_schedule_task *task)
{
    bool light = peal_cuda_task_axes(task) == 2 && task->access_count <= 2;

    for (int i = 0; i < task->access_count; i++)
        light &= peal_type_bytes(schedule->array[task->access[i].array].type) <= 4;
    return light;
}

void peal_cuda_task_shape(const peal_schedule_task *task, int threads[3])
{
    static const int shapes[4][3] = {{PEAL_CUDA_TASK_THREADS, 1, 1},
                                     {PEAL_CUDA_TASK_THREADS, 1, 1},
                                     {64, 4, 1},
                                     {32, 4, 2}};
    int axes = peal_cuda_task_axes(task);

    memcpy(threads, shapes[axes < 3 ? axes : 3], sizeof(shapes[0]));
}

static bool is_moved_field(const peal_schedule *schedule, int array)
{
    const peal_graph_data *graph = schedule->graph;

    /* Elements of a buffer and of planes of components are addressed from its own pointer. */
    return array < graph->array_count && !schedule->array[array].has_components &&
           graph->arrays[array].kind == PEAL_ARRAY_FIELD &&
           schedule->array[array].layout.stored.axis_count >= 2;
}

bool peal_cuda_access_is_moved(const peal_schedule *schedule, const peal_task_access *access)
{
    return access->per_tile == 0 && is_moved_field(schedule, access->array);
}

/* Along an axis: all points of tiles, and of the fields that they access. */
typedef struct hull {
    int64_t lo, hi;
} hull;

static void widen(hull *hulls, const peal_box *box)
{
    for (int k = 0; k < PEAL_AXES; k++) {
        hulls[k].lo = box->lo[k] < hulls[k].lo ? box->lo[k] : hulls[k].lo;
        hulls[k].hi = box->hi[k] > hulls[k].hi ? box->hi[k] : hulls[k].hi;
    }
}

static void find_hulls(const peal_schedule *schedule, hull *hulls)
{
    for (int k = 0; k < PEAL_AXES; k++)
        hulls[k] = (hull){INT64_MAX, INT64_MIN};
    for (int i = 0; i < schedule->array_count; i++)
        if (is_moved_field(schedule, i))
            widen(hulls, &schedule->array[i].layout.stored);
    for (int i = 0; i < schedule->task_count; i++) {
        const peal_schedule_task *task = &schedule->task[i];
        bool moves = false;
        for (int k = 0; k < task->access_count && task->mergeable; k++)
            moves |= peal_cuda_access_is_moved(schedule, &task->access[k]);
        for (int k = 0; k < task->tiling_count && moves; k++)
            widen(hulls, &task->tiling[k].box);
    }
}

bool peal_cuda_offsets_are_wide(const peal_schedule *schedule)
{
    hull hulls[PEAL_AXES];

    find_hulls(schedule, hulls);
    for (int i = 0; i < schedule->array_count; i++) {
        const peal_layout *layout = &schedule->array[i].layout;
        int64_t rest = INT32_MAX;
        int axes = layout->stored.axis_count;
        for (int k = 0; k < axes && (axes == 2 || axes == 3); k++) {
            int64_t lo = -layout->stored.lo[k], most = layout->stored.hi[k];
            most = most > lo ? most : lo;
            if (is_moved_field(schedule, i))
                most = hulls[k].hi - hulls[k].lo;
            if (most > rest / (layout->stride[k] > 0 ? layout->stride[k] : 1))
                return true;
            rest -= most * layout->stride[k];
        }
    }
    return false;
}

/* What a tile reads of an array around itself; false: that is no box around the tile. */
static bool hull_of_reach(const peal_task_access *access, int axes, int64_t *low, int64_t *high)
{
    for (int k = 0; k < PEAL_AXES; k++)
        low[k] = high[k] = 0;
    for (int i = 0; i < access->reach_count; i++)
        for (int k = 0; k < PEAL_AXES; k++) {
            const peal_reach_axis *axis = &access->reach[i].axis[k];
            if (axis->fixed && (k < axes || axis->low != 0 || axis->high != 1))
                return false;
            if (axis->fixed)
                continue;
            if (axis->num != axis->den || axis->low < -16 || axis->high > 16)
                return false;
            /* Not rounded up: there may be no memory beside it. */
            low[k] = i == 0 || axis->low < low[k] ? axis->low : low[k];
            high[k] = i == 0 || axis->high > high[k] ? axis->high : high[k];
        }
    for (int k = 0; k < PEAL_AXES; k++)
        if (low[k] > high[k])
            return false;
    return access->reach_count > 0;
}

bool peal_cuda_access_stages(const peal_schedule *schedule, const peal_schedule_task *task,
                             int index, int64_t *low, int64_t *high)
{
    const peal_task_access *access = &task->access[index];
    int axes = peal_cuda_task_axes(task);

    return access->mode == PEAL_READ_ACCESS && (axes == 2 || axes == 3) &&
           peal_cuda_access_is_moved(schedule, access) &&
           schedule->array[access->array].layout.stored.axis_count == axes &&
           hull_of_reach(access, axes, low, high);
}

/* Writes each of its own points and no other. */
static bool is_pointwise(const peal_task_access *access, int axes)
{
    int64_t low[PEAL_AXES], high[PEAL_AXES];

    if (!hull_of_reach(access, axes, low, high))
        return false;
    for (int k = 0; k < axes; k++)
        if (low[k] != 0 || high[k] != 0)
            return false;
    return true;
}

/* So many loads are under way together, about: more have no registers. */
enum { CHAIN_LOADS = 40, MOST_CHAIN_ROWS = 8 };

static int rows_of(const peal_task_access *access)
{
    int64_t points = 0; /* of a star some count twice */

    for (int i = 0; i < access->reach_count; i++) {
        int64_t here = 1;
        for (int k = 0; k < PEAL_AXES; k++)
            if (!access->reach[i].axis[k].fixed)
                here *= access->reach[i].axis[k].high - access->reach[i].axis[k].low + 1;
        points += here;
    }
    int rows = MOST_CHAIN_ROWS;
    while (rows > 1 && rows * points > CHAIN_LOADS)
        rows /= 2;
    return rows;
}

bool peal_cuda_task_chains(const peal_schedule *schedule, const peal_schedule_task *task,
                           peal_cuda_chain *out)
{
    int64_t low[PEAL_AXES], high[PEAL_AXES];

    *out = (peal_cuda_chain){.read = -1, .written = -1};
    /* With contraction the bits depend on what the compiler makes of an instance. */
    if (task->kind != PEAL_TASK_KERNEL || !task->mergeable || task->count || task->function ||
        task->cuda_function || task->enqueue || schedule->graph->fma)
        return false;
    for (int i = 0; i < task->access_count; i++)
        if (task->access[i].mode != PEAL_READ_ACCESS) {
            if (out->written >= 0 || task->access[i].mode != PEAL_WRITE_ACCESS)
                return false;
            out->written = i;
        }
    if (out->written < 0)
        return false;
    const peal_schedule_array *written = &schedule->array[task->access[out->written].array];
    for (int i = 0; i < task->access_count; i++) {
        const peal_task_access *access = &task->access[i];
        const peal_schedule_array *array = &schedule->array[access->array];
        if (i == out->written)
            continue;
        if (access->stale_is_meant || !peal_cuda_access_stages(schedule, task, i, low, high))
            return false;
        if (array->swap_group < 0 || array->swap_group != written->swap_group)
            continue;
        if (out->read >= 0)
            return false;
        out->read = i;
        out->rows = rows_of(access);
        for (int k = 0; k < PEAL_AXES; k++) { /* a window has the tile itself */
            out->low[k] = low[k] < 0 ? low[k] : 0;
            out->high[k] = high[k] > 0 ? high[k] : 0;
        }
    }
    return out->read >= 0 && written->swap_group >= 0 &&
           peal_cuda_access_is_moved(schedule, &task->access[out->written]) &&
           written->type == schedule->array[task->access[out->read].array].type &&
           is_pointwise(&task->access[out->written], peal_cuda_task_axes(task));
}
