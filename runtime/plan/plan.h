/* The plan as the other files of runtime/ see it. */
#ifndef PEAL_RUNTIME_PLAN_PLAN_H
#define PEAL_RUNTIME_PLAN_PLAN_H

#include "base/saves.h"
#include "runtime/bind/binding.h"
#include "scheduler/modes/candidates.h"

#include <peal/plan.h>

enum { PEAL_NOTE_BYTES = 480, PEAL_CHOICE_BYTES = 360, PEAL_FROM_BYTES = 256 };

typedef enum peal_plan_state {
    PEAL_PLAN_READY,   /* nothing runs */
    PEAL_PLAN_RUNNING, /* between start and wait */
    PEAL_PLAN_FINISHED,
    PEAL_PLAN_FAILED
} peal_plan_state;

typedef struct peal_oracle peal_oracle;
typedef struct peal_footprints peal_footprints;
typedef struct peal_row_log peal_row_log;

struct peal_plan {
    peal_session *session;
    peal_graph *graph;
    const peal_graph_data *data;
    peal_plan_options options;
    peal_backend_hooks hooks;
    const peal_backend_ops *backend;
    peal_mode mode;
    char note[PEAL_NOTE_BYTES];         /* what auto passed over, and why */
    char choice[PEAL_CHOICE_BYTES];     /* what auto has taken, and why; "": a mode was forced */
    char lowering[PEAL_LOWERING_BYTES]; /* that goes with it */
    unsigned passed_over; /* by auto, since they could not be made ready: bit m for mode m */
    peal_machine machine;
    peal_compilation *compilation;
    peal_binding binding;
    peal_saves *saves;         /* files that all ranks save together */
    peal_segment saves_board;  /* where they count, if they are in several processes */
    peal_originals *originals; /* files that are loaded and saved; NULL: nothing will be compared */
    int saves_key;             /* under which it is published */
    peal_backend_plan *run;    /* NULL: no rank is hosted here */
    peal_oracle *oracle;       /* what peal_plan_verify needs */
    peal_row_log *row_log;     /* what `print` has made; NULL: nobody will compare it */
    uint64_t row_hash;         /* of the rows so far, in process 0 */
    int64_t row_count;
    peal_footprints *footprints; /* of --check-footprints; then `checking` runs in place of `run` */
    peal_backend_plan *checking;
    unsigned transports; /* of all processes: bit k for kind k */
    uint64_t hash;
    uint64_t kernel_hash; /* of what kernels are made of; 0: nothing */
    int64_t repeat;       /* of the outermost loop */
    bool within_repeat;   /* no more steps than these can be started */
    peal_plan_state state;
    peal_status failure;
    bool setup_done;
    bool stopped;
    int64_t steps_asked, steps_done;
    double seconds, cpu_seconds;
};

/* plan.c: a handle that was given to a public function; else peal_misuse says what is wrong. */
bool peal_is_plan(const peal_plan *plan, const char *call);
/* choose.c: backend, mode, number of ranks, processes and workers; what the graph requires. */
peal_status peal_plan_choose(peal_plan *plan);
/* outputs.c: whether the files that `save` names can be made. */
peal_status peal_plan_check_outputs(const peal_plan *plan);
/* outputs.c: the memory in which ranks count what they have saved, in process 0; then what every
 * process needs of it. */
peal_status peal_plan_open_saves(peal_plan *plan);
peal_status peal_plan_attach_saves(peal_plan *plan);
void peal_plan_close_saves(peal_plan *plan);
/* outputs.c: keeps files as they are now for several plans of a graph, made one after the other,
 * whose results are compared; until the session is destroyed. Collective. */
peal_status peal_session_keep_files(peal_session *session, const peal_graph_data *graph,
                                    bool allow_outside);
/* choose.c: all of that but the backend, which is given. */
peal_status peal_plan_choose_on(peal_plan *plan, const peal_backend_ops *backend);
/* choose.c: why the graph cannot run in a mode, in words, good until the thread asks again; NULL:
 * it can. */
const char *peal_plan_refuses(const peal_plan *plan, peal_mode mode);
bool peal_plan_is_automatic(const peal_plan *plan);
/* automatic.c: mode auto, once the processes have been compared: process 0 takes what `peal tune`
 * has found, or what is predicted to be the fastest, and tells the others. Collective. */
peal_status peal_plan_decide(peal_plan *plan);
/* automatic.c: the ways to run the graph with a prediction each, as far as there is one.
 * modes_only: nothing is forced. *from: where the times are from, at least PEAL_FROM_BYTES. */
peal_status peal_plan_candidates(peal_plan *plan, bool modes_only, peal_candidates *out,
                                 char *from);
/* automatic.c: what auto has chosen could not be made ready: true if there is another mode to try.
 * What was reported since diagnostic number `from` is taken back then. Equal in all processes. */
