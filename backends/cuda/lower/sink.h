/* Where emission puts what it has put together.
 *
 * Two kinds of output exist. The *stream sink* (stream/stream_sink.c) calls the driver; the capture
 * of a graph and an embedded exchange are the stream sink with a few entries of their own
 * (graph/capture.c, embed.c). The *recorder* (fused/record.c) keeps launches as work items of the
 * persistent kernel. Emission never asks in which mode it runs: it asks the sink what its output
 * needs. */
#ifndef PEAL_CUDA_LOWER_SINK_H
#define PEAL_CUDA_LOWER_SINK_H

#include "backends/cuda/lower/plan.h"

/* A kernel with its grid of one axis. group: what it was put together from; NULL: a kernel of
 * peal's that belongs to no op. */
typedef struct peal_cuda_kernel_launch {
    CUfunction function;
    unsigned blocks;
    int threads[3];
    const peal_launch *launch;
    const peal_cuda_group *group;
} peal_cuda_kernel_launch;

/* Each entry puts one thing onto a lane, in the lane's order. */
struct peal_cuda_sink_ops {
    CUresult (*launch)(peal_cuda_rank *rank, peal_cuda_lane *lane,
                       const peal_cuda_kernel_launch *what);
    /* One piece of a message, from `from` to `to`. */
    CUresult (*copy)(peal_cuda_rank *rank, peal_cuda_lane *lane, const peal_device_piece *piece,
                     CUdeviceptr to, CUdeviceptr from);
    CUresult (*write_word)(peal_cuda_rank *rank, peal_cuda_lane *lane, CUdeviceptr word,
                           uint64_t value);
    /* Until the word is at least `value`, cyclically; op: the WAIT. */
    CUresult (*wait_word)(peal_cuda_rank *rank, peal_cuda_lane *lane, int op, CUdeviceptr word,
                          uint64_t value);
    CUresult (*record)(peal_cuda_rank *rank, peal_cuda_lane *lane, CUevent event);
    CUresult (*wait_event)(peal_cuda_rank *rank, peal_cuda_lane *lane, CUevent event);
    /* The application's CUDA function, or the function that enqueues its work, whose status is
     * *status. NULL: there are none in this output. */
    CUresult (*call)(peal_cuda_rank *rank, peal_cuda_lane *lane, const peal_schedule_task *task,
                     peal_call *call, peal_status *status);
    /* After each launch, copy or word of op `op`: what keeps the host from running too far ahead.
     * NULL: nothing does. */
    CUresult (*enqueued)(peal_cuda_rank *rank, peal_cuda_lane *lane, int op);
    /* After something that writes flags of other processes. NULL: queues need no such order. */
    CUresult (*flags_written)(peal_cuda_rank *rank, peal_cuda_lane *lane);
    /* Before a wait for another process: after the flags that other lanes have written. NULL: as
     * above. */
    CUresult (*follow_flags)(peal_cuda_rank *rank, peal_cuda_lane *lane);
};

struct peal_cuda_sink {
    const struct peal_cuda_sink_ops *ops;
    /* How WRITE and WAIT are done in it. */
    peal_cuda_signal signal;
    /* It is recorded once and replayed: counters count from where the recording begins, arguments
     * that depend on them are computed on the device, and what is waited for holds at each replay.
     */
    bool is_replayed;
    /* It becomes one kernel: blocks are partitioned among those of the kernel, ranks of the process
     * tell each other by flags instead of events, partials lie in the reduction ring. */
    bool is_one_kernel;
    /* After an iteration. NULL: nothing is to be done. */
    bool (*end_of_step)(peal_cuda_rank *rank);
};

/* Messages of this process that need no flag: events of streams order them. */
static inline bool peal_cuda_is_by_event(const peal_cuda_rank *rank, const peal_cuda_op *op)
{
    return op->self && (op->peer == rank || !rank->plan->emission.sink->is_one_kernel);
}

static inline CUresult peal_cuda_sink_launch(peal_cuda_rank *rank, peal_cuda_lane *lane,
                                             const peal_cuda_kernel_launch *what)
{
    return rank->plan->emission.sink->ops->launch(rank, lane, what);
}

static inline CUresult peal_cuda_sink_record(peal_cuda_rank *rank, peal_cuda_lane *lane,
                                             CUevent event)
{
    return rank->plan->emission.sink->ops->record(rank, lane, event);
}

static inline CUresult peal_cuda_sink_wait_event(peal_cuda_rank *rank, peal_cuda_lane *lane,
                                                 CUevent event)
{
    return rank->plan->emission.sink->ops->wait_event(rank, lane, event);
}

static inline CUresult peal_cuda_sink_flags_written(peal_cuda_rank *rank, peal_cuda_lane *lane)
{
    const struct peal_cuda_sink_ops *ops = rank->plan->emission.sink->ops;
    return ops->flags_written ? ops->flags_written(rank, lane) : CUDA_SUCCESS;
}

/* What emission needs of the host: memory that the device writes to and the host reads, and work of
 * the host itself (stream/host_mailbox.c, stream/file_tasks.c). */
struct peal_cuda_host_ops {
    /* Where verdict `instance` of a decision is stored for the host. */
    CUdeviceptr (*verdict_word)(peal_cuda_rank *rank, int slot, uint64_t instance);
    /* *items: where PRINT stores a row. empty: a condition that the device decides may skip it. */
    bool (*row_begin)(peal_cuda_rank *rank, const peal_schedule_task *task,
                      const peal_walk_frame *frame, bool empty, unsigned long long *items);
    /* The row's launch is on its lane. */
    bool (*row_enqueued)(peal_cuda_rank *rank, peal_cuda_lane *lane);
    /* LOAD and SAVE, on idle lanes. */
    bool (*run_file)(peal_cuda_rank *rank, const peal_cuda_op *op, const peal_walk_frame *frame);
};

#endif
