/* Runs a job: starts its processes, passes signals on, finds the first cause of a failure.
 *
 * Signals come by a signalfd, ends of processes by pidfds: no handler is installed. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/patience.h"
#include "runtime/launch/internal.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

static const int64_t second_ns = INT64_C(1000000000);
/* A dead process ends the job within 2 s: the others learn of it by the control plane and end by
 * themselves; who doesn't is told, then killed. */
static const int64_t tell_after_ns = INT64_C(1000000000), kill_after_ns = INT64_C(1500000000);
static const int64_t interrupt_kill_ns = INT64_C(2000000000);

/* How good a cause is: the best one that came first decides. */
typedef enum cause_rank {
    CAUSE_NONE,
    CAUSE_PEER, /* exit code 5: somebody else was first */
    CAUSE_FIRST /* a signal, an exit code of its own, an abort, an interrupt */
} cause_rank;

typedef struct child_end {
    int process, wait_status;
    pid_t pid;
} child_end;

typedef struct launch_state {
    peal_diagnostics *diagnostics;
    const peal_launch_desc *desc;
    int processes, running;
    peal_child *child;
    child_end *ended; /* since the last look */
    peal_launch_hub *hub;
    peal_children before; /* children that are not of this job */
    int was_subreaper;
    sigset_t mask_before;
    int signals; /* signalfd */
    struct pollfd *poll;
    bool must_poll;                    /* some child has no pidfd */
    int64_t failed_at, interrupted_at; /* 0: not */
    bool was_told, was_killed, abort_seen;
    bool is_unknown; /* how a process has ended */
    bool all_stopped;
    peal_patience stopped; /* since when */
    int64_t deadline_ns;
    cause_rank cause;
    int exit_code;
    peal_code cause_code; /* what to report at the end */
    char message[512];
} launch_state;

static void signal_all(const launch_state *self, int signal)
{
    for (int p = 0; p < self->processes; p++)
        peal_child_kill(&self->child[p], signal);
}

static void set_cause(launch_state *self, cause_rank rank, int exit_code, peal_code code,
                      const char *message)
{
    if (!self->failed_at)
        self->failed_at = peal_clock_ns();
    if (rank <= self->cause)
        return;
    self->cause = rank;
    self->exit_code = exit_code;
    self->cause_code = code;
    snprintf(self->message, sizeof(self->message), "%s", message);
}

/* An agent has ended, and what it was to start has not joined the job: with 0, or with a code that
 * is none of ours. */
static bool note_agent(launch_state *self, int process, const peal_launch_place *place,
                       int wait_status)
{
    char message[384];
    int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 1;
    bool is_ours = code > PEAL_STATUS_WRONG_RESULT && code <= PEAL_STATUS_INTERNAL;
    if (!WIFEXITED(wait_status) || is_ours || !peal_launch_is_by_agent(self->desc, place) ||
        peal_launch_hub_has_come(self->hub, process))
        return false;
    snprintf(message, sizeof(message),
             "process %d: the agent `%.100s` has ended with exit code %d, and nothing that it "
             "started on %.60s has joined the job",
             process, self->desc->agent[0], code, place->host->name);
    set_cause(self, CAUSE_FIRST, PEAL_STATUS_ENVIRONMENT, PEAL_E_PROCESS_NOT_STARTED, message);
    return true;
}

static void note_end(launch_state *self, int process, pid_t pid, int wait_status)
{
    char message[256], name[128];
    bool has_left = peal_launch_hub_ended(self->hub, process);
    const peal_launch_place place = peal_launch_place_of(self->desc, process);
    snprintf(name, sizeof(name), "process %d%s%.60s (pid %d)", process, place.host ? " on " : "",
             place.host ? place.host->name : "", (int)pid);
    self->running--;
    if (note_agent(self, process, &place, wait_status))
        return;
    if (wait_status == PEAL_CHILD_UNKNOWN) { /* it may have failed after its last word, too */
        self->is_unknown = true;
        snprintf(message, sizeof(message),
                 "%s has ended, and how is not known: its launcher ignores SIGCHLD", name);
        set_cause(self, CAUSE_FIRST, PEAL_STATUS_PEER_LOST, PEAL_E_PROCESS_LEFT_SILENTLY, message);
    } else if (WIFSIGNALED(wait_status)) {
        int signal = WTERMSIG(wait_status);
        /* Signals that we sent are no cause. */
        bool ours = (self->was_told || self->interrupted_at) || self->was_killed;
        snprintf(message, sizeof(message), "%s was killed by signal %d (%s)", name, signal,
                 strsignal(signal));
        set_cause(self, ours ? CAUSE_PEER : CAUSE_FIRST, PEAL_STATUS_PEER_LOST,
                  PEAL_E_PROCESS_KILLED, message);
    } else if (WEXITSTATUS(wait_status)) {
        int code = WEXITSTATUS(wait_status);
        snprintf(message, sizeof(message), "%s ended with exit code %d", name, code);
        set_cause(self, code == PEAL_STATUS_PEER_LOST ? CAUSE_PEER : CAUSE_FIRST, code,
                  PEAL_E_PROCESS_FAILED, message);
    } else if (!has_left) {
        snprintf(message, sizeof(message), "%s ended with exit code 0 in the middle of the job",
                 name);
        set_cause(self, CAUSE_FIRST, PEAL_STATUS_PEER_LOST, PEAL_E_PROCESS_LEFT_SILENTLY, message);
    }
}

