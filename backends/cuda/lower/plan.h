/* The data that the executors of the CUDA backend share: schedules bound to device memory, and the
 * plan.
 *
 * The path of an op: bind.c gives it addresses, a kernel and a table of pieces when the plan is
 * created. emit.c takes its instances in walk order and puts them into the group of a lane. A group
 * (group.c) is the launch that is being put together; what one kernel can do becomes one launch.
 * remote_store.c lets the blocks of a task send their own points, piggyback.c lets a task's launch
 * fold and combine, defer.c delays what nothing needs yet. The launch goes to a sink (sink.h).
 *
 * stream/run.c walks all ranks of the process in turn; graph/capture.c and fused/record.c record
 * such a walk, graph/replay.c repeats it; embed.c enqueues an exchange on the application's stream.
 */
#ifndef PEAL_CUDA_PLAN_H
#define PEAL_CUDA_PLAN_H

#include "backends/cuda/codegen/device/launch.h"
#include "backends/cuda/gpu/gpu.h"
#include "backends/cuda/jit/kernels.h"
#include "base/saves.h"
#include "base/walk_order.h"

typedef struct peal_cuda_plan peal_cuda_plan;
typedef struct peal_cuda_rank peal_cuda_rank;
typedef struct peal_cuda_sink peal_cuda_sink;
typedef struct peal_cuda_engine peal_cuda_engine;

#define PEAL_CUDA_NOWHERE ((peal_source){0})

enum {
    PEAL_CUDA_IN_DEFERRED_GROUP = -1,
    PEAL_CUDA_PENDING = -2,
    PEAL_CUDA_PENDING_WAITS = 64,
    PEAL_CUDA_LANES = 2,
    PEAL_CUDA_MARKS = 8,
    PEAL_CUDA_LOG_ENTRIES = 1024,
    PEAL_CUDA_STOP_WORD = 8 /* among the words of a rank, which begin with its step */
};

/* An entry of a lane's log: something that was enqueued. The report of a stall reads the log. */
typedef struct peal_cuda_log_entry {
    int op;
    int64_t step;     /* in a graph: counted from the graph's first step */
    CUdeviceptr word; /* of a wait by memory operation for `value`; else 0 */
    uint64_t value;
} peal_cuda_log_entry;

/* How WRITE and WAIT are enqueued (as part of a task's kernel, as a kernel of their own, as a
 * memory operation of the stream), and how copies are. */
typedef enum peal_cuda_signal {
    PEAL_CUDA_SIGNAL_FUSED,
    PEAL_CUDA_SIGNAL_KERNEL,
    PEAL_CUDA_SIGNAL_MEMOP
} peal_cuda_signal;
typedef enum peal_cuda_copy { PEAL_CUDA_COPY_KERNEL, PEAL_CUDA_COPY_ENGINE } peal_cuda_copy;
/* How `until` of the outermost loop ends a graph: unrolled steps that do nothing after the end, or
 * a WHILE node. */
typedef enum peal_cuda_until { PEAL_CUDA_UNTIL_UNROLL, PEAL_CUDA_UNTIL_WHILE } peal_cuda_until;
/* The most bytes that the last block of a task copies for its messages. Larger copies are a kernel
 * of their own. */
enum { PEAL_CUDA_FUSED_COPY_BYTES = 1 << 17 };

typedef struct peal_cuda_options {
    peal_cuda_signal signal;
    peal_cuda_copy copy;
    peal_cuda_until until;
    int lanes;           /* 1: all on one stream; 2: messages on their own */
    bool folds_in_task;  /* the last block of a task's launch folds its partials */
    bool defers;         /* what nothing depends on yet may be deferred (defer.c) */
    bool launches_early; /* a kernel of a graph is launched while the one before still runs */
    int steps;           /* the least number of steps in a graph; 0: not forced */
    const struct peal_cuda_dispatcher *dispatcher; /* mode fused (fused/dispatchers/) */
    int blocks;           /* mode fused: at most so many on an SM; 0: as many as it holds */
    int64_t plain_points; /* from so many points on, tiles that wait for nothing and send nothing
                             are a launch of a communication-free kernel */
    int64_t plain_flat_points;  /* the same limit for flat tiles (device/launch.h) */
    int64_t plain_light_points; /* the same limit for light tasks (jit/kernels.h) */
} peal_cuda_options;

