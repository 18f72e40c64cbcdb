/* What the executors of the CUDA backend share: schedules bound to device memory, and the plan that
 * puts them onto streams.
 *
 * prepare.c binds a rank's schedule: addresses, kernels, tables of pieces. emit.c takes op
 * instances in walk order and puts them onto lanes (a lane is a stream), merging what one kernel
 * can do into one launch (group.c); mirror.c lets a task's blocks send, ride.c fold and combine,
 * later.c puts off what nothing needs yet; run.c walks all ranks of the process in turn (turns.c);
 * capture.c does so inside a capture, graph.c replays it, fused.c makes one kernel of it; watch.c
 * polls, notices deadlines and reports; follow.c ties starts to streams of the application, embed.c
 * puts an exchange onto them.
 */
#ifndef PEAL_CUDA_PLAN_H
#define PEAL_CUDA_PLAN_H

#include "backends/cuda/cuda.h"
#include "backends/cuda/device/launch.h"
#include "backends/cuda/kernels.h"
#include "base/saves.h"
#include "base/walk_order.h"

#include <pthread.h>

typedef struct cuda_plan cuda_plan;
typedef struct cuda_rank cuda_rank;

#define CUDA_NOWHERE ((peal_source){0})

enum {
    CUDA_HELD = -1,
    CUDA_PUT_OFF = -2,
    CUDA_LATER = 64,
    CUDA_LANES = 2,
    CUDA_MARKS = 8,
    CUDA_NOTES = 1024,
    CUDA_ROWS = 256,
    CUDA_STOP_AT = 8 /* among the words of a rank, which begin with its step */
};

/* Something that was put onto a lane: what a report of a stall looks through. */
typedef struct cuda_note {
    int op;
    int64_t step;     /* in a graph: from its begin */
    CUdeviceptr word; /* a wait by memory operation for `value`; else 0 */
    uint64_t value;
} cuda_note;

/* How WRITE and WAIT, and copies, are put onto a lane. */
typedef enum cuda_signal { CUDA_SIGNAL_FUSED, CUDA_SIGNAL_KERNEL, CUDA_SIGNAL_MEMOP } cuda_signal;
typedef enum cuda_copy { CUDA_COPY_KERNEL, CUDA_COPY_ENGINE } cuda_copy;
/* How a graph ends by `until` of the outermost loop. */
typedef enum cuda_until { CUDA_UNTIL_UNROLL, CUDA_UNTIL_WHILE } cuda_until;
/* Which blocks of a task copy its messages: each its own tile's points, or the last one all. */
typedef enum cuda_send { CUDA_SEND_EACH, CUDA_SEND_LAST } cuda_send;

/* What folds the partials of a task: the last block of its launch, or a kernel. */
typedef enum cuda_fold { CUDA_FOLD_TASK, CUDA_FOLD_KERNEL } cuda_fold;

/* Mode fused. Blocks have shares of their own, and wait for the blocks that their tiles depend on,
 * or for all of them; or they take shares by tickets: in one kernel, or in one for each step, whose
 * receives are tickets of their own, in front of a barrier. */
typedef enum cuda_order_by {
    CUDA_ORDER_TILES,
    CUDA_ORDER_GRID,
    CUDA_ORDER_TICKETS,
    CUDA_ORDER_PERIOD
} cuda_order_by;
static inline bool cuda_has_tickets(cuda_order_by order)
{
    return order == CUDA_ORDER_TICKETS || order == CUDA_ORDER_PERIOD;
}

typedef struct cuda_lowering {
    cuda_signal signal;
    cuda_copy copy;
    cuda_until until;
    cuda_send send;
    cuda_fold fold;
    int lanes;            /* 1: all on one stream; 2: messages on their own */
    int early;            /* 1: a kernel of a graph is launched while the one before still runs */
    int later;            /* 1: what nothing depends on yet may be put off (later.c) */
    int64_t fuse_bytes;   /* most that the last block of a task copies for its messages */
    int steps;            /* a graph has at least so many; 0: not forced */
    cuda_order_by order;  /* mode fused */
    int blocks;           /* mode fused: at most so many on an SM; 0: as many as it holds */
    int jitter_ns;        /* mode fused: blocks pause for up to so long */
    int64_t plain_points; /* from so many points on, tiles that wait for nothing and send nothing
                             are a launch of their own */
    int64_t plain_flat_points;  /* the same of flat tiles (device/launch.h) */
    int64_t plain_light_points; /* ... and of light tasks (kernels.h) */
} cuda_lowering;

