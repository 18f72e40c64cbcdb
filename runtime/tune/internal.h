/* What the files of runtime/tune share. */
#ifndef PEAL_RUNTIME_TUNE_INTERNAL_H
#define PEAL_RUNTIME_TUNE_INTERNAL_H

#include "runtime/tune/tune.h"

typedef struct tuner {
    const peal_tune_desc *desc;
    peal_tuned *out;
    peal_session *session;
    peal_plan *outline; /* what is known before modes are chosen */
    bool stops;         /* the loop has `until`, */
    bool whole;         /* which ends it soon: a measurement is a whole run */
    bool stopped;       /* by `until`, in the latest piece */
    int64_t repeat;     /* of the outermost loop, once a plan has been made */
    int64_t check_steps;
    bool has_reference;
    uint64_t reference;
    int resting; /* candidates before this one are not measured now */
    bool keeps;  /* plans of the last rounds are all there at a time */
    peal_plan *plan[PEAL_MOST_CANDIDATES];
    int64_t late_steps[PEAL_MOST_CANDIDATES]; /* of a plan's end, and what it had computed */
    uint64_t late_digest[PEAL_MOST_CANDIDATES];
} tuner;

/* tuner.c */
void tuner_tell(const tuner *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tuner_progress(const tuner *t, const char *what, int64_t done, int64_t all);
/* A plan in a mode, or of a candidate: collective. */
peal_status tuner_open_mode(tuner *t, const char *mode, const peal_candidate *candidate,
                            peal_plan **plan);
peal_status tuner_open(tuner *t, int c, peal_plan **plan);
/* Runs steps of a plan; what one of them took, in the slowest process. Where `until` has ended them
 * before: 0. */
peal_status tuner_run(tuner *t, peal_plan *plan, int64_t steps, double *step_s);
/* What a plan has computed so far; PEAL_E_NOTHING_COMPARED: nothing that could be compared.
 * Collective. */
peal_status tuner_outcome(const tuner *t, peal_plan *plan, uint64_t *digest);
/* Steps of the loop, no more than were asked for. A plan has been made. */
int64_t tuner_most_steps(const tuner *t);
/* Steps of a measurement. */
int64_t tuner_piece(const tuner *t, double step_s);
/* A candidate that is not dropped. */
bool tuner_is_in(const tuner *t, int c);
/* Drops it. */
void tuner_report_wrong(tuner *t, int c, int64_t steps);

/* piece.c: measures each candidate that is not dropped, one after the other, beginning with another
 * one in each round: what a step took into seconds[candidate * stride]. Plans begin with the steps
 * that serial has run: what computes something else is dropped, and so is what cannot be made
 * ready. */
peal_status tuner_round(tuner *t, int round, double *seconds, int stride);
/* Closes all plans. */
peal_status tuner_close(tuner *t);

/* ahead.c: threads that compile what candidates from number `first` on need. NULL: nothing would be
 * saved. */
typedef struct tuner_ahead tuner_ahead;
/* How many of the threads that are wanted there are, of each of so many processes of a host that
 * has so much memory left: compilers take half of it at most, but for one a process. */
int tuner_ahead_threads(int wanted, int processes, int64_t left_bytes);
tuner_ahead *tuner_ahead_begin(const tuner *t, int first);
/* Waits for them; NULL is fine. wanted: until all is compiled; else what is under way is. */
void tuner_ahead_end(tuner_ahead *ahead, bool wanted);
/* tuner.c: the same, while the other processes wait for it. Takes the status so far, the same in
 * all processes: what is compiled is not wanted if it is a failure. Collective. */
peal_status tuner_ahead_await(const tuner *t, tuner_ahead *ahead, peal_status so_far);

/* look.c: a first look at all of them, after which few are left. */
peal_status tuner_look(tuner *t);

/* rounds.c: times those that are left, round by round, and judges. */
peal_status tuner_rounds(tuner *t);

#endif
