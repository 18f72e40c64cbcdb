/* Emits tasks: tiles of kernels, and the built-in tasks. */
#include "backends/cuda/codegen/task_traits.h"
#include "backends/cuda/lower/emit.h"
#include "backends/cuda/lower/predicate.h"
#include "backends/cuda/lower/sink.h"

#include <string.h>

/* ---- tasks ---- */

static bool fill_arguments(peal_cuda_rank *rank, const peal_cuda_op *op,
                           const peal_walk_frame *frame, peal_launch *launch)
{
    peal_cuda_plan *plan = rank->plan;
    const peal_cuda_task *task = &rank->task[op->source->task];

    launch->evaluate = op->task->count ? 1u << PEAL_LAUNCH_ARGUMENTS : 0;
    for (int i = 0; i < op->task->argument_count; i++) {
        const peal_walk_value *argument = &task->argument[i];
        peal_value value;
        if (!argument->is_constant &&
            (op->kernel->device_arguments >> i & 1 || plan->emission.sink->is_replayed)) {
            launch->evaluate |= 1u << i;
            continue;
        }
        if (peal_walk_evaluate(rank->program, argument, frame->counter, plan->emission.late,
                               &value))
            return peal_cuda_fail(plan, PEAL_STATUS_SPEC);
        if (op->task->argument_is_real[i])
            launch->argument[i].real =
                value.kind == PEAL_REAL ? value.u.real : (double)value.u.integer;
        else
            launch->argument[i].integer =
                value.kind == PEAL_BOOLEAN ? value.u.boolean : value.u.integer;
    }
    for (int i = 0; i < op->kernel->element_count; i++)
        launch->element[i] = rank->first[frame->binding[op->kernel->element[i]]];
    return true;
}

static void fill_views(const peal_cuda_rank *rank, const peal_cuda_op *op,
                       const peal_walk_frame *frame, bool partials, peal_cuda_group *group)
{
    peal_launch *launch = &group->launch;
    const peal_schedule_task *task = op->task;
    const peal_schedule_array *array = rank->schedule->array;

    launch->tile_count = task->tile_count;
    group->written_count = task->access_count;
    for (int i = 0; i < task->access_count; i++) {
        int storage = frame->binding[task->access[i].array];
        launch->view[i] = rank->first[storage] + (uint64_t)rank->origin[storage];
        group->storage[i] = storage;
        unsigned own = rank->task[op->source->task].stored_remotely | op->kernel->own_points;
        group->written[i] = own >> i & 1 ? storage : -1;
        launch->shift[i] = task->access[i].per_tile;
        for (int k = 1; k < PEAL_AXES; k++)
            launch->stride[i][k - 1] = array[storage].layout.stride[k];
    }
    for (int i = 0; i < task->reduction_count; i++)
        launch->partial[i] =
            partials ? peal_cuda_array_at(rank, frame, task->reduction[i].partials) : 0;
}

/* How whole tiles that begin at x = `begin` lie in memory (device/whole.h): as in all arrays that
 * they move, or PEAL_UNALIGNED if these differ. */
static int alignment_at(const peal_cuda_rank *rank, const peal_cuda_op *op,
                        const peal_walk_frame *frame, int64_t begin)
{
    const peal_schedule_task *task = op->task;
    int found = PEAL_UNALIGNED;

    for (int i = 0; i < task->access_count; i++) {
        int storage = frame->binding[task->access[i].array];
        if (!peal_cuda_access_is_moved(rank->schedule, &task->access[i]))
            continue;
        int here =
            peal_cuda_rows_alignment(&rank->schedule->array[storage],
                                     rank->first[storage] + (uint64_t)rank->origin[storage], begin);
        if (!here || (found && found != here))
            return PEAL_UNALIGNED;
        found = here;
    }
    return found ? found : PEAL_ALIGNED;
}