/* What an address of a piece is relative to. */
typedef enum cuda_base_kind { CUDA_BASE_OWN, CUDA_BASE_PEER, CUDA_BASE_STAGING } cuda_base_kind;
typedef struct cuda_base {
    cuda_base_kind kind;
    int array;
} cuda_base;

/* The pieces of a COPY. */
typedef struct cuda_pieces {
    peal_device_piece *piece; /* the host's */
    CUdeviceptr table;
    int count;
    int64_t units, bytes;
    cuda_base *base;
    int base_count;
} cuda_pieces;

/* A piece as the blocks of the task that writes it copy it (mirror.c). */
typedef struct cuda_mirror {
    int array;
    cuda_base base;
    int64_t offset; /* of where the point 0 would lie, from the base */
    int64_t points;
    peal_launch_mirror box;                 /* without target, boxes and view */
    int to_lo[PEAL_AXES], to_hi[PEAL_AXES]; /* where it goes */
} cuda_mirror;

typedef struct cuda_op {
    const peal_op *source;
    int lane;
    int region;     /* mode graph: the decision of the device that it hangs on; -1: none */
    bool skipped;   /* by a test hook */
    bool idles;     /* a wait for nothing, by a hook */
    bool published; /* an op of another lane depends on it */
    bool self;      /* COPY, WRITE, WAIT: between ranks of this process, whose device is the same */
    cuda_rank *peer;
    int twin; /* self: the peer's WRITE op that a WAIT waits for; -1 */
    const peal_channel *channel;
    CUdeviceptr word;    /* WRITE, WAIT */
    CUdeviceptr staging; /* COPY: slot 0 */
    CUdeviceptr *target; /* COPY SEND: the peer's storages */
    cuda_pieces pieces;
    cuda_mirror *mirror; /* COPY SEND */
    int mirror_count;
    bool can_mirror;
    bool can_add; /* WRITE: the word's memory takes part in this device's atomics */
    const cuda_task_kernel *kernel;
    const peal_schedule_task *task;
    peal_launch_box *free, *exact, *plain; /* boxes of its tiles; plain: as many as free, or NULL */
    int free_count, exact_count;
    CUevent event[2]; /* by parity of the instance: it has finished */
    uint64_t epoch[2];
    uint64_t written; /* WRITE, self: instances that have been put onto the lane */
} cuda_op;

typedef struct cuda_task {
    peal_walk_value needed;
    peal_walk_value *argument;
    bool counts;       /* an argument depends on a loop counter */
    unsigned mirrored; /* bit i: access i writes the points of the tile, and no others */
} cuda_task;

/* A row of `print` that is on its way: its items are in mapped host memory. */
typedef struct cuda_row {
    const peal_schedule_task *task;
    unsigned slot;
    int64_t step; /* within a graph: relative to its start */
    bool may_be_empty;
} cuda_row;

/* A kernel that is being put together. */
typedef struct cuda_group {
    enum { CUDA_GROUP_NONE, CUDA_GROUP_WAITS, CUDA_GROUP_TASK, CUDA_GROUP_COPY } kind;
    peal_launch launch;
    CUfunction function;
    CUfunction own; /* if its blocks send all that is sent themselves; NULL: the same */
    int wave;       /* blocks of `function` that an SM holds */
    int threads[3];
    unsigned blocks;
    const peal_schedule_task *task;
    bool closed; /* nothing may be added but writes of its own messages */
    int region;  /* of its ops */
    int event;   /* COPY: of the schedule's ops */
    int base_count;
    int64_t copy_bytes; /* appended to a task */
    uint64_t instance;  /* of the task */
    bool partials, plain;
    int storage[PEAL_LAUNCH_VIEWS]; /* by view */
    const cuda_mirror
        *image[PEAL_LAUNCH_MIRRORS];        /* by mirror: it stays in memory of this rank... */
    int image_storage[PEAL_LAUNCH_MIRRORS]; /* ... in this storage; else -1 */
    int written[PEAL_LAUNCH_VIEWS]; /* by view: the storage whose points its tiles write; or -1 */
    int written_count;
    int write_event; /* of the last WRITE */
    int fold_writes; /* those of its folds' messages (ride.c), and the event of the last one */
    int fold_event;
    bool can_add; /* all flags of its tiles */
    uint64_t quantum[PEAL_LAUNCH_WRITES];
    int *op; /* ops in it */
    uint64_t *op_instance;
    unsigned *op_bits; /* by place in op: boxes (LAUNCH) or waits (WAIT) that it became */
    int op_count;
} cuda_group;

