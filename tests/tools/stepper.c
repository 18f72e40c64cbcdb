/* Runs a command under ptrace, with all its threads and children, and does something to its n-th
 * system call: ends the process there, lets the call fail, or cuts a write short.
 *
 *     stepper TRIGGER count|kill|fail|short N [ERRNO] -- COMMAND...
 *
 * Calls are counted from the first one on that is given a path with TRIGGER in it ("": from the
 * begin); kill counts all of them, fail those that work on files, short writes at an offset.
 * `count` prints on standard error how many each of these would have counted. The exit status is
 * the command's, 128 + signal if it was ended by one; 77: ptrace cannot be used here. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <sys/user.h>

enum { SKIPPED = 77, MOST_TASKS = 4096, PATH_BYTES = 512 };

typedef enum action { COUNT, KILL, FAIL, SHORT, ACTIONS } action;

typedef struct task {
    pid_t id;
    bool inside; /* the next stop is a call's end */
    int error;   /* that this call is to return */
} task;

typedef struct stepper {
    const char *trigger;
    action action;
    long number, seen[ACTIONS];
    int error;
    bool started;
    task task[MOST_TASKS];
    int task_count;
} stepper;

/* Calls that name or change files, where they fail for want of room, rights or a working disk. */
static bool works_on_files(long call)
{
    static const long calls[] = {SYS_openat,     SYS_pwrite64,  SYS_ftruncate,  SYS_fsync,
                                 SYS_renameat,   SYS_renameat2, SYS_rename,     SYS_fchmod,
                                 SYS_fchown,     SYS_flock,     SYS_newfstatat, SYS_getdents64,
                                 SYS_unlinkat,   SYS_unlink,    SYS_readlink,   SYS_pread64,
                                 SYS_faccessat2, SYS_close};
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (calls[i] == call)
            return true;
    return false;
}

static bool has_path(long call, const struct user_regs_struct *registers, unsigned long long *at)
{
    *at = registers->rsi;
    if (call == SYS_openat || call == SYS_unlinkat || call == SYS_newfstatat)
        return true;
    *at = registers->rdi;
    return call == SYS_open || call == SYS_rename || call == SYS_readlink || call == SYS_unlink;
}

static bool is_trigger(const stepper *s, pid_t id, const struct user_regs_struct *registers)
{
    char path[PATH_BYTES] = "";
    unsigned long long at;
    if (!*s->trigger)
        return true;
    if (!has_path((long)registers->orig_rax, registers, &at))
        return false;
    for (size_t have = 0; have + sizeof(long) < sizeof(path); have += sizeof(long)) {
        errno = 0;
        long word = ptrace(PTRACE_PEEKDATA, id, (void *)(at + have), NULL);
        if (errno)
            break;
        memcpy(path + have, &word, sizeof(word));
        if (memchr(&word, 0, sizeof(word)))
            break;
    }
    path[sizeof(path) - 1] = 0;
    return strstr(path, s->trigger) != NULL;
}

static task *find(stepper *s, pid_t id)
{
    for (int i = 0; i < s->task_count; i++)
        if (s->task[i].id == id)
            return &s->task[i];
    if (s->task_count == MOST_TASKS)
        exit(SKIPPED);
    s->task[s->task_count] = (task){.id = id};
    return &s->task[s->task_count++];
}

static void forget(stepper *s, pid_t id)
{
    for (int i = 0; i < s->task_count; i++)
        if (s->task[i].id == id)
            s->task[i--] = s->task[--s->task_count];
}

/* The task is about to enter a call. */
static void enter(stepper *s, task *t)
{
    struct user_regs_struct registers;
    if (ptrace(PTRACE_GETREGS, t->id, NULL, &registers) != 0)
        return;
    long call = (long)registers.orig_rax;
    s->started = s->started || is_trigger(s, t->id, &registers);
    if (!s->started)
        return;
    bool counts[ACTIONS] = {[KILL] = true,
                            [FAIL] = works_on_files(call),
                            [SHORT] = call == SYS_pwrite64 && registers.rdx > 1};
    for (int a = 0; a < ACTIONS; a++)
        s->seen[a] += counts[a];
    if (!counts[s->action] || s->seen[s->action] != s->number)
        return;
    if (s->action == KILL)
        kill(t->id, SIGKILL);
    else if (s->action == SHORT)
        registers.rdx /= 2;
    else {
        registers.orig_rax = (unsigned long long)-1; /* no such call: nothing is done */
        t->error = s->error;
    }
    ptrace(PTRACE_SETREGS, t->id, NULL, &registers);
}

static void leave(task *t)
{
    struct user_regs_struct registers;
    if (!t->error || ptrace(PTRACE_GETREGS, t->id, NULL, &registers) != 0)
        return;
    registers.rax = (unsigned long long)-t->error;
    ptrace(PTRACE_SETREGS, t->id, NULL, &registers);
    t->error = 0;
}

/* Returns the signal to go on with. */
static int handle_stop(stepper *s, pid_t id, int status)
{
    int stop = WSTOPSIG(status);
    task *t = find(s, id);
    if (stop == (SIGTRAP | 0x80)) {
        t->inside = !t->inside;
        if (t->inside)
            enter(s, t);
        else
            leave(t);
        return 0;
    }
    if (status >> 16) /* an event: a new task, or exec */
        return 0;
    return stop == SIGSTOP || stop == SIGTRAP ? 0 : stop;
}

static int trace(stepper *s, pid_t child)
{
    int status, result = 0;
    pid_t id;
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                         PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC;

    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status) ||
        ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)options) != 0)
        return SKIPPED;
    ptrace(PTRACE_SYSCALL, child, NULL, NULL);
    while ((id = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
        if (id < 0)
            continue;
        if (WIFSTOPPED(status)) {
            int with = handle_stop(s, id, status);
            ptrace(PTRACE_SYSCALL, id, NULL, (void *)(long)with);
            continue;
        }
        forget(s, id);
        if (id == child)
            result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return result;
}

int main(int argc, char **argv)
{
    static const char *const names[ACTIONS] = {"count", "kill", "fail", "short"};
    stepper *s = calloc(1, sizeof(*s));
    int word = 4;
    if (!s || argc < 6)
        return 2;
    s->trigger = argv[1];
    while (s->action < ACTIONS && strcmp(argv[2], names[s->action]) != 0)
        s->action++;
    s->number = atol(argv[3]);
    if (strcmp(argv[word], "--") != 0)
        s->error = atoi(argv[word++]);
    if (s->action == ACTIONS || word + 1 >= argc)
        return 2;
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(SKIPPED);
        raise(SIGSTOP);
        execvp(argv[word + 1], &argv[word + 1]);
        _exit(127);
    }
    int result = child < 0 ? SKIPPED : trace(s, child);
    if (s->action == COUNT)
        fprintf(stderr, "stepper: kill %ld fail %ld short %ld\n", s->seen[KILL], s->seen[FAIL],
                s->seen[SHORT]);
    free(s);
    return result;
}
#else
int main(void)
{
    return 77; /* registers of this processor are not known here */
}
#endif
