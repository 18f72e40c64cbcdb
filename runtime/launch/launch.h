/* Starts the processes of a job on this host, or by an agent on others, helps them find each other
 * and waits for their end. */
#ifndef PEAL_RUNTIME_LAUNCH_LAUNCH_H
#define PEAL_RUNTIME_LAUNCH_LAUNCH_H

#include "base/diagnostic.h"

typedef struct peal_launch_host {
    const char *name; /* as the agent takes it; "localhost": this one, without the agent */
    int processes;    /* 1 or more */
} peal_launch_host;

typedef struct peal_launch_desc {
    int processes;       /* 1 .. 4096 */
    const char *program; /* file to execute; NULL: argv[0], looked up in PATH */
    char *const *argv;   /* ends with NULL; the same for all processes */
    /* Processes are dealt out to hosts in this order; none: all are on this one. */
    const peal_launch_host *host;
    int host_count;
    /* The words of a command that takes the name of a host and a command, and becomes that command
     * there, with the descriptors that it has been given: such as `ip netns exec`. Ends with NULL.
     */
    char *const *agent;
    /* The last word of what an agent is given; NULL: none. */
    const char *mark;
    int64_t deadline_ns; /* the job ends if all of its processes are stopped for longer; 0: never */
} peal_launch_desc;

/* Runs the job. Standard streams are inherited. SIGINT and SIGTERM are passed on to the processes,
 * which are killed if they don't end within 2 s; while the call runs they are blocked in the
 * calling thread (SIGHUP counts as SIGTERM, unless it is ignored). A process that fails ends the
 * others within 2 s. What processes of the job have started and left behind is killed at its end.
 * PMIX_* variables of an outer launcher are removed from the environment of the new processes.
 *
 * PEAL_STATUS_OK: all processes were started and have ended; `*exit_code` is 0, or that of the
 * first cause: the exit code of the process that failed first (a code of PEAL_STATUS_PEER_LOST only
 * if there is no other), PEAL_STATUS_PEER_LOST if it was killed by a signal or has joined the job
 * and ended without a word that it leaves (then reported), 130 or 143 after a signal. Other
 * statuses: nothing runs any more, `*exit_code` is untouched. To be called by one thread at a time.
 */
peal_status peal_launch(const peal_launch_desc *desc, peal_diagnostics *diagnostics,
                        int *exit_code);

#endif