/* What the address of a piece is relative to: an array of this rank, an array of the peer, or the
 * channel's staging slot. */
typedef enum peal_cuda_base_kind {
    PEAL_CUDA_BASE_OWN,
    PEAL_CUDA_BASE_PEER,
    PEAL_CUDA_BASE_STAGING
} peal_cuda_base_kind;
typedef struct peal_cuda_base {
    peal_cuda_base_kind kind;
    int array;
} peal_cuda_base;

/* The pieces of a COPY: the host's table, and its copy in device memory. */
typedef struct peal_cuda_pieces {
    peal_device_piece *piece; /* host memory */
    CUdeviceptr table;        /* device memory */
    int count;
    int64_t units, bytes;
    peal_cuda_base *base;
    int base_count;
} peal_cuda_pieces;

/* A piece of a message as a remote store: each block of the task that writes the array stores its
 * own points of the piece into the receiver's memory (remote_store.c). Pieces of local copies,
 * which fill images of the rank's own points, are remote stores as well; their target is local. */
typedef struct peal_cuda_remote_store {
    int array;
    peal_cuda_base base;
    int64_t offset; /* bytes from the base to where the point with coordinates 0 would lie */
    int64_t points;
    peal_launch_remote_store box; /* target, boxes and view are filled in for each launch */
    int to_lo[PEAL_AXES], to_hi[PEAL_AXES]; /* the points that it fills in the target array */
} peal_cuda_remote_store;

typedef struct peal_cuda_op {
    const peal_op *source;
    int lane;
    int region;     /* mode graph: the run-time condition that decides whether it runs; -1: none */
    bool skipped;   /* by a test hook, or because the application does it */
    bool idles;     /* WAIT, by a test hook: it is launched and waits for a value that is there */
    bool published; /* an op of another lane depends on it, or its message stays in this process */
    bool self;      /* COPY, WRITE, WAIT: between ranks of this process, whose device is the same */
    peal_cuda_rank *peer; /* self: the rank at the other end of the channel */
    int peer_op;          /* WAIT, self: the peer's WRITE that it waits for; -1: none */
    const peal_channel *channel;
    CUdeviceptr word;    /* WRITE, WAIT: the flag or credit */
    CUdeviceptr staging; /* COPY: address of buffer slot 0 */
    CUdeviceptr *target; /* COPY SEND: the peer's storages */
    peal_cuda_pieces pieces;
    peal_cuda_remote_store *remote_store; /* COPY SEND */
    int remote_store_count;
    bool can_store_remotely;
    bool can_add; /* WRITE: this device's atomics work on the word's memory */
    const peal_cuda_task_kernel *kernel;
    const peal_schedule_task *task;
    peal_launch_box *free, *exact; /* boxes of its tiles */
    peal_launch_box *large;        /* as many as free, of larger tiles, for launches that wait for
                                      nothing and send nothing; or NULL */
    int free_count, exact_count;
    CUevent event[2];  /* published, by parity of the instance: recorded when it has finished */
    uint64_t epoch[2]; /* peal_cuda_emission.epoch when that event was recorded */
} peal_cuda_op;

typedef struct peal_cuda_task {
    peal_walk_value needed; /* whether somebody reads its partials */
    peal_walk_value *argument;
    unsigned stored_remotely; /* bit i: access i writes the points of the tile and no others, so
                                 that blocks can send them */
} peal_cuda_task;

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
    int64_t copy_bytes; /* TASK: of the messages that its last block copies */
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
    CUevent mark[PEAL_CUDA_MARKS]; /* a ring of events that bound the host's lookahead */
    uint64_t marks, marks_passed;
    uint64_t mark_log[PEAL_CUDA_MARKS]; /* by mark: log_count when it was recorded */
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

