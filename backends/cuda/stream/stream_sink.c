/* The sink that calls the driver: it runs steps, and captures and embedded exchanges use its
 * entries.
 */
#include "backends/cuda/stream/stream_sink.h"
#include "backends/cuda/stream/batch.h"

CUresult peal_cuda_stream_launch(peal_cuda_rank *rank, peal_cuda_lane *lane,
                                 const peal_cuda_kernel_launch *what)
{
    void *parameter[] = {(void *)(uintptr_t)what->launch};

    CUresult result = peal_cuda_batch_submit(rank->plan);
    if (result)
        return result;
    lane->chained = lane->chained || what->group;
    return rank->plan->driver->cuLaunchKernel_(what->function, what->blocks, 1, 1,
                                               (unsigned)what->threads[0],
                                               (unsigned)what->threads[1],
                                               (unsigned)what->threads[2], 0, lane->stream,
                                               parameter, NULL);
}

CUresult peal_cuda_stream_copy(peal_cuda_rank *rank, peal_cuda_lane *lane,
                               const peal_device_piece *piece, CUdeviceptr to, CUdeviceptr from)
{
    CUresult result = peal_cuda_batch_submit(rank->plan);
    lane->chained = false;
    return result ? result : peal_cuda_copy_box(rank->plan->driver, lane->stream, piece, to, from);
}

CUresult peal_cuda_stream_write_word(peal_cuda_rank *rank, peal_cuda_lane *lane, CUdeviceptr word,
                                     uint64_t value)
{
    lane->chained = false;
    if (rank->plan->batch)
        return peal_cuda_batch_write(rank, lane, word, value, sizeof(value));
    return rank->plan->driver->cuStreamWriteValue64_(lane->stream, word, value, 0);
}

CUresult peal_cuda_stream_wait_word(peal_cuda_rank *rank, peal_cuda_lane *lane, int op,
                                    CUdeviceptr word, uint64_t value)
{
    (void)op;
    lane->chained = false;
    if (rank->plan->batch)
        return peal_cuda_batch_wait(rank, lane, word, value);
    return rank->plan->driver->cuStreamWaitValue64_(lane->stream, word, value,
                                                    CU_STREAM_WAIT_VALUE_GEQ);
}

CUresult peal_cuda_stream_record(peal_cuda_rank *rank, peal_cuda_lane *lane, CUevent event)
{
    CUresult result = peal_cuda_batch_submit(rank->plan);
    lane->since_mark += rank->plan->options.rings;
    return result ? result : rank->plan->driver->cuEventRecord_(event, lane->stream);
}

CUresult peal_cuda_stream_wait_event(peal_cuda_rank *rank, peal_cuda_lane *lane, CUevent event)
{
    CUresult result = peal_cuda_batch_submit(rank->plan);
    lane->chained = false;
    lane->since_mark += rank->plan->options.rings;
    return result ? result : rank->plan->driver->cuStreamWaitEvent_(lane->stream, event, 0);
}

CUresult peal_cuda_call_launch(const peal_cuda_driver *driver, const peal_schedule_task *task,
                               CUstream stream, peal_call *call)
{
    int64_t points = 1, threads = task->cuda_threads;
    void *parameter[] = {call};

    for (int k = 0; k < PEAL_AXES; k++)
        points *= call->tile.hi[k] - call->tile.lo[k];
    int64_t blocks = (points + threads - 1) / threads;
    if (blocks > INT32_MAX)
        blocks = INT32_MAX;
    return driver->cuLaunchKernel_(task->cuda_function, (unsigned)blocks, 1, 1, (unsigned)threads,
                                   1, 1, 0, stream, parameter, NULL);
}

CUresult peal_cuda_stream_call(peal_cuda_rank *rank, peal_cuda_lane *lane,
                               const peal_schedule_task *task, peal_call *call, peal_status *status)
{
    CUresult result = peal_cuda_batch_submit(rank->plan);
    lane->chained = false;
    if (result)
        return result;
    if (task->cuda_function)
        return peal_cuda_call_launch(rank->plan->driver, task, lane->stream, call);
    *status = task->enqueue(lane->stream, call);
    return CUDA_SUCCESS;
}

/* A plan without a batch refuses to ring (../options.c). */
CUresult peal_cuda_stream_ring(peal_cuda_rank *rank, peal_cuda_lane *lane, CUdeviceptr word,
                               uint64_t value, unsigned bytes)
{
    CUresult result = peal_cuda_batch_gate(rank, lane);
    lane->chained = false;
    return result ? result : peal_cuda_batch_write(rank, lane, word, value, bytes);
}

/* Records a mark after so many launches. The walk goes on only when the mark that is
 * options.marks back has passed (peal_cuda_within_lookahead). With memory operations there are more
 * marks, so that a report can say which wait a lane has reached: the values of words repeat. The
 * log has what lies between the marks. */
static CUresult mark(peal_cuda_rank *rank, peal_cuda_lane *lane, int op)
{
    enum { EVERY = 48, EVERY_MEMOP = 16 };
    peal_cuda_plan *plan = rank->plan;
    int every = plan->options.signal == PEAL_CUDA_SIGNAL_MEMOP ? EVERY_MEMOP : EVERY;
    uint64_t marks = (uint64_t)plan->options.marks;
    uint64_t logged = lane->marks ? lane->mark_log[(lane->marks - 1) % marks] : 0;

    (void)op;
    lane->since_mark += peal_cuda_batch_takes_place(plan);
    if (lane->since_mark < every && lane->log_count - logged < PEAL_CUDA_LOG_ENTRIES / marks)
        return CUDA_SUCCESS;
    CUresult result = peal_cuda_batch_submit(plan);
    if (result)
        return result;
    lane->since_mark = 0;
    lane->mark_log[lane->marks % marks] = lane->log_count;
    CUevent event = lane->mark[lane->marks++ % marks];
    return plan->driver->cuEventRecord_(event, lane->stream);
}

const struct peal_cuda_sink_ops peal_cuda_stream_sink = {
    .launch = peal_cuda_stream_launch,
    .copy = peal_cuda_stream_copy,
    .write_word = peal_cuda_stream_write_word,
    .wait_word = peal_cuda_stream_wait_word,
    .ring = peal_cuda_stream_ring,
    .submit = peal_cuda_batch_submit,
    .record = peal_cuda_stream_record,
    .wait_event = peal_cuda_stream_wait_event,
    .call = peal_cuda_stream_call,
    .enqueued = mark,
};
