/* What the files of the host backend share: a schedule bound to memory, and the plan that runs it.
 *
 * `create` prepares everything that does not change (addresses, copies, calls, who runs which
 * tile); the executors serial.c, sync.c, stream.c and fused.c walk the same prepared ops. */
#ifndef PEAL_HOST_HOST_H
#define PEAL_HOST_HOST_H

#include "backends/host/dispatch.h"
#include "base/arena.h"
#include "base/copy.h"
#include "base/saves.h"
#include "base/walk.h"

#include <peal/plugin/backend.h>

#include <pthread.h>

typedef struct peal_backend_plan host_plan;
typedef struct host_rank host_rank;

enum { HOST_LINE = 64 }; /* bytes of a cache line: counters of different threads stay apart */

/* Binds the tasks to functions and holds the shared object of the spec's kernels. */
typedef struct host_kernels host_kernels;

typedef struct host_task {
    const peal_schedule_task *source;
    peal_function full, bare; /* bare: without partials; the same for pointers of the caller */
    peal_walk_value needed;
    peal_walk_value *argument;
    peal_walk_value count; /* of its points; expr NULL: all */
    peal_walk_value value; /* SET, DECIDE */
    peal_walk_value *item; /* PRINT */
    const char **name;     /* PRINT */
    peal_call call;        /* what is alike in all calls */
    bool has_constant_arguments;
    bool shifts; /* an access is per_tile */
    bool plain;  /* a kernel whose calls differ by tile and bases only */
    int *view_array;
} host_task;

/* Neighbouring tiles along x of one tiling: what an executor loops over. */
typedef struct host_run {
    int64_t first; /* number of the first tile */
    int64_t count;
    int64_t extent; /* along x */
    int64_t box_hi; /* along x */
    int lo[PEAL_AXES], hi[PEAL_AXES];
} host_run;

/* Before the tile at `place` of this share, `progress` of op must have reached that of the tile
 * `target` of another worker. */
typedef struct host_need {
    int64_t place;
    int op;
    int lag;
    int worker;
    uint64_t per_instance;
    uint64_t target;
} host_need;

/* A worker's part of a LAUNCH. */
typedef struct host_share {
    host_run *run;
    int run_count;
    int64_t tiles;
    host_run *merged; /* the same points in as few boxes as there are; for mergeable tasks */
    int merged_count; /* 0: tiles are to be run one by one */
    host_need *need;  /* by place */
    int need_count;
} host_share;

/* A piece of a message or a local copy; addresses are relative to what `binding` gives. */
typedef struct host_piece {
    peal_copy copy;
    int source_array, target_array; /* -1: the staging slot */
    int64_t source_offset, target_offset;
    /* of a counted piece: where its count is, relative to its source; most: elements of the block
     */
    bool counted;
    peal_type count_type;
    int count_array;
    int64_t count_offset, most;
    int64_t element_bytes;
} host_piece;

typedef struct host_op {
    peal_op_kind kind;
    const peal_op *source;
    int owner; /* worker of all that is not shared out by tiles */
    bool shared;
    bool published; /* another worker waits for it */
    bool skipped;   /* by a test hook */
    bool decides;   /* a LAUNCH of DECIDE */
    host_task *task;
    host_share *share; /* LAUNCH: by worker */
    const peal_channel *channel;
    int message_counter; /* of this end of the channel and this kind of op */
    peal_dispatch_word *word;
    host_piece *piece;
    int piece_count;
    unsigned char *staging;       /* slot 0, where this process sees it */
    unsigned char *const *target; /* SEND: the peer's storages */
    peal_walk_value condition;    /* IF */
    host_need *need;              /* all but LAUNCH */
    int need_count;
    int queue; /* serial: the message queue */
} host_op;

/* A count of one worker on one op: tiles (LAUNCH) or instances that it has finished. */
typedef struct host_count {
    _Alignas(HOST_LINE) peal_dispatch_word value;
} host_count;

/* Verdicts of a DECIDE task, by instance. The one that decides waits for the slowest walker before
 * it takes a slot again. */