struct peal_cuda_rank {
    peal_cuda_plan *plan;
    int index;
    const peal_schedule *schedule;
    const peal_backend_rank *bound;
    peal_walk_program *program;
    peal_walk walk;
    peal_walk_order order;
    peal_cuda_op *op;
    peal_cuda_task *task;
    CUdeviceptr *first;       /* by storage: address of its first element */
    CUdeviceptr *scratch;     /* mode fused, by storage: the reduction ring of PEAL_CUDA_RING_STEPS
                                 copies; 0: none. NULL in other modes */
    int64_t *origin;          /* by array: bytes from its first element to the point 0 */
    CUdeviceptr **peer_first; /* by peer, by storage */
    peal_cuda_lane lane[PEAL_CUDA_LANES];
    int lanes;
    peal_device_control *control; /* mapped host memory */
    CUdeviceptr control_device;
    CUdeviceptr words; /* device words: step, stop, arrived by lane */
    unsigned *verdict; /* mapped host memory: by slot and instance */
    CUdeviceptr verdict_device;
    CUdeviceptr stop_word;                   /* of graphs whose `until` ends them; 0 */
    struct peal_cuda_predicates *predicates; /* run-time conditions that the device decides; NULL in
                                                modes that record nothing */
    int64_t graph_begin; /* while a graph is recorded: counter 0 at its first step */
    int64_t graph_step;  /* while a graph is recorded: counter 0 when the steps were last counted */
    int64_t steps_left;
    bool stop;
    bool in_round; /* embedded: an iteration has begun */
    bool at_end;   /* all ops of an iteration are emitted, the verdict of its end is awaited */
    bool dry;      /* verdicts are not read: steps are recorded, or only the walk advances */
    bool moved;    /* its walk advanced in its last turn */
    bool done;     /* it has finished what all ranks take turns for */
    int drains;    /* 1 + the lane that must be idle before the walk goes on; 0: none */
    int *member;   /* by op: 1 + its index among the members of its lane's group; 0: in no group;
                      PEAL_CUDA_IN_DEFERRED_GROUP; PEAL_CUDA_PENDING: a deferred WAIT */
    int *final_binding; /* by array: its storage when the last run ended */
};

typedef struct peal_cuda_predicates peal_cuda_predicates;

/* The state of emission. */
typedef struct peal_cuda_emission {
    const peal_cuda_sink *sink; /* where launches go now */
    uint64_t epoch;             /* events of another epoch need not be waited for: each recording of
                                   a graph begins one and ends it */
    uint64_t sends;             /* in a capture: launches that write flags, so far */
    peal_status status;         /* the first failure */
    peal_diagnostics *late;     /* reports of the running thread; peal_cuda_flush_diagnostics hands
                                   them to the caller */
} peal_cuda_emission;

/* The members of a plan that are bound when it is created do not change afterwards. Beside them it
 * has the state of emission, of a run (stream/run.h), and of replays (graph/graph.h,
 * fused/fused.h). */
struct peal_cuda_plan {
    peal_backend_desc desc;
    peal_saves *own_saves; /* if desc had none */
    const peal_cuda_driver *driver;
    peal_device *device;
    peal_arena *arena;
    peal_cuda_kernels *kernels;
    peal_cuda_options options;
    peal_cuda_rank *rank;
    int rank_count;
    CUdeviceptr tables_device;   /* memory of all tables of pieces */
    CUdeviceptr words_device;    /* memory of all ranks' words */
    bool one_kernel;             /* all iterations of all ranks of the process become one kernel */
    bool synchronous;            /* `sync`: every op is waited for */
    bool keeps_order;            /* a wait for another process is enqueued after all earlier flags
                                    (stream/rank_turns.c) */
    peal_cuda_sink *stream_sink; /* the sink of steps that run directly */
    const struct peal_cuda_host_ops *host;
    const peal_cuda_engine *engine; /* in modes that record iterations; else NULL */
    peal_cuda_emission emission;
    struct peal_cuda_run *run;
    struct peal_cuda_graphs *graphs;       /* in modes that record iterations */
    struct peal_cuda_fused_kernel *fused;  /* mode fused: by buffer slot of the recording */
    int fused_slot;                        /* mode fused: the slot that is being recorded */
    struct peal_cuda_embedding *embedding; /* embedded plans only */
};

