/* Runs a program in a process group of its own, below a shell that stays: when this thread dies the
 * kernel sends the shell SIGTERM, and the shell kills the group, so also what the program has
 * started. A fork would copy the page tables of gigabytes of fields: vfork doesn't. */
#define _GNU_SOURCE
#include "base/program.h"
#include "base/clock.h"

#include "base/patience.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_ARGUMENTS = 160, MOST_CPU_DEADLINES = 10 };
static const int64_t second_ns = INT64_C(1000000000);

/* "$@" is the program: in the background, since a shell runs traps only while it waits. Its exit
 * code is also written to a pipe: where SIGCHLD is ignored, or a handler of the application waits
 * for any child, waitpid does not have it. */
static const char script[] =
    "trap 'kill -KILL 0' TERM; \"$@\" 3>&- & wait $!; code=$?; echo $code >&3; exit $code";

/* ---- start ---- */

/* As execvp would find it; false: errno says why not. */
static bool find(const char *name, char *path, size_t bytes)
{
    if (strchr(name, '/')) {
        snprintf(path, bytes, "%s", name);
        return !access(path, X_OK);
    }
    const char *folders = getenv("PATH");
    for (const char *at = folders ? folders : "/usr/bin:/bin"; *at;) {
        size_t length = strcspn(at, ":");
        snprintf(path, bytes, "%.*s%s%s", (int)length, at, length ? "/" : "./", name);
        if (!access(path, X_OK))
            return true;
        at += length + (at[length] == ':');
    }
    errno = ENOENT;
    return false;
}

/* A full disk is for the caller to see, who may have another: the program has failed. */
static void open_as(int number, const char *path, int flags, volatile int *error)
{
    int descriptor = open(path ? path : "/dev/null", flags, 0600);
    if (descriptor < 0 || dup2(descriptor, number) < 0) {
        *error = errno == ENOSPC || errno == EDQUOT ? 0 : errno;
        _exit(127);
    }
    if (descriptor != number)
        close(descriptor);
}

/* Between vfork and exec: in the memory of the parent, so only calls of the system. */
static void become(const peal_program *program, const char *const *argument, pid_t parent,
                   int report, volatile int *error)
{
    sigset_t none;
    struct sigaction usual = {.sa_handler = SIG_DFL};
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) /* it died before the line above */
        _exit(127);
    for (int number = 1; number < 32; number++) /* no handler of ours may run here */
        sigaction(number, &usual, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (report == 3 ? fcntl(3, F_SETFD, 0) : dup2(report, 3) < 0) {
        *error = errno;
        _exit(127);
    }
    open_as(0, NULL, O_RDONLY, error);
    open_as(1, program->output, O_WRONLY | O_CREAT | O_TRUNC, error);
    open_as(2, program->errors, O_WRONLY | O_CREAT | O_TRUNC, error);
    execve("/bin/sh", (char *const *)(void *)argument, program->environment);
    *error = errno;
    _exit(127);
}

static pid_t start(const peal_program *program, const char *const *argument, int report, int *code)
{
    volatile int error = 0;
    sigset_t all, before;
    pid_t parent = getpid();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t child = vfork();
    if (child == 0)
        become(program, argument, parent, report, &error);
    *code = child < 0 ? errno : error;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (child > 0 && error) {
        waitpid(child, NULL, 0);
        child = -1;
    }
    return child;
}

/* ---- wait ---- */

/* Processor time of the group, in ticks of the kernel, with that of its children that have ended.
 */
static int64_t cpu_ticks(pid_t group)
{
    int64_t sum = 0;
    DIR *processes = opendir("/proc");
    for (struct dirent *entry; processes && (entry = readdir(processes));) {
        char path[300], line[512];
        long long part[4];
        int member = 0;
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
            continue;
        snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
        FILE *file = fopen(path, "re");
        const char *end = file && fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
        if (end &&
            sscanf(end + 1, " %*c %*d %d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld %lld %lld",
                   &member, &part[0], &part[1], &part[2], &part[3]) == 5 &&
            member == group)
            sum += part[0] + part[1] + part[2] + part[3];
        if (file)
            fclose(file);
    }
    if (processes)
        closedir(processes);
    return sum;
}

typedef struct watch {
    peal_patience patience;
    int64_t ticks;
    int64_t looked_at_ns;
} watch;

