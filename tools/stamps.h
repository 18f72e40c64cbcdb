/* How the time of a run is divided among its steps, read while it runs: the plan isn't stopped, and
 * nothing is drained. */
#ifndef PEAL_TOOLS_STAMPS_H
#define PEAL_TOOLS_STAMPS_H

#include "runtime/plan/plan.h"

#include <pthread.h>

enum { MOST_STAMPS = 4096 };

typedef struct stamp {
    int64_t steps; /* done since the plan was created */
    double at;     /* seconds */
} stamp;

typedef struct stamps {
    const peal_plan *plan;
    stamp of[MOST_STAMPS];
    int count;
    bool ends, started;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
} stamps;

/* Begins to read how far a plan is, often at first and then at intervals of about a hundredth of
 * the time that has gone. Without a thread there will be no stamps. */
void stamps_start(stamps *s, const peal_plan *plan);
/* Once the run has ended. */
void stamps_stop(stamps *s);
/* After stamps_stop: the seconds a step in up to `most` parts of the run with about equally many
 * steps; returns how many parts. What came before the first step is in no part. */
int stamps_parts(const stamps *s, int most, double *per_step);

#endif
