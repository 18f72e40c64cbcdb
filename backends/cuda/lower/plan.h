/* What the executors of the CUDA backend share: schedules bound to device memory, and the plan that
 * puts them onto streams.
 *
 * bind.c binds a rank's schedule: addresses, kernels, tables of pieces. emit.c takes op
 * instances in walk order and puts them onto lanes (a lane is a stream), merging what one kernel
 * can do into one launch (group.c); remote store.c lets a task's blocks send, piggyback.c fold and
 * combine, defer.c puts off what nothing needs yet; run.c walks all ranks of the process in turn
 * (rank_turns.c); capture.c does so inside a capture, replay.c replays it, record.c makes one
 * kernel of it; poll.c polls, notices deadlines and reports; stream_interop.c ties starts to
 * streams of the application, embed.c puts an exchange onto them.
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

/* Something that was put onto a lane: what a report of a stall looks through. */
typedef struct peal_cuda_log_entry {
    int op;
    int64_t step;     /* in a graph: from its begin */
    CUdeviceptr word; /* a wait by memory operation for `value`; else 0 */
    uint64_t value;
} peal_cuda_log_entry;

/* How WRITE and WAIT, and copies, are put onto a lane. */
typedef enum peal_cuda_signal {
    PEAL_CUDA_SIGNAL_FUSED,
    PEAL_CUDA_SIGNAL_KERNEL,
    PEAL_CUDA_SIGNAL_MEMOP
} peal_cuda_signal;
typedef enum peal_cuda_copy { PEAL_CUDA_COPY_KERNEL, PEAL_CUDA_COPY_ENGINE } peal_cuda_copy;
/* How a graph ends by `until` of the outermost loop. */
typedef enum peal_cuda_until { PEAL_CUDA_UNTIL_UNROLL, PEAL_CUDA_UNTIL_WHILE } peal_cuda_until;
/* Most that the last block of a task copies for its messages, in bytes; what is larger is a kernel
 * of its own. */
enum { PEAL_CUDA_FUSED_COPY_BYTES = 1 << 17 };

typedef struct peal_cuda_options {
    peal_cuda_signal signal;
    peal_cuda_copy copy;
    peal_cuda_until until;
    int lanes;           /* 1: all on one stream; 2: messages on their own */
    bool folds_in_task;  /* the last block of a task's launch folds its partials */
    bool defers;         /* what nothing depends on yet may be put off (defer.c) */
    bool launches_early; /* a kernel of a graph is launched while the one before still runs */
    int steps;           /* a graph has at least so many; 0: not forced */
    const struct peal_cuda_dispatcher *dispatcher; /* mode fused (fused/dispatchers/) */
    int blocks;           /* mode fused: at most so many on an SM; 0: as many as it holds */
    int64_t plain_points; /* from so many points on, tiles that wait for nothing and send nothing
                             are a launch of their own */
    int64_t plain_flat_points;  /* the same of flat tiles (device/launch.h) */
    int64_t plain_light_points; /* ... and of light tasks (kernels.h) */
} peal_cuda_options;

/* What an address of a piece is relative to. */
typedef enum peal_cuda_base_kind {
    PEAL_CUDA_BASE_OWN,
    PEAL_CUDA_BASE_PEER,
    PEAL_CUDA_BASE_STAGING
} peal_cuda_base_kind;
typedef struct peal_cuda_base {
    peal_cuda_base_kind kind;
    int array;
} peal_cuda_base;

/* The pieces of a COPY. */
typedef struct peal_cuda_pieces {
    peal_device_piece *piece; /* the host's */
    CUdeviceptr table;
    int count;
    int64_t units, bytes;
    peal_cuda_base *base;
    int base_count;
} peal_cuda_pieces;

/* A piece as the blocks of the task that writes it copy it (remote store.c). */
typedef struct peal_cuda_remote_store {
    int array;
    peal_cuda_base base;
    int64_t offset; /* of where the point 0 would lie, from the base */
    int64_t points;
    peal_launch_remote_store box;           /* without target, boxes and view */
    int to_lo[PEAL_AXES], to_hi[PEAL_AXES]; /* where it goes */
} peal_cuda_remote_store;

typedef struct peal_cuda_op {
    const peal_op *source;
    int lane;
    int region;     /* mode graph: the decision of the device that it hangs on; -1: none */
    bool skipped;   /* by a test hook */
    bool idles;     /* a wait for nothing, by a hook */
    bool published; /* an op of another lane depends on it */
    bool self;      /* COPY, WRITE, WAIT: between ranks of this process, whose device is the same */
    peal_cuda_rank *peer;
    int peer_op; /* self: the peer's WRITE op that a WAIT waits for; -1 */
    const peal_channel *channel;
    CUdeviceptr word;    /* WRITE, WAIT */
    CUdeviceptr staging; /* COPY: slot 0 */
    CUdeviceptr *target; /* COPY SEND: the peer's storages */
    peal_cuda_pieces pieces;
    peal_cuda_remote_store *remote_store; /* COPY SEND */
    int remote_store_count;
    bool can_store_remotely;
    bool can_add; /* WRITE: the word's memory takes part in this device's atomics */
    const peal_cuda_task_kernel *kernel;
    const peal_schedule_task *task;
    peal_launch_box *free, *exact; /* boxes of its tiles */
    peal_launch_box *large;        /* as many as free, of larger tiles, for launches that wait for
                                      nothing and send nothing; or NULL */
    int free_count, exact_count;
    CUevent event[2]; /* by parity of the instance: it has finished */
    uint64_t epoch[2];
    uint64_t written; /* WRITE, self: instances that have been put onto the lane */
} peal_cuda_op;

