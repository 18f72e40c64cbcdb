/* `load` and `save` tasks. The rank's lanes are drained; then the array is copied to host memory,
 * and for `load` back to the device. Files of steps are saved beside them, where there is room
 * (file_writer.c). */
#include "backends/cuda/drive/run.h"
#include "backends/cuda/lower/plan.h"

#include "base/array_file.h"

#include <stdlib.h>

static peal_status move_file(peal_cuda_rank *rank, const peal_cuda_op *op,
                             const peal_walk_frame *frame, int storage, unsigned char *memory)
{
    peal_cuda_plan *plan = rank->plan;
    bool loads = op->task->kind == PEAL_TASK_LOAD;
    int index = (int)(op - rank->op);
    int64_t bytes = rank->schedule->array[storage].layout.bytes;
    void *device = (void *)(uintptr_t)rank->first[storage];
    peal_array_file request = {.schedule = rank->schedule,
                               .task = op->task,
                               .first = memory,
                               .step = index >= rank->schedule->step.first &&
                                               index < rank->schedule->step.end
                                           ? frame->counter[0]
                                           : PEAL_NO_STEP,
                               .saves = plan->desc.saves,
                               .allow_outside = plan->desc.allow_outside,
                               .diagnostics = plan->emission.late};

    peal_walk_scope(rank->program, frame->counter, &request.scope);
    /* Points that a loaded file does not have keep their values. */
    peal_status status =
        peal_cuda_memory.read(plan->device, memory, device, bytes, plan->emission.late);
    if (!status)
        status = loads ? peal_array_file_load(&request) : peal_array_file_save(&request);
    if (!status && loads)
        status = peal_cuda_memory.write(plan->device, device, memory, bytes, plan->emission.late);
    return status;
}

bool peal_cuda_file_run(peal_cuda_rank *rank, const peal_cuda_op *op, const peal_walk_frame *frame)
{
    peal_cuda_plan *plan = rank->plan;
    int storage = frame->binding[op->task->array];

    if (peal_cuda_file_is_written_beside(rank, op))
        return peal_cuda_file_enqueue(rank, op, frame);
    for (int l = 0; l < rank->lanes; l++)
        if (!peal_cuda_drain_lane(plan, rank->lane[l].stream))
            return false;
    int64_t bytes = rank->schedule->array[storage].layout.bytes;
    unsigned char *memory = calloc(1, bytes > 0 ? (size_t)bytes : 1);
    if (!memory) {
        peal_report(plan->emission.late, PEAL_E_OUT_OF_MEMORY, op->source->source, NULL,
                    "no memory for the %lld bytes of `%s`", (long long)bytes,
                    rank->schedule->array[storage].name);
        return peal_cuda_fail(plan, PEAL_STATUS_ENVIRONMENT);
    }
    peal_status status = move_file(rank, op, frame, storage, memory);
    free(memory);
    return status == PEAL_STATUS_OK || peal_cuda_fail(plan, status);
}
