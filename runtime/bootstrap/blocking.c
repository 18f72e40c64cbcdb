/* A call with a deadline, of a function that has none: nobody can end it, but its caller goes on.
 */
#define _GNU_SOURCE
#include "runtime/bootstrap/blocking.h"
#include "base/clock.h"

#include "base/patience.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

typedef struct blocking_call {
    void (*call)(void *user);
    void (*release)(void *user);
    void *user;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done, given_up; /* under lock: the second of the two frees */
} blocking_call;

static void destroy(blocking_call *self)
{
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

static void *make(void *argument)
{
    blocking_call *self = argument;
    self->call(self->user);
    pthread_mutex_lock(&self->lock);
    self->done = true;
    bool given_up = self->given_up;
    pthread_cond_signal(&self->changed);
    pthread_mutex_unlock(&self->lock);
    if (given_up) {
        self->release(self->user);
        destroy(self);
    }
    return NULL;
}

static bool await(blocking_call *self, int64_t deadline_ns)
{
    peal_patience patience = peal_patience_begin(peal_clock_ns(), deadline_ns);
    bool is_over = false;
    pthread_mutex_lock(&self->lock);
    while (!self->done && !is_over) {
        int64_t now = peal_clock_ns(), next = now + peal_patience_slice(&patience, now);
        struct timespec until = peal_clock_timespec(next);
        pthread_cond_timedwait(&self->changed, &self->lock, &until);
        is_over = peal_patience_is_over(&patience, peal_clock_ns());
    }
    bool done = self->done;
    self->given_up = !done;
    pthread_mutex_unlock(&self->lock);
    return done;
}

static blocking_call *create(void (*call)(void *user), void (*release)(void *user), void *user)
{
    pthread_condattr_t attributes;
    blocking_call *self = calloc(1, sizeof(*self));
    if (!self)
        return NULL;
    *self = (blocking_call){.call = call, .release = release, .user = user};
    pthread_mutex_init(&self->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&self->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return self;
}

bool peal_call_within(void (*call)(void *user), void (*release)(void *user), void *user,
                      int64_t deadline_ns)
{
    pthread_t thread;
    sigset_t all, before;
    blocking_call *self = create(call, release, user);
    sigfillset(&all); /* the application's signals are for its own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = self ? pthread_create(&thread, NULL, make, self) : 1;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) { /* better without a deadline than not at all */
        call(user);
        if (self)
            destroy(self);
        return true;
    }
    pthread_detach(thread);
    bool done = await(self, deadline_ns);
    if (done)
        destroy(self);
    return done;
}
