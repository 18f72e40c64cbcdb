/* How an application that already runs in several processes (under MPI, say) lets peal's processes
 * find each other: it lends its own allgather. */
#ifndef PEAL_BOOTSTRAP_H
#define PEAL_BOOTSTRAP_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct peal_bootstrap_callbacks {
    size_t size_bytes; /* sizeof(peal_bootstrap_callbacks) */
    int process;       /* this process, 0 .. processes - 1 */
    int processes;     /* of the job, at least 1 */
    /* all[p * bytes .. (p + 1) * bytes) gets the `bytes` bytes of process p. Called by all
     * processes in the same order, by the thread that creates the session, and only then. 0: fine.
     * Required if processes > 1. */
    int (*allgather)(void *user, const void *mine, size_t bytes, void *all);
    /* Returns once all processes have called it; 0: fine. NULL: peal uses its own. */
    int (*barrier)(void *user);
    /* Ends the job: called with peal's status and the reason. NULL: nothing is called. */
    void (*abort)(void *user, int code, const char *message);
    void *user; /* passed on to the callbacks */
} peal_bootstrap_callbacks;

#ifdef __cplusplus
}
#endif
#endif