typedef struct peal_cuda_task {
    peal_walk_value needed;
    peal_walk_value *argument;
    bool counts;              /* an argument depends on a loop counter */
    unsigned stored_remotely; /* bit i: access i writes the points of the tile, and no others */
} peal_cuda_task;

/* A kernel that is being put together. */
typedef struct peal_cuda_group {
    enum {
        PEAL_CUDA_GROUP_NONE,
        PEAL_CUDA_GROUP_WAITS,
        PEAL_CUDA_GROUP_TASK,
        PEAL_CUDA_GROUP_COPY
    } kind;
    peal_launch launch;
    CUfunction function;
    CUfunction self_sending; /* if its blocks send all that is sent themselves; NULL: the same */
    int wave;                /* blocks of `function` that an SM holds */
    int threads[3];
    unsigned blocks;
    const peal_schedule_task *task;
    bool closed; /* nothing may be added but writes of its own messages */
    int region;  /* of its ops */
    int event;   /* COPY: of the schedule's ops */
    int base_count;
    int64_t copy_bytes; /* appended to a task */
    uint64_t instance;  /* of the task */
    bool partials, communication_free;
    int storage[PEAL_LAUNCH_VIEWS]; /* by view */
    const peal_cuda_remote_store
        *image[PEAL_LAUNCH_REMOTE_STORES]; /* by remote store: it stays in memory of this rank... */
    int image_storage[PEAL_LAUNCH_REMOTE_STORES]; /* ... in this storage; else -1 */
    int written[PEAL_LAUNCH_VIEWS]; /* by view: the storage whose points its tiles write; or -1 */
    int written_count;
    int write_event; /* of the last WRITE */
    int fold_writes; /* those of its folds' messages (piggyback.c), and the event of the last one */
    int fold_event;
    bool can_add; /* all flags of its tiles */
    uint64_t quantum[PEAL_LAUNCH_WRITES];
    int *op; /* ops in it */
    uint64_t *op_instance;
    unsigned *op_bits; /* by place in op: boxes (LAUNCH) or waits (WAIT) that it became */
    int op_count;
} peal_cuda_group;

/* A WAIT that the walk has passed, and that is not in a group yet. */
typedef struct peal_cuda_pending_wait {
    int op;
    uint64_t value, instance;
} peal_cuda_pending_wait;

typedef struct peal_cuda_lane {
    CUstream stream; /* what things are put onto: `own`, or the application's */
    CUstream own;
    peal_cuda_group group;
    peal_cuda_group deferred; /* of kind NONE, or put off until something depends on it (defer.c) */
    peal_cuda_pending_wait pending[PEAL_CUDA_PENDING_WAITS];
    int pending_count;
    CUevent mark[PEAL_CUDA_MARKS]; /* a ring: the host stays near */
    uint64_t marks, marks_passed;
    uint64_t mark_log[PEAL_CUDA_MARKS]; /* notes at that mark */
    int since_mark;
    bool chained; /* while capturing: what was put there last is a kernel of peal's */
    peal_cuda_log_entry *log, *graph_log; /* rings of PEAL_CUDA_LOG_ENTRIES; held: by the graph */
    uint64_t log_count, graph_log_count;
    uint64_t log_done; /* drained up to here */
    CUevent join;
    CUevent sent_event; /* in a graph of several ranks: the latest flags have been written */
    uint64_t sent,
        followed;        /* of plan->emission.sends: those flags; and those that come first here */
    CUdeviceptr arrived; /* word of the launches on this lane */
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
    CUdeviceptr *first;   /* by storage */
    CUdeviceptr *scratch; /* mode fused: by storage, PEAL_CUDA_RING_STEPS of it; 0: none; or NULL */
    int64_t *origin;      /* by array: bytes from its first element to the point 0 */
    CUdeviceptr **peer_first; /* by peer, by storage */
    peal_cuda_lane lane[PEAL_CUDA_LANES];
    int lanes;
    peal_device_control *control; /* mapped host memory */
    CUdeviceptr control_device;
    CUdeviceptr words; /* device words: step, stop, arrived by lane */
    unsigned *verdict; /* mapped host memory: by slot and instance */
    CUdeviceptr verdict_device;
    CUdeviceptr stop_word;                   /* of graphs whose `until` ends them; 0 */
    struct peal_cuda_predicates *predicates; /* mode graph: conditions that the device decides */
    int64_t graph_begin; /* counter 0 at the start of the graph, while it is recorded */
    int64_t graph_step;  /* counter 0 at what launch.step stands for, while it is recorded */
    int64_t steps_left;
    bool stop;
    bool in_round; /* embedded: an iteration has begun */
    bool at_end;   /* of an iteration whose verdict is awaited */
    bool dry;      /* verdicts are not looked at */
    bool moved;    /* in its last turn */
    bool done;     /* with what all ranks take turns for */
    int drains;    /* `sync`: 1 + lane whose work is waited for before the walk goes on; 0: none */
    int *member;   /* by op: 1 + place in its lane's group; 0: none; PEAL_CUDA_IN_DEFERRED_GROUP: in
                     the one put off;   PEAL_CUDA_PENDING: a WAIT, in none yet */
    int *final_binding;
};