typedef struct host_decision {
    int op; /* its DECIDE; -1: none */
    uint64_t slots;
    bool *verdict;
    host_count *consumed; /* by walker: instances that it will not look at again */
} host_decision;

struct host_rank {
    host_plan *plan;
    int index;
    const peal_schedule *schedule;
    const peal_backend_rank *bound;
    host_op *op;
    host_task *task;
    peal_walk_program *program;
    const peal_walk_loop *loop; /* the program's */
    host_decision *decision;
    unsigned char **origin;      /* by storage: address of the point with coordinates 0 */
    unsigned char **first;       /* by storage: address of the first stored point */
    unsigned char ***peer_first; /* by peer, by storage */
    int share_count;             /* workers that LAUNCHes are shared out to */
    int walker_count;            /* walks that read decisions */
    host_count *done;            /* by op, by worker */
    int *final_binding;
    void *executor; /* the mode's own */
    peal_progress progress;
};

enum { HOST_STALLS = 8 };

/* A wait that was going on when the deadline of one of them passed. */
typedef struct host_stall {
    int64_t since; /* of the clock */
    int rank, worker, op, other_op;
    int kind;
    int64_t step;
    uint64_t message, expected, seen;
} host_stall;

/* The waits that had begun first, in that order: the cause is mostly the first. */
typedef struct host_failure {
    pthread_mutex_t lock;
    host_stall stall[HOST_STALLS];
    int count;
} host_failure;

/* The functions of a mode. */
typedef struct host_executor {
    peal_status (*create)(host_plan *plan); /* its threads too */
    peal_status (*start)(host_plan *plan);
    peal_status (*wait)(host_plan *plan);
    void (*destroy)(host_plan *plan);
} host_executor;

extern const host_executor host_serial, host_sync, host_stream, host_fused;

typedef struct host_threads host_threads;

struct peal_backend_plan {
    peal_backend_desc desc;
    peal_saves *own_saves; /* if desc had none */
    const host_executor *executor;
    peal_arena *arena;
    host_kernels *kernels;
    host_rank *rank;
    int rank_count;
    int spin; /* polls before a wait yields */
    bool running;
    bool executor_created;
    bool setup, finish; /* what this start runs */
    int64_t steps;
    int64_t start_step;
    _Atomic int64_t steps_done; /* since create */
    bool stopped;
    double begin, end;
    host_threads *threads;
    void *executor_data;
    peal_diagnostics *late; /* reports of running threads, handed over at wait */
    host_failure failure;
};

/* Zeroed memory that begins a cache line, and counts that each fill one. */
void *host_aligned(peal_arena *arena, size_t bytes);
host_count *host_counts_create(peal_arena *arena, int count);
/* prepare.c: fills plan->rank[index]. */
peal_status host_rank_prepare(host_plan *plan, int index);
/* share.c: tiles by worker and what they wait for. */
void host_shares_prepare(host_rank *rank);
peal_status host_needs_prepare(host_rank *rank);
/* kernels.c: functions of the tasks of all ranks. */
peal_status host_kernels_create(const peal_backend_desc *desc, host_kernels **out);
void host_kernels_destroy(host_kernels *kernels);
/* False: the task has no kernel of that shape (does not happen after create). */
bool host_kernels_bind(const host_kernels *kernels, peal_arena *arena,
                       const peal_schedule *schedule, const peal_schedule_task *task,
                       peal_function *full, peal_function *bare);

static inline bool host_is_aborted(const host_plan *plan)
{
    return atomic_load_explicit(plan->desc.abort_word, memory_order_relaxed) != 0;
}

/* Ends the run with `status` unless it has already failed. Always false. */
bool host_fail(host_plan *plan, peal_status status);
/* After kernels have run on this thread: a signal that one has raised ends the job. */
void host_check_raised(host_plan *plan);

static inline host_count *host_done(const host_rank *rank, int op, int worker)
{
    return &rank->done[(size_t)op * (size_t)rank->share_count + (size_t)worker];
}

#endif