/* Whether the program has been without progress for too long. What it has used is looked at a few
 * times in a deadline, and not at all for a program that ends soon. */
static bool is_stuck(watch *self, pid_t group)
{
    const int64_t limit = self->patience.limit_ns;
    int64_t now = peal_clock_ns();
    bool over = peal_patience_is_over(&self->patience, now);
    if (limit <= 0 || (!over && now - self->looked_at_ns < limit / 4))
        return false;
    self->looked_at_ns = now;
    int64_t ticks = cpu_ticks(group), used_ns = ticks * (second_ns / sysconf(_SC_CLK_TCK));
    bool moved = ticks > self->ticks;
    self->ticks = ticks;
    if (used_ns > MOST_CPU_DEADLINES * limit + 10 * second_ns)
        return true;
    if (moved)
        self->patience = peal_patience_begin(now, limit);
    return over && !moved;
}

int peal_pidfd_open(pid_t pid)
{
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec by itself */
#else
    (void)pid;
    return -1;
#endif
}

static bool is_aborted(const peal_program *program)
{
    return program->abort_word && atomic_load_explicit(program->abort_word, memory_order_relaxed);
}

/* What the shell has written; -1: nothing. */
static int read_report(int report)
{
    char text[16];
    ssize_t got = read(report, text, sizeof(text) - 1);
    text[got > 0 ? got : 0] = 0;
    return got > 0 ? atoi(text) : -1;
}

/* What the shell says of its child: 128 and the signal. */
static peal_program_end judge(bool has_state, int state, int report, int *code)
{
    if (has_state && WIFSIGNALED(state)) {
        *code = WTERMSIG(state);
        return PEAL_PROGRAM_SIGNALED;
    }
    *code = has_state ? WEXITSTATUS(state) : read_report(report);
    if (*code < 0) /* only a signal keeps the shell from writing, and it traps others */
        *code = 128 + SIGKILL;
    if (*code <= 128)
        return PEAL_PROGRAM_EXITED;
    *code -= 128;
    return PEAL_PROGRAM_SIGNALED;
}

static peal_program_end await(const peal_program *program, pid_t child, int report, int *code)
{
    int64_t begin = peal_clock_ns();
    watch self = {.patience = peal_patience_begin(begin, program->deadline_ns),
                  .looked_at_ns = begin};
    struct pollfd event = {peal_pidfd_open(child), POLLIN, 0};
    peal_program_end end = PEAL_PROGRAM_EXITED;
    int state = 0;
    pid_t ended;
    while ((ended = waitpid(child, &state, WNOHANG)) == 0) {
        if (is_aborted(program))
            end = PEAL_PROGRAM_ABORTED;
        else if (is_stuck(&self, child))
            end = PEAL_PROGRAM_STUCK;
        if (end != PEAL_PROGRAM_EXITED) {
            kill(-child, SIGKILL);
            waitpid(child, &state, 0);
            break;
        }
        int longest = event.fd >= 0 ? 50 : 5;
        int slice = peal_patience_slice_ms(&self.patience, peal_clock_ns());
        poll(&event, event.fd >= 0, slice < longest ? slice : longest);
    }
    if (event.fd >= 0)
        close(event.fd);
    return end == PEAL_PROGRAM_EXITED ? judge(ended == child, state, report, code) : end;
}

peal_program_end peal_program_run(const peal_program *program, int *code)
{
    char path[4096];
    const char *argument[MOST_ARGUMENTS + 1] = {"sh", "-c", script, "sh", path};
    int used = 5;
    for (int i = 1; program->argv[i] && used < MOST_ARGUMENTS; i++)
        argument[used++] = program->argv[i];
    argument[used] = NULL;
    if (!find(program->argv[0], path, sizeof(path))) {
        *code = errno;
        return PEAL_PROGRAM_REFUSED;
    }
    int report[2];
    if (pipe2(report, O_CLOEXEC | O_NONBLOCK) != 0) {
        *code = errno;
        return PEAL_PROGRAM_REFUSED;
    }
    pid_t child = start(program, argument, report[1], code);
    close(report[1]);
    peal_program_end end =
        child < 0 ? PEAL_PROGRAM_REFUSED : await(program, child, report[0], code);
    close(report[0]);
    return end;
}
