/* The contract of a backend: it executes the schedules of the ranks that one process hosts. */
#ifndef PEAL_PLUGIN_BACKEND_H
#define PEAL_PLUGIN_BACKEND_H

#include <peal/plugin/atomic.h>
#include <peal/plugin/network.h>
#include <peal/plugin/schedule.h>

typedef struct peal_diagnostics peal_diagnostics;
struct peal_saves;

/* A row that `print` made. Called on some thread of the backend, for rank 0 only, in order. */
typedef void (*peal_row_function)(void *user, int64_t step, int count, const char *const *names,
                                  const peal_value *values);

/* An accelerator that a backend has opened for this process; the host backend has none. */
typedef struct peal_device peal_device;

/* Which accelerator a process takes. */
typedef struct peal_device_request {
    size_t size;       /* sizeof(peal_device_request) */
    int local_process; /* of local_processes on this host: processes are dealt out in blocks */
    int local_processes;
    peal_diagnostics *diagnostics; /* gets errors; a machine without a device is none */
} peal_device_request;

/* What the processes of a job compare: the same model everywhere; who shares a device with whom. */
typedef struct peal_device_identity {
    char model[96];  /* "NVIDIA H200, sm_90"; equal models run the same kernels */
    char unique[48]; /* of the very device, on this host */
    char driver[16]; /* its version */
} peal_device_identity;

/* A segment in a backend's memory. */
typedef struct peal_device_memory {
    unsigned char
        *base; /* an address of the device; the host may not touch it unless host_visible */
    int64_t bytes;
    bool host_visible;
    int descriptor; /* a file that stands for it in other processes; -1: it cannot be passed on */
    void *handle;   /* the backend's own */
} peal_device_memory;

/* Memory of a device, for segments. Every call may block; none is made while a run is under way. */
typedef struct peal_memory_ops {
    size_t size; /* sizeof(peal_memory_ops) */
    /* Zeroed memory. path: how other processes will import it (PEAL_PATH_VMM or _IPC), or _NONE. In
     * PEAL_MODE_SERIAL it is visible to the host. PEAL_STATUS_DEVICE after a diagnostic with need
     * and have. */
    peal_status (*allocate)(peal_device *device, peal_mode mode, int64_t bytes, peal_path path,
                            peal_diagnostics *diagnostics, peal_device_memory *out);
    /* Memory of another process of this host, allocated for the same path; takes the descriptor.
     * The mapping stays valid when that process dies. */
    peal_status (*import)(peal_device *device, peal_path path, int descriptor, int64_t bytes,
                          peal_diagnostics *diagnostics, peal_device_memory *out);
    /* Host memory that the device shall reach, at base of *out. release takes it back; the memory
     * stays the caller's. */
    peal_status (*register_host)(peal_device *device, void *memory, int64_t bytes,
                                 peal_diagnostics *diagnostics, peal_device_memory *out);
    void (*release)(peal_device *device, peal_device_memory *memory);
    /* Between host memory and a segment (or lent device memory). */
    peal_status (*write)(peal_device *device, void *to, const void *from, int64_t bytes,
                         peal_diagnostics *diagnostics);
    peal_status (*read)(peal_device *device, void *to, const void *from, int64_t bytes,
                        peal_diagnostics *diagnostics);
    /* Whether schedules of a mode can work in memory that the application lends: NULL, or the
     * reason in words why not. */
    const char *(*refuses)(peal_device *device, peal_mode mode, const void *memory);
    /* What kind of memory the application lends, in words; *of_device: it is a GPU's. */
    const char *(*classify)(peal_device *device, const void *memory, bool *of_device);
    /* Whether this device can be reached by, and reach, that of another process of this host on a
     * path: NULL, or the reason in words why not, as far as the driver's attributes tell. peer
     * NULL: whatever the device of the other. */
    const char *(*refuses_path)(peal_device *device, peal_path path,
                                const peal_device_identity *peer);
} peal_memory_ops;

/* Kernels that come from elsewhere than the host's compiler: a backend that runs the tiles of
 * `serial` on its device lends them to the host backend. */
typedef struct peal_kernel_source {
    void *user;
    /* What runs one tile of a kernel task, with partials and without, and the `user` of its calls.
     * Every argument of a call is evaluated. False: there is none. */
    bool (*bind)(void *user, const peal_schedule *schedule, const peal_schedule_task *task,
                 peal_function *full, peal_function *bare, void **call_user);
    /* What runs all tiles of `op`, a LAUNCH of a task that was bound, in one call; NULL: they are
     * called one by one. For plans of one worker, in any order of tiles. `call` has the index, the
     * views and the partials of tile 0 (NULL if nobody reads them), and no box. Of a counted task,
     * tiles from x = `end` on are not run, and the one that has it ends there. */
    void (*run_all)(const peal_call *call, const peal_op *op, int64_t end);
} peal_kernel_source;