/* Those killed by a signal first: if several have ended since the last look, they are the cause. */
static void reap(launch_state *self)
{
    int ended = 0;
    child_end *end = self->ended;
    for (int p = 0; p < self->processes; p++) {
        pid_t pid = self->child[p].pid;
        int wait_status;
        if (peal_child_reap(&self->child[p], &wait_status))
            end[ended++] = (child_end){p, wait_status, pid};
    }
    for (int i = 0; i < ended; i++)
        if (WIFSIGNALED(end[i].wait_status))
            note_end(self, end[i].process, end[i].pid, end[i].wait_status);
    for (int i = 0; i < ended; i++)
        if (!WIFSIGNALED(end[i].wait_status))
            note_end(self, end[i].process, end[i].pid, end[i].wait_status);
}

/* Nobody has begun to compute: all are ended at once. */
static void note_exhaustion(launch_state *self)
{
    if (self->was_killed || !peal_launch_hub_is_exhausted(self->hub))
        return;
    set_cause(self, CAUSE_FIRST, PEAL_STATUS_ENVIRONMENT, PEAL_E_SYSTEM_CALL_FAILED,
              "the launcher is out of memory for what its processes tell each other");
    self->was_killed = true;
    signal_all(self, SIGKILL);
}

static void note_abort(launch_state *self)
{
    int process = 0, code = 0;
    const char *text;
    char message[400];
    if (self->abort_seen || !peal_launch_hub_aborted(self->hub, &process, &code, &text))
        return;
    self->abort_seen = true;
    if (code < 1 || code > 255)
        code = PEAL_STATUS_PEER_LOST;
    snprintf(message, sizeof(message), "process %d aborted the job with code %d: %s", process, code,
             text);
    set_cause(self, CAUSE_FIRST, code, PEAL_E_PROCESS_ABORTED, message);
}

