/* Measures the ways to run a graph that may be the fastest, and tells which one is: what `peal
 * tune` does. */
#ifndef PEAL_RUNTIME_TUNE_TUNE_H
#define PEAL_RUNTIME_TUNE_TUNE_H

#include "base/sha256.h"
#include "runtime/plan/plan.h"
#include "runtime/tune/judge.h"

enum { PEAL_LEAST_ROUNDS = 9, PEAL_MOST_ROUNDS = 1000 };

typedef struct peal_tune_desc {
    size_t size; /* sizeof(peal_tune_desc) */
    peal_graph *graph;
    peal_session *session;
    /* As for the run that is tuned. mode: NULL: all; lowering: what all candidates have. */
    peal_plan_options options;
    int64_t steps;  /* that are compared with serial, at most; -1: as the graph says */
    int rounds;     /* of the last candidates, PEAL_LEAST_ROUNDS or more; up to three times as many
                       where noise hides differences that matter */
    double piece_s; /* how long a measurement takes, about; 0: 20 ms */
    /* Called in all processes; each may be NULL. */
    void (*tell)(void *user, const char *line);
    void (*progress)(void *user, const char *what, int64_t done, int64_t all);
    /* Before plans are destroyed behind a failure, which may take long. */
    void (*failed)(void *user, peal_status status);
    void *user;
} peal_tune_desc;

typedef struct peal_tuned_item {
    double first_s; /* the best of a first look, a step; 0: there was none */
    bool wrong;     /* computed other bits than serial: reported, PEAL_E_CANDIDATE_DIFFERS */
    peal_judged judged;
} peal_tuned_item;

typedef struct peal_tuned {
    peal_candidates set;
    peal_tuned_item item[PEAL_MOST_CANDIDATES];
    int best, chosen; /* the fastest; the simplest of those that tie with it; -1: none */
    int pruned;       /* by predictions, before anything was measured */
    int rounds;
    int64_t piece_steps;   /* steps of a measurement */
    int64_t checked_steps; /* that every candidate was compared over */
    bool by_serial;        /* with serial; else, where serial cannot run, with each other */
    const char *backend;
    int ranks, processes, workers;
    char machine[96];                 /* the processor or the GPU */
    char from[PEAL_FROM_BYTES];       /* where the times of the predictions are from; "": none */
    bool has_key;                     /* what the answer depends on is known: */
    char key[PEAL_SHA256_TEXT];       /* of runtime/select/answer.h */
    char under_way[PEAL_LABEL_BYTES]; /* what was being measured when the job ended */
} peal_tuned;

/* Collective; equal in all processes. PEAL_STATUS_WRONG_RESULT: some candidate computed other bits
 * than serial; the others have been measured all the same. PEAL_STATUS_ENVIRONMENT: none could be
 * measured (PEAL_E_NOTHING_TO_TUNE), or as peal_graph_compile and peal_plan_wait. */
peal_status peal_tune(const peal_tune_desc *desc, peal_tuned *out);

/* Only what names the answer: ranks, machine, key, without measuring. */
peal_status peal_tune_survey(const peal_tune_desc *desc, peal_tuned *out);

#endif