bool peal_plan_pass_over(peal_plan *plan, peal_status status, int from);
/* Workers of a rank, if its process has so many threads. */
int peal_plan_workers_of(const peal_machine *machine, int threads);
/* choose.c: once the transports of all processes are known. */
peal_status peal_plan_check_required(peal_plan *plan);
/* compare.c: collective; all processes have the same graph and options. Takes this process's
 * status so far (`from`: its diagnostics began there), returns that of all. */
peal_status peal_plan_compare(peal_plan *plan, peal_status mine, int from);
/* kernel_text.c: sets plan->kernel_hash: of the kernel files, what they include, precompiled code
 * and the C compiler that is asked for. 0: no kernels. */
peal_status peal_plan_hash_kernels(peal_plan *plan);
/* The same in words, a line a file; returns how many bytes there would be, as snprintf does. */
size_t peal_plan_kernel_text(const peal_plan *plan, char *text, size_t bytes);

/* For measurements: at least so many steps that the backend repeats as they are, and how many come
 * before, to get there. As they are, where too few are left. Collective. */
peal_status peal_plan_whole_steps(const peal_plan *plan, int64_t least, int64_t *before,
                                  int64_t *steps);

/* A backend plan for a binding with this plan's options. */
peal_status peal_plan_arm(peal_plan *plan, const peal_binding *binding, peal_mode mode,
                          peal_backend_plan **out);

/* verify.c: the oracle of a plan that was compiled with `verify`. */
peal_status peal_oracle_create(peal_plan *plan);
/* Collective, before setup: the contents of lent memory. */
peal_status peal_oracle_remember(peal_plan *plan);
/* What was started, to be repeated. */
peal_status peal_oracle_note(peal_plan *plan, int64_t steps, bool finish);
void peal_oracle_destroy(peal_oracle *oracle);
/* Of the serial run; NULL: it saves nothing. */
peal_saves *peal_oracle_saves(const peal_oracle *oracle);
/* difference.c: PEAL_E_VERIFICATION_FAILED of an array whose own points, packed, are these in the
 * run and in serial.
 */
peal_status peal_report_difference(const peal_plan *plan, const peal_schedule *schedule, int array,
                                   const unsigned char *run, const unsigned char *serial);
/* PEAL_E_NOTHING_COMPARED: there was nothing to compare. */
peal_status peal_report_nothing(const peal_graph_data *graph, peal_diagnostics *diagnostics);

/* What has been computed so far, by which modes are compared: peal_plan_digest of all arrays, and
 * the rows of `print`. *things: how many arrays and rows these are; 0: equality means nothing.
 * Collective. (contents.c) */
peal_status peal_plan_outcome(peal_plan *plan, uint64_t *digest, int64_t *things);

/* rows.c: where all rows of a plan (user) go through. */
void peal_plan_take_row(void *user, int64_t step, int count, const char *const *names,
                        const peal_value *values);
/* A log of the rows that the run makes; NULL: no memory. */
peal_row_log *peal_row_log_create(void);
void peal_row_log_destroy(peal_row_log *log);
/* Before serial makes its own; then each of them (user: the log); then PEAL_E_VERIFICATION_FAILED
 * if they differ. */
void peal_row_log_rewind(peal_row_log *log);
void peal_row_log_compare(void *user, int64_t step, int count, const char *const *names,
                          const peal_value *values);
peal_status peal_row_log_judge(const peal_row_log *log, peal_diagnostics *diagnostics);

/* footprints/: arms plan->checking, which runs every tile on shadows first. */
peal_status peal_footprints_create(peal_plan *plan);
/* PEAL_STATUS_SPEC if an undeclared access was found. */
peal_status peal_footprints_status(peal_footprints *footprints);
/* Before the plan's binding is released. */
void peal_footprints_destroy(peal_footprints *footprints);

/* The backend plan that runs; NULL: no rank is hosted here. */
static inline peal_backend_plan *peal_plan_runner(const peal_plan *plan)
{
    return plan->checking ? plan->checking : plan->run;
}

/* contents.c: what is defined after a run. */
bool peal_array_is_compared(const peal_schedule *schedule, int array);
/* Bytes of a box of an array's elements, densely packed. */
int64_t peal_box_bytes(const peal_box *box, peal_type type);
/* Calls visit for every row (along x) of box with the place of its first byte behind the first byte
 * of `stored`. */
void peal_box_rows(const peal_schedule_array *array, const peal_box *box,
                   void (*visit)(void *user, int64_t place, int64_t bytes), void *user);
/* Packs `box` of an array, x fastest, from the memory whose first byte is the first of `stored`;
 * unpacks it again. */
void peal_box_pack(const peal_schedule_array *array, const peal_box *box,
                   const unsigned char *memory, unsigned char *packed);
void peal_box_unpack(const peal_schedule_array *array, const peal_box *box, unsigned char *memory,
                     const unsigned char *packed);

#endif
