/* A plan: a graph that was checked, scheduled for this process's ranks, bound to memory and armed.
 *
 *     peal_graph_compile(graph, session, NULL, &plan);
 *     peal_plan_start(plan, 1000, NULL);      (setup, the first time, and 1000 steps)
 *     ... compute something else ...
 *     peal_plan_wait(plan);
 *     peal_plan_view(plan, 0, "u", &view);    (where u is now)
 *     peal_plan_finish(plan);                 (the finish section; agreed by all)
 *     peal_plan_destroy(plan);
 *
 * Collective calls are made by all processes of the session, in the same order. Between start and
 * wait the application must not touch the plan's arrays (its lent memory included), nor start
 * another plan that shares them. */
#ifndef PEAL_PLAN_H
#define PEAL_PLAN_H

#include <peal/call.h>
#include <peal/session.h>
#include <peal/types.h>
#include <peal/value.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct peal_graph peal_graph;
typedef struct peal_plan peal_plan;

/* A row that `print` made: in the process that hosts rank 0, in order, on any thread. names and
 * values have count elements and are valid during the call. */
typedef void (*peal_row_function)(void *user, int64_t step, int count, const char *const *names,
                                  const peal_value *values);

struct peal_backend_hooks;

/* How a graph is compiled and run. All members but size may be zero; equal in all processes, except
 * for row, row_user and cache_folder. */
typedef struct peal_plan_options {
    size_t size_bytes; /* sizeof(peal_plan_options) */
    const char *mode;  /* "serial", "sync", "stream", "graph", "fused"; NULL or "auto": what `peal
                          tune` has found to be the fastest for this graph on this machine; else
                          that of sync, stream, graph and fused which is predicted to be; where
                          nothing is known of the machine's times, the first of fused, graph,
                          stream, sync that graph and backend allow. Process 0 decides;
                          peal_plan_choice says what, and why */
    int ranks;         /* how many ranks the job has; 0: one a process. At least the processes */
    int threads;       /* workers a process; 0: the cores it may use / processes of its host */
    double deadline_s; /* longest wait without progress; 0: the session's */
    bool verify;       /* keep what peal_plan_verify needs; refused before the run if too big */
    int verify_ranks;  /* the same, to compare with serial on so many ranks (PEAL_STATUS_SPEC: the
                          graph cannot run on them, or not on arrays of the same sizes); 0: not */
    bool check_footprints;    /* run every tile on copies of its arrays, with other contents outside
                                 its footprint each time, and report undeclared accesses; implies
                                 serial. Functions of tasks are called about ten times as often;
                                 while one runs, signal handlers for crashes are set. A function
                                 that calls abort(), or the C library in it, ends the program */
    bool allow_outside;       /* kernel files, what they include, and data files of a YAML spec may
                                 lie outside its folder (of a graph made in C: kernel files) */
    const char *cache_folder; /* of compiled kernels and tuned answers; NULL: by XDG rules */
    peal_row_function row;    /* NULL: rows are dropped */
    void *row_user;
    const struct peal_backend_hooks *hooks; /* tests and measurements only
                                               (<peal/plugin/backend.h>); NULL */
    const char *backend;  /* "host", "cuda"; NULL or "auto": cuda if every process has a GPU and the
                             graph has neither tasks that are host functions nor lent host memory;
                             else host */
    const char *lowering; /* forced choices of how a device is driven, for tuning and tests:
                             "signal=fused|kernel|memop,copy=kernel|engine,lanes=1|2,
                             until=unroll|while,plain=POINTS,steps=N", or some of them
                             (docs/guide.md says what each does); NULL: peal chooses */
    const char *transport; /* between processes on GPUs: "p2p" (device memory: "p2p:vmm" by handles,
                              "p2p:ipc" by IPC), "shm" (staged in host memory); NULL or "auto":
                              the first of these that all processes of a host can use. "+tcp" (the
                              default), "+ucx", "+verbs" or "+mlx5" after it: what goes between
                              hosts. "tcp", "ucx": as if each process were on a host of its own */
    bool no_tuning;        /* mode auto leaves out what `peal tune` has found */
    const char *watch; /* what peal_plan_watch looks for: "nan", or "inf" (infinite values, too). In
                          mode serial the first task and tile that computes one ends the run
                          (PEAL_STATUS_WRONG_RESULT). NULL: nothing */
    const char *machine; /* a machine file (YAML) whose times mode auto predicts with; NULL:
                            $PEAL_MACHINE, else those that come with peal. Only process 0's counts
                          */
} peal_plan_options;

