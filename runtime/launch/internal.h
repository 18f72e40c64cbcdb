/* The inside of the launcher: one child process, and the lines to all of them. */
#ifndef PEAL_RUNTIME_LAUNCH_INTERNAL_H
#define PEAL_RUNTIME_LAUNCH_INTERNAL_H

#include "runtime/bootstrap/channel.h"
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
/* Starts a process with the signal mask `mask` that inherits the descriptor `line`; it is
 * continued when the calling thread ends. An errno, 0 if it runs. */
int peal_child_start(const char *path, char *const *argv, char *const *environment,
                     const sigset_t *mask, int line, peal_child *out);
/* Somebody else has taken the wait status, or SIGCHLD is ignored. No wait status is like it. */
enum { PEAL_CHILD_UNKNOWN = -1 };

/* True if it has ended: its wait status, or PEAL_CHILD_UNKNOWN. */
bool peal_child_reap(peal_child *child, int *wait_status);
void peal_child_kill(const peal_child *child, int signal);
/* By SIGSTOP and its like; one that a debugger holds is not. */
bool peal_child_is_stopped(const peal_child *child);

typedef struct peal_children {
    pid_t *pid; /* malloc'ed */
    int count;
} peal_children;

/* The children that this process has. */
void peal_children_list(peal_children *out);
/* Ends and reaps all other children: what processes of the job have left behind has become ours (a
 * subreaper's). */
void peal_children_sweep(const peal_children *known);

typedef struct peal_launch_hub peal_launch_hub;

peal_status peal_launch_hub_create(int processes, peal_diagnostics *diagnostics,
                                   peal_launch_hub **out);
/* NULL is fine. */
void peal_launch_hub_destroy(peal_launch_hub *hub);
/* Makes the line to a process: the descriptor that it inherits; -1 and errno. */
int peal_launch_hub_open(peal_launch_hub *hub, int process);
/* Which process of its host it is, of how many. */
typedef struct peal_launch_place {
    const peal_launch_host *host; /* NULL: this one, with all others */
    int local_process, local_processes;
} peal_launch_place;

peal_launch_place peal_launch_place_of(const peal_launch_desc *desc, int process);
/* Whether an agent starts it. */
bool peal_launch_is_by_agent(const peal_launch_desc *desc, const peal_launch_place *place);
/* What starts that process: the file, and words that end with NULL (free() both); false: the agent
 * cannot be found (errno ENOENT), or there is no memory. `program`: as it was found here. */
bool peal_launch_command(const peal_launch_desc *desc, const peal_launch_place *place,
                         const char *program, char **path, const char ***words);

/* The environment of that process, ending with NULL; NULL: out of memory. */
char **peal_launch_hub_environment(const peal_launch_hub *hub, int process,
                                   const peal_launch_place *place);
void peal_launch_environment_free(char **environment);
/* The process has been started: its end of the line is its own. */
void peal_launch_hub_started(peal_launch_hub *hub, int process);
/* For poll; -1: closed. */
int peal_launch_hub_descriptor(const peal_launch_hub *hub, int process);
/* Takes what there is. */
void peal_launch_hub_serve(peal_launch_hub *hub, int process);
/* The process has ended; false: it had joined the job and has not said that it leaves. */
bool peal_launch_hub_ended(peal_launch_hub *hub, int process);
/* Whether the process has joined the job at all. */
bool peal_launch_hub_has_come(const peal_launch_hub *hub, int process);
/* Whether something could not be kept: no memory, or a process puts more than any session does. */
bool peal_launch_hub_is_exhausted(const peal_launch_hub *hub);
/* Whether a process has aborted the job: which, its code, its message. */
bool peal_launch_hub_aborted(const peal_launch_hub *hub, int *process, int *code,
                             const char **message);

#endif