/* A WAIT that the walk has passed, and that is not in a group yet. */
typedef struct cuda_later_wait {
    int op;
    uint64_t value, instance;
} cuda_later_wait;

typedef struct cuda_lane {
    CUstream stream; /* what things are put onto: `own`, or the application's */
    CUstream own;
    cuda_group group;
    cuda_group held; /* of kind NONE, or put off until something depends on it (later.c) */
    cuda_later_wait later[CUDA_LATER];
    int later_count;
    CUevent mark[CUDA_MARKS]; /* a ring: the host stays near */
    uint64_t marks, marks_passed;
    uint64_t mark_note[CUDA_MARKS]; /* notes at that mark */
    int since_mark;
    bool chained; /* while capturing: what was put there last is a kernel of peal's */
    cuda_note *note, *held_note; /* rings of CUDA_NOTES; held: by the graph */
    uint64_t notes, held_notes;
    uint64_t notes_done; /* drained up to here */
    CUevent join;
    CUevent sent_event;      /* in a graph of several ranks: the latest flags have been written */
    uint64_t sent, followed; /* of plan->sends: those flags; and those that come first here */
    CUdeviceptr arrived;     /* word of the launches on this lane */
} cuda_lane;

struct cuda_rank {
    cuda_plan *plan;
    int index;
    const peal_schedule *schedule;
    const peal_backend_rank *bound;
    peal_walk_program *program;
    peal_walk walk;
    peal_walk_order order;
    cuda_op *op;
    cuda_task *task;
    CUdeviceptr *first;   /* by storage */
    CUdeviceptr *scratch; /* mode fused: by storage, CUDA_SCRATCH_STEPS of it; 0: none; or NULL */
    int64_t *origin;      /* by array: bytes from its first element to the point 0 */
    CUdeviceptr **peer_first; /* by peer, by storage */
    cuda_lane lane[CUDA_LANES];
    int lanes;
    peal_device_control *control; /* mapped host memory */
    CUdeviceptr control_device;
    CUdeviceptr words; /* device words: step, stop, arrived by lane */
    unsigned *verdict; /* mapped host memory: by slot and instance */
    CUdeviceptr verdict_device;
    CUdeviceptr stop_word;              /* of graphs whose `until` ends them; 0 */
    struct cuda_predicates *predicates; /* mode graph: conditions that the device decides */
    int64_t graph_begin;                /* counter 0 at the start of the graph, while capturing */
    int64_t graph_step; /* counter 0 at what launch.step stands for, while capturing */
    int64_t steps_left;
    bool stop;
    bool in_round; /* embedded: an iteration has begun */
    bool at_end;   /* of an iteration whose verdict is awaited */
    bool dry;      /* verdicts are not looked at */
    bool moved;    /* in its last turn */
    bool done;     /* with what all ranks take turns for */
    int drains;    /* `sync`: 1 + lane whose work is waited for before the walk goes on; 0: none */
    int *place;    /* by op: 1 + place in its lane's group; 0: none; CUDA_HELD: in the one put off;
                      CUDA_PUT_OFF: a WAIT, in none yet */
    int *final_binding;
};

typedef struct cuda_graphs cuda_graphs;
typedef struct cuda_predicates cuda_predicates;
typedef struct cuda_embedding cuda_embedding;

