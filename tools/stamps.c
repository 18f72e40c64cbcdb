/* Reads how far a plan is while it runs (stamps.h). */
#define _POSIX_C_SOURCE 200809L
#include "tools/stamps.h"

#include "base/clock.h"

#include <signal.h>

/* The interval is doubled after so many stamps, so that there are never many. */
enum { FIRST_INTERVAL_NS = 20000, STAMPS_OF_AN_INTERVAL = 64, LONGEST_INTERVAL_NS = 1000000000 };

/* Keeps the first moment at which a number of steps was seen. Of very long runs every second stamp
 * is given up. */
static void add(stamps *s)
{
    stamp now = {.steps = peal_plan_progress(s->plan), .at = peal_clock_s()};

    if (s->count == MOST_STAMPS) {
        for (int i = 0; i < MOST_STAMPS / 2; i++)
            s->of[i] = s->of[2 * i];
        s->count = MOST_STAMPS / 2;
    }
    if (s->count == 0 || now.steps > s->of[s->count - 1].steps)
        s->of[s->count++] = now;
}

static void *read_often(void *argument)
{
    stamps *s = argument;
    int64_t interval = FIRST_INTERVAL_NS;
    bool ends = false;

    for (int read = 1; !ends; read++) {
        add(s);
        if (read % STAMPS_OF_AN_INTERVAL == 0 && interval < LONGEST_INTERVAL_NS)
            interval *= 2;
        struct timespec until = peal_clock_timespec(peal_clock_ns() + interval);
        int late = 0;
        pthread_mutex_lock(&s->lock);
        while (!s->ends && !late)
            late = pthread_cond_timedwait(&s->changed, &s->lock, &until);
        ends = s->ends;
        pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}

void stamps_start(stamps *s, const peal_plan *plan)
{
    pthread_condattr_t monotonic;
    sigset_t all, before;

    s->plan = plan;
    s->count = 0;
    s->ends = s->started = false;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    /* Signals are for the threads that were there before. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    s->started = pthread_create(&s->thread, NULL, read_often, s) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void stamps_stop(stamps *s)
{
    if (s->started) {
        pthread_mutex_lock(&s->lock);
        s->ends = true;
        pthread_cond_signal(&s->changed);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
        add(s);
    }
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
}

int stamps_parts(const stamps *s, int most, double *per_step)
{
    int first = 0, parts = 0;

    while (first < s->count && s->of[first].steps == 0)
        first++;
    if (first >= s->count)
        return 0;
    int64_t steps = s->of[s->count - 1].steps - s->of[first].steps;
    for (int i = first + 1, from = first; i < s->count; i++) {
        /* A part ends at the first stamp behind its share. */
        if ((s->of[i].steps - s->of[first].steps) * most < steps * (parts + 1) && i < s->count - 1)
            continue;
        per_step[parts++] =
            (s->of[i].at - s->of[from].at) / (double)(s->of[i].steps - s->of[from].steps);
        from = i;
    }
    return parts;
}