static void note_signal(launch_state *self)
{
    struct signalfd_siginfo info;
    while (read(self->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        int signal = (int)info.ssi_signo;
        if (self->interrupted_at) { /* the second time: no more waiting */
            self->was_killed = true;
            signal_all(self, SIGKILL);
            continue;
        }
        self->interrupted_at = peal_clock_ns();
        if (self->cause < CAUSE_FIRST) {
            self->cause = CAUSE_FIRST;
            self->exit_code = signal == SIGINT ? PEAL_STATUS_INTERRUPT : PEAL_STATUS_TERMINATED;
            self->cause_code = PEAL_CODE_COUNT;
        }
        if (info.ssi_code != SI_KERNEL) /* a terminal's Ctrl-C has reached them too */
            signal_all(self, signal == SIGHUP ? SIGTERM : signal);
    }
}

/* When to look again at the latest; ends what doesn't end by itself. */
static int next_timeout(launch_state *self)
{
    int64_t now = peal_clock_ns(), next = INT64_MAX;
    if (self->failed_at && !self->was_told) {
        next = self->failed_at + tell_after_ns;
        if (now >= next) {
            self->was_told = true;
            signal_all(self, SIGTERM);
        }
    }
    int64_t kill_at = self->failed_at ? self->failed_at + kill_after_ns : INT64_MAX;
    if (self->interrupted_at && self->interrupted_at + interrupt_kill_ns < kill_at)
        kill_at = self->interrupted_at + interrupt_kill_ns;
    if (now >= kill_at) {
        self->was_killed = true;
        signal_all(self, SIGKILL);
        next = now + second_ns / 5;
    } else if (self->was_told || kill_at < next)
        next = kill_at;
    if (self->must_poll && next > now + second_ns / 50)
        next = now + second_ns / 50;
    if (next == INT64_MAX)
        return -1;
    return next <= now ? 0 : (int)((next - now) / 1000000) + 1;
}

/* Processes that are stopped, all of them, see no deadline: their launcher does. Where it was
 * stopped itself its patience begins anew. */
static void note_stops(launch_state *self)
{
    int64_t now = peal_clock_ns();
    bool all = self->deadline_ns > 0 && !self->was_killed;
    for (int p = 0; p < self->processes && all; p++)
        all = self->child[p].pid <= 0 || peal_child_is_stopped(&self->child[p]);
    if (!all || !self->all_stopped)
        self->stopped = peal_patience_begin(now, self->deadline_ns);
    self->all_stopped = all;
    if (!all || !peal_patience_is_over(&self->stopped, now))
        return;
    char message[200];
    snprintf(message, sizeof(message), "all %d process%s of the job %s been stopped for %.3g s",
             self->running, self->running == 1 ? "" : "es", self->running == 1 ? "has" : "have",
             1e-9 * (double)self->deadline_ns);
    set_cause(self, CAUSE_FIRST, PEAL_STATUS_DEADLINE, PEAL_E_ALL_PROCESSES_STOPPED, message);
    self->was_killed = true;
    signal_all(self, SIGKILL);
}

/* Until somebody has to look whether all are stopped: at least each quarter of a second. */
static int with_looks_at_stops(const launch_state *self, int timeout)
{
    if (self->deadline_ns <= 0 || self->was_killed)
        return timeout;
    int slice = (int)(peal_patience_slice(&self->stopped, peal_clock_ns()) / 1000000) + 1;
    return timeout < 0 || slice < timeout ? slice : timeout;
}

static void wait_for_all(launch_state *self)
{
    self->stopped = peal_patience_begin(peal_clock_ns(), self->deadline_ns);
    while (self->running > 0) {
        int timeout = with_looks_at_stops(self, next_timeout(self));
        self->poll[0] = (struct pollfd){self->signals, POLLIN, 0};
        for (int p = 0; p < self->processes; p++) {
            int line = peal_launch_hub_descriptor(self->hub, p);
            self->poll[1 + 2 * p] = (struct pollfd){self->child[p].pidfd, POLLIN, 0};
            self->poll[2 + 2 * p] = (struct pollfd){line, POLLIN, 0};
        }
        poll(self->poll, (nfds_t)(1 + 2 * self->processes), timeout);
        note_signal(self);
        for (int p = 0; p < self->processes; p++)
            if (self->poll[2 + 2 * p].revents)
                peal_launch_hub_serve(self->hub, p);
        note_exhaustion(self);
        note_abort(self); /* before the ends: a process that aborts may have gone already */
        reap(self);
        note_stops(self);
    }
}

static peal_status start_one(launch_state *self, int p, const char *program)
{
    peal_source nowhere = {0};
    const peal_launch_place place = peal_launch_place_of(self->desc, p);
    const bool by_agent = peal_launch_is_by_agent(self->desc, &place);
    const char **words;
    char *path;
    int line = peal_launch_hub_open(self->hub, p);
    if (line < 0)
        return peal_report(self->diagnostics, PEAL_E_NO_SOCKET_TO_PROCESS, nowhere,
                           "a process takes three descriptors, see ulimit -n",
                           "no line to process %d: %s", p, strerror(errno));
    char **environment = peal_launch_hub_environment(self->hub, p, &place);
    if (!environment)
        return peal_report(self->diagnostics, PEAL_E_SYSTEM_CALL_FAILED, nowhere, NULL,
                           "out of memory for the environment of process %d", p);
    int error = 0;
    if (peal_launch_command(self->desc, &place, program, &path, &words)) {
        error = peal_child_start(path, (char *const *)(uintptr_t)words, environment,
                                 &self->mask_before, line, &self->child[p]);
        free(words);
        free(path);
    } else
        error = errno;
    peal_launch_environment_free(environment);
    if (error)
        return peal_report(self->diagnostics, PEAL_E_PROCESS_NOT_STARTED, nowhere, NULL,
                           "process %d: cannot start %s%s%s%s: %s", p, by_agent ? "the agent " : "",
                           by_agent ? self->desc->agent[0] : program, place.host ? " for " : "",
                           place.host ? place.host->name : "", strerror(error));
    peal_launch_hub_started(self->hub, p);
    self->running++;
    self->must_poll |= self->child[p].pidfd < 0;
    return PEAL_STATUS_OK;
}

static peal_status start_all(launch_state *self, const char *program)
{
    peal_status status = PEAL_STATUS_OK;
    for (int p = 0; status == PEAL_STATUS_OK && p < self->processes; p++)
        status = start_one(self, p, program);
    return status;
}

static const char *hint_of(const launch_state *self)
{
    if (self->cause_code == PEAL_E_PROCESS_LEFT_SILENTLY && !self->is_unknown)
        return "kernels return; they don't end the program";
    if (self->cause_code == PEAL_E_PROCESS_NOT_STARTED)
        return "an agent takes a host and a command, runs it there, and ends when it has ended, "
               "such "
               "as 'ip netns exec'";
    return NULL;
}

static void report_cause(const launch_state *self)
{
    peal_source nowhere = {0};
    if (self->cause == CAUSE_NONE || self->cause_code == PEAL_CODE_COUNT)
        return;
    if (self->cause_code == PEAL_E_PROCESS_KILLED ||
        self->cause_code == PEAL_E_PROCESS_LEFT_SILENTLY ||
        self->cause_code == PEAL_E_ALL_PROCESSES_STOPPED ||
        self->cause_code == PEAL_E_PROCESS_NOT_STARTED ||
        self->cause_code == PEAL_E_SYSTEM_CALL_FAILED)
        peal_report(self->diagnostics, self->cause_code, nowhere, hint_of(self), "%s",
                    self->message);
    else /* it has said why */
        peal_warn(self->diagnostics, self->cause_code, nowhere, NULL, "%s", self->message);
}

static peal_status run(launch_state *self, const char *program, int *exit_code)
{
    peal_status status = start_all(self, program);
    if (status != PEAL_STATUS_OK) {
        self->was_killed = true;
        signal_all(self, SIGKILL);
    }
    wait_for_all(self);
    peal_children_sweep(&self->before);
    if (status != PEAL_STATUS_OK)
        return status;
    report_cause(self);
    *exit_code = self->cause == CAUSE_NONE ? 0 : self->exit_code;
    return PEAL_STATUS_OK;
}

static void restore_signals(launch_state *self)
{
    struct signalfd_siginfo info;
    /* One that came late was meant for this job. */
    while (self->signals >= 0 && read(self->signals, &info, sizeof(info)) > 0) {
    }
    if (self->signals >= 0)
        close(self->signals);
    pthread_sigmask(SIG_SETMASK, &self->mask_before, NULL);
}

static bool is_ignored(int signal)
{
    struct sigaction action;
    return !sigaction(signal, NULL, &action) && action.sa_handler == SIG_IGN;
}

static peal_status prepare(launch_state *self)
{
    sigset_t ours;
    sigemptyset(&ours);
    if (!is_ignored(SIGINT)) /* as in the background of a script */
        sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    if (!is_ignored(SIGHUP)) /* as under nohup */
        sigaddset(&ours, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &ours, &self->mask_before);
    self->signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    self->child = calloc((size_t)self->processes, sizeof(*self->child));
    self->ended = calloc((size_t)self->processes, sizeof(*self->ended));
    self->poll = calloc(2 * (size_t)self->processes + 1, sizeof(*self->poll));
    if (self->signals < 0 || !self->child || !self->ended || !self->poll)
        return peal_report(self->diagnostics, PEAL_E_SYSTEM_CALL_FAILED, (peal_source){0}, NULL,
                           "the launcher of %d processes: %s", self->processes, strerror(errno));
    for (int p = 0; p < self->processes; p++)
        self->child[p].pidfd = -1;
    peal_children_list(&self->before);
    prctl(PR_GET_CHILD_SUBREAPER, &self->was_subreaper);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    return peal_launch_hub_create(self->processes, self->diagnostics, &self->hub);
}

peal_status peal_launch(const peal_launch_desc *desc, peal_diagnostics *diagnostics, int *exit_code)
{
    peal_source nowhere = {0};
    launch_state self = {.diagnostics = diagnostics,
                         .desc = desc,
                         .processes = desc->processes,
                         .deadline_ns = desc->deadline_ns,
                         .signals = -1};
    if (desc->processes < 1 || desc->processes > PEAL_LAUNCH_LIMIT)
        return peal_report(diagnostics, PEAL_E_PROCESS_NOT_STARTED, nowhere, NULL,
                           "%d processes asked for: 1 to %d can be started on one host",
                           desc->processes, PEAL_LAUNCH_LIMIT);
    const char *name = desc->program ? desc->program : desc->argv[0];
    char *path = peal_child_find(name);
    if (!path)
        return peal_report(diagnostics, PEAL_E_PROCESS_NOT_STARTED, nowhere, NULL,
                           "cannot find the program %s", name);
    peal_status status = prepare(&self);
    if (status == PEAL_STATUS_OK)
        status = run(&self, path, exit_code);
    peal_launch_hub_destroy(self.hub);
    restore_signals(&self);
    prctl(PR_SET_CHILD_SUBREAPER, self.was_subreaper);
    free(self.before.pid);
    free(self.child);
    free(self.ended);
    free(self.poll);
    free(path);
    return status;
}
