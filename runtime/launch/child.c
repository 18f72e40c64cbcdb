/* One child process: found, started by fork and exec, watched by a pidfd, reaped. */
#define _GNU_SOURCE
#include "runtime/launch/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

char *peal_child_find(const char *name)
{
    if (strchr(name, '/'))
        return access(name, X_OK) ? NULL : strdup(name);
    const char *path = getenv("PATH");
    for (const char *at = path ? path : "/usr/bin:/bin"; *at;) {
        size_t length = strcspn(at, ":");
        char *file = NULL;
        if (asprintf(&file, "%.*s%s%s", (int)length, at, length ? "/" : "./", name) < 0)
            return NULL;
        if (!access(file, X_OK))
            return file;
        free(file);
        at += length + (at[length] == ':');
    }
    return NULL;
}

/* In the child: only async-signal-safe calls. */
static void become(const char *path, char *const *argv, char *const *environment,
                   const sigset_t *mask, pid_t parent, int line, int report)
{
    int error;
    /* It watches its parent itself: this is for one that was stopped. */
    prctl(PR_SET_PDEATHSIG, SIGCONT);
    if (getppid() != parent) /* it died before the line above */
        _exit(PEAL_STATUS_PEER_LOST);
    sigprocmask(SIG_SETMASK, mask, NULL);
    if (line >= 0)
        fcntl(line, F_SETFD, 0);
    execve(path, argv, environment);
    error = errno;
    if (write(report, &error, sizeof(error)) < 0)
        _exit(126);
    _exit(127);
}

static int open_pidfd(pid_t pid)
{
#ifdef SYS_pidfd_open
    int fd = (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec by itself */
    return fd < 0 ? -1 : fd;
#else
    (void)pid;
    return -1;
#endif
}

int peal_child_start(const char *path, char *const *argv, char *const *environment,
                     const sigset_t *mask, int line, peal_child *out)
{
    int report[2], error = 0, status;
    if (pipe2(report, O_CLOEXEC))
        return errno;
    pid_t parent = getpid(), pid = fork();
    if (pid < 0) {
        error = errno;
        close(report[0]);
        close(report[1]);
        return error;
    }
    if (!pid)
        become(path, argv, environment, mask, parent, line, report[1]);
    close(report[1]);
    ssize_t got;
    do /* an end of file: exec closed the other end */
        got = read(report[0], &error, sizeof(error));
    while (got < 0 && errno == EINTR);
    close(report[0]);
    if (got > 0) {
        waitpid(pid, &status, 0);
        return error;
    }
    *out = (peal_child){pid, open_pidfd(pid)};
    return 0;
}

bool peal_child_reap(peal_child *child, int *wait_status)
{
    pid_t ended = child->pid ? waitpid(child->pid, wait_status, WNOHANG) : 0;
    if (ended < 0 && errno == ECHILD)
        *wait_status = PEAL_CHILD_UNKNOWN;
    else if (ended == 0 || ended != child->pid)
        return false;
    if (child->pidfd >= 0)
        close(child->pidfd);
    *child = (peal_child){0, -1};
    return true;
}

bool peal_child_is_stopped(const peal_child *child)
{
    char path[64], text[512], *end = NULL;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)child->pid);
    FILE *file = fopen(path, "re");
    if (file && fgets(text, sizeof(text), file))
        end = strrchr(text, ')'); /* number (name) state: a name may have brackets */
    if (file)
        fclose(file);
    return end && end[1] == ' ' && end[2] == 'T';
}

void peal_child_kill(const peal_child *child, int signal)
{
    if (child->pid)
        kill(child->pid, signal);
}

/* The parent of `pid`; 0: it is gone. */
static pid_t parent_of(pid_t pid)
{
    char path[64], line[512];
    int parent = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    const char *end = file && fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
    if (!end || sscanf(end + 1, " %*c %d", &parent) != 1)
        parent = 0;
    if (file)
        fclose(file);
    return parent;
}

/* What to do with each process that is a child of this one. */
static int each_child(bool (*visit)(void *user, pid_t pid), void *user)
{
    int found = 0;
    DIR *processes = opendir("/proc");
    for (struct dirent *entry; processes && (entry = readdir(processes));) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        if (pid > 0 && parent_of(pid) == getpid())
            found += visit(user, pid);
    }
    if (processes)
        closedir(processes);
    return found;
}

static bool remember(void *user, pid_t pid)
{
    peal_children *list = user;
    pid_t *larger = realloc(list->pid, ((size_t)list->count + 1) * sizeof(*larger));
    if (!larger)
        return false;
    list->pid = larger;
    list->pid[list->count++] = pid;
    return true;
}

static bool end_stranger(void *user, pid_t pid)
{
    const peal_children *known = user;
    for (int i = 0; i < known->count; i++)
        if (known->pid[i] == pid)
            return false;
    kill(pid, SIGKILL);
    return waitpid(pid, NULL, 0) == pid;
}

void peal_children_list(peal_children *out)
{
    *out = (peal_children){0};
    each_child(remember, out);
}

void peal_children_sweep(const peal_children *known)
{
    enum { MOST_ROUNDS = 100 }; /* children of what was ended come to us next */
    for (int i = 0; i < MOST_ROUNDS && each_child(end_stranger, (void *)known); i++) {
    }
}