/* One rank that this process hosts, bound to memory. */
typedef struct peal_backend_rank {
    const peal_schedule *schedule;
    unsigned char *segment; /* schedule->used_bytes, zeroed, 4096-byte aligned; of the device's
                               memory, if the backend has one */
    unsigned char *const
        *peer_segment; /* by index of schedule->peer: that rank's segment, mapped here */
    /* On a device with channels by PEAL_TRANSPORT_SHM or _TCP: the segment from mailbox_offset on
     * once more, in host memory, at its address on the device; that is where flags, credits and
     * staging of these channels are. By TCP a peer's is a shadow, which only this process sees.
     * Else NULL. */
    unsigned char *mailbox;
    unsigned char *const *peer_mailbox; /* by index of schedule->peer */
} peal_backend_rank;

/* Where an executor is, readable by other threads at any time: what a deadline report and a
 * progress bar print. */
typedef struct peal_progress {
    PEAL_ATOMIC(int64_t) step; /* iterations of the outermost loop that have been finished */
    PEAL_ATOMIC(int) op;       /* index of the op that it waits in; -1: none */
} peal_progress;

/* For tests and measurements; all zero in production. */
typedef struct peal_backend_hooks {
    uint64_t shuffle_seed; /* run tiles of an op in a seeded random order; 0: in order */
    uint64_t jitter_seed;  /* random short delays before ops; 0: none */
    int drop_op;           /* skip this op (index + 1) of rank drop_rank; 0: none */
    int drop_rank;
    uint64_t first_message; /* messages count on from here, to pass the wrap of flags; 0: from 0 */
    bool empty_messages; /* in the step section nothing of any message is done: what is computed is
                            wrong, but takes the time of a step without communication */
    bool unawaited; /* nobody waits for a message or a credit: wrong as well, but takes what is done
                       in a step */
    int end_of_step; /* from this op on the step section does nothing but decide; 0: it does all */
    bool no_early_launch; /* GPU: kernels of a graph are launched when the one before has ended */
    bool no_deferral;     /* GPU: waits and folds are enqueued where the walk passes them */
    int jitter_ns;        /* fused on a GPU: warps pause at random, for up to so long; 0: never */
} peal_backend_hooks;

/* Whether the hooks leave out an op. */
static inline bool peal_hooks_skip(const peal_backend_hooks *hooks, const peal_schedule *schedule,
                                   int index)
{
    const peal_op *op = &schedule->op[index];
    bool of_step = index >= schedule->step.first && index < schedule->step.end;
    bool waits = op->kind == PEAL_OP_WAIT, writes = op->kind == PEAL_OP_WRITE;
    bool copies = op->kind == PEAL_OP_COPY, launches = op->kind == PEAL_OP_LAUNCH;
    bool decides = launches && schedule->task[op->task].kind == PEAL_TASK_DECIDE;
    bool of_message = waits || writes || (copies && op->copy != PEAL_COPY_LOCAL);

    if (hooks->drop_op == index + 1 && hooks->drop_rank == schedule->rank)
        return true;
    if (hooks->unawaited && waits)
        return true;
    if (!of_step)
        return false;
    if (hooks->empty_messages && of_message)
        return true;
    return hooks->end_of_step && index >= hooks->end_of_step &&
           (of_message || copies || (launches && !decides));
}

/* How the CUDA backend is driven where it is forced (docs/guide.md says what each word does);
 * `tile` is the scheduler's. */
#define PEAL_LOWERING_WORDS                                                                        \
    "signal=fused|kernel|memop,copy=kernel|engine,lanes=1|2,until=unroll|while,plain=POINTS,"      \
    "steps=N,bundle=N,deep=N,order=tiles|grid|tickets|paper,blocks=N,network=word|doorbell,"       \
    "tile=POINTS"

/* What carries messages to other hosts, for a backend whose waits are the host's. In a channel by
 * a network `peer_segment` is a shadow: the receiver's memory from mailbox_offset on,
 * which only this process sees. COPY packs into the slot there and WRITE stores the word there, as
 * it would in memory that is shared; then it tells. */
