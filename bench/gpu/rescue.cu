/* The checks that can hang, each in a process of its own with a deadline: what releases streams
 * that wait, how quickly a process ends that waits, whether graphs with memory operations replay
 * across GPUs, and whether two processes on one GPU get on. This file is the parent's side. */
#include "primitives.cuh"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEADLINE_S = 8, ALL_S = 240, LINE_BYTES = 512, ARGUMENTS = 8 };

typedef struct outcome {
    char line[LINE_BYTES]; /* the last that the child printed */
    int status;            /* as of waitpid */
    bool killed;
    double end_us; /* from its line "ready" (or from the kill that was asked for) to its end */
} outcome;

static void become_child(int out, const char *connections, const char *const *arguments)
{
    const char *argv[ARGUMENTS + 3] = {"gpu_primitives", "--child"};
    for (int i = 0; arguments[i] && i < ARGUMENTS; i++) {
        argv[i + 2] = arguments[i];
    }
    setpgid(0, 0); /* a check that forks is ended as a whole */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(out, STDOUT_FILENO);
    if (connections[0]) {
        setenv("CUDA_DEVICE_MAX_CONNECTIONS", connections, 1);
    }
    execv("/proc/self/exe", (char *const *)argv);
    _exit(127);
}

/* Keeps the last whole line of what has come; true once the child said that it is ready. */
static bool keep_line(outcome *o, char *text, size_t *held)
{
    bool ready = false;
    char *end;
    while ((end = (char *)memchr(text, '\n', *held)) != NULL) {
        *end = 0;
        ready = ready || !strcmp(text, "ready");
        snprintf(o->line, sizeof(o->line), "%s", text);
        *held -= (size_t)(end + 1 - text);
        memmove(text, end + 1, *held);
    }
    return ready;
}

/* Reads until the child closes its output or the deadline passes. */
static void follow(pid_t child, int in, bool kill_when_ready, outcome *o)
{
    char text[LINE_BYTES];
    size_t held = 0;
    double begin = gpu_now_us(), ready = begin;
    for (;;) {
        struct pollfd wanted = {in, POLLIN, 0};
        int left_ms = (int)(DEADLINE_S * 1000 - (gpu_now_us() - begin) / 1000);
        if (left_ms <= 0 || poll(&wanted, 1, left_ms) <= 0) {
            o->killed = true;
            kill(-child, SIGKILL);
            break;
        }
        ssize_t got = read(in, text + held, sizeof(text) - held);
        if (got <= 0) {
            break;
        }
        held += (size_t)got;
        if (keep_line(o, text, &held)) {
            ready = gpu_now_us();
            if (kill_when_ready) {
                kill(-child, SIGKILL);
            }
        }
        held = held == sizeof(text) ? 0 : held;
    }
    /* Not even a killed process ends for sure: the driver may hold it. */
    for (begin = gpu_now_us(); waitpid(child, &o->status, WNOHANG) == 0; usleep(100)) {
        if (gpu_now_us() - begin > DEADLINE_S * 1e6) {
            snprintf(o->line, sizeof(o->line), "it did not end when killed");
            break;
        }
    }
    o->end_us = gpu_now_us() - ready;
}

/* Until when new checks are begun. */
static double last_start_us;

static outcome run_child(const char *connections, bool kill_when_ready,
                         const char *const *arguments)
{
    outcome o;
    int ends[2];
    memset(&o, 0, sizeof(o));
    if (gpu_now_us() > last_start_us) {
        snprintf(o.line, sizeof(o.line), "left out: the checks before took %d s", ALL_S);
        return o;
    }
    if (pipe(ends) != 0) {
        snprintf(o.line, sizeof(o.line), "no pipe");
        return o;
    }
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        become_child(ends[1], connections, arguments);
    }
    close(ends[1]);
    if (child > 0) {
        follow(child, ends[0], kill_when_ready, &o);
    }
    close(ends[0]);
    return o;
}