struct cuda_plan {
    peal_backend_desc desc;
    peal_saves *own_saves; /* if desc had none */
    const peal_cuda_driver *driver;
    peal_device *device;
    peal_arena *arena;
    cuda_kernels *kernels;
    cuda_lowering lowering;
    cuda_rank *rank;
    int rank_count;
    void *tables; /* device memory that peal_device_piece tables lie in */
    CUdeviceptr tables_device;
    CUdeviceptr words_device;
    void *mapped; /* host memory: controls, verdicts, rows */
    CUdeviceptr mapped_device;
    struct peal_device_item *row_item; /* of mapped */
    CUdeviceptr row_device;
    cuda_row *row; /* on their way, a ring */
    uint64_t rows, rows_out;
    CUevent *row_event;
    bool synchronous;    /* `sync`: every op is waited for */
    bool keeps_order;    /* waits for other processes come behind earlier flags (turns.c) */
    cuda_rank *earliest; /* beside the one whose turn it is; NULL: not looked for yet */
    uint64_t sends;      /* launches with flags, while capturing */
    bool capturing;
    uint64_t epoch; /* of events: a graph is one of its own */
    cuda_graphs *graphs;
    struct cuda_fused_kernel *fused; /* by half; mode fused */
    int fused_half;                  /* of which records are noted */
    pthread_t thread;
    bool running;
    CUevent follow_event; /* on the application's stream */
    CUevent begin_event;  /* what a start follows has been done; on the origin */
    CUevent end_event;    /* what was started has been done */
    bool follows;         /* this start follows something */
    bool ended;           /* end_event has been recorded, in this start */
    bool enqueued;        /* of this start nothing more will be put onto streams */
    pthread_mutex_t lock; /* of `ended` and `enqueued` */
    pthread_cond_t enqueued_changed;
    cuda_embedding *embedding; /* of an embedded plan */
    bool setup, finish;
    int64_t steps;
    int64_t start_step;
    _Atomic int64_t steps_done;
    bool stopped;
    double begin, end, cpu;
    peal_status status; /* of the thread */
    peal_diagnostics *late;
    double last_progress, last_look;
    uint64_t seen_steps;
    uint64_t launches;
    CUstream rescue;     /* for words, when other streams wait */
    uint64_t *read_word; /* pinned: where a word is read to */
    size_t row_items;    /* in a row's slot */
    unsigned graph_half; /* of the slots of rows: which graph is captured */
    unsigned graph_rows; /* that it prints */
};

/* Whether K iterations are recorded once and repeated. */
static inline bool cuda_repeats(const cuda_plan *plan)
{
    return plan->desc.mode == PEAL_MODE_GRAPH || plan->desc.mode == PEAL_MODE_FUSED;
}

/* Whether launches are noted as records of the kernel that stays. */
static inline bool cuda_is_noting(const cuda_plan *plan)
{
    return plan->capturing && plan->fused;
}

/* Waiting blocks of one rank must not keep another rank of this process off the GPU; those of the
 * kernel that stays are all there. */
static inline cuda_signal cuda_signals(const cuda_plan *plan)
{
    bool apart = plan->rank_count > 1 && !cuda_is_noting(plan);
    return apart && plan->lowering.signal == CUDA_SIGNAL_FUSED ? CUDA_SIGNAL_KERNEL
                                                               : plan->lowering.signal;
}

/* Messages of this process that need no flag: events of streams order them. */
static inline bool cuda_is_by_event(const cuda_rank *rank, const cuda_op *op)
{
    return op->self && (op->peer == rank || !cuda_is_noting(rank->plan));
}

/* Whether its flag counts: between ranks of one kernel that stays, outside of it as well. */
static inline bool cuda_has_flag(const cuda_rank *rank, const cuda_op *op)
{
    return !op->self || (op->peer != rank && rank->plan->desc.mode == PEAL_MODE_FUSED);
}

/* lowering.c: words of PEAL_LOWERING_WORDS. False: not understood. */
bool cuda_lowering_apply(const char *text, cuda_lowering *out);

/* boxes.c: out->exact, free and plain. */
void cuda_boxes_prepare(cuda_rank *rank, const peal_op *op, cuda_op *out);

/* pieces.c: bytes from an array's first element to a point; the pieces of a COPY. */
int64_t cuda_offset_of(const peal_layout *layout, const int64_t *point, size_t element_bytes);
void cuda_pieces_prepare(cuda_rank *rank, cuda_op *out);

/* mirror.c */
unsigned cuda_mirror_accesses(const peal_schedule_task *task);
void cuda_mirrors_prepare(cuda_rank *rank, cuda_op *op);

/* prepare.c */
peal_status cuda_rank_prepare(cuda_plan *plan, int index);
peal_status cuda_plan_upload(cuda_plan *plan);

/* emit_call.c: whether the application's function can be launched, its arguments computed here. */
peal_status cuda_call_check(const cuda_rank *rank, const peal_schedule_task *source,
                            const cuda_task *task);
CUresult cuda_call_launch(const peal_cuda_driver *driver, const peal_schedule_task *task,
                          CUstream stream, peal_call *call);

/* turns.c: whether there are several ranks, each of which sends before it receives. */
bool cuda_keeps_order(const cuda_plan *plan);

/* emit.c: false: failed, plan->status says why. */
bool cuda_emit_is_ready(const cuda_rank *rank);
bool cuda_emit(cuda_rank *rank);
bool cuda_flush(cuda_rank *rank, int lane);
bool cuda_flush_all(cuda_rank *rank);

