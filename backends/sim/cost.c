/* How long the ops of a schedule take on a machine. */
#include "backends/sim/internal.h"

#include "base/box.h"
#include "base/checked.h"

#include <stdio.h>
#include <string.h>

double sim_link_seconds(const sim_placement *placement, peal_link_class link, int64_t bytes)
{
    return (double)bytes / placement->times->link[link].bytes_per_s;
}

static const peal_kernel_times *find_named(const peal_machine_times *times, const char *task,
                                           bool of_mode, peal_mode mode)
{
    for (int i = 0; task && i < times->kernel_count; i++) {
        const peal_kernel_times *t = &times->kernel[i];
        if (t->of_mode == of_mode && (!of_mode || t->mode == mode) && !strcmp(t->task, task))
            return t;
    }
    return NULL;
}

void sim_times_name(const peal_schedule *schedule, const peal_op *op,
                    char name[PEAL_TASK_NAME_BYTES])
{
    static const char *const copies[] = {"send", "unpack", "local"};
    peal_copy_kind copy = op->kind == PEAL_OP_COPY ? op->copy
                          : op->credit             ? PEAL_COPY_UNPACK
                                                   : PEAL_COPY_SEND;

    *name = 0;
    if (op->kind == PEAL_OP_LAUNCH)
        snprintf(name, PEAL_TASK_NAME_BYTES, "%s", schedule->task[op->task].name);
    else if (op->kind == PEAL_OP_COPY || op->kind == PEAL_OP_WRITE)
        snprintf(name, PEAL_TASK_NAME_BYTES, "%s %s", copies[copy], op->label);
    else if (op->kind == PEAL_OP_WAIT && schedule->mode == PEAL_MODE_SYNC)
        snprintf(name, PEAL_TASK_NAME_BYTES, "wait %s", op->label);
}

/* Finds times by the name of the task, then of its kernel; those of the mode first. Kernels without
 * either have `default`. */
static const peal_kernel_times *find_times(const peal_machine_times *times, peal_mode mode,
                                           const peal_schedule_task *task)
{
    const peal_kernel_times *found = find_named(times, task->name, true, mode);

    if (!found)
        found = find_named(times, task->name, false, mode);
    if (!found && task->kind == PEAL_TASK_KERNEL)
        found = find_named(times, task->kernel, true, mode);
    if (!found && task->kind == PEAL_TASK_KERNEL)
        found = find_named(times, task->kernel, false, mode);
    if (!found && task->kind == PEAL_TASK_KERNEL)
        found = find_named(times, "default", false, mode);
    return found;
}

/* The mode's times for a transfer: a copy with the writes that belong to it, or a wait. NULL: it
 * has none, or is no transfer. */
static const peal_kernel_times *find_transfer(const peal_machine_times *times,
                                              const peal_schedule *schedule, const peal_op *op)
{
    char name[PEAL_TASK_NAME_BYTES];

    if (!sim_is_of_message(op) && op->kind != PEAL_OP_COPY)
        return NULL;
    sim_times_name(schedule, op, name);
    return find_named(times, name, true, schedule->mode);
}

bool sim_is_timed_transfer(const peal_machine_times *times, const peal_schedule *schedule,
                           const peal_op *op)
{
    return find_transfer(times, schedule, op) != NULL;
}

double sim_post_seconds(const peal_machine_times *times, const peal_schedule *schedule,
                        const peal_op *op)
{
    const peal_mode_times *mode = &times->mode[schedule->mode];
    const peal_kernel_times *found =
        op->kind == PEAL_OP_LAUNCH ? find_times(times, schedule->mode, &schedule->task[op->task])
                                   : find_transfer(times, schedule, op);

    if (found && found->of_mode)
        return op->kind == PEAL_OP_WRITE ? 0 : found->launch_s;
    if (op->rest && times->accelerator) /* it goes with its border (join_borders) */
        return 0;
    return op->kind == PEAL_OP_LAUNCH ? mode->launch_s : mode->post_s;
}

/* The box of points that a range of tiles covers. */
static peal_box range_box(const peal_schedule_task *task, const peal_tile_range *range)
{
    const peal_tiling *tiling = &task->tiling[range->tiling];
    peal_box box = tiling->box;

    for (int k = 0; k < PEAL_AXES; k++) {
        int64_t hi = tiling->box.lo[k] + range->hi[k] * tiling->extent[k];
        box.lo[k] = tiling->box.lo[k] + range->lo[k] * tiling->extent[k];
        box.hi[k] = hi < tiling->box.hi[k] ? hi : tiling->box.hi[k];
    }
    return box;
}