/* Whether K iterations are recorded once and repeated. */
static inline bool peal_cuda_repeats(const peal_cuda_plan *plan)
{
    return plan->engine != NULL;
}

/* Whether WRITE `op` must write its flag. Messages within the process need none, except in mode
 * fused, where the persistent kernel waits by flags and steps beside it must count on. */
static inline bool peal_cuda_has_flag(const peal_cuda_rank *rank, const peal_cuda_op *op)
{
    return !op->self || (op->peer != rank && rank->plan->one_kernel);
}

/* The stream that a replay is launched on, and that all lanes meet on. */
static inline CUstream peal_cuda_origin(const peal_cuda_plan *plan)
{
    return plan->rank[0].lane[0].stream;
}

/* tile_boxes.c: out->exact, free and large. */
void peal_cuda_tile_boxes_bind(peal_cuda_rank *rank, const peal_op *op, peal_cuda_op *out);

/* copy_pieces.c */
/* Bytes from an array's first element to a point. */
int64_t peal_cuda_offset_of(const peal_layout *layout, const int64_t *point, size_t element_bytes);
/* Fills the pieces of COPY `out` and, but for unpacking, its remote stores. */
void peal_cuda_pieces_bind(peal_cuda_rank *rank, peal_cuda_op *out);

/* remote_store.c */
/* Bit i: access i of the task writes the points of the tile and no others. */
unsigned peal_cuda_remote_store_accesses(const peal_schedule_task *task);
/* Sets the op's remote stores, and can_store_remotely: all of its pieces are of that form. */
void peal_cuda_remote_stores_bind(peal_cuda_rank *rank, peal_cuda_op *op);

/* bind.c */
/* Binds the schedule of rank `index` of the plan to memory. What fails has been reported: an
 * expression, too many tiles for a grid, an invalid CUDA function of the application, a driver
 * call. */
peal_status peal_cuda_rank_bind(peal_cuda_plan *plan, int index);
/* Once all ranks are bound: finds the peer ops of waits, and copies the tables of pieces to the
 * device. What fails has been reported (PEAL_E_DRIVER_CALL_FAILED). */
peal_status peal_cuda_plan_upload(peal_cuda_plan *plan);

/* emit_call.c: whether the application's function can be launched with its number of threads, and
 * the host can compute its arguments. If not: PEAL_E_INVALID_CUDA_FUNCTION. */
peal_status peal_cuda_call_check(const peal_cuda_rank *rank, const peal_schedule_task *source,
                                 const peal_cuda_task *task);

/* emit.c, group.c, defer.c. False of those that emit: failed, plan->emission.status says why. */
/* False: the next op of the rank waits for a message of this process that has not been enqueued
 * yet, so another rank must go on first. */
bool peal_cuda_emit_is_ready(const peal_cuda_rank *rank);
/* Passes the op at the walk's position and emits its instance. */
bool peal_cuda_emit(peal_cuda_rank *rank);
/* Launches the lane's open group, if there is one. */
bool peal_cuda_flush(peal_cuda_rank *rank, int lane);
/* Launches everything that the rank has emitted: open and deferred groups and deferred waits. */
bool peal_cuda_flush_all(peal_cuda_rank *rank);

/* failure.c */
/* Records a failure: sets the emission's status and the abort word, unless an earlier failure has,
 * and makes waits on the device give up. Always false. */
bool peal_cuda_fail(peal_cuda_plan *plan, peal_status status);
/* Reports a driver call that failed while `what` (an op's label) was enqueued, and fails the plan.
 * Always false. */
bool peal_cuda_report_driver_error(peal_cuda_plan *plan, CUresult result, const peal_cuda_op *op,
                                   const char *what);
bool peal_cuda_is_aborted(const peal_cuda_plan *plan);
/* From now on waits in kernels give up, and no kernel writes a flag any more. Any thread may call
 * it. */
void peal_cuda_stop_device(peal_cuda_plan *plan);

/* group.c: adds an entry to the lane's log. word: of a wait by memory operation for `value`; else
 * 0. */
void peal_cuda_log_enqueued(peal_cuda_rank *rank, peal_cuda_lane *lane, int op, CUdeviceptr word,
                            uint64_t value);

#endif
