/* `load` and `save` tasks. */
#include "backends/host/execute.h"
#include "backends/host/walk.h"

#include "base/array_file.h"

static bool move_file(host_context *context, const host_op *op, const peal_walk_frame *frame,
                      peal_status (*move)(const peal_array_file *request))
{
    host_rank *rank = context->rank;
    const host_task *task = op->task;
    peal_array_file request = {.schedule = rank->schedule,
                               .task = task->source,
                               .first = rank->first[frame->binding[task->source->array]],
                               .step = peal_array_file_step(rank->schedule, (int)(op - rank->op),
                                                            frame->counter[0]),
                               .has_thread = rank->schedule->mode != PEAL_MODE_SERIAL,
                               .saves = rank->plan->desc.saves,
                               .allow_outside = rank->plan->desc.allow_outside,
                               .diagnostics = rank->plan->late};

    peal_walk_scope(rank->program, frame->counter, &request.scope);
    peal_status status = move(&request);
    return status == PEAL_STATUS_OK || host_fail(rank->plan, status);
}

bool host_file_load(host_context *context, const host_op *op, const peal_walk_frame *frame)
{
    return move_file(context, op, frame, peal_array_file_load);
}

bool host_file_save(host_context *context, const host_op *op, const peal_walk_frame *frame)
{
    return move_file(context, op, frame, peal_array_file_save);
}
