/* Running a plan: the walk of all its ranks, and its graphs. */
#ifndef PEAL_CUDA_RUN_H
#define PEAL_CUDA_RUN_H

#include "backends/cuda/lower/plan.h"
#include "base/backoff.h"

#include <pthread.h>

enum { PEAL_CUDA_ROWS = 256 };

/* A row of `print` that is on its way: its items are in mapped host memory. */
typedef struct peal_cuda_row {
    const peal_schedule_task *task;
    unsigned slot;
    int64_t step; /* within a graph: relative to its start */
    bool may_be_empty;
} peal_cuda_row;

/* What the device stores for the host, in mapped memory (host_mailbox.c). */
typedef struct peal_cuda_mailbox {
    void *mapped; /* controls, verdicts, rows */
    CUdeviceptr mapped_device;
    struct peal_device_item *row_item;
    CUdeviceptr row_device;
    size_t row_items;   /* in a row's slot */
    peal_cuda_row *row; /* on their way, a ring */
    uint64_t rows, rows_out;
    CUevent *row_event;
    unsigned recorded_slot; /* of the slots of rows: which recording is under way */
    unsigned recorded_rows; /* that it prints */
} peal_cuda_mailbox;

/* A start, and what it needs. */
typedef struct peal_cuda_run {
    peal_cuda_mailbox mailbox;
    pthread_t thread;
    bool running;
    bool setup, finish; /* what is asked for */
    int64_t steps;
    int64_t start_step;
    _Atomic int64_t steps_done;
    bool stopped; /* by `until` */
    double begin, end, cpu;
    double last_progress, last_look; /* of polls */
    uint64_t seen_steps;
    peal_cuda_rank *earliest; /* beside the one whose turn it is; NULL: not looked for yet */
    bool (*run_iterations)(peal_cuda_plan *plan); /* `steps` of them */
    bool (*report_replay)(peal_cuda_plan *plan);  /* NULL: there are none; false: none hangs */
    CUevent follow_event;                         /* on the application's stream */
    CUevent begin_event;  /* what a start follows has been done; on the origin */
    CUevent end_event;    /* what was started has been done */
    bool follows;         /* this start follows something */
    bool ended;           /* end_event has been recorded, in this start */
    bool enqueued;        /* of this start nothing more will be put onto streams */
    pthread_mutex_t lock; /* of `ended` and `enqueued` */
    pthread_cond_t enqueued_changed;
    CUstream rescue;     /* for words, when other streams wait */
    uint64_t *read_word; /* pinned: where a word is read to */
} peal_cuda_run;

typedef enum peal_cuda_advance {
    PEAL_CUDA_ADVANCED,
    PEAL_CUDA_WAITS_FOR_RANK,
    PEAL_CUDA_WAITS_FOR_DEVICE,
    PEAL_CUDA_FINISHED,
    PEAL_CUDA_FAILED
} peal_cuda_advance;

/* rank_turns.c */
/* Before an op is put onto its lane: PEAL_CUDA_ADVANCED if that may be now. */
peal_cuda_advance peal_cuda_may_emit(peal_cuda_rank *rank);
/* All ranks of the process in turn, until each is done with what `next` does: called again, it
 * stays PEAL_CUDA_FINISHED. */
bool peal_cuda_take_turns(peal_cuda_plan *plan, peal_cuda_advance (*next)(peal_cuda_rank *rank));

/* The thread that a start begins; ends when all that was started has been done, or has failed. */
void *peal_cuda_run_thread(void *plan);
/* `steps` iterations onto the lanes; plan->run->stopped says whether `until` ended them. */
bool peal_cuda_run_steps(peal_cuda_plan *plan, int64_t steps);
bool peal_cuda_run_drain(peal_cuda_plan *plan);
/* False: a verdict of the device would be needed, or an expression failed. */
bool peal_cuda_walk_section_only(peal_cuda_rank *rank, const peal_section *section);

/* plan->run->steps iterations, some at a time, so that progress is seen. */
bool peal_cuda_run_in_blocks(peal_cuda_plan *plan);

/* lanes.c */
/* Every other lane begins after the origin's work so far (fork), or the origin goes on after
 * theirs. */