/* copies.c: one piece by the copy engine. */
CUresult cuda_copy_box(const peal_cuda_driver *driver, CUstream stream,
                       const peal_device_piece *piece, CUdeviceptr to, CUdeviceptr from);

/* rows.c: rows of `print` and verdicts, in mapped host memory. */
peal_status cuda_mapped_create(cuda_plan *plan);
void cuda_mapped_destroy(cuda_plan *plan);
CUdeviceptr cuda_verdict_address(cuda_rank *rank, int slot, uint64_t instance);
peal_walk_result cuda_verdict_read(void *rank, int slot, uint64_t instance, bool *out);
/* empty: a condition that the device decides may skip it. */
bool cuda_row_begin(cuda_rank *rank, const peal_schedule_task *task, const peal_walk_frame *frame,
                    bool empty, unsigned long long *items);
bool cuda_row_launched(cuda_rank *rank, CUstream stream);
/* Hands out the rows that have arrived, in order; all: waits for all of them. */
bool cuda_rows_out(cuda_plan *plan, bool all);
/* While capturing: counts steps on the device, before what may end the loop (graph.c). */
bool cuda_graph_count(cuda_rank *rank, int64_t steps);
void cuda_row_out(cuda_plan *plan, const cuda_row *row, int64_t first_step);

/* files.c: `load` and `save`, on host memory. */
bool cuda_file_run(cuda_rank *rank, const cuda_op *op, const peal_walk_frame *frame);

/* stall.c */
/* Notes what was put onto a lane; word 0: no wait by memory operation. */
void cuda_note_put(cuda_rank *rank, cuda_lane *lane, int op, CUdeviceptr word, uint64_t value);
/* E661: what was awaited, as far as can be told. */
void cuda_report_stall(cuda_plan *plan);

/* release.c */
peal_status cuda_rescue_create(cuda_plan *plan);
void cuda_rescue_destroy(cuda_plan *plan);
/* A word of device memory, while other streams wait. False: it cannot be read. */
bool cuda_rescue_read(cuda_plan *plan, CUdeviceptr word, uint64_t *value);
#define CUDA_HALF_CYCLE (UINT64_C(1) << 63)
/* Every word that a WAIT of this process may be waiting for, unless the last ones are still being
 * written: two values half a cycle apart, in turn, let all of them go. */
void cuda_rescue_write(cuda_plan *plan, uint64_t value);
/* After a failure: lets everything on the streams end. What does not end makes the device lost. */
void cuda_release(cuda_plan *plan);

/* watch.c */
bool cuda_synchronise(cuda_rank *rank, int index);
/* Whether what a rank waits for on the device, in `sync`, or because it is far ahead, is over. */
bool cuda_is_near(cuda_rank *rank, bool *near);
double cuda_clock(void);
bool cuda_fail(cuda_plan *plan, peal_status status);
/* A driver call failed while `what` (an op's label) was put onto its lane. Always false. */
bool cuda_broken(cuda_plan *plan, CUresult result, const cuda_op *op, const char *what);
/* Whether an event has passed; aborts and deadlines are looked after. */
bool cuda_await_event(cuda_plan *plan, CUevent event);
bool cuda_drain_lane(cuda_plan *plan, CUstream stream);
bool cuda_look(cuda_plan *plan, unsigned *polls);
bool cuda_is_aborted(const cuda_plan *plan);
/* Once, without waiting: whether the device has recorded a failure or the job was aborted. */
bool cuda_check(cuda_plan *plan);
/* Waits in kernels give up, nobody writes a flag any more. Any thread. */
void cuda_stop_device(cuda_plan *plan);

/* follow.c */
peal_status cuda_follow_create(cuda_plan *plan);
void cuda_follow_destroy(cuda_plan *plan);
/* The thread of a start: all has been put onto lanes; false: the end could not be recorded. */
bool cuda_follow_end(cuda_plan *plan);
/* The thread of a start is at its end, however it came there. */
void cuda_follow_leave(cuda_plan *plan);
/* Whether what a start follows has been done. */
bool cuda_follow_has_begun(cuda_plan *plan);

/* plan.c: what was reported during a run, into the caller's list. */
peal_status cuda_hand_over(cuda_plan *plan);

/* embed.c */
peal_status cuda_embed_create(cuda_plan *plan);
/* Before and after a wait by memory operation is put onto a stream: what watches it there. */
CUresult cuda_embed_mark(const cuda_rank *rank, CUstream stream, int op, bool begins);
void cuda_embed_destroy(cuda_plan *plan);

#endif
