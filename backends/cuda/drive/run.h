/* What a run of a plan needs: the thread that walks its ranks, polls, and reports. */
#ifndef PEAL_CUDA_RUN_H
#define PEAL_CUDA_RUN_H

#include "backends/cuda/lower/plan.h"
#include "base/backoff.h"

#include <pthread.h>
#include <signal.h>

enum { PEAL_CUDA_ROWS = 256 };

/* A row of `print` that the device has not printed yet, or the host has not taken. Its items are in
 * mapped host memory. */
typedef struct peal_cuda_row {
    const peal_schedule_task *task;
    unsigned slot;
    int64_t step;      /* within a graph: relative to its first step */
    bool may_be_empty; /* the device may decide to skip it */
} peal_cuda_row;

/* What the device stores for the host in mapped memory (host_mailbox.c). */
typedef struct peal_cuda_mailbox {
    void *mapped; /* controls, verdicts, rows */
    CUdeviceptr mapped_device;
    struct peal_device_item *row_item; /* the items of all rows, as the host sees them */
    CUdeviceptr row_device;            /* as the device sees them */
    size_t row_items;                  /* items of a row */
    peal_cuda_row *row;                /* a ring of rows that are not printed yet */
    uint64_t rows, rows_out;           /* that were enqueued, and printed */
    CUevent *row_event;                /* by row of the ring: the device has stored it */
    unsigned recorded_slot;            /* the buffer slot of rows that is being recorded */
    unsigned recorded_rows;            /* rows in that recording, so far */
} peal_cuda_mailbox;

typedef struct peal_cuda_file_writer peal_cuda_file_writer;

/* A start of the plan. */
typedef struct peal_cuda_run {
    peal_cuda_mailbox mailbox;
    peal_cuda_file_writer *writer; /* by rank; NULL: files are written while the lanes are idle */
    pthread_t thread;              /* run_thread.c: that drives the device */
    bool has_thread;
    int state;              /* of the thread */
    pthread_cond_t changed; /* `state` has */
    CUresult woken;         /* of what the thread has done first */
    sigset_t mask;          /* of signals, for a start */
    bool running;           /* a start has not been awaited */
    bool setup, finish;     /* whether this start includes these sections */
    int64_t steps;          /* the most iterations of this start */
    int64_t start_step;
    _Atomic int64_t steps_done;
    bool lags;    /* replays are under way: steps that are enqueued behind them are not done yet */
    bool stopped; /* by `until` */
    double begin, end, cpu;
    double last_progress; /* when the device was last seen to advance */
    double last_poll;
    uint64_t seen_steps;      /* of all ranks, at the last poll */
    peal_cuda_rank *earliest; /* the first in program order beside the rank whose turn it is; NULL:
                                 not determined yet */
    bool (*run_iterations)(peal_cuda_plan *plan); /* runs `steps` iterations */
    bool (*report_replay)(peal_cuda_plan *plan);  /* false: no replay is under way; NULL: there are
                                                     no  replays */
    CUevent follow_event; /* recorded on the application's stream: what this start follows */
    CUevent begin_event;  /* recorded on the origin: what this start follows has been done */
    CUevent end_event;    /* what was started has been done */
    bool follows;         /* this start follows something */
    bool ended;           /* end_event has been recorded in this start */
    bool enqueued;        /* this start will enqueue nothing more */
    pthread_mutex_t lock; /* of `ended`, `enqueued` and `state` */
    pthread_cond_t enqueued_changed;
    CUstream rescue;     /* reads and writes words while other streams wait */
    uint64_t *read_word; /* pinned: where a word is read to */
} peal_cuda_run;

/* How a rank's turn ended. */
typedef enum peal_cuda_advance {
    PEAL_CUDA_ADVANCED,         /* it has advanced, and can go on in its next turn */
    PEAL_CUDA_WAITS_FOR_RANK,   /* another rank of the process must advance first */
    PEAL_CUDA_WAITS_FOR_DEVICE, /* for a verdict, for a file task, or because of the lookahead */
    PEAL_CUDA_FINISHED,
    PEAL_CUDA_FAILED /* plan->emission.status says why */
} peal_cuda_advance;

/* rank_turns.c */
/* Call it before the op at the walk's position is emitted: PEAL_CUDA_ADVANCED if it may be emitted
 * now. For a wait on another process, earlier flags of all ranks have then been launched. */
peal_cuda_advance peal_cuda_may_emit(peal_cuda_rank *rank);
/* Calls `next` for all ranks of the process in turn, until all of them are PEAL_CUDA_FINISHED;
 * called again for such a rank, `next` must return that again. False: failed. */
bool peal_cuda_take_turns(peal_cuda_plan *plan, peal_cuda_advance (*next)(peal_cuda_rank *rank));

