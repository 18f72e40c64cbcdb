/* One child process: found, started by fork and exec, watched by a pidfd, reaped. */
#define _GNU_SOURCE
#include "runtime/launch/internal.h"

#include <errno.h>
#include <fcntl.h>
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
                   const sigset_t *mask, pid_t parent, int report)
{
    int error;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) /* it died before the line above */
        _exit(PEAL_STATUS_PEER_LOST);
    sigprocmask(SIG_SETMASK, mask, NULL);
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
                     const sigset_t *mask, peal_child *out)
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
        become(path, argv, environment, mask, parent, report[1]);
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
    if (!child->pid || waitpid(child->pid, wait_status, WNOHANG) != child->pid)
        return false;
    if (child->pidfd >= 0)
        close(child->pidfd);
    *child = (peal_child){0, -1};
    return true;
}

void peal_child_kill(const peal_child *child, int signal)
{
    if (child->pid)
        kill(child->pid, signal);
}
