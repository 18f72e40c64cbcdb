/* Puts off memory operations until something else is enqueued: what is enqueued, and in which
 * order, is as if each were put onto the stream at once. */
#include "backends/cuda/stream/batch.h"
#include "base/arena.h"

#include <stddef.h>

enum { MOST = 64 }; /* the driver takes 256 at a time */

struct peal_cuda_batch {
    CUstreamBatchMemOpParams op[MOST];
    unsigned count;
    CUstream stream; /* that they go to */
    bool has_place;  /* those that are put off have been counted */
    bool is_gated;   /* no kernel can have run between the gate and what comes next */
};

struct peal_cuda_batch *peal_cuda_batch_create(const peal_cuda_plan *plan)
{
    return PEAL_ARENA_NEW(plan->arena, struct peal_cuda_batch);
}

CUresult peal_cuda_batch_submit(peal_cuda_plan *plan)
{
    struct peal_cuda_batch *batch = plan->batch;
    if (!batch || !batch->count)
        return CUDA_SUCCESS;
    unsigned count = batch->count;
    batch->count = 0;
    batch->has_place = batch->is_gated = false;
    return plan->driver->cuStreamBatchMemOp_(batch->stream, count, batch->op, 0);
}

/* The next operation of the lane; NULL: *result is what the driver says of those before. */
static CUstreamBatchMemOpParams *next(peal_cuda_plan *plan, const peal_cuda_lane *lane,
                                      CUresult *result)
{
    struct peal_cuda_batch *batch = plan->batch;
    *result = batch->count == MOST || batch->stream != lane->stream ? peal_cuda_batch_submit(plan)
                                                                    : CUDA_SUCCESS;
    if (*result)
        return NULL;
    batch->stream = lane->stream;
    batch->op[batch->count] = (CUstreamBatchMemOpParams){0};
    return &batch->op[batch->count++];
}

/* A write is seen by others after all that the stream has done before: the driver's default. */
CUresult peal_cuda_batch_write(peal_cuda_rank *rank, peal_cuda_lane *lane, CUdeviceptr word,
                               uint64_t value, unsigned bytes)
{
    CUresult result;
    CUstreamBatchMemOpParams *op = next(rank->plan, lane, &result);
    if (!op)
        return result;
    op->writeValue.operation = bytes == sizeof(uint32_t) ? CU_STREAM_MEM_OP_WRITE_VALUE_32
                                                         : CU_STREAM_MEM_OP_WRITE_VALUE_64;
    op->writeValue.address = word;
    if (bytes == sizeof(uint32_t))
        op->writeValue.value = (cuuint32_t)value;
    else
        op->writeValue.value64 = value;
    op->writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
    return CUDA_SUCCESS;
}

CUresult peal_cuda_batch_wait(peal_cuda_rank *rank, peal_cuda_lane *lane, CUdeviceptr word,
                              uint64_t value)
{
    CUresult result;
    CUstreamBatchMemOpParams *op = next(rank->plan, lane, &result);
    if (!op)
        return result;
    rank->plan->batch->is_gated = false;
    op->waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
    op->waitValue.address = word;
    op->waitValue.value64 = value;
    op->waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
    return CUDA_SUCCESS;
}

/* A kernel that fails claims its rank's control block: bit 0. From then on no kernel of the process
 * stores a flag, and no stream may ring. */
CUresult peal_cuda_batch_gate(peal_cuda_rank *rank, peal_cuda_lane *lane)
{
    peal_cuda_plan *plan = rank->plan;
    CUresult result = CUDA_SUCCESS;
    if (plan->batch->is_gated && plan->batch->stream == lane->stream)
        return CUDA_SUCCESS;
    for (int r = 0; r < plan->rank_count; r++) {
        CUstreamBatchMemOpParams *op = next(plan, lane, &result);
        if (!op)
            return result;
        op->waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
        op->waitValue.address =
            plan->rank[r].control_device + offsetof(peal_device_control, claimed);
        op->waitValue.value = ~(cuuint32_t)PEAL_CLAIMED;
        op->waitValue.flags = CU_STREAM_WAIT_VALUE_NOR; /* until ~(word | value) is not 0 */
    }
    plan->batch->is_gated = true;
    return CUDA_SUCCESS;
}

bool peal_cuda_batch_takes_place(peal_cuda_plan *plan)
{
    struct peal_cuda_batch *batch = plan->batch;
    if (!batch || !batch->count)
        return true;
    bool is_first = !batch->has_place;
    batch->has_place = true;
    return is_first;
}