/* How many elements the tiles of a box read or write by a reach. */
static double elements_touched(const peal_reach *reach, const peal_box *box)
{
    double count = 1;

    for (int k = 0; k < PEAL_AXES; k++) {
        const peal_reach_axis *a = &reach->axis[k];
        int64_t lo = a->fixed ? a->low : peal_floor_divide(box->lo[k] * a->num, a->den) + a->low;
        int64_t hi = a->fixed ? a->high : peal_ceil_divide(box->hi[k] * a->num, a->den) + a->high;
        count *= hi > lo ? (double)(hi - lo) : 0;
    }
    return count;
}

static double access_bytes(const peal_schedule *schedule, const peal_task_access *access,
                           const peal_box *box, double tiles)
{
    double most = 0, times = access->mode == PEAL_UPDATE_ACCESS ? 2 : 1;

    for (int i = 0; i < access->reach_count; i++) {
        double count = elements_touched(&access->reach[i], box);
        most = count > most ? count : most; /* a star's arms overlap in all but the rim */
    }
    if (access->per_tile > 0)
        most = tiles * (double)access->per_tile;
    return times * most * (double)peal_type_bytes(schedule->array[access->array].type);
}

double sim_launch_points(const peal_schedule *schedule, const peal_op *op)
{
    double points = 0;

    for (int i = 0; i < op->range_count; i++) {
        peal_box box = range_box(&schedule->task[op->task], &op->range[i]);
        points += (double)peal_box_points(&box);
    }
    return points;
}

static int64_t tile_count(const peal_tile_range *range)
{
    int64_t count = 1;
    for (int k = 0; k < PEAL_AXES; k++)
        count *= range->hi[k] > range->lo[k] ? range->hi[k] - range->lo[k] : 0;
    return count;
}

static double kernel_seconds(const peal_schedule *schedule, const peal_op *op,
                             const peal_kernel_times *times, int64_t *tiles)
{
    const peal_schedule_task *task = &schedule->task[op->task];
    double points = 0, bytes = 0;

    *tiles = 0;
    for (int i = 0; i < op->range_count; i++) {
        int64_t count = tile_count(&op->range[i]);
        peal_box box = range_box(task, &op->range[i]);
        *tiles += count;
        if (!count)
            continue;
        points += (double)peal_box_points(&box);
        for (int k = 0; k < task->access_count; k++)
            bytes += access_bytes(schedule, &task->access[k], &box, (double)count);
    }
    return points * times->per_point_s + bytes * times->per_byte_s;
}

/* How many workers run a launch: all of a rank in modes sync and fused. In mode stream a lane is
 * one worker. */
static double workers_used(const sim_placement *placement, const peal_schedule *schedule,
                           int64_t tiles)
{
    bool shares = schedule->mode == PEAL_MODE_SYNC || schedule->mode == PEAL_MODE_FUSED;
    if (placement->times->accelerator || !shares)
        return 1;
    return (double)(tiles < placement->cores ? tiles : placement->cores);
}

static peal_status launch_cost(const sim_desc *desc, const sim_placement *placement,
                               const peal_schedule *schedule, const peal_op *op, sim_cost *out)
{
    const peal_mode_times *mode = &desc->times->mode[schedule->mode];
    const peal_schedule_task *task = &schedule->task[op->task];
    bool drives = schedule->mode == PEAL_MODE_SYNC || schedule->mode == PEAL_MODE_SERIAL;
    const peal_kernel_times *times = find_times(desc->times, schedule->mode, task);
    int64_t tiles = 1;

    out->lane_s = mode->kernel_s + (drives ? mode->launch_s + mode->synchronize_s : 0);
    if (task->kind != PEAL_TASK_KERNEL && !times)
        return PEAL_STATUS_OK; /* it takes no more than to begin and to end */
    if (!times)
        return peal_report(desc->diagnostics, PEAL_E_MACHINE_TIME_MISSING, task->source,
                           "add `kernels: {default: {per_byte_s: ...}}` to the machine file",
                           "the machine file has no times for task `%s`, and none by default",
                           task->name);
    out->device_s = kernel_seconds(schedule, op, times, &tiles);
    if (times->of_mode)
        out->lane_s = 0;
    else if (mode->stretch > 0)
        out->device_s *= mode->stretch;
    if (!tiles) {
        *out = (sim_cost){0};
        return PEAL_STATUS_OK;
    }
    out->device_s /= workers_used(placement, schedule, tiles);
    /* A GPU begins a small kernel beside another one, so the fixed part is the lane's. */
    *(placement->times->accelerator ? &out->lane_s : &out->device_s) += times->fixed_s;
    return PEAL_STATUS_OK;
}

