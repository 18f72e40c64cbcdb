/* A thread that waits for SIGINT and SIGTERM: no handler runs, so aborting may lock and allocate.
 * Crashes of kernels have handlers (backends/host/crash.h), which call `tell_crash` on a thread. */
#define _POSIX_C_SOURCE 200809L
#include "tools/signals.h"

#include "backends/host/crash.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static peal_session *watched;

/* After the first signal all leave, unless a kernel doesn't return: then say what helps. */
static void wait_for_kernels(const sigset_t *set)
{
    struct timespec patience = {1, 0};
    int number = sigtimedwait(set, NULL, &patience);
    pthread_mutex_lock(&lock);
    if (number > 0)
        _exit(number == SIGINT ? PEAL_STATUS_INTERRUPT : PEAL_STATUS_TERMINATED);
    if (watched)
        fprintf(stderr, "peal: process %d is waiting for a kernel; signal again to kill\n",
                peal_session_process(watched));
    pthread_mutex_unlock(&lock);
}

static void *wait_for_signals(void *set)
{
    for (int times = 0;; times++) {
        int number;
        if (times == 1)
            wait_for_kernels(set);
        if (sigwait(set, &number))
            return NULL;
        peal_status status = number == SIGINT ? PEAL_STATUS_INTERRUPT : PEAL_STATUS_TERMINATED;
        pthread_mutex_lock(&lock);
        if (!watched || times > 0)
            _exit((int)status);
        peal_session_abort(watched, status,
                           number == SIGINT ? "interrupted (SIGINT)" : "terminated (SIGTERM)");
        pthread_mutex_unlock(&lock);
    }
}

/* The message has been printed; the other processes are told, then this one ends. */
static void tell_crash(peal_status status, const char *message)
{
    char text[PEAL_CRASH_TEXT + 16];
    snprintf(text, sizeof(text), "%s [E215]", message);
    pthread_mutex_lock(&lock);
    if (watched)
        peal_session_abort(watched, status, text);
    pthread_mutex_unlock(&lock);
    fflush(stdout);
}

/* As in the background of a shell without job control: who started this one does not want it to be
 * interrupted. */
static bool is_ignored(int signal)
{
    struct sigaction action;
    return !sigaction(signal, NULL, &action) && action.sa_handler == SIG_IGN;
}

void signals_catch(void)
{
    static sigset_t set;
    pthread_t thread;
    sigemptyset(&set);
    if (!is_ignored(SIGINT))
        sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (pthread_create(&thread, NULL, wait_for_signals, &set) == 0)
        pthread_detach(thread);
    else
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    peal_crash_install(tell_crash);
}

void signals_watch(peal_session *session)
{
    pthread_mutex_lock(&lock);
    watched = session;
    pthread_mutex_unlock(&lock);
}
