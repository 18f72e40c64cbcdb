/* The plan: what the folders of runtime/ fill in, each its part, and what this folder does with it.
 */
#ifndef PEAL_RUNTIME_PLAN_PLAN_H
#define PEAL_RUNTIME_PLAN_PLAN_H

#include "base/saves.h"
#include "runtime/bind/binding.h"
#include "runtime/watch/watch.h"
#include "scheduler/modes/candidates.h"

#include <math.h>
#include <peal/plan.h>

enum { PEAL_NOTE_BYTES = 480, PEAL_CHOICE_BYTES = 360, PEAL_FROM_BYTES = 256 };

typedef enum peal_plan_state {
    PEAL_PLAN_READY,   /* nothing runs */
    PEAL_PLAN_RUNNING, /* between start and wait */
    PEAL_PLAN_FINISHED,
    PEAL_PLAN_FAILED
} peal_plan_state;

typedef struct peal_oracle peal_oracle;
/* Serial on as many ranks, or on others. */
typedef enum peal_oracle_kind { PEAL_SAME_RANKS, PEAL_OTHER_RANKS, PEAL_ORACLES } peal_oracle_kind;
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
    bool saves_together;       /* several processes save one file */
    int saves_key;             /* under which the board is published, and asked about */
    peal_backend_plan *run;    /* NULL: no rank is hosted here */
    peal_oracle *oracle[PEAL_ORACLES]; /* what peal_plan_verify needs; NULL: it was not asked for */
    peal_row_log *row_log;             /* what `print` has made; NULL: nobody will compare it */
    peal_watch watch;
    uint64_t row_hash; /* of the rows so far, in process 0 */
    int64_t row_count;
    peal_footprints *footprints; /* each tile is looked at: `checking` runs in place of `run` */
    peal_backend_plan *checking;
    unsigned transports; /* of all processes: bit k for kind k */
    bool rings, posts; /* a process of a GPU has its stream ring for messages; a thread post them */
    uint64_t hash;
    uint64_t kernel_hash; /* of what kernels are made of; 0: nothing */
    int64_t repeat;       /* of the outermost loop */
    bool within_repeat;   /* no more steps than these can be started */
    bool ends_at_repeat;  /* `finish` comes after these alone, or where `until` ends them */
    peal_plan_state state;
    peal_status failure;
    bool setup_done;
    bool stopped;
    int64_t steps_asked, steps_done;
    double seconds, cpu_seconds;
};

/* Of what peal_graph_compile makes only what comes before the mode is chosen: backend, ranks,
 * processes, workers, and what the graph is. It cannot run. Collective. */
peal_status peal_plan_outline(peal_graph *graph, peal_session *session,
                              const peal_plan_options *options, peal_plan **out);
/* outputs.c: whether setup loads files while other ranks may already save theirs: then all of them
 * end it before any goes on. */
bool peal_plan_ends_setup(const peal_plan *plan);
/* The longest wait without progress: its own, or the session's. */
static inline int64_t peal_plan_deadline_ns(const peal_plan *plan)
{
    double own_s = plan->options.deadline_s;
    return own_s > 0 ? (int64_t)ceil(own_s * 1e9) : plan->session->deadline_ns;
}
/* outputs.c: whether the files that `save` names can be made on this host. */
peal_status peal_plan_check_outputs(const peal_plan *plan);
/* Why one cannot; opens where one will be: of a name that is not complete the folder counts. 0 or
 * an errno. */
peal_status peal_plan_report_output(const peal_plan *plan, const peal_statement *s, int error);
int peal_plan_open_target(const char *root, const char *path, bool is_complete,
                          peal_target *target);
/* folders.c: whether all hosts see the folders of files that they save together. Collective. */
peal_status peal_plan_check_folders(const peal_plan *plan);
/* saves.c: the board on which ranks count what they have saved, in process 0; then what every
 * process needs of it. */
peal_status peal_plan_open_saves(peal_plan *plan);
peal_status peal_plan_attach_saves(peal_plan *plan);
void peal_plan_close_saves(peal_plan *plan);
/* saves.c: keeps files as they are now for several plans of a graph, made one after the other,
 * whose results are compared; until the session is destroyed. Collective. */
peal_status peal_session_keep_files(peal_session *session, const peal_graph_data *graph, int ranks,
                                    bool allow_outside);
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

/* How many of the steps done so far were part of a recording that the backend repeats. */
int64_t peal_plan_replayed(const peal_plan *plan);

/* A backend plan for a binding with this plan's options. saves: of a binding that is not the
 * plan's, whose rows are compared. */
peal_status peal_plan_arm(peal_plan *plan, const peal_binding *binding, peal_mode mode,
                          peal_saves *saves, peal_backend_plan **out);

/* A handle that was given to a public function; else peal_misuse says what is wrong. */
static inline bool peal_is_plan(const peal_plan *plan, const char *call)
{
    return peal_session_check_handle(plan, PEAL_HANDLE_PLAN, call);
}

/* run.c: waits for what was started. */
peal_status peal_plan_complete(peal_plan *plan);

/* The backend plan that runs; NULL: no rank is hosted here. */
static inline peal_backend_plan *peal_plan_runner(const peal_plan *plan)
{
    return plan->checking ? plan->checking : plan->run;
}

#endif
