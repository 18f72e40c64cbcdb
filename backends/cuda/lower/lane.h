/* A lane: a stream, the launch that is being put together on it, what it defers, and a log of what
 * was enqueued. It changes with each op that is emitted. */
#ifndef PEAL_CUDA_LANE_H
#define PEAL_CUDA_LANE_H

#include "backends/cuda/lower/bound.h"

enum { PEAL_CUDA_PENDING_WAITS = 64, PEAL_CUDA_LOG_ENTRIES = 2048 };
/* How far ahead the walk may be, in marks. Where the stream rings, it may be farther, so that it
 * goes on while the host is away; but a call of the driver blocks if the stream has no place, and
 * who is blocked cannot end what has failed. Of 16 launches or batches a mark, a closed stream took
 * 42 marks and not 47 (2 H200, driver 580, bench/results/2026-11-28-gpu-freeze.txt). */
enum { PEAL_CUDA_MARKS = 8, PEAL_CUDA_RINGING_MARKS = 32 };

/* An entry of a lane's log: something that was enqueued. The report of a stall reads the log. */
typedef struct peal_cuda_log_entry {
    int op;
    int64_t step;     /* in a graph: counted from the graph's first step */
    CUdeviceptr word; /* of a wait by memory operation for `value`; else 0 */
    uint64_t value;
} peal_cuda_log_entry;

/* The launch that is being put together on a lane (group.c). Its kind says what it has so far: only
 * waits (and writes), tiles of a task, or copies. */
typedef struct peal_cuda_group {
    enum {
        PEAL_CUDA_GROUP_NONE,
        PEAL_CUDA_GROUP_WAITS,
        PEAL_CUDA_GROUP_TASK,
        PEAL_CUDA_GROUP_COPY
    } kind;
    peal_launch launch;
    CUfunction function;
    CUfunction self_sending; /* the self-sending kernel of the same task; NULL: there is none */
    int wave;                /* blocks of `function` that an SM holds */
    int threads[3];
    unsigned blocks;
    const peal_schedule_task *task;
    bool closed; /* no tile and no message may be added; a FOLD may, and opens it again */
    int region;  /* the run-time condition of its ops; -1: none */
    int event;   /* COPY: the schedule's event that its ops belong to */
    int base_count;
    int64_t copy_bytes; /* TASK: of the messages that one block copies */
    uint64_t instance;  /* of the task */
    bool partials, communication_free;
    int storage[PEAL_LAUNCH_VIEWS];                                 /* by view */
    const peal_cuda_remote_store *image[PEAL_LAUNCH_REMOTE_STORES]; /* by remote store */
    int image_storage[PEAL_LAUNCH_REMOTE_STORES]; /* the storage of this rank that the remote store
                                                     fills; -1: it is another rank's memory */
    int written[PEAL_LAUNCH_VIEWS]; /* by view: the storage whose points its tiles write; or -1 */
    int written_count;
    int write_event; /* the schedule's event of the last WRITE */
    int fold_writes; /* WRITEs of messages with the results of its folds (piggyback.c) */
    int fold_event;  /* the schedule's event of the last of these */
    bool can_add;    /* the device's atomics work on all flags of its tiles */
    uint64_t quantum[PEAL_LAUNCH_WRITES];
    int *op; /* its members: the ops whose instances are in it */
    uint64_t *op_instance;
    unsigned *op_bits; /* by member: the bits of the launch's boxes (LAUNCH) or waits (WAIT) that it
                          became */
    int op_count;
} peal_cuda_group;

/* A deferred WAIT: the walk has passed it, and it is not in a group yet. */
typedef struct peal_cuda_pending_wait {
    int op;
    uint64_t value, instance;
} peal_cuda_pending_wait;

typedef struct peal_cuda_lane {
    CUstream stream; /* where work is enqueued: `own`, or the application's */
    CUstream own;
    peal_cuda_group group;    /* the open one */
    peal_cuda_group deferred; /* waits until something depends on it (defer.c); kind NONE: none */
    peal_cuda_pending_wait pending[PEAL_CUDA_PENDING_WAITS];
    int pending_count;
    CUevent mark[PEAL_CUDA_RINGING_MARKS]; /* a ring of options.marks events that bound the
                                              host's lookahead */
    uint64_t marks, marks_passed;
    uint64_t mark_log[PEAL_CUDA_RINGING_MARKS]; /* by mark: log_count when it was recorded */
    int since_mark;
    bool chained; /* while capturing: what was enqueued last is a kernel of peal's */
    peal_cuda_log_entry *log, *graph_log; /* rings of PEAL_CUDA_LOG_ENTRIES: of what was enqueued
                                             directly, and of what the graph enqueues */
    uint64_t log_count, graph_log_count;
    uint64_t log_done; /* entries of `log` before this one have been done */
    CUevent join;
    CUevent sent_event;  /* in a graph of several ranks: the latest flags have been written */
    uint64_t sent;       /* plan->emission.sends at that event */
    uint64_t followed;   /* this lane waits for all flags up to that value of emission.sends */
    CUdeviceptr arrived; /* the word that blocks of this lane's launches count arrivals in */
} peal_cuda_lane;

/* group.c: adds an entry to the lane's log. word: of a wait by memory operation for `value`; else
 * 0. */
void peal_cuda_log_enqueued(peal_cuda_rank *rank, peal_cuda_lane *lane, int op, CUdeviceptr word,
                            uint64_t value);

#endif
