/* Trials: plans that are compiled, run and described in a line of JSON, many in one process. */
#ifndef PEAL_TESTS_GPU_TRIAL_H
#define PEAL_TESTS_GPU_TRIAL_H

#include <peal/plan.h>
#include <peal/plugin/backend.h>
#include <peal/session.h>

#include <stdio.h>

enum { TRIAL_SETS = 16, TRIAL_STARTS = 16 };

typedef struct trial {
    const char *name, *spec, *mode, *backend, *lower, *transport;
    const char *set[TRIAL_SETS];
    int set_count;
    uint64_t seed; /* of a random graph, where there is no spec */
    int ranks;
    double deadline_s;
    int64_t start[TRIAL_STARTS]; /* steps of each start; none: all */
    int start_count;
    peal_backend_hooks hooks; /* first=N, jitter=NS, no_deferral=1, no_early_launch=1 */
    const char *drop; /* "write.0@1": the first WRITE of the step of rank 1 is skipped; also wait,
                         give (a credit), await (one) */
    bool rows, verify;
    bool announces; /* a line once steps have been done */
    bool leaves;    /* the plan is destroyed while it runs */
    bool rehearses; /* whether the plan can be made is first asked of a rehearsal, and it is only
                       made: "rehearsed" is why not, or "" */
} trial;

/* Reads "key=value" words separated by tabs from a line, which is changed and must live on. False:
 * a key that there is not. */
bool trial_parse(char *line, trial *out);

/* Runs it. Collective; process 0 prints a line to out. folder: for the kernels of random graphs. */
peal_status trial_run(const trial *trial, peal_session *session, const char *folder, FILE *out);

#endif
