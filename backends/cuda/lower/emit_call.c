/* Emits tasks that are the application's own work on the device: a CUDA function, which gets the
 * call by value, or a host function that enqueues work. Each call is enqueued by itself, in the
 * lane's order, and is never part of a group. */
#include "backends/cuda/gpu/attributes.h"
#include "backends/cuda/lower/emit.h"
#include "backends/cuda/lower/sink.h"

#include <string.h>

/* ---- preparation ---- */

static peal_status report_invalid_function(const peal_cuda_rank *rank,
                                           const peal_schedule_task *source, const char *what)
{
    return peal_report(rank->plan->desc.diagnostics, PEAL_E_INVALID_CUDA_FUNCTION, source->source,
                       NULL, "task '%s': %s", source->name, what);
}

/* Reading an attribute loads the function. Loading may wait for the device, so it must be done
 * before any wait is enqueued. */
peal_status peal_cuda_call_check(const peal_cuda_rank *rank, const peal_schedule_task *source,
                                 const peal_cuda_task *task)
{
    int most = 0;
    char text[160], what[260];

    for (int i = 0; i < source->argument_count; i++)
        if (task->argument[i].expr && peal_expr_uses(task->argument[i].expr) & PEAL_USES_ELEMENT)
            return report_invalid_function(rank, source, "an argument reads a buffer");
    if (!source->cuda_function)
        return PEAL_STATUS_OK;
    CUresult result = peal_cuda_most_threads(rank->plan->device, source->cuda_function, &most);
    if (result) {
        snprintf(what, sizeof(what), "the driver does not know its function: %s",
                 peal_cuda_error(result, text));
        return report_invalid_function(rank, source, what);
    }
    if (source->cuda_threads > most) {
        snprintf(what, sizeof(what), "its function allows blocks of %d threads, not of %d", most,
                 source->cuda_threads);
        return report_invalid_function(rank, source, what);
    }
    return PEAL_STATUS_OK;
}

/* ---- one call ---- */

static bool emit_one_call(peal_cuda_rank *rank, const peal_cuda_op *op, peal_cuda_lane *lane,
                          peal_call *call)
{
    peal_cuda_plan *plan = rank->plan;
    const peal_schedule_task *task = op->task;

    for (int k = 0; k < PEAL_AXES; k++)
        if (call->tile.hi[k] <= call->tile.lo[k])
            return true;
    peal_status status = PEAL_STATUS_OK;
    CUresult result = plan->emission.sink->ops->call(rank, lane, task, call, &status);
    if (result)
        return peal_cuda_report_driver_error(plan, result, op, op->source->label);
    if (status) {
        peal_report(plan->emission.late, PEAL_E_ENQUEUE_FAILED, task->source, NULL,
                    "rank %d, step %lld: `enqueue` of task '%s' returned: %s", rank->schedule->rank,
                    (long long)rank->walk.counter[0], task->name, peal_status_name(status));
        return peal_cuda_fail(plan, status);
    }
    return peal_cuda_enqueued(rank, lane, (int)(op - rank->op));
}

/* ---- all calls of an op ---- */

static bool fill_arguments(peal_cuda_rank *rank, const peal_cuda_op *op,
                           const peal_walk_frame *frame, peal_call *call)
{
    const peal_cuda_task *task = &rank->task[op->source->task];

    for (int i = 0; i < call->argument_count; i++) {
        peal_value value;
        if (peal_walk_evaluate(rank->program, &task->argument[i], frame->counter,
                               rank->plan->emission.late, &value))
            return peal_cuda_fail(rank->plan, PEAL_STATUS_SPEC);
        if (op->task->argument_is_real[i])
            call->argument[i].real =
                value.kind == PEAL_REAL ? value.u.real : (double)value.u.integer;
        else
            call->argument[i].integer =
                value.kind == PEAL_BOOLEAN ? value.u.boolean : value.u.integer;
    }
    return true;
}