typedef struct peal_cuda_predicates peal_cuda_predicates;

/* What emission changes as it goes. */
typedef struct peal_cuda_emission {
    const peal_cuda_sink *sink; /* where things are put now */
    uint64_t epoch;             /* of events: a graph is one of its own */
    uint64_t sends;             /* launches with flags, in a capture */
    peal_status status;         /* the first failure */
    peal_diagnostics *late;     /* what is reported while the plan runs */
} peal_cuda_emission;

/* A plan is what is bound when it is created, and never changes; on it hang what emission needs,
 * what a run needs (stream/run.h), and what replays need (graph/graph.h, fused/fused.h). */
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
    CUdeviceptr tables_device; /* that peal_device_piece tables lie in */
    CUdeviceptr words_device;
    bool one_kernel;             /* iterations become one kernel, in which all ranks of the process
                                    are */
    bool synchronous;            /* `sync`: every op is waited for */
    bool keeps_order;            /* waits for other processes come behind earlier flags
                                    (stream/rank_turns.c) */
    peal_cuda_sink *stream_sink; /* the one that runs steps */
    const struct peal_cuda_host_ops *host;
    const peal_cuda_engine *engine; /* of modes that record iterations; else NULL */
    peal_cuda_emission emission;
    struct peal_cuda_run *run;
    struct peal_cuda_graphs *graphs;       /* of modes that record iterations */
    struct peal_cuda_fused_kernel *fused;  /* by buffer slot; mode fused */
    int fused_slot;                        /* of which work items are recorded */
    struct peal_cuda_embedding *embedding; /* of an embedded plan */
};

/* Whether K iterations are recorded once and repeated. */
static inline bool peal_cuda_repeats(const peal_cuda_plan *plan)
{
    return plan->engine != NULL;
}

/* Whether its flag counts: between ranks of one persistent kernel, outside of it as well. */
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

/* copy_pieces.c: bytes from an array's first element to a point; the pieces of a COPY. */
int64_t peal_cuda_offset_of(const peal_layout *layout, const int64_t *point, size_t element_bytes);
void peal_cuda_pieces_bind(peal_cuda_rank *rank, peal_cuda_op *out);

/* remote store.c */
unsigned peal_cuda_remote_store_accesses(const peal_schedule_task *task);
void peal_cuda_remote_stores_bind(peal_cuda_rank *rank, peal_cuda_op *op);

/* bind.c */
peal_status peal_cuda_rank_bind(peal_cuda_plan *plan, int index);
peal_status peal_cuda_plan_upload(peal_cuda_plan *plan);

/* emit_call.c: whether the application's function can be launched, its arguments computed here. */
peal_status peal_cuda_call_check(const peal_cuda_rank *rank, const peal_schedule_task *source,
                                 const peal_cuda_task *task);

/* emit.c: false: failed, plan->emission.status says why. */
bool peal_cuda_emit_is_ready(const peal_cuda_rank *rank);
bool peal_cuda_emit(peal_cuda_rank *rank);
bool peal_cuda_flush(peal_cuda_rank *rank, int lane);
bool peal_cuda_flush_all(peal_cuda_rank *rank);

/* failure.c */
/* Notes a failure: the job is told, waits on the device give up. Always false. */
bool peal_cuda_fail(peal_cuda_plan *plan, peal_status status);
/* A driver call failed while `what` (an op's label) was put onto its lane. Always false. */
bool peal_cuda_report_driver_error(peal_cuda_plan *plan, CUresult result, const peal_cuda_op *op,
                                   const char *what);
bool peal_cuda_is_aborted(const peal_cuda_plan *plan);
/* Waits in kernels give up, nobody writes a flag any more. Any thread. */
void peal_cuda_stop_device(peal_cuda_plan *plan);

/* group.c: logs what was put onto a lane; word 0: no wait by memory operation. */
void peal_cuda_log_enqueued(peal_cuda_rank *rank, peal_cuda_lane *lane, int op, CUdeviceptr word,
                            uint64_t value);

#endif