typedef struct peal_network_hook {
    size_t size; /* sizeof(peal_network_hook) */
    void *user;
    /* The word of a channel (of hosted rank `index`) has been raised: all its messages, or credits,
     * up to `value` are due; they leave with the next flush, turn or settle, if not at once. One
     * thread at a time for a word. */
    void (*due)(void *user, int index, int channel, bool credit, uint64_t value);
    /* The same of one message whose bytes are at `from`, and not in its slot: they have left, or
     * are in the slot, when it returns. NULL: only `due` will do. */
    void (*due_from)(void *user, int index, int channel, uint64_t value, const void *from);
    /* The message that raises the flag of a channel to `value` may land at `to`, if its bytes are
     * not in its slot yet, until withdraw: true: it did. expect false: it may not, and nothing is
     * to be withdrawn. NULL both: only slots will do. */
    bool (*expect)(void *user, int index, int channel, uint64_t value, void *to);
    bool (*withdraw)(void *user, int index, int channel);
    void (*flush)(void *user);             /* what is due leaves now; any thread */
    void (*progress)(void *user);          /* a turn, by whoever waits; any thread */
    void (*sleep)(void *user, int64_t ns); /* until something comes, at most so long */
    bool (*settle)(void *user);            /* a turn; true: nothing is left to be sent */
    /* Whether another process is at work, and so may have no time to take what is sent. */
    bool (*others_run)(void *user);
    /* As in peal_network_ops, of the flag or the credit of a channel: NULL, all five, if the engine
     * has none. take_over: the backend rings for all that the plan sends. */
    void (*take_over)(void *user);
    peal_status (*doorbell)(void *user, int index, int channel, bool credit,
                            peal_network_doorbell *out);
    bool (*ahead)(void *user, int index, int channel, bool credit, uint64_t message);
    int (*stores)(void *user, int index, int channel, bool credit, uint64_t message,
                  peal_network_store out[PEAL_NETWORK_STORES]);
    void (*silence)(void *user);
} peal_network_hook;

typedef struct peal_backend_desc {
    size_t size; /* sizeof(peal_backend_desc) */
    peal_mode mode;
    int rank_count;
    const peal_backend_rank *rank;
    int workers; /* threads a rank; at least 1 */
    int cores;   /* that the job's processes of this host may use at a time; 0: as many
                    as this process may */
    PEAL_ATOMIC(int) * abort_word; /* non-zero: a peal_status; every wait polls it and gives up */
    int64_t deadline_ns;           /* a wait longer than this is PEAL_STATUS_DEADLINE; 0: none */
    bool allow_outside;            /* files outside the spec's folder */
    struct peal_saves *saves; /* base/saves.h: files that all ranks of the job save together; NULL:
                                 all of them are in this plan */
    bool embedded; /* the application keeps its own loop: iterations are put onto its streams by
                      `enqueue`, and tasks that are functions of the host stand for what it does */
    const char *cache_folder; /* NULL: by XDG rules */
    peal_row_function row;
    void *row_user;
    const char *lowering; /* forced choices, of PEAL_LOWERING_WORDS; NULL: the backend's own */
    peal_device *device;  /* what open returned; NULL on the host */
    const peal_network_hook *network;  /* NULL: no channel goes to another host */
    const peal_kernel_source *kernels; /* NULL: the backend builds them */
    peal_backend_hooks hooks;
    peal_diagnostics *diagnostics; /* gets compile errors at create; run-time reports at wait */
} peal_backend_desc;

typedef struct peal_backend_plan peal_backend_plan;

/* The parts of an iteration of an embedded schedule: up to its first receive; from there to the
 * application's tasks; and what these release, which else comes in front of the next iteration. */
typedef enum peal_backend_phase {
    PEAL_PHASE_SEND,
    PEAL_PHASE_RECEIVE,
    PEAL_PHASE_RELEASE
} peal_backend_phase;

/* What peal_backend_ops.wait found out. */
typedef struct peal_backend_result {
    int64_t steps_done; /* iterations of the outermost loop in this start */
    bool stopped;       /* `until` ended it */
    double seconds;     /* from the first op to the last */
    double cpu_seconds; /* of the thread that drives a device; 0: the ranks' own threads */
} peal_backend_result;

/* What a rehearsal finds beside errors. */
typedef struct peal_backend_rehearsal {
    double saved;   /* share of a step's time, by running several steps or launches as one, as far
                       as is predicted */
    char note[240]; /* of what runs so, or why nothing does; "": there is nothing to say */
} peal_backend_rehearsal;

