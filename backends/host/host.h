/* The data that the files of the host backend share: a schedule bound to memory, and the plan that
 * runs it.
 *
 * Creating a plan prepares everything that does not change: addresses, copies, calls, and which
 * worker runs which tile. The executors serial.c, sync.c, stream.c and fused.c walk the same
 * prepared ops. */
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

enum { HOST_LINE = 64 }; /* bytes of a cache line; counters of different threads share none */

/* Binds the tasks to functions and holds the shared object of the spec's kernels. */
typedef struct host_kernels host_kernels;

typedef struct host_task {
    const peal_schedule_task *source;
    peal_function full,
        no_reduction; /* with and without partials; the caller's functions are both */
    void (*run_all)(const peal_call *call, const peal_op *op, int64_t end); /* or NULL */
    peal_walk_value needed;
    peal_walk_value *argument;
    peal_walk_value count; /* of its points that it visits; expr NULL: all */
    peal_walk_value value; /* SET, DECIDE */
    peal_walk_value *item; /* PRINT */
    const char **name;     /* PRINT */
    peal_call call;        /* the members that are the same in all calls */
    bool has_constant_arguments;
    bool shifts;     /* an access is per_tile */
    bool is_uniform; /* a kernel whose calls differ by tile and bases only */
    int *view_array;
} host_task;

/* A run of neighbouring tiles along x, of one tiling. Executors loop over it. */
typedef struct host_run {
    int64_t first; /* tile index of the first one */
    int64_t count;
    int64_t extent; /* along x */
    int64_t box_hi; /* along x */
    int lo[PEAL_AXES], hi[PEAL_AXES];
} host_run;

/* What one tile of a worker waits for: a tile of another worker. Positions count, from 0, the tiles
 * that a worker has of an op, in the order in which it runs them. */
typedef struct host_need {
    int64_t position;      /* of the tile that waits */
    int op;                /* the op whose tile it waits for, */
    int lag;               /* so many instances before the latest, */
    int worker;            /* of this worker, */
    uint64_t per_instance; /* which has so many tiles of that op, */
    uint64_t target;       /* at this position */
} host_need;

/* A worker's share of the tiles of a LAUNCH. */
typedef struct host_share {
    host_run *run;
    int run_count;
    int64_t tiles;
    host_run *merged; /* of mergeable tasks: the same points in as few boxes as possible */
    int merged_count; /* 0: tiles are to be run one by one */
    host_need *need;  /* by increasing position */
    int need_count;
} host_share;

/* A piece of a message or a local copy. Addresses are relative to the storages that the arrays name
 * when it is copied. */
typedef struct host_piece {
    peal_copy copy;
    int source_array, target_array; /* -1: the staging slot */
    int64_t source_offset, target_offset;
    /* Of a counted piece: where its number of elements lies, and the most that it may be. */
    bool counted;
    peal_type count_type;
    int count_array;
    int64_t count_offset, most;
    int64_t element_bytes;
} host_piece;

typedef struct host_op {
    peal_op_kind kind;
    const peal_op *source;
    int owner;      /* the worker that runs it, if tiles are not distributed */
    bool shared;    /* its tiles are distributed over workers */
    bool published; /* another worker waits for it */
    bool skipped;   /* by a test hook */
    bool remote;    /* a WRITE whose word goes to another host */
    bool leaves;    /* a SEND whose message leaves from where it lies, without its slot */
    bool has_left;  /* the WRITE behind it, which has nothing left to do */
    bool lands;     /* a WAIT whose message may land where the UNPACK behind it would put it */
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

/* How many tiles (LAUNCH) or instances of an op one worker has finished. */
typedef struct host_count {
    _Alignas(HOST_LINE) peal_dispatch_word value;
} host_count;

/* Verdicts of a DECIDE task, by instance, in a ring of slots. The thread that decides reuses a slot
 * only when the slowest walk has read it. */
typedef struct host_decision {
    int op; /* its DECIDE; -1: none */
    uint64_t slots;
    bool *verdict;
    host_count *consumed; /* by walk: instances that it will not read again */
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
    int share_count;             /* workers that tiles of LAUNCHes are distributed over */
    int walker_count;            /* walks that read decisions */
    host_count *done;            /* by op, by worker */
    int *final_binding;
    void *executor; /* the mode's own */
    peal_progress progress;
};

enum { HOST_STALLS = 8 };

/* A wait that was under way when the deadline of one wait passed. */
typedef struct host_stall {
    int64_t since; /* of the clock */
    int rank, worker, op, other_op;
    int kind;
    int64_t step;
    uint64_t message, expected, seen;
} host_stall;

/* The waits that had begun first, the oldest first. It is mostly the cause. */
typedef struct host_failure {
    pthread_mutex_t lock;
    host_stall stall[HOST_STALLS];
    int count;
} host_failure;

/* The functions of a mode. */
typedef struct host_executor {
    peal_status (*create)(host_plan *plan); /* also creates its threads */
    peal_status (*start)(host_plan *plan);
    peal_status (*wait)(host_plan *plan);
    void (*destroy)(host_plan *plan);
    int64_t (*progress)(const host_plan *plan); /* steps done; NULL: those of the walk */
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
    peal_diagnostics *late; /* reports of running threads; `wait` hands them to the caller */
    host_failure failure;
    host_count *turn; /* network.c: who makes turns for messages of other hosts */
};

/* Zeroed memory that begins at a cache line; and counts, each of which fills one. */
void *host_aligned(peal_arena *arena, size_t bytes);
host_count *host_counts_create(peal_arena *arena, int count);
/* prepare.c: fills plan->rank[index]. */
peal_status host_rank_prepare(host_plan *plan, int index);
/* share.c: distributes tiles over workers; then finds what each of them waits for
 * (PEAL_E_NOT_ENOUGH_MEMORY). */
void host_shares_prepare(host_rank *rank);
peal_status host_needs_prepare(host_rank *rank);
/* kernels.c: compiles the kernels of the tasks of all ranks. What fails has been reported. */
peal_status host_kernels_create(const peal_backend_desc *desc, host_kernels **out);
void host_kernels_destroy(host_kernels *kernels);
/* False: the task has no kernel of that shape (does not happen after create). */
bool host_kernels_bind(const host_kernels *kernels, peal_arena *arena,
                       const peal_schedule *schedule, const peal_schedule_task *task,
                       peal_function *full, peal_function *no_reduction);

static inline bool host_is_aborted(const host_plan *plan)
{
    return atomic_load_explicit(plan->desc.abort_word, memory_order_relaxed) != 0;
}

/* Ends the run with `status` unless it has already failed. Always false. */
bool host_fail(host_plan *plan, peal_status status);
/* Call it after kernels have run on this thread: if one has raised a signal, the job ends. */
void host_check_raised(host_plan *plan);

static inline host_count *host_done(const host_rank *rank, int op, int worker)
{
    return &rank->done[(size_t)op * (size_t)rank->share_count + (size_t)worker];
}

#endif