/* Steps of peal_plan_start: as many as the graph's `repeat` says, less those done. */
#define PEAL_STEPS_ALL ((int64_t)-1)

/* What a start waits for and signals on an accelerator. Unused members are zero. */
typedef struct peal_start {
    size_t size_bytes; /* sizeof(peal_start) */
    void *stream; /* CUstream or cudaStream_t of this process's GPU: the plan starts after what is
                     on it at the time of the call. The default stream is cudaStreamLegacy or
                     cudaStreamPerThread; NULL: none. NULL on the host */
    /* A plan with `verify` reads lent memory in the first call: nothing may be writing it then. */
    void *event; /* CUevent or cudaEvent_t that has been recorded: the plan starts after it; NULL:
                    none. NULL on the host */
} peal_start;

typedef struct peal_plan_statistics {
    double seconds;       /* from the first op to the last, summed over the starts waited for */
    int64_t steps_done;   /* iterations of the outermost loop since the plan was made */
    bool stopped;         /* `until` ended the last start */
    int64_t memory_bytes; /* that peal allocated for the ranks of this process */
    double cpu_seconds;   /* that this process's CPU spent on driving a device, summed as `seconds`;
                             0 on the host, whose threads are the ranks */
} peal_plan_statistics;

/* Where an array of a rank is now. Element (x, y, z, w) in global coordinates is
 * ((T *)view.base)[x + y * view.stride[1] + ...]; only points of `stored` may be touched. Buffers:
 * base[i]. */
typedef struct peal_plan_array {
    peal_view view;
    peal_type type;
    peal_box part;   /* this rank's part */
    peal_box own;    /* part and the ghost points that belong to the rank */
    peal_box stored; /* own and halo */
    bool is_buffer;  /* of which every rank has its own; else a field */
} peal_plan_array;

/* Checks the graph over all ranks, schedules it for the ranks of this process and prepares
 * everything that a run needs: memory, mappings of peers, kernels, threads. Collective. options
 * NULL: all defaults. The graph is used until the plan is destroyed. All processes return the same
 * status:
 * PEAL_STATUS_SPEC (the graph is wrong or differs between processes), PEAL_STATUS_ENVIRONMENT (a
 * forced mode that cannot run, too little memory, no compiler, a required path that is not there),
 * PEAL_STATUS_USAGE. What is wrong is in the session's diagnostics. *out is set only on success. */
peal_status peal_graph_compile(peal_graph *graph, peal_session *session,
                               const peal_plan_options *options, peal_plan **out);

/* Starts `setup` (the first time) and then n steps (PEAL_STEPS_ALL: what is left of `repeat`); the
 * counter `step` counts on. Collective: returns when all processes have started the same plan with
 * the same n, else PEAL_STATUS_USAGE in all. In stream and fused the steps run while the caller
 * goes on; in serial and sync they are done when it returns. start may be NULL. */
peal_status peal_plan_start(peal_plan *plan, int64_t n, const peal_start *start);

/* Waits until the ranks of this process have done the steps that were started and everything sent
 * to them has arrived. Not collective. After a fault anywhere in the job: the first cause's status,
 * in all processes. */
peal_status peal_plan_wait(peal_plan *plan);

/* A CUevent (cudaEvent_t) that the GPU passes when the steps of the latest start have been done, so
 * that work of the application's streams can follow without the host:
 *
 *     peal_plan_event(plan, &done);
 *     cudaStreamWaitEvent(stream, done, 0);
 *
 * Blocks until all steps have been put onto peal's streams (not until they are done; in `sync`,
 * `serial`, with `until`, and where a graph is replayed, the host is near the end by then). The
 * files of `save` may be written later: they are there after peal_plan_wait. The event stays peal's
 * and is good until the next start or destroy; peal_plan_wait must be called all the same before
 * either. Between start and wait; not collective. PEAL_STATUS_USAGE: nothing runs, the host
 * backend, or no rank is hosted here; a fault of the run otherwise. */
peal_status peal_plan_event(peal_plan *plan, void **event);

/* Where array `name` of rank `rank` (one of this process) is now (on a GPU: an address of its
 * memory, which the host cannot read, except in serial); swaps are taken into account, so
 * call it again after a run. Between wait and the next start. PEAL_STATUS_USAGE: a run is under
 * way, an unknown name, or a rank of another process. */
