/* What the files of runtime/tune share. */
#ifndef PEAL_RUNTIME_TUNE_INTERNAL_H
#define PEAL_RUNTIME_TUNE_INTERNAL_H

#include "runtime/tune/tune.h"

typedef struct tuner {
    const peal_tune_desc *desc;
    peal_tuned *out;
    peal_session *session;
    bool whole; /* the loop may stop: a measurement is a whole run */
    int64_t repeat;
    int64_t check_steps;
    bool has_reference;
    uint64_t reference;
    bool keeps; /* plans of the last rounds are all there at a time */
    peal_plan *plan[PEAL_MOST_CANDIDATES];
    int64_t late_steps[PEAL_MOST_CANDIDATES]; /* of a plan's end, and what it had computed */
    uint64_t late_digest[PEAL_MOST_CANDIDATES];
} tuner;

/* tune.c */
void tuner_tell(const tuner *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tuner_progress(const tuner *t, const char *what, int64_t done, int64_t all);
/* Diagnostics so far. */
int tuner_mark(const tuner *t);
/* A plan in a mode, or of a candidate: collective. */
peal_status tuner_open_mode(const tuner *t, const char *mode, const peal_candidate *candidate,
                            peal_plan **plan);
peal_status tuner_open(const tuner *t, int c, peal_plan **plan);
/* Runs steps of a plan; what one of them took. Where `until` ends them at once: 0. */
peal_status tuner_run(const tuner *t, peal_plan *plan, int64_t steps, double *step_s);
/* Steps of a measurement. */
int64_t tuner_piece(double step_s);
/* A candidate that is not dropped. */
bool tuner_is_in(const tuner *t, int c);
/* Drops it. */
void tuner_report_wrong(tuner *t, int c, int64_t steps);

/* look.c: runs candidates [first, end) for the first time: drops those that cannot be made ready or
 * compute something else, and times the others. */
peal_status tuner_look(tuner *t, int first, int end);
/* Adds candidates that combine what gained alone, and looks at them. */
peal_status tuner_combine(tuner *t);

/* rounds.c: times those that were not far behind, round by round, and judges. */
peal_status tuner_rounds(tuner *t);

#endif
