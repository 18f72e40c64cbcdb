/* The output of emission.
 *
 * There are two kinds. The *stream sink* (stream/stream_sink.c) calls the driver. The capture of a
 * graph and an embedded exchange are stream sinks that replace a few entries (graph/capture.c,
 * embed.c). The *recorder* (fused/record.c) records launches as work items of the persistent
 * kernel.
 *
 * Emission never asks in which mode it runs. It asks the sink what its output needs. */
#ifndef PEAL_CUDA_LOWER_SINK_H
#define PEAL_CUDA_LOWER_SINK_H

#include "backends/cuda/lower/plan.h"

/* A launch of a kernel on a grid with one axis. group: the group that became this launch; NULL: a
 * kernel of peal's that belongs to no op. */
typedef struct peal_cuda_kernel_launch {
    CUfunction function;
    unsigned blocks;
    int threads[3];
    const peal_launch *launch;
    const peal_cuda_group *group;
} peal_cuda_kernel_launch;

/* The entries of a sink. Each puts one thing behind what the lane has so far. A failure is the
 * driver's result; the caller reports it. */
struct peal_cuda_sink_ops {
    /* A kernel; *what and *what->launch are read before it returns. */
    CUresult (*launch)(peal_cuda_rank *rank, peal_cuda_lane *lane,
                       const peal_cuda_kernel_launch *what);
    /* A copy of one piece of a message by the copy engine, from `from` to `to`. */
    CUresult (*copy)(peal_cuda_rank *rank, peal_cuda_lane *lane, const peal_device_piece *piece,
                     CUdeviceptr to, CUdeviceptr from);
    /* A store to a flag or credit by a memory operation, after all that the lane has so far. */
    CUresult (*write_word)(peal_cuda_rank *rank, peal_cuda_lane *lane, CUdeviceptr word,
                           uint64_t value);
    /* A wait by a memory operation, until the word is at least `value` (cyclically, in 64 bits).
     * op: the WAIT. */
    CUresult (*wait_word)(peal_cuda_rank *rank, peal_cuda_lane *lane, int op, CUdeviceptr word,
                          uint64_t value);
    /* A store of 4 or 8 bytes, of those that ring for a message: others see what the lane has so
     * far before it, and it before what follows. NULL: nothing is rung for. */
    CUresult (*ring)(peal_cuda_rank *rank, peal_cuda_lane *lane, CUdeviceptr word, uint64_t value,
                     unsigned bytes);
    /* What an entry has put off reaches the driver now: called before anything is awaited. NULL:
     * they put nothing off. */
    CUresult (*submit)(peal_cuda_plan *plan);
    /* Records an event on the lane. */
    CUresult (*record)(peal_cuda_rank *rank, peal_cuda_lane *lane, CUevent event);
    /* Makes the lane wait for an event of another lane. */
    CUresult (*wait_event)(peal_cuda_rank *rank, peal_cuda_lane *lane, CUevent event);
    /* Launches the application's CUDA function, or calls its function that enqueues work, whose
     * status goes to *status. NULL: such tasks are refused before they are emitted. */
    CUresult (*call)(peal_cuda_rank *rank, peal_cuda_lane *lane, const peal_schedule_task *task,
                     peal_call *call, peal_status *status);
    /* Called after each launch, copy or word of op `op`; it marks how far the device is, so that
     * the host's lookahead can be bounded. NULL: the lookahead has no bound. */
    CUresult (*enqueued)(peal_cuda_rank *rank, peal_cuda_lane *lane, int op);
    /* Called after something that writes flags of other processes. NULL: nothing is to be done. */
    CUresult (*flags_written)(peal_cuda_rank *rank, peal_cuda_lane *lane);
    /* Called before a wait for another process: makes the lane wait for the flags that other lanes
     * have written. NULL: the order in which they were enqueued is enough. */
    CUresult (*follow_flags)(peal_cuda_rank *rank, peal_cuda_lane *lane);
};

struct peal_cuda_sink {
    const struct peal_cuda_sink_ops *ops;
    /* How WRITE and WAIT are done. */
    peal_cuda_signal signal;
    /* The output is recorded once and replayed. Then counters are relative to the first recorded
     * step, the device computes arguments that depend on them, and a wait must be right in every
     * replay. */
    bool is_replayed;
    /* The output becomes one kernel. Then the blocks of a launch are partitioned among the kernel's
     * blocks, ranks of the process signal each other by flags instead of events, and partials lie
     * in the reduction ring. */
    bool is_one_kernel;
    /* Called after an iteration of a rank. False: it has failed. NULL: nothing is to be done. */
    bool (*end_of_step)(peal_cuda_rank *rank);
};

/* Whether a message within this process is ordered by events of streams, and needs no flag. */
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

static inline CUresult peal_cuda_sink_submit(peal_cuda_plan *plan)
{
    const struct peal_cuda_sink_ops *ops = plan->emission.sink->ops;
    return ops->submit ? ops->submit(plan) : CUDA_SUCCESS;
}

static inline CUresult peal_cuda_sink_flags_written(peal_cuda_rank *rank, peal_cuda_lane *lane)
{
    const struct peal_cuda_sink_ops *ops = rank->plan->emission.sink->ops;
    return ops->flags_written ? ops->flags_written(rank, lane) : CUDA_SUCCESS;
}

/* What emission needs of the host: memory that the device writes and the host reads, and the tasks
 * that the host runs itself (drive/host_mailbox.c, drive/file_tasks.c). Those that return false
 * have failed, and have reported it. */
struct peal_cuda_host_ops {
    /* The address at which verdict `instance` of a decision is stored for the host. */
    CUdeviceptr (*verdict_word)(peal_cuda_rank *rank, int slot, uint64_t instance);
    /* Reserves a row of `print`; *items: the device address where PRINT stores it. empty: the
     * device may decide to skip it, and the row is then not printed. */
    bool (*row_begin)(peal_cuda_rank *rank, const peal_schedule_task *task,
                      const peal_walk_frame *frame, bool empty, unsigned long long *items);
    /* The launch that stores that row has been enqueued. */
    bool (*row_enqueued)(peal_cuda_rank *rank, peal_cuda_lane *lane);
    /* Runs LOAD or SAVE on the host: when the rank's lanes are idle or, of a SAVE that is written
     * beside the steps, enqueues its copy on the op's lane. */
    bool (*run_file)(peal_cuda_rank *rank, const peal_cuda_op *op, const peal_walk_frame *frame);
};

#endif
