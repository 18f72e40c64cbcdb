/* The phase of the one thread that is watched. */
#define _POSIX_C_SOURCE 200809L
#include "base/phase.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

static _Thread_local bool is_watched;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static peal_phase now;

static peal_phase replace(const peal_phase *next)
{
    pthread_mutex_lock(&lock);
    peal_phase before = now;
    now = *next;
    now.number = before.number + 1;
    pthread_mutex_unlock(&lock);
    return before;
}

peal_phase peal_phase_enter(int deadlines, const char *format, ...)
{
    peal_phase next = {.deadlines = deadlines};
    if (!is_watched)
        return next;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(next.words, sizeof(next.words), format, arguments);
    va_end(arguments);
    return replace(&next);
}

void peal_phase_leave(const peal_phase *before)
{
    if (is_watched)
        replace(before);
}

void peal_phase_watch(void)
{
    is_watched = true;
}

peal_phase peal_phase_now(void)
{
    pthread_mutex_lock(&lock);
    peal_phase copy = now;
    pthread_mutex_unlock(&lock);
    return copy;
}
