/* Piggybacked reductions: FOLDs and COMBINEs that a task's launch does, so that they need no kernel
 * of their own (device/reduce.h). The last block of the launch does the FOLDs of the task's
 * partials, and sends their results. One additional block does a deferred COMBINE (defer.c). */
#include "backends/cuda/lower/emit.h"
#include "backends/cuda/lower/sink.h"

#include <string.h>

/* Whether the group's launch may do reductions: it is a task's with partials, signals are in
 * kernels, and the rank has one lane, so that all of its earlier launches have ended. */
static bool can_piggyback(const peal_cuda_rank *rank, const peal_cuda_group *group)
{
    const peal_cuda_plan *plan = rank->plan;

    return plan->options.folds_in_task && plan->emission.sink->signal == PEAL_CUDA_SIGNAL_FUSED &&
           rank->lanes == 1 && group->kind == PEAL_CUDA_GROUP_TASK &&
           group->task->kind == PEAL_TASK_KERNEL && group->partials;
}

/* ---- folds ---- */

/* The reduction of the group's task whose partials FOLD `task` folds; -1: none. */
static int reduction_of(const peal_cuda_group *group, const peal_schedule_task *task)
{
    for (int i = 0; i < group->task->reduction_count; i++)
        if (group->task->reduction[i].partials == task->gather &&
            group->task->reduction[i].combine == task->combine)
            return i;
    return -1;
}

bool peal_cuda_fold_fits(const peal_cuda_rank *rank, int index)
{
    const peal_cuda_op *op = &rank->op[index];
    const peal_cuda_group *group = &rank->lane[op->lane].group;

    if (rank->schedule->op[index].kind != PEAL_OP_LAUNCH || op->task->kind != PEAL_TASK_FOLD ||
        rank->member[index] != 0 || !can_piggyback(rank, group))
        return false;
    int reduction = reduction_of(group, op->task);
    return reduction >= 0 && op->task->contributions > 0 &&
           op->task->contributions <= PEAL_LAUNCH_FOLDED &&
           !(group->communication_free &&
             group->launch.skip) && /* the fold's flags must be written even if it is skipped */
           group->launch.fold[reduction].count == 0 &&
           group->written_count < PEAL_LAUNCH_VIEWS &&
           (group->launch.fold_bit || group->launch.box_count < PEAL_LAUNCH_BOXES);
}

/* Adds the box that messages with results of folds belong to. It has no blocks, and one point, as
 * the results have. */
static void add_fold_box(peal_cuda_group *group)
{
    peal_launch *launch = &group->launch;
    peal_launch_box *box = &launch->box[launch->box_count];

    memset(box, 0, sizeof(*box));
    for (int k = 0; k < PEAL_AXES; k++)
        box->hi[k] = 1;
    launch->fold_bit = 1u << launch->box_count++;
    group->fold_writes = 0;
    group->closed = false;
}

void peal_cuda_fold_join(peal_cuda_rank *rank, int index, const peal_walk_frame *frame)
{
    peal_cuda_op *op = &rank->op[index];
    peal_cuda_group *group = &peal_cuda_lane_at(rank, op->lane)->group;
    peal_launch *launch = &group->launch;
    int view = group->written_count++;

    if (!launch->fold_bit)
        add_fold_box(group);
    launch->fold[reduction_of(group, op->task)] =
        (peal_launch_fold){(int)op->task->contributions, view};
    launch->view[view] = rank->first[frame->binding[op->task->array]];
    memset(launch->stride[view], 0, sizeof(launch->stride[view]));
    group->written[view] = frame->binding[op->task->array];
    peal_cuda_group_join(rank, group, index, launch->fold_bit);
}

/* ---- combines ---- */

/* Finds where each row of contributions lies: in the staging slot that its message was stored to,
 * or in the gathered array. False: a row is not contiguous. */
static bool find_rows(const peal_cuda_rank *rank, const peal_cuda_group *deferred,
                      int64_t row_bytes, peal_launch_piggyback *piggyback)
{
    const peal_launch *launch = &deferred->launch;
    uint64_t gather = launch->view[1];
    int list = 0;

    for (int r = 0; r < piggyback->rows; r++)
        piggyback->row[r] = gather + (uint64_t)(r * row_bytes);
    for (int i = 0; i < deferred->op_count; i++) {
        const peal_cuda_op *op = &rank->op[deferred->op[i]];
        if (op->source->kind != PEAL_OP_COPY)
            continue;
        const unsigned long long *base = launch->base + launch->list[list++].base;
        for (int p = 0; p < op->pieces.count; p++) {
            const peal_device_piece *piece = &op->pieces.piece[p];
            uint64_t from = base[piece->source] + (uint64_t)piece->source_offset;
            int64_t to = (int64_t)(base[piece->target] + (uint64_t)piece->target_offset - gather);
            int64_t bytes = piece->units * piece->unit;
            if (piece->units != (int64_t)piece->run || to < 0 || to % row_bytes ||
                bytes % row_bytes || (to + bytes) / row_bytes > piggyback->rows)
                return false;
            for (int64_t at = 0; at < bytes; at += row_bytes)
                piggyback->row[(to + at) / row_bytes] = from + (uint64_t)at;
        }
    }
    return list == launch->list_count;
}