/* Fills in the views and partials of tile `index`. */
static void fill_tile(const peal_cuda_rank *rank, const peal_schedule_task *task,
                      const peal_walk_frame *frame, bool partials, int64_t index, peal_call *call)
{
    const peal_schedule_array *array = rank->schedule->array;

    call->tile.index = index;
    for (int i = 0; i < task->access_count; i++) {
        int storage = frame->binding[task->access[i].array];
        int64_t shift = index * task->access[i].per_tile;
        CUdeviceptr base = rank->first[storage] + (uint64_t)rank->origin[storage] +
                           (uint64_t)(shift * (int64_t)peal_type_bytes(array[storage].type));
        call->view[i].base = (void *)(uintptr_t)base;
        memcpy(call->view[i].stride, array[storage].layout.stride, sizeof(call->view[i].stride));
    }
    for (int i = 0; i < task->reduction_count; i++) {
        int storage = frame->binding[task->reduction[i].partials];
        CUdeviceptr part =
            rank->first[storage] + (uint64_t)index * (uint64_t)peal_type_bytes(array[storage].type);
        call->partial[i] = partials ? (void *)(uintptr_t)part : NULL;
    }
}

/* Emits one call for the whole box (merged), or one for each of its tiles. */
static bool emit_box_calls(peal_cuda_rank *rank, const peal_cuda_op *op,
                           const peal_walk_frame *frame, const peal_launch_box *box, bool merged,
                           bool partials, peal_call *call)
{
    peal_cuda_lane *lane = peal_cuda_lane_at(rank, op->lane);
    int64_t tiles = 1;

    if (merged) {
        memcpy(call->tile.lo, box->lo, sizeof(call->tile.lo));
        memcpy(call->tile.hi, box->hi, sizeof(call->tile.hi));
        fill_tile(rank, op->task, frame, false, 0, call);
        return emit_one_call(rank, op, lane, call);
    }
    for (int k = 0; k < PEAL_AXES; k++)
        tiles *= box->count[k];
    for (int64_t t = 0; t < tiles; t++) {
        int64_t rest = t, index = box->tile;
        for (int k = 0; k < PEAL_AXES; k++) {
            int at = (int)(rest % box->count[k]);
            rest /= box->count[k];
            index += at * box->tile_step[k];
            call->tile.lo[k] = box->lo[k] + at * box->extent[k];
            int hi = call->tile.lo[k] + box->extent[k];
            call->tile.hi[k] = hi < box->hi[k] ? hi : box->hi[k];
        }
        fill_tile(rank, op->task, frame, partials, index, call);
        if (!emit_one_call(rank, op, lane, call))
            return false;
    }
    return true;
}

bool peal_cuda_emit_call(peal_cuda_rank *rank, int index, const peal_walk_frame *frame)
{
    peal_cuda_op *op = &rank->op[index];
    const peal_schedule_task *task = op->task;
    peal_cuda_lane *lane = peal_cuda_lane_at(rank, op->lane);
    bool partials = false;
    peal_call call = {.tile = {.count = task->tile_count},
                      .view_count = task->access_count,
                      .partial_count = task->reduction_count,
                      .argument_count = task->argument_count,
                      .user = task->user};

    if (!peal_cuda_flush(rank, op->lane))
        return false;
    if (task->reduction_count > 0 &&
        peal_walk_boolean(rank->program, &rank->task[op->source->task].needed, frame->counter, true,
                          rank->plan->emission.late, &partials))
        return peal_cuda_fail(rank->plan, PEAL_STATUS_SPEC);
    if (!fill_arguments(rank, op, frame, &call))
        return false;
    lane->group.launch.op = index; /* the op that reports name */
    bool merged = task->mergeable && !partials;
    const peal_launch_box *box = merged ? op->free : op->exact;
    int count = merged ? op->free_count : op->exact_count;
    for (int i = 0; i < count; i++)
        if (!emit_box_calls(rank, op, frame, &box[i], merged, partials, &call))
            return false;
    return peal_cuda_publish(rank, lane, index);
}