static void tell(FILE *json, const char *what, const outcome *o, bool expects_kill)
{
    char verdict[LINE_BYTES + 64];
    if (o->killed) {
        snprintf(verdict, sizeof(verdict), "TIMEOUT after %d s%s%s", DEADLINE_S,
                 o->line[0] ? ", last line: " : "", o->line);
    } else if (WIFSIGNALED(o->status) && !expects_kill) {
        snprintf(verdict, sizeof(verdict), "ended by signal %d, last line: %s", WTERMSIG(o->status),
                 o->line);
    } else if (WIFEXITED(o->status) && WEXITSTATUS(o->status) != 0) {
        snprintf(verdict, sizeof(verdict), "exit %d, last line: %s", WEXITSTATUS(o->status),
                 o->line);
    } else {
        snprintf(verdict, sizeof(verdict), "%s", o->line);
    }
    printf("%-72s %s\n", what, verdict);
    fflush(stdout);
    if (json) {
        fprintf(json, "{\"check\": \"%s\", \"result\": \"%s\"}\n", what, verdict);
    }
}

/* One rescue: what the waits are released by, how many, with how many hardware connections. */
static void rescue_one(FILE *json, const char *way, const char *waits, const char *connections,
                       bool busy)
{
    const char *arguments[] = {"rescue", way, waits, busy ? "busy" : "idle", NULL};
    char what[128];
    outcome o = run_child(connections, false, arguments);
    snprintf(what, sizeof(what), "%s waits released by %s, %s connections%s", waits, way,
             connections, busy ? ", full kernel" : "");
    tell(json, what, &o, false);
}

/* Under a kernel that fills the GPU only the extreme numbers of waits and of connections. */
static void rescues(FILE *json, int gpus)
{
    static const char *const ways[] = {"stream-write", "urgent-stream-write", "host-store", "copy",
                                       "kernel",       "peer-stream-write"};
    static const char *const counts[] = {"1", "8", "32"};
    for (int w = 0; w < (gpus > 1 ? 6 : 5); w++) {
        for (int i = 0; i < 9; i++) {
            rescue_one(json, ways[w], counts[i % 3], counts[i / 3], false);
        }
    }
    for (int w = 0; w < (gpus > 1 ? 6 : 5); w++) {
        for (int i = 0; i < 4; i++) {
            rescue_one(json, ways[w], counts[i % 2 * 2], counts[1 + i / 2], true);
        }
    }
}

static void endings(FILE *json)
{
    static const char *const ways[] = {"exit",  "_exit",           "kill",
                                       "reset", "destroy-context", "destroy-stream"};
    static const char *const waits[] = {"1", "8", "32"};
    char what[128], line[LINE_BYTES];
    for (int w = 0; w < 6; w++) {
        for (int n = 0; n < 3; n++) {
            const char *arguments[] = {"end", ways[w], waits[n], NULL};
            bool killed = !strcmp(ways[w], "kill");
            outcome o = run_child("", killed, arguments);
            snprintf(what, sizeof(what), "%s with %s pending waits", ways[w], waits[n]);
            snprintf(line, sizeof(line), "%.300s; process gone after %.1f ms", o.line,
                     o.end_us * 1e-3);
            snprintf(o.line, sizeof(o.line), "%s", line);
            tell(json, what, &o, killed);
        }
    }
}

void rescue_run(FILE *json, int gpus)
{
    static const char *const both[] = {"replay", "2", NULL}, *const one[] = {"replay", "1", NULL},
                             *const pair[] = {"pair", "memops", NULL},
                             *const polling[] = {"pair", "kernels", NULL};
    outcome o;
    last_start_us = gpu_now_us() + ALL_S * 1e6;
    printf("\nchecks, each in its own process with a deadline of %d s\n", DEADLINE_S);
    o = run_child("", false, one);
    tell(json, "graphs with memory operations, two streams of one GPU", &o, false);
    if (gpus > 1) {
        o = run_child("", false, both);
        tell(json, "graphs with memory operations, two GPUs", &o, false);
    }
    o = run_child("", false, pair);
    tell(json, "two processes on one GPU, memory operations", &o, false);
    o = run_child("", false, polling);
    tell(json, "two processes on one GPU, polling kernels", &o, false);
    endings(json);
    rescues(json, gpus);
}