/* Copies within a rank. */
static double local_seconds(const sim_placement *placement, const peal_schedule *schedule,
                            const peal_op *op)
{
    const peal_piece *piece =
        op->copy == PEAL_COPY_LOCAL ? op->piece : schedule->channel[op->channel].piece;
    int count =
        op->copy == PEAL_COPY_LOCAL ? op->piece_count : schedule->channel[op->channel].piece_count;
    const peal_link_times *link = placement->times->link;
    int64_t bytes = 0;

    for (int i = 0; i < count; i++)
        bytes += op->copy == PEAL_COPY_LOCAL || !piece[i].direct ? piece[i].bytes : 0;
    for (int i = placement->times->accelerator ? PEAL_LINK_DEVICE : PEAL_LINK_HOST;
         i < PEAL_LINK_NETWORK; i++)
        if (link[i].given)
            return sim_link_seconds(placement, (peal_link_class)i, bytes);
    return 0;
}

static peal_status op_cost(const sim_desc *desc, const sim_placement *placement,
                           const peal_schedule *schedule, const peal_op *op, sim_cost *out)
{
    const peal_mode_times *mode = &desc->times->mode[schedule->mode];
    peal_status status = PEAL_STATUS_OK;

    if (desc->free_messages && sim_is_of_message(op))
        return PEAL_STATUS_OK;
    const peal_kernel_times *copy = find_transfer(desc->times, schedule, op);
    switch (copy ? PEAL_OP_FENCE : op->kind) {
    case PEAL_OP_LAUNCH:
        status = launch_cost(desc, placement, schedule, op, out);
        break;
    case PEAL_OP_COPY:
        out->lane_s = mode->copy_s;
        if (op->copy == PEAL_COPY_SEND)
            out->bytes = schedule->channel[op->channel].message_bytes;
        else
            out->lane_s += local_seconds(placement, schedule, op);
        break;
    case PEAL_OP_WRITE:
        out->lane_s = mode->write_s;
        break;
    case PEAL_OP_WAIT:
        out->lane_s = mode->wait_s;
        break;
    default:
        break;
    }
    if (copy && op->kind != PEAL_OP_WRITE)
        out->lane_s = copy->fixed_s;
    if (!placement->times->accelerator || placement->one) { /* a core does one thing at a time */
        out->device_s += out->lane_s;
        out->lane_s = 0;
    }
    return status;
}

/* Of a border; -1: there is none. */
static int find_rest(const peal_schedule *schedule, int border)
{
    for (int i = border + 1; i < schedule->op_count; i++) {
        const peal_op *op = &schedule->op[i];
        if (op->kind == PEAL_OP_LAUNCH && op->task == schedule->op[border].task)
            return op->rest ? i : -1;
    }
    return -1;
}

/* The border of a task and its rest are one launch (sim.h). Times of ops by name are each op's. */
static void join_borders(const sim_desc *desc, const peal_schedule *schedule, sim_cost *cost)
{
    const bool one_by_one = schedule->mode == PEAL_MODE_SERIAL || schedule->mode == PEAL_MODE_SYNC;

    for (int i = 0; i < schedule->op_count && !one_by_one; i++) {
        const peal_op *op = &schedule->op[i];
        int rest = op->border ? find_rest(schedule, i) : -1;
        if (rest < 0)
            continue;
        const peal_kernel_times *times =
            find_times(desc->times, schedule->mode, &schedule->task[op->task]);
        if (times && times->of_mode)
            continue;
        cost[rest].lane_s = 0;
        if (schedule->mode == PEAL_MODE_FUSED)
            continue;
        cost[i].device_s += cost[rest].device_s;
        cost[rest].device_s = 0;
    }
}

peal_status sim_costs_create(const sim_desc *desc, const sim_placement *placement,
                             const peal_schedule *schedule, peal_arena *arena, sim_cost **out)
{
    sim_cost *cost = PEAL_ARENA_ARRAY(arena, sim_cost, schedule->op_count + 1);
    peal_status status = PEAL_STATUS_OK;

    if (!desc->times->mode[schedule->mode].given)
        return peal_report(desc->diagnostics, PEAL_E_MACHINE_TIME_MISSING, (peal_source){0},
                           "add them to the machine file's `modes`, or simulate another --mode",
                           "the machine file has no times for mode %s",
                           peal_mode_name(schedule->mode));
    for (int i = 0; i < schedule->op_count && !status; i++)
        status = op_cost(desc, placement, schedule, &schedule->op[i], &cost[i]);
    if (!status && placement->times->accelerator)
        join_borders(desc, schedule, cost);
    *out = cost;
    return status;
}