peal_status peal_plan_view(const peal_plan *plan, int rank, const char *name, peal_plan_array *out);
/* The graph's fields and buffers: how many, and the name of number `index` (NULL: there is none).
 */
int peal_plan_array_count(const peal_plan *plan);
const char *peal_plan_array_name(const peal_plan *plan, int index);
/* Copies the part of an array that a rank (of this process) has to dense memory, x fastest, or back
 * from there; also of a GPU. bytes: of that memory, to be compared. Halos stay as they are. When
 * and PEAL_STATUS_USAGE as of peal_plan_view. */
peal_status peal_plan_read(const peal_plan *plan, int rank, const char *name, void *to,
                           size_t bytes);
peal_status peal_plan_write(peal_plan *plan, int rank, const char *name, const void *from,
                            size_t bytes);
/* Ranks of this process: [*first, *end). In serial process 0 hosts all. */
void peal_plan_ranks(const peal_plan *plan, int *first, int *end);

/* Runs the `finish` section (once; after a wait) and agrees on the outcome: PEAL_STATUS_OK only if
 * every process has done everything. Collective, once a plan. */
peal_status peal_plan_finish(peal_plan *plan);

/* Compares, bit for bit, owned points and kept buffers with what `serial` computes in process 0 for
 * the same steps. Collective; between wait and start, or after finish. The plan was compiled with
 * `verify` (on as many ranks), `verify_ranks` (on so many, point by point of fields, whoever owns
 * them; what depends on sums of reals over ranks but for 4096 units in the last place of the
 * largest value; buffers and rows that every rank has its own of are left out), or both. Rows of
 * `print` so far and files that `save` has written are compared, too: serial saves into a folder of
 * its own, in TMPDIR. PEAL_STATUS_WRONG_RESULT: a diagnostic names the first difference (array,
 * rank, coordinates, both values; row and column; file). PEAL_STATUS_SPEC: there was nothing to
 * compare. */
peal_status peal_plan_verify(peal_plan *plan);

/* Looks at owned points and kept buffers of type f32 and f64 for what `watch` of the options says:
 * PEAL_STATUS_WRONG_RESULT if there is any; a diagnostic names array, point, value and rank, in
 * which steps since the last look it came, and who writes the array. Takes about as long as reading
 * them once (on a GPU: copying them). Collective; between wait and start, or after finish. */
peal_status peal_plan_watch(peal_plan *plan);

/* A number that is equal for equal contents of what is defined after a run (owned points, kept
 * buffers) of array `name`; NULL: of all arrays. It doesn't depend on mode or processes, but on the
 * number of ranks and their layout.
 * Collective; between wait and start, or after finish. */
peal_status peal_plan_digest(peal_plan *plan, const char *name, uint64_t *digest);

/* What the plan has done so far; after a wait. */
void peal_plan_statistics_get(const peal_plan *plan, peal_plan_statistics *out);
/* Steps done by now; any thread, at any time before destroy. */
int64_t peal_plan_progress(const peal_plan *plan);
/* How it runs (what "auto" has chosen) and on which backend, ranks in all, workers a rank, the
 * layout of the ranks. */
peal_mode peal_plan_mode(const peal_plan *plan);
const char *peal_plan_backend(const peal_plan *plan);
/* What mode auto has taken, and why: "stream, predicted 12.3 us a step (fused 15.1, sync 20.2)", or
 * "fused, measured by peal tune on 2026-11-22"; NULL: a mode was forced. */
const char *peal_plan_choice(const peal_plan *plan);
int peal_plan_rank_count(const peal_plan *plan);
int peal_plan_workers(const peal_plan *plan);
void peal_plan_dims(const peal_plan *plan, int dims[PEAL_RANK_AXES]);
/* How its messages travel between processes: "p2p:vmm", "p2p:ipc", "shm", "tcp" or "ucx";
 * "shm+tcp": within hosts and between them; "self": there is one process, or mode serial. */
const char *peal_plan_transport(const peal_plan *plan);
/* The number that is equal on all ranks of equal plans. */
uint64_t peal_plan_hash(const peal_plan *plan);
/* Steps that PEAL_STEPS_ALL would start now. */
int64_t peal_plan_steps_left(const peal_plan *plan);
/* One line: backend, mode (and why not a faster one), ranks x processes, transports, hash.
 * Truncated to bytes, always terminated. */
void peal_plan_describe(const peal_plan *plan, char *text, size_t bytes);

/* Stops what still runs (then the job is aborted) and frees the plan. Not collective. NULL is fine.
 */
void peal_plan_destroy(peal_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