/* The alignment that all boxes of a launch have in common. */
static int alignment_of(const peal_cuda_rank *rank, const peal_cuda_op *op,
                        const peal_walk_frame *frame, const peal_launch_box *box, int count)
{
    int found = PEAL_ALIGNED;

    int whole = peal_cuda_task_whole(op->task);
    for (int i = 0; i < count && (whole == PEAL_WHOLE_2 || whole == PEAL_WHOLE_FLAT); i++) {
        int here = alignment_at(rank, op, frame, (int64_t)box[i].lo[0] - box[i].lead);
        if ((i > 0 && here != found) || (box[i].count[0] > 1 && box[i].extent[0] % 2 != 0))
            return PEAL_UNALIGNED;
        found = here;
    }
    return found;
}

/* How some of an op's tiles are launched. */
typedef struct tile_launch {
    bool partials, communication_free;
    int aligned;
    const peal_launch_box *box;
    int count;
} tile_launch;

static void choose_launch(const peal_cuda_rank *rank, const peal_cuda_op *op,
                          const peal_cuda_group *group, const peal_walk_frame *frame,
                          tile_launch *out)
{
    /* Single launches before and after the persistent kernel are as in any other mode. */
    bool fused = rank->plan->emission.sink->is_one_kernel;
    bool large =
        op->large &&
        (fused || (op->kernel->communication_free && group->kind != PEAL_CUDA_GROUP_WAITS));

    out->box = out->partials ? op->exact : large ? op->large : op->free;
    out->count = out->partials ? op->exact_count : op->free_count;
    out->aligned = large || op->task->reduction_count == 0
                       ? alignment_of(rank, op, frame, out->box, out->count)
                       : PEAL_UNALIGNED;
    /* A partial is of the same points in all launches: those of whole tiles, which a
     * communication-free kernel runs as such only if they are aligned. */
    out->communication_free = large && !fused && (!out->partials || out->aligned);
}

static bool start_task(peal_cuda_rank *rank, int index, const peal_walk_frame *frame,
                       const tile_launch *with)
{
    peal_cuda_op *op = &rank->op[index];
    peal_cuda_group *group =
        peal_cuda_group_open(rank, peal_cuda_lane_at(rank, op->lane), op, frame);

    group->kind = PEAL_CUDA_GROUP_TASK;
    group->task = op->task;
    group->instance = frame->instance;
    group->partials = with->partials;
    group->communication_free = with->communication_free;
    group->launch.op = index;
    if (with->communication_free)
        group->function = with->partials ? op->kernel->communication_free
                                         : op->kernel->communication_free_no_reduction;
    else
        group->function = with->partials ? op->kernel->full : op->kernel->no_reduction;
    if (!with->communication_free) {
        group->self_sending =
            with->partials ? op->kernel->self_sending : op->kernel->self_sending_no_reduction;
        group->wave = with->partials ? op->kernel->full_blocks : op->kernel->no_reduction_blocks;
    }
    group->closed = with->communication_free; /* such a kernel sends nothing */
    memcpy(group->threads, op->kernel->threads, sizeof(group->threads));
    fill_views(rank, op, frame, with->partials, group);
    group->launch.aligned = with->aligned;
    return fill_arguments(rank, op, frame, &group->launch);
}

