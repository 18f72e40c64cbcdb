/* `load` and `save` tasks. The rank's lanes are drained; then the array is copied to host memory,
 * and for `load` back to the device. A rank whose steps save files writes them beside the steps,
 * where there is room (file_writer.c). */
#include "backends/cuda/drive/run.h"
#include "backends/cuda/lower/emit.h"
#include "backends/cuda/lower/plan.h"
#include "backends/cuda/stream/stream_sink.h"

#include "base/array_file.h"
#include "base/box.h"

#include <stdlib.h>

/* Brings the rank's own points back to the device: neighbours may store into its halo meanwhile. */
static peal_status write_own(peal_cuda_rank *rank, const peal_cuda_op *op, int storage,
                             const unsigned char *memory)
{
    const peal_schedule_array *array = &rank->schedule->array[storage];
    const peal_layout *layout = &array->layout;
    int64_t bytes = (int64_t)peal_type_bytes(array->type);
    CUstream stream = peal_cuda_lane_at(rank, op->lane)->stream;
    peal_device_piece box = {.unit = (int)bytes,
                             .run = (unsigned)(layout->own.hi[0] - layout->own.lo[0])};

    if (peal_box_is_empty(&layout->own))
        return PEAL_STATUS_OK;
    uint64_t offset = (uint64_t)peal_cuda_offset_of(layout, layout->own.lo, (size_t)bytes);
    for (int k = 1; k < PEAL_AXES; k++) {
        box.count[k - 1] = (unsigned)(layout->own.hi[k] - layout->own.lo[k]);
        box.source_step[k - 1] = box.target_step[k - 1] = layout->stride[k] * bytes;
    }
    CUresult result =
        peal_cuda_copy_box(rank->plan->driver, stream, &box, rank->first[storage] + offset,
                           (CUdeviceptr)(uintptr_t)memory + offset);
    if (!result)
        result = rank->plan->driver->cuStreamSynchronize_(stream); /* nothing else is in it */
    return result ? peal_cuda_driver_failed(rank->plan->emission.late, op->source->source, result,
                                            "cuMemcpy3DAsync", "writing what was loaded")
                  : PEAL_STATUS_OK;
}

static peal_status move_file(peal_cuda_rank *rank, const peal_cuda_op *op,
                             const peal_walk_frame *frame, int storage, unsigned char *memory)
{
    peal_cuda_plan *plan = rank->plan;
    bool loads = op->task->kind == PEAL_TASK_LOAD;
    int64_t bytes = rank->schedule->array[storage].layout.bytes;
    void *device = (void *)(uintptr_t)rank->first[storage];
    peal_array_file request = {.schedule = rank->schedule,
                               .task = op->task,
                               .first = memory,
                               .step = peal_array_file_step(rank->schedule, (int)(op - rank->op),
                                                            frame->counter[0]),
                               .saves = plan->desc.saves,
                               .allow_outside = plan->desc.allow_outside,
                               .diagnostics = plan->emission.late};

    peal_walk_scope(rank->program, frame->counter, &request.scope);
    /* Points that a loaded file does not have keep their values. */
    peal_status status =
        peal_cuda_memory.read(plan->device, memory, device, bytes, plan->emission.late);
    if (!status)
        status = loads ? peal_array_file_load(&request) : peal_array_file_save(&request);
    return !status && loads ? write_own(rank, op, storage, memory) : status;
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
    if (!peal_cuda_check_failure(plan))
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
