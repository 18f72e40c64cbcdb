/* A thread that looks a few times a second at what the main thread is waiting for.
 *
 * A phase that works is left alone: its process or a child of it uses processor time. Waits with a
 * watch of their own (kernels, messages, compilers) are phases without a deadline here. */
#define _GNU_SOURCE
#include "tools/watchdog.h"
#include "base/clock.h"
#include "tools/output.h"

#include "base/patience.h"
#include "base/phase.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/channel.h"
#include "runtime/bootstrap/parent.h"
#include "runtime/session/session.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { LONGEST_LOOK_MS = 200 };
static const int64_t second_ns = INT64_C(1000000000);
static const int64_t grace_ns = INT64_C(3000000000); /* for an orderly end */

static _Atomic int64_t deadline_ns = INT64_C(30000000000);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static peal_session *watched;

typedef struct watchdog {
    bool is_launched;
    peal_parent parent;
    pid_t parent_pid;
    int64_t orphaned_at_ns; /* 0: the launcher is there */
    uint64_t phase;         /* the number of the one that is timed */
    peal_patience patience;
    int64_t cpu_ns, looked_at_ns;
} watchdog;

static watchdog the_watchdog;
static atomic_bool had_session;
static atomic_bool is_watching; /* its launcher, too */

/* Of this process and of its children that have ended. */
static int64_t cpu_ns(void)
{
    struct rusage theirs = {0};
    getrusage(RUSAGE_CHILDREN, &theirs);
    return peal_clock_process_cpu_ns() +
           (int64_t)(theirs.ru_utime.tv_sec + theirs.ru_stime.tv_sec) * second_ns +
           (int64_t)(theirs.ru_utime.tv_usec + theirs.ru_stime.tv_usec) * 1000;
}

/* ---- the end ---- */

/* Past the buffers of stdio: the main thread may hold their locks for ever. */
static void say(peal_code code, const char *hint, const char *message)
{
    char *text = NULL;
    size_t bytes = 0;
    peal_diagnostics *list = peal_diagnostics_create();
    FILE *stream = open_memstream(&text, &bytes);
    if (list && stream) {
        peal_report(list, code, (peal_source){0}, hint, "%s", message);
        peal_diagnostics_print(list, stream, 0);
        fflush(stream);
        if (text && write(STDERR_FILENO, text, bytes) < 0)
            return;
    }
}

static void *exit_soon(void *code)
{
    peal_clock_sleep(second_ns);
    _exit(*(const int *)code);
}

/* Telling the others may need a lock that is never released: then they see this process go. */
static void end_process(peal_status status, const char *message)
{
    static int code;
    pthread_t thread;
    code = (int)status;
    if (pthread_create(&thread, NULL, exit_soon, &code) == 0) {
        pthread_mutex_lock(&lock);
        if (watched)
            peal_session_abort(watched, status, message);
        pthread_mutex_unlock(&lock);
    }
    _exit(code);
}

static void end_of_patience(const peal_phase *phase, int64_t waited_ns)
{
    char message[PEAL_PHASE_WORDS + 80];
    snprintf(message, sizeof(message), "waited %.3g s for %s", (double)waited_ns * 1e-9,
             phase->words);
    say(PEAL_E_COMMAND_STALLED, "--deadline sets the limit", message);
    end_process(PEAL_STATUS_DEADLINE, message);
}

/* ---- looks ---- */

static void look_at_phase(watchdog *self, int64_t now)
{
    peal_phase phase = peal_phase_now();
    int64_t cpu = cpu_ns(), gap = now - self->looked_at_ns;
    bool works = (cpu - self->cpu_ns) * 50 > gap; /* more than what this watch itself takes */
    int64_t limit = phase.deadlines * atomic_load(&deadline_ns) + second_ns;
    self->cpu_ns = cpu;
    self->looked_at_ns = now;
    if (phase.number != self->phase || works || !phase.deadlines)
        self->patience = peal_patience_begin(now, limit);
    self->phase = phase.number;
    self->patience.limit_ns = limit;
    if (peal_patience_is_over(&self->patience, now) && phase.deadlines)
        end_of_patience(&phase, now - self->patience.since_ns);
}

/* The line to the parent closes before this process has another one. */
static bool lost_parent(const watchdog *self)
{
    return peal_parent_is_gone(&self->parent) || getppid() != self->parent_pid;
}

/* A launcher behind a shell is not our parent: its server tells the bootstrap. */
static bool session_is_orphaned(void)
{
    pthread_mutex_lock(&lock);
    peal_bootstrap *bootstrap = watched ? watched->bootstrap : NULL;
    int descriptor =
        bootstrap && bootstrap->ops->launcher ? bootstrap->ops->launcher(bootstrap) : -1;
    struct pollfd event = {descriptor, POLLIN, 0};
    bool is_orphaned = descriptor >= 0 && poll(&event, 1, 0) > 0;
    pthread_mutex_unlock(&lock);
    return is_orphaned;
}

static void look_at_launcher(watchdog *self, int64_t now)
{
    static const char message[] = PEAL_LAUNCHER_GONE;
    if (!self->is_launched)
        return;
    if (self->orphaned_at_ns) {
        if (now - self->orphaned_at_ns > grace_ns) {
            say(PEAL_E_LAUNCHER_LOST, NULL, message);
            _exit(PEAL_STATUS_PEER_LOST);
        }
        return;
    }
    if (!lost_parent(self) && !session_is_orphaned())
        return;
    self->orphaned_at_ns = now;
    pthread_mutex_lock(&lock);
    peal_session *session = watched;
    if (session)
        peal_session_abort(session, PEAL_STATUS_PEER_LOST, message);
    pthread_mutex_unlock(&lock);
    if (!session) { /* nothing to tear down yet, or not any more */
        if (!atomic_load(&had_session))
            say(PEAL_E_LAUNCHER_LOST, NULL, message);
        _exit(PEAL_STATUS_PEER_LOST);
    }
}

static void *watch(void *argument)
{
    watchdog *self = argument;
    for (;;) {
        int64_t now = peal_clock_ns();
        look_at_launcher(self, now);
        look_at_phase(self, now);
        int slice = peal_patience_slice_ms(&self->patience, now);
        int descriptor = self->is_launched && !self->orphaned_at_ns ? self->parent.watch : -1;
        struct pollfd event = {descriptor, POLLIN, 0};
        poll(&event, 1, slice < LONGEST_LOOK_MS ? slice : LONGEST_LOOK_MS);
    }
    return NULL;
}

void watchdog_start(void)
{
    watchdog *self = &the_watchdog;
    sigset_t all, before;
    pthread_t thread;
    int number;
    peal_phase_watch();
    peal_phase_enter(1, "the start of the command");
    self->is_launched = peal_bootstrap_is_launched(&number);
    self->parent_pid = getppid();
    if (self->is_launched)
        peal_parent_open(peal_channel_inherited(), &self->parent);
    self->looked_at_ns = peal_clock_ns();
    sigfillset(&all); /* signals are for others */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, watch, self) == 0) {
        pthread_detach(thread);
        atomic_store(&is_watching, self->is_launched);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

bool watchdog_sees_orphan(void)
{
    return atomic_load(&is_watching) && lost_parent(&the_watchdog);
}

void watchdog_deadline(int64_t nanoseconds)
{
    atomic_store(&deadline_ns, nanoseconds);
}

void watchdog_session(peal_session *session)
{
    pthread_mutex_lock(&lock);
    watched = session;
    atomic_store(&had_session, true);
    pthread_mutex_unlock(&lock);
}