static bool emit_tiles(peal_cuda_rank *rank, int index, const peal_walk_frame *frame)
{
    peal_cuda_plan *plan = rank->plan;
    peal_cuda_op *op = &rank->op[index];
    peal_cuda_group *group = &peal_cuda_lane_at(rank, op->lane)->group;
    tile_launch with = {.partials = false};
    unsigned waits = 0, boxes = 0;

    if (op->task->reduction_count > 0 &&
        peal_walk_boolean(rank->program, &rank->task[op->source->task].needed, frame->counter, true,
                          plan->emission.late, &with.partials))
        return peal_cuda_fail(plan, PEAL_STATUS_SPEC);
    /* Many tiles that wait for nothing here are a launch of a communication-free kernel. */
    choose_launch(rank, op, group, frame, &with);
    if (with.communication_free && !peal_cuda_flush(rank, op->lane))
        return false;
    int count = with.count;
    bool within = group->kind == PEAL_CUDA_GROUP_NONE || rank->member[index] == 0;
    within = within && (group->kind == PEAL_CUDA_GROUP_NONE ||
                        peal_cuda_depends_within(rank, group, index, &waits, &boxes));
    bool joins = group->kind == PEAL_CUDA_GROUP_TASK && !group->closed && group->task == op->task &&
                 group->instance == frame->instance && group->partials == with.partials &&
                 group->launch.aligned == with.aligned &&
                 group->launch.box_count + count <= PEAL_LAUNCH_BOXES && !boxes && within;
    bool opens = group->kind == PEAL_CUDA_GROUP_NONE ||
                 (group->kind == PEAL_CUDA_GROUP_WAITS && group->launch.write_count == 0 && within);
    if (!joins && !opens) {
        waits = 0;
        if (!peal_cuda_flush(rank, op->lane))
            return false;
    }
    if (count == 0)
        return peal_cuda_publish(rank, peal_cuda_lane_at(rank, op->lane), index);
    unsigned bits = 0;
    for (int i = 0; i < count; i++) {
        if (i > 0 && group->launch.box_count == PEAL_LAUNCH_BOXES) {
            /* Too many boxes for one launch: the rest follows in another. */
            if (!peal_cuda_flush(rank, op->lane))
                return false;
            waits = 0;
            bits = 0;
        }
        if (group->kind != PEAL_CUDA_GROUP_TASK && !start_task(rank, index, frame, &with))
            return false;
        bits |= 1u << group->launch.box_count;
        group->launch.box[group->launch.box_count] = with.box[i];
        group->launch.box[group->launch.box_count++].waits = waits;
    }
    peal_cuda_group_join(rank, group, index, bits);
    return true;
}

/* Whether a COMBINE joins the group that unpacks its contributions: they are so small that one
 * block unpacks and combines them. */
static bool unpacks_first(const peal_cuda_rank *rank, const peal_cuda_group *group,
                          const peal_schedule_task *task)
{
    enum { MOST_COLUMNS = 256, MOST_UNITS = 4096 };

    return task->kind == PEAL_TASK_COMBINE && group->kind == PEAL_CUDA_GROUP_COPY &&
           task->hi - task->lo <= MOST_COLUMNS && group->launch.units <= MOST_UNITS &&
           rank->plan->emission.sink->signal == PEAL_CUDA_SIGNAL_FUSED;
}

/* While recording: counts the steps so far before the DECIDE of the outermost loop's `until`. Once
 * its verdict is there, launches do nothing, and would not count. */
static bool count_before_end(peal_cuda_rank *rank, int index, const peal_walk_frame *frame)
{
    if (!rank->plan->emission.sink->is_replayed || !rank->stop_word ||
        rank->program->op[index].decision_loop != rank->schedule->loop_count)
        return true;
    if (!peal_cuda_count_steps(rank, frame->counter[0] + 1 - rank->graph_step))
        return false;
    rank->graph_step = frame->counter[0] + 1;
    return true;
}