bool peal_cuda_join_lanes(peal_cuda_plan *plan, bool fork);

/* stall_report.c: a lane's log from `from` to `to`: reports the first wait by memory operation for
 * the message after the one that its word shows, not before step `least_step`. False: none. */
bool peal_cuda_report_wait(peal_cuda_plan *plan, const peal_cuda_rank *rank,
                           const peal_cuda_log_entry *ring, uint64_t from, uint64_t to,
                           int64_t first_step, int64_t least_step);

/* rank_turns.c: whether there are several ranks, each of which sends before it receives. */
bool peal_cuda_keeps_order(const peal_cuda_plan *plan);

/* host_mailbox.c: rows of `print` and verdicts, in mapped host memory. */
peal_status peal_cuda_mapped_create(peal_cuda_plan *plan);
void peal_cuda_mapped_destroy(peal_cuda_plan *plan);
peal_walk_result peal_cuda_verdict_read(void *rank, int slot, uint64_t instance, bool *out);
/* Hands out the rows that have arrived, in order; all: waits for all of them. */
bool peal_cuda_rows_out(peal_cuda_plan *plan, bool all);
void peal_cuda_row_out(peal_cuda_plan *plan, const peal_cuda_row *row, int64_t first_step);

/* file_tasks.c: `load` and `save`, on host memory. */
bool peal_cuda_file_run(peal_cuda_rank *rank, const peal_cuda_op *op, const peal_walk_frame *frame);

/* stall_report.c */
/* PEAL_E_GPU_STALLED: what was awaited, as far as can be told. */
void peal_cuda_report_stall(peal_cuda_plan *plan);

/* rescue.c */
peal_status peal_cuda_rescue_create(peal_cuda_plan *plan);
void peal_cuda_rescue_destroy(peal_cuda_plan *plan);
/* A word of device memory, while other streams wait. False: it cannot be read. */
bool peal_cuda_rescue_read(peal_cuda_plan *plan, CUdeviceptr word, uint64_t *value);
#define PEAL_CUDA_HALF_CYCLE (UINT64_C(1) << 63)
/* Every word that a WAIT of this process may be waiting for, unless the last ones are still being
 * written: two values half a cycle apart, in turn, let all of them go. */
void peal_cuda_rescue_write(peal_cuda_plan *plan, uint64_t value);
/* After a failure: lets everything on the streams end. What does not end makes the device lost. */
void peal_cuda_rescue_all(peal_cuda_plan *plan);

/* poll.c */
bool peal_cuda_synchronize(peal_cuda_rank *rank, int index);
/* Whether what a rank waits for on the device, in `sync`, or because it is far ahead, is over. */
bool peal_cuda_within_lookahead(peal_cuda_rank *rank, bool *near);
/* Whether an event has passed; aborts and deadlines are looked after. */
bool peal_cuda_await_event(peal_cuda_plan *plan, CUevent event);
bool peal_cuda_drain_lane(peal_cuda_plan *plan, CUstream stream);
/* One look around while something is awaited, then a round of the back-off, which begins anew where
 * something has been reached. */
peal_backoff peal_cuda_backoff(void);
bool peal_cuda_poll_once(peal_cuda_plan *plan, peal_backoff *backoff);
/* Once, without waiting: whether the device has recorded a failure or the job was aborted. */
bool peal_cuda_check_failure(peal_cuda_plan *plan);

/* stream_interop.c */
/* The next start follows what a stream of the application has been given, and its event. */
peal_status peal_cuda_plan_follow(peal_cuda_plan *plan, void *stream, void *event);
/* An event, for streams of the application, that the latest start has been done by. */
peal_status peal_cuda_plan_event(peal_cuda_plan *plan, void **event);
peal_status peal_cuda_interop_create(peal_cuda_plan *plan);
void peal_cuda_interop_destroy(peal_cuda_plan *plan);
/* The thread of a start: all has been put onto lanes; false: the end could not be recorded. */
bool peal_cuda_interop_end(peal_cuda_plan *plan);
/* The thread of a start is at its end, however it came there. */
void peal_cuda_interop_leave(peal_cuda_plan *plan);
/* Whether what a start follows has been done. */
bool peal_cuda_interop_has_begun(peal_cuda_plan *plan);

#endif