typedef struct peal_backend_ops {
    size_t size; /* sizeof(peal_backend_ops) */
    const char *name;
    /* What suits its hardware: goes into peal_machine.traits. NULL: nothing in particular. */
    const peal_machine_traits *traits;
    /* NULL: the mode can be run; else the reason why not, in words. */
    const char *(*refuses)(peal_mode mode);
    /* Builds kernels, creates threads, allocates everything. Collective over nothing. */
    peal_status (*create)(const peal_backend_desc *desc, peal_backend_plan **plan);
    /* Makes a plan of mode graph or fused for a device that is not there, and throws it away:
     * reports what create would refuse because of what the ranks do, whatever the device
     * (PEAL_E_GRAPH_MODE_NOT_APPLICABLE). Of desc, mode, ranks with their schedules, lowering,
     * allow_outside and diagnostics are looked at. Nothing is compiled. NULL: create refuses
     * nothing of that kind. */
    peal_status (*rehearse)(const peal_backend_desc *desc, peal_backend_rehearsal *out);
    /* Compiles into the cache what create would compile for desc, and makes nothing: a plan that is
     * created afterwards finds it there. Of desc's ranks only the schedules are looked at. Any
     * thread, several at a time, beside whatever else is done with the device. What goes wrong is
     * reported as create would. Not in PEAL_MODE_SERIAL. NULL: it would save nothing. */
    peal_status (*compile)(const peal_backend_desc *desc);
    /* Runs setup if `setup`, then up to `steps` iterations, then finish if `finish`; returns at
     * once where the mode has threads of its own, else runs to the end. The caller has done the
     * start handshake. */
    peal_status (*start)(peal_backend_plan *plan, bool setup, int64_t steps, bool finish);
    /* Waits for what start began. Reports are added to desc->diagnostics by the calling thread. */
    peal_status (*wait)(peal_backend_plan *plan, peal_backend_result *result);
    /* Current storage of an array of hosted rank `index` (after swaps): index of the array whose
     * memory it has. */
    int (*storage)(const peal_backend_plan *plan, int index, int array);
    /* Steps done since create, for a progress bar; any thread. */
    int64_t (*progress)(const peal_backend_plan *plan);
    void (*destroy)(peal_backend_plan *plan);
    /* Iterations that it repeats as one, from iteration *first on; steps that do not fill such a
     * stretch are put onto the device one by one. NULL: it repeats none. */
    int64_t (*repeats)(const peal_backend_plan *plan, int64_t *first);
    /* How many of the steps done since create were done so. Not while it runs. NULL: none. */
    int64_t (*replayed)(const peal_backend_plan *plan);
    /* What runs the tiles of kernel task `task` of hosted rank `index`, with partials or without.
     * *user is what its calls are given. Valid until destroy. For --check-footprints; optional:
     * NULL where the host cannot call it. */
    peal_function (*function)(const peal_backend_plan *plan, int index, int task, bool partials,
                              void **user);
    /* Devices that this process sees; 0 and *reason in words why there is none. NULL: the backend
     * needs no device. */
    int (*count)(const char **reason);
    /* Opens the device of this process; *out is kept until close. Returns NULL, or the reason in
     * words why there is none (nothing is reported then). NULL: the backend needs no device. */
    const char *(*open)(const peal_device_request *request, peal_device **out);
    void (*close)(peal_device *device);
    /* One line: "NVIDIA H200 0000:04:00.0, driver 13.0". */
    void (*describe)(const peal_device *device, char *text, size_t bytes);
    void (*identify)(const peal_device *device, peal_device_identity *out);
    const peal_memory_ops *memory; /* NULL: segments are host memory */
    /* The next start begins after what is on the application's `stream` now and after `event`;
     * NULL: none. Called by the thread that starts. NULL: the backend has no streams. */
    peal_status (*follow)(peal_backend_plan *plan, void *stream, void *event);
    /* An event that the device passes when the latest start has been done, once all of it has been
     * put onto streams: blocks until then. Valid until the next start. */
    peal_status (*event)(peal_backend_plan *plan, void **event);
    /* Of an embedded plan: puts one phase of an iteration onto `stream` (NULL is a stream here), by
     * the calling thread, which waits for nothing and allocates nothing. Errors of what was put
     * there before are told here. */
    peal_status (*enqueue)(peal_backend_plan *plan, void *stream, peal_backend_phase phase);
    /* Of an embedded plan: blocks until all that was enqueued has been done. */
    peal_status (*settle)(peal_backend_plan *plan);
} peal_backend_ops;

extern const peal_backend_ops peal_backend_host;
extern const peal_backend_ops peal_backend_cuda; /* where PEAL_HAVE_CUDA */

#endif