/* Emits SET, DECIDE, PRINT, FOLD or COMBINE. */
static bool emit_builtin(peal_cuda_rank *rank, int index, const peal_walk_frame *frame)
{
    peal_cuda_op *op = &rank->op[index];
    const peal_schedule_task *task = op->task;
    peal_cuda_lane *lane = peal_cuda_lane_at(rank, op->lane);
    peal_cuda_group *group = &lane->group;
    size_t bytes = peal_type_bytes(rank->schedule->array[task->array >= 0 ? task->array : 0].type);
    unsigned waits, boxes;

    if (task->kind == PEAL_TASK_PRINT && rank->schedule->rank != 0)
        return peal_cuda_publish(rank, lane, index);
    if (peal_cuda_fold_fits(rank, index)) {
        peal_cuda_fold_join(rank, index, frame);
        return true;
    }
    if (task->kind == PEAL_TASK_DECIDE && !count_before_end(rank, index, frame))
        return false;
    bool opens = group->kind == PEAL_CUDA_GROUP_WAITS && group->launch.write_count == 0 &&
                 peal_cuda_depends_within(rank, group, index, &waits, &boxes);
    opens = opens || unpacks_first(rank, group, task);
    if (group->kind != PEAL_CUDA_GROUP_NONE && !opens && !peal_cuda_flush(rank, op->lane))
        return false;
    group = peal_cuda_group_open(rank, lane, op, frame);
    peal_launch *launch = &group->launch;
    group->kind = PEAL_CUDA_GROUP_TASK;
    group->closed = true;
    group->task = task;
    group->function = op->kernel->full;
    launch->op = index;
    launch->box_count = 1;
    memset(&launch->box[0], 0, sizeof(launch->box[0]));
    launch->box[0].blocks = 1;
    launch->box[0].sends = launch->write_count > 0;
    launch->evaluate = 0;
    memcpy(group->threads, op->kernel->threads, sizeof(group->threads));
    for (int i = 0; i < op->kernel->element_count; i++)
        launch->element[i] = rank->first[frame->binding[op->kernel->element[i]]];
    switch (task->kind) {
    case PEAL_TASK_FOLD:
        launch->view[0] = rank->first[frame->binding[task->array]];
        launch->view[1] = peal_cuda_array_at(rank, frame, task->gather);
        launch->argument[0].integer = task->contributions;
        launch->box[0].blocks =
            (unsigned)((task->contributions + PEAL_CUDA_FOLD_CHUNK - 1) / PEAL_CUDA_FOLD_CHUNK);
        if (launch->box[0].blocks == 0)
            launch->box[0].blocks = 1;
        /* The box is one point: the block that has the result can send it by remote stores. */
        for (int k = 0; k < PEAL_AXES; k++)
            launch->box[0].hi[k] = 1;
        memset(launch->stride[0], 0, sizeof(launch->stride[0]));
        group->written[0] = frame->binding[task->array];
        group->written_count = 1;
        group->closed = false;
        break;
    case PEAL_TASK_COMBINE:
        launch->view[0] =
            rank->first[frame->binding[task->array]] + (uint64_t)task->lo * (uint64_t)bytes;
        launch->view[1] = peal_cuda_array_at(rank, frame, task->gather);
        launch->argument[0].integer = task->contributions;
        launch->argument[1].integer = task->hi - task->lo;
        launch->box[0].blocks = (unsigned)((task->hi - task->lo + 255) / 256);
        break;
    case PEAL_TASK_SET:
        launch->view[0] = rank->first[frame->binding[task->array]];
        break;
    case PEAL_TASK_DECIDE:
        peal_cuda_predicate_decide(rank, index, frame, launch);
        break;
    default:
        if (!rank->plan->host->row_begin(rank, task, frame, op->region >= 0, &launch->view[0]))
            return false;
    }
    peal_cuda_group_join(rank, group, index, 1);
    if (!group->closed)
        return true;
    if (task->kind == PEAL_TASK_COMBINE)
        return peal_cuda_defer_group(rank, lane);
    if (!peal_cuda_flush(rank, op->lane))
        return false;
    return task->kind != PEAL_TASK_PRINT || rank->plan->host->row_enqueued(rank, lane);
}

bool peal_cuda_emit_launch(peal_cuda_rank *rank, int index, const peal_walk_frame *frame)
{
    peal_cuda_op *op = &rank->op[index];

    if (!peal_cuda_await_lanes(rank, index))
        return false;
    switch (op->task->kind) {
    case PEAL_TASK_LOAD:
    case PEAL_TASK_SAVE:
        return peal_cuda_flush_all(rank) && rank->plan->host->run_file(rank, op, frame) &&
               peal_cuda_publish(rank, peal_cuda_lane_at(rank, op->lane), index);
    case PEAL_TASK_KERNEL:
        if (op->task->cuda_function || op->task->enqueue)
            return peal_cuda_emit_call(rank, index, frame);
        return emit_tiles(rank, index, frame);
    default:
        return emit_builtin(rank, index, frame);
    }
}