/* run.c. False: failed, plan->emission.status says why. */
/* What the thread does for a start. It ends when everything that was started has been done, or has
 * failed. */
void peal_cuda_run_start(peal_cuda_plan *plan);
/* Emits `steps` iterations of all ranks; plan->run->stopped says whether `until` ended them. */
bool peal_cuda_run_steps(peal_cuda_plan *plan, int64_t steps);
/* Launches everything that was emitted, waits until it has been done, and prints its rows. */
bool peal_cuda_run_drain(peal_cuda_plan *plan);
/* Walks through a section and emits nothing; verdicts are false. False: a verdict of the device
 * would be needed, or an expression failed. */
bool peal_cuda_walk_section_only(peal_cuda_rank *rank, const peal_section *section);

/* Runs plan->run->steps iterations, a few at a time, so that progress is seen. */
bool peal_cuda_run_in_blocks(peal_cuda_plan *plan);

/* wake_links.c: uses the links to the GPUs that ranks store to, so that the first steps need not
 * wait until they are awake. first_launch: launches a kernel if there are none, too. */
CUresult peal_cuda_wake_links(peal_cuda_plan *plan, bool first_launch);

/* run_thread.c */
/* Makes the thread that drives the device, and has it wake the links (*woken: the result). */
peal_status peal_cuda_run_thread_create(peal_cuda_plan *plan, CUresult *woken);
/* Has it run what plan->run says. PEAL_E_KERNEL_ENDED_THREAD: a function of the application has
 * ended it. */
peal_status peal_cuda_run_thread_start(peal_cuda_plan *plan);
/* Until that has ended. */
void peal_cuda_run_thread_await(peal_cuda_plan *plan);
/* Awaits the end of a start that is under way, too. */
void peal_cuda_run_thread_destroy(peal_cuda_plan *plan);

/* stall_report.c: what a kernel of the rank has recorded before it gave up: a wait past its
 * deadline (PEAL_E_GPU_STALLED), or an expression, count or value that cannot be. Always false. */
bool peal_cuda_report_failure(peal_cuda_plan *plan, const peal_cuda_rank *rank);

/* stall_report.c: looks through a lane's log, entries `from` to `to`, for a wait by memory
 * operation whose word shows the message before the awaited one. Reports the first, if its step is
 * at least `least_step`; first_step is added to the entries' steps. False: there is none. */
bool peal_cuda_report_wait(peal_cuda_plan *plan, const peal_cuda_rank *rank,
                           const peal_cuda_log_entry *ring, uint64_t from, uint64_t to,
                           int64_t first_step, int64_t least_step);

/* rank_turns.c: whether the process has several ranks and every receive follows its send in the
 * program, so that waits can be kept behind earlier flags. */
bool peal_cuda_keeps_order(const peal_cuda_plan *plan);

/* host_mailbox.c: rows of `print` and verdicts, in mapped host memory. */
/* Allocates it, and binds the ranks' controls and verdicts. What fails has been reported
 * (PEAL_E_DRIVER_CALL_FAILED). */
peal_status peal_cuda_mapped_create(peal_cuda_plan *plan);
void peal_cuda_mapped_destroy(peal_cuda_plan *plan);
/* The walk's hook for verdicts. PEAL_WALK_BLOCKED: the device has not given it yet. */
peal_walk_result peal_cuda_verdict_read(void *rank, int slot, uint64_t instance, bool *out);
/* Prints the rows that have arrived, in order; all: waits for those that were enqueued. False:
 * failed. */
bool peal_cuda_rows_out(peal_cuda_plan *plan, bool all);
/* Prints one row; first_step is added to its step. */
void peal_cuda_row_out(peal_cuda_plan *plan, const peal_cuda_row *row, int64_t first_step);

/* file_tasks.c: a `load` or `save`, once the rank's lanes are idle and its files written or, of a
 * `save` that is written beside the steps, once there is room for it. False: failed. */
bool peal_cuda_file_run(peal_cuda_rank *rank, const peal_cuda_op *op, const peal_walk_frame *frame);

/* file_writer.c */
/* Makes room for copies of what ranks save, and threads that write them: for ranks whose steps save
 * something for which there is room; in mode sync none. */
void peal_cuda_file_writers_create(peal_cuda_plan *plan);
/* Ends the threads, which have nothing left to do. */
void peal_cuda_file_writers_join(peal_cuda_plan *plan);
/* Once the threads have ended: gives the room back. */
void peal_cuda_file_writers_destroy(peal_cuda_plan *plan);
/* Whether the task is a `save` that the rank's thread does. */
bool peal_cuda_file_is_written_beside(const peal_cuda_rank *rank, const peal_cuda_op *op);
/* Whether it can take one more. */
bool peal_cuda_file_writer_has_room(const peal_cuda_rank *rank);
/* Whether it has written all, or there is none. */
bool peal_cuda_file_writer_is_idle(const peal_cuda_rank *rank);
/* Enqueues the copy of such a `save` on its lane, and leaves the rest to the thread. False: failed.
 */