bool peal_cuda_piggyback_describe(const peal_cuda_rank *rank, const peal_cuda_group *group,
                                  peal_launch_piggyback *piggyback)
{
    const peal_launch *launch = &group->launch;
    int64_t rows = launch->argument[0].integer, width = launch->argument[1].integer;

    *piggyback = (peal_launch_piggyback){.reduction = -1};
    if (group->task->kind != PEAL_TASK_COMBINE || rows < 1 || rows > PEAL_LAUNCH_ROWS ||
        width < 1 || width > PEAL_CUDA_TASK_THREADS)
        return false;
    piggyback->rows = (int)rows;
    piggyback->width = (int)width;
    piggyback->result = launch->view[0];
    peal_type type = rank->schedule->array[group->task->array].type;
    return find_rows(rank, group, width * (int64_t)peal_type_bytes(type), piggyback);
}

/* A reduction of the group's task with the type and the operator of COMBINE `task`; -1: none. */
static int find_reduction_like(const peal_cuda_rank *rank, const peal_cuda_group *group,
                               const peal_schedule_task *task)
{
    const peal_schedule_array *array = rank->schedule->array;
    int found = -1;

    for (int i = 0; i < group->task->reduction_count; i++)
        if (array[group->task->reduction[i].array].type == array[task->array].type &&
            group->task->reduction[i].combine == task->combine)
            found = i;
    return found;
}

/* Adds the deferred COMBINE to the group: a box of one block, its waits, writes and members. */
static void add_piggyback_box(peal_cuda_rank *rank, peal_cuda_group *group,
                              const peal_cuda_group *deferred)
{
    peal_launch *launch = &group->launch;
    peal_launch_box *box = &launch->box[launch->box_count];
    unsigned bit = 1u << launch->box_count++;

    memset(box, 0, sizeof(*box));
    box->blocks = 1;
    for (int k = 0; k < PEAL_AXES; k++)
        box->count[k] = 1;
    box->sends = deferred->launch.write_count > 0;
    launch->piggyback.bit = bit;
    for (int i = 0; i < deferred->launch.wait_count; i++) {
        box->waits |= 1u << launch->wait_count;
        launch->wait[launch->wait_count++] = deferred->launch.wait[i];
    }
    for (int i = 0; i < deferred->launch.write_count; i++) {
        launch->write[launch->write_count] = deferred->launch.write[i];
        launch->write[launch->write_count].boxes = bit;
        group->quantum[launch->write_count++] = deferred->quantum[i];
    }
    for (int i = 0; i < deferred->op_count; i++) {
        bool waits = rank->op[deferred->op[i]].source->kind == PEAL_OP_WAIT;
        peal_cuda_group_join(rank, group, deferred->op[i], waits ? box->waits : bit);
        group->op_instance[group->op_count - 1] = deferred->op_instance[i];
    }
}

bool peal_cuda_piggyback(peal_cuda_rank *rank, peal_cuda_lane *lane)
{
    peal_cuda_group *group = &lane->group, *deferred = &lane->deferred;
    peal_launch *launch = &group->launch;
    peal_launch_piggyback piggyback;

    if (deferred->kind == PEAL_CUDA_GROUP_NONE || !can_piggyback(rank, group) ||
        group->communication_free || launch->piggyback.bit ||
        launch->box_count == PEAL_LAUNCH_BOXES ||
        launch->wait_count + deferred->launch.wait_count > PEAL_LAUNCH_WAITS ||
        launch->write_count + deferred->launch.write_count > PEAL_LAUNCH_WRITES ||
        !peal_cuda_piggyback_describe(rank, deferred, &piggyback))
        return false;
    piggyback.reduction = find_reduction_like(rank, group, deferred->task);
    if (piggyback.reduction < 0)
        return false;
    launch->piggyback = piggyback;
    add_piggyback_box(rank, group, deferred);
    deferred->kind = PEAL_CUDA_GROUP_NONE;
    deferred->op_count = 0;
    return true;
}
