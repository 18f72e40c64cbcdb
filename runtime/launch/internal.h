/* The inside of the launcher: one child process, and the PMIx server. */
#ifndef PEAL_RUNTIME_LAUNCH_INTERNAL_H
#define PEAL_RUNTIME_LAUNCH_INTERNAL_H

#include "runtime/launch/launch.h"

#include <signal.h>
#include <sys/types.h>

enum { PEAL_LAUNCH_LIMIT = 4096, PEAL_LAUNCH_MESSAGE = 256 };

typedef struct peal_child {
    pid_t pid; /* 0: not started, or reaped */
    int pidfd; /* -1: the kernel has none; then it is polled */
} peal_child;

/* `name` as execvp would find it, malloc'ed; NULL: not found. */
char *peal_child_find(const char *name);
/* Starts a process with the signal mask `mask`; it gets SIGTERM when the calling thread ends. An
 * errno, 0 if it runs. */
int peal_child_start(const char *path, char *const *argv, char *const *environment,
                     const sigset_t *mask, peal_child *out);
/* True if it has ended: its wait status. */
bool peal_child_reap(peal_child *child, int *wait_status);
void peal_child_kill(const peal_child *child, int signal);

typedef struct peal_launch_server peal_launch_server;

/* Starts the PMIx server of a job in this process (one at a time). */
peal_status peal_launch_server_open(int processes, peal_diagnostics *diagnostics,
                                    peal_launch_server **out);
/* The environment of a process of the job, ending with NULL; NULL: out of memory or refused. */
char **peal_launch_server_environment(peal_launch_server *server, int process);
void peal_launch_environment_free(char **environment);
/* Becomes readable when a process calls PMIx_Abort. */
int peal_launch_server_event(const peal_launch_server *server);
/* True if a process has: which, its code, its message. */
bool peal_launch_server_aborted(peal_launch_server *server, int *process, int *code,
                                char message[PEAL_LAUNCH_MESSAGE]);
/* NULL is fine. */
void peal_launch_server_close(peal_launch_server *server);

#endif
