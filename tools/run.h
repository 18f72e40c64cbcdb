/* What the files of `peal run` share, and of other verbs that run specs. */
#ifndef PEAL_TOOLS_RUN_H
#define PEAL_TOOLS_RUN_H

#include "tools/hosts.h"
#include "tools/job.h"
#include "tools/output.h"

#include "runtime/plan/plan.h"
#include "runtime/verify/verify.h"

enum { MAX_SAMPLES = 9, SHOWN_MESSAGES = 20 /* `peal check` shows all */ };

/* What became of one mode. */
typedef struct mode_result {
    peal_mode mode;
    const char *refusal; /* NULL: it could run */
    char refused[200];   /* `refusal`, where the plan's creation has found it */
    bool ran;
    int64_t steps;
    bool stopped;
    double seconds;               /* of all steps */
    double cpu_seconds;           /* of driving a device; 0 on the host */
    int64_t replayed;             /* steps that were in replays of a recording */
    double per_step[MAX_SAMPLES]; /* sorted */
    int sample_count;
    int64_t memory_bytes;
    uint64_t digest;                       /* of arrays */
    uint64_t outcome;                      /* of arrays and rows */
    bool compared, equal;                  /* with what serial computes */
    bool nothing;                          /* that could be compared */
    bool not_a_number;                     /* --watch has found one */
    bool compared_ranks, equal_ranks;      /* --verify-ranks: with serial on other ranks */
    peal_ranks_verdict ranks;              /* what that has found; in process 0 */
    double sent_per_step, unsent_per_step; /* with messages and without them, in the slowest
                                              process; 0: not measured */
    char unmeasured[120]; /* why --exposed has measured nothing; "": it has, or was not asked */
} mode_result;

/* A run of the command, in one process of the job. */
typedef struct peal_run {
    const peal_options *options;
    peal_session *session;
    peal_spec spec;
    row_table rows;
    bool leads; /* process 0: prints */
    mode_result result[PEAL_MODE_COUNT];
    int result_count;
    int ranks, processes, workers;
    int dims[PEAL_RANK_AXES];
    uint64_t hash;
    char description[800];
    const char *transport; /* between processes */
    const peal_backend_ops *backend;
    char device[120];               /* of this process; "" on the host */
    char choice[PEAL_CHOICE_BYTES]; /* what mode auto has taken, and why; "": a mode was forced */
    struct tuning *tuning;          /* of `peal tune` */
    bool has_told;
} peal_run;

/* What a verb does in each process of a job, once the spec has been read; what process 0 prints at
 * the end. */
typedef struct job_body {
    peal_status (*run)(peal_run *run);
    void (*report)(const peal_run *run, peal_status status);
} job_body;

/* member.c: starts the processes of a job, or takes part in it. */
peal_status run_job(const peal_options *options, const job_body *body,
                    peal_diagnostics *diagnostics);

/* member.c: says why the job ends, if no earlier call has, and this process is the one that does.
 * Whoever has failed says so before it takes down what it has: that may wait, for an adapter that
 * is gone, longer than the launcher does for processes behind the first that has ended. */
void run_tell(peal_run *run, peal_status status);

/* Files that are open at once: of a process that compiles and runs alone, of one among others, and
 * of the one that starts them, for each. */
enum { FILES_ALONE = 8, FILES_OF_A_MEMBER = 24, FILES_A_PROCESS = 3 };

/* descriptors.c: PEAL_E_TOO_FEW_OPEN_FILES if fewer than `wanted` files can be opened, and the
 * limit cannot be raised.
 */
peal_status descriptors_check(int wanted, peal_diagnostics *diagnostics);

/* Runs the graph in one mode (or MODE_AUTO) and fills the next result. Collective. */
peal_status run_mode(peal_run *run, int mode);

/* Starts `steps` steps of a plan, in several pieces if there are many, and waits for them: steps
 * and times into *result. */
peal_status run_steps(const peal_run *run, peal_plan *plan, int64_t steps, mode_result *result);

/* --exposed: the time of a step of the same schedule without its messages, into *result; options
 * are those that `result` was run with. Collective. */
peal_status run_unsent(peal_run *run, const peal_plan_options *options, mode_result *result);

/* Median of sorted samples. */
double median_of(const double *sorted, int count);

/* The last part of a run's output. */
void report_text(const peal_run *run, peal_status status);
void report_json(const peal_run *run, peal_status status);

/* Checks the spec, starts the processes of the job and waits for them: this command again in each.
 * hosts: where, of as many processes; none: here. */
peal_status run_launch(const peal_options *options, int processes, const job_hosts *hosts,
                       peal_diagnostics *diagnostics);

/* Starts this program with other words in several processes here; the job's status. */
peal_status launch_command(int processes, char *const *words, int count, int64_t deadline_ns,
                           peal_diagnostics *diagnostics);

#endif
