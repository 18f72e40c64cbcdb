/* The data that the executors of the CUDA backend share: ranks, and the plan. Its parts have a
 * header for each lifetime: lowering.h (chosen) and bound.h (bound when the plan is created),
 * emission.h and lane.h (change with each op), drive/run.h (a start), replay/replay.h (recordings).
 *
 * The path of an op: bind.c gives it addresses, a kernel and a table of pieces when the plan is
 * created. emit.c takes its instances in walk order and puts them into the group of a lane. A group
 * (group.c) is the launch that is being put together; what one kernel can do becomes one launch.
 * remote_store.c lets the blocks of a task send their own points, piggyback.c lets a task's launch
 * fold and combine, defer.c delays what nothing needs yet. The launch goes to a sink (sink.h).
 *
 * drive/run.c walks all ranks of the process in turn; graph/capture.c and fused/record.c record
 * such a walk, replay/replay.c repeats it; embed.c enqueues an exchange on the application's
 * stream.
 */
#ifndef PEAL_CUDA_PLAN_H
#define PEAL_CUDA_PLAN_H

#include "backends/cuda/gpu/gpu.h"
#include "backends/cuda/lower/emission.h"
#include "backends/cuda/lower/lowering.h"
#include "base/saves.h"
#include "base/walk_order.h"

typedef struct peal_cuda_engine peal_cuda_engine;
typedef struct peal_cuda_predicates peal_cuda_predicates;

#define PEAL_CUDA_NOWHERE ((peal_source){0})

enum {
    PEAL_CUDA_IN_DEFERRED_GROUP = -1,
    PEAL_CUDA_PENDING = -2,
    PEAL_CUDA_LANES = 2,
    PEAL_CUDA_STOP_WORD = 8 /* among the words of a rank, which begin with its step */
};

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
    CUdeviceptr stop_word;            /* of graphs whose `until` ends them; 0 */
    peal_cuda_predicates *predicates; /* run-time conditions that the device decides; NULL in
                                                modes that record nothing */
    int64_t graph_begin;              /* while a graph is recorded: counter 0 at its first step */
    int64_t graph_step; /* while a graph is recorded: counter 0 when the steps were last counted */
    int64_t steps_left;
    bool stop;
    bool in_round;    /* embedded: an iteration has begun */
    bool at_end;      /* all ops of an iteration are emitted, the verdict of its end is awaited */
    bool dry;         /* verdicts are not read: steps are recorded, or only the walk advances */
    bool moved;       /* its walk advanced in its last turn */
    bool awaits_room; /* for a message to ring for, until others have arrived */
    bool done;        /* it has finished what all ranks take turns for */
    int drains;       /* 1 + the lane that must be idle before the walk goes on; 0: none */
    int *member;      /* by op: 1 + its index among the members of its lane's group; 0: in no group;
                         PEAL_CUDA_IN_DEFERRED_GROUP; PEAL_CUDA_PENDING: a deferred WAIT */
    int *final_binding; /* by array: its storage when the last run ended */
};

/* The members of a plan that are bound when it is created do not change afterwards. Beside them it
 * has the state of emission, of a run (drive/run.h), and of replays (replay/replay.h,
 * fused/fused.h). */
struct peal_cuda_plan {
    peal_backend_desc desc;
    peal_saves *own_saves; /* if desc had none */
    const peal_cuda_driver *driver;
    peal_device *device;
    peal_arena *arena;
    peal_cuda_kernels *kernels;
    struct peal_cuda_ahead *ahead; /* while it is created, in graph and fused (ahead.h); or NULL */
    peal_cuda_options options;
    peal_cuda_rank *rank;
    int rank_count;
    CUdeviceptr tables_device;   /* memory of all tables of pieces */
    CUdeviceptr words_device;    /* memory of all ranks' words */
    bool one_kernel;             /* all iterations of all ranks of the process become one kernel */
    bool synchronous;            /* `sync`: every op is waited for */
    bool keeps_order;            /* a wait for another process is enqueued after all earlier flags
                                    (drive/rank_turns.c) */
    peal_cuda_sink *stream_sink; /* the sink of steps that run directly */
    struct peal_cuda_batch *batch; /* memory operations that the stream sink has put off */
    const struct peal_cuda_host_ops *host;
    const peal_cuda_engine *engine; /* in modes that record iterations; else NULL */
    peal_cuda_emission emission;
    struct peal_cuda_run *run;
    struct peal_cuda_graphs *graphs;      /* in modes that record iterations */
    struct peal_cuda_fused_kernel *fused; /* mode fused: by buffer slot of the recording */
    int fused_slot;                       /* mode fused: the slot that is being recorded */
    bool is_short_wanted; /* mode fused: fewer steps are recorded if these are a long list */
    struct peal_cuda_embedding *embedding; /* embedded plans only */
};

/* Whether K iterations are recorded once and repeated. */
static inline bool peal_cuda_repeats(const peal_cuda_plan *plan)
{
    return plan->engine != NULL;
}

/* Whether an op is a `load` or `save`: the host's work, once the device has done what is before. */
static inline bool peal_cuda_moves_file(const peal_schedule *schedule, const peal_op *op)
{
    peal_task_kind kind =
        op->kind == PEAL_OP_LAUNCH ? schedule->task[op->task].kind : PEAL_TASK_KERNEL;

    return kind == PEAL_TASK_LOAD || kind == PEAL_TASK_SAVE;
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

#endif