bool peal_cuda_file_enqueue(peal_cuda_rank *rank, const peal_cuda_op *op,
                            const peal_walk_frame *frame);
/* PEAL_STATUS_OK, or why a file could not be written, which has been reported. */
peal_status peal_cuda_file_writers_failed(const peal_cuda_plan *plan);
/* Waits until all has been written. False: failed. */
bool peal_cuda_file_writers_await(peal_cuda_plan *plan);
/* At the end of a start: waits until what is being written has been. The rest is left, if the start
 * has failed; else there is none. */
void peal_cuda_file_writers_settle(const peal_cuda_plan *plan);

/* stall_report.c */
/* Reports PEAL_E_GPU_STALLED with what is awaited, as far as the logs show it. */
void peal_cuda_report_stall(peal_cuda_plan *plan);

/* rescue.c */
/* Creates the rescue stream. What fails has been reported (PEAL_E_DRIVER_CALL_FAILED). */
peal_status peal_cuda_rescue_create(peal_cuda_plan *plan);
void peal_cuda_rescue_destroy(peal_cuda_plan *plan);
/* Reads a word while other streams wait. False: it could not be read within half a second. */
bool peal_cuda_rescue_read(peal_cuda_plan *plan, CUdeviceptr word, uint64_t *value);
#define PEAL_CUDA_HALF_CYCLE (UINT64_C(1) << 63)
/* Writes `value` to every word that a WAIT of this process may wait for; does nothing while its
 * last writes are not done. Two values half a cycle apart, written in turn, release every wait. */
void peal_cuda_rescue_write(peal_cuda_plan *plan, uint64_t value);
/* Once the network is silent: lets streams go on that do not ring since a kernel has failed. */
void peal_cuda_rescue_gates(peal_cuda_plan *plan);
/* After a failure: releases all waits until the streams are idle. If some work does not end, the
 * device is marked as lost. */
void peal_cuda_rescue_all(peal_cuda_plan *plan);

/* poll.c. False: failed, plan->emission.status says why. */
/* In mode sync, after op `index` was emitted: launches it, and makes the rank's walk stop until its
 * lane is idle (peal_cuda_within_lookahead). */
bool peal_cuda_synchronize(peal_cuda_rank *rank, int index);
/* Sets *is_within: whether the rank may go on now. It may not while a lane that it must drain is
 * busy, while too many rows are not printed, or while it is too far ahead of the device. */
bool peal_cuda_within_lookahead(peal_cuda_rank *rank, bool *is_within);
/* Poll until an event has passed, or a stream is idle. */
bool peal_cuda_await_event(peal_cuda_plan *plan, CUevent event);
bool peal_cuda_drain_lane(peal_cuda_plan *plan, CUstream stream);
/* One poll while something is awaited: checks for failures, the abort word and the deadline, then
 * backs off. *backoff: its state; a new one (peal_cuda_backoff) begins after progress. */
peal_backoff peal_cuda_backoff(void);
bool peal_cuda_poll_once(peal_cuda_plan *plan, peal_backoff *backoff);
/* Checks once whether a kernel has recorded a failure, a file could not be written, or the job was
 * aborted. */
bool peal_cuda_check_failure(peal_cuda_plan *plan);
/* Whether a kernel has recorded a failure: what is behind it in its lane may have run all the same.
 */
bool peal_cuda_device_has_failed(const peal_cuda_plan *plan);

/* stream_interop.c */
/* Makes the next start follow the work that the application has enqueued on a stream so far, and an
 * event; either may be NULL. PEAL_E_STREAM_NOT_USABLE: the driver refuses them. */
peal_status peal_cuda_plan_follow(peal_cuda_plan *plan, void *stream, void *event);
/* *event: for streams of the application; passed when the latest start is done. Waits until that
 * start has enqueued everything. Fails with the start's status if it has failed. */
peal_status peal_cuda_plan_event(peal_cuda_plan *plan, void **event);
/* Creates the events of starts. What fails has been reported (PEAL_E_DRIVER_REFUSED). */
peal_status peal_cuda_interop_create(peal_cuda_plan *plan);
void peal_cuda_interop_destroy(peal_cuda_plan *plan);
/* Called by the thread that drives the device when it has emitted everything: joins the lanes and
 * records end_event. False: failed. */
bool peal_cuda_interop_end(peal_cuda_plan *plan);
/* Called by that thread at the end of a start, also after a failure: nothing more is enqueued. */
void peal_cuda_interop_leave(peal_cuda_plan *plan);
/* Whether what this start follows has been done. */
bool peal_cuda_interop_has_begun(peal_cuda_plan *plan);

#endif
