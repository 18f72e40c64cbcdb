/* The contract of a bootstrap: how the processes of a job find each other. Six functions. */
#ifndef PEAL_PLUGIN_BOOTSTRAP_H
#define PEAL_PLUGIN_BOOTSTRAP_H

#include <peal/status.h>
#include <peal/types.h>

typedef struct peal_bootstrap_identity {
    int process; /* 0 .. processes - 1 */
    int processes;
    int local_process; /* number among those of this host */
    int local_processes;
    const char *name; /* of the bootstrap: "single", "peal", "pmix", "caller" */
    const char
        *node; /* what this host was called when the job was started; NULL: as the system says */
} peal_bootstrap_identity;

typedef struct peal_diagnostics peal_diagnostics;

typedef struct peal_bootstrap peal_bootstrap;

typedef struct peal_bootstrap_ops {
    size_t size; /* sizeof(peal_bootstrap_ops) */
    peal_status (*identity)(peal_bootstrap *bootstrap, peal_bootstrap_identity *out);
    /* Publishes this process's blob for `round` (a fresh key each round). */
    peal_status (*put)(peal_bootstrap *bootstrap, int round, const void *blob, size_t bytes);
    /* Makes all puts of `round` readable, then reads the blob of `process`. What a fence says is
     * not trusted (docs/design.md, "Bootstrap"): the get has a time limit and its result is
     * verified by the caller. */
    peal_status (*get)(peal_bootstrap *bootstrap, int round, int process, int64_t deadline_ns,
                       void *blob, size_t capacity, size_t *bytes);
    /* Ends the job: tells the launcher; may not return. */
    void (*abort)(peal_bootstrap *bootstrap, int code, const char *message);
    void (*close)(peal_bootstrap *bootstrap);
    /* A descriptor that is readable once the launcher is gone; it stays the bootstrap's. -1: it
     * cannot be told. Optional: NULL where there is no launcher. */
    int (*launcher)(peal_bootstrap *bootstrap);
} peal_bootstrap_ops;

struct peal_bootstrap {
    const peal_bootstrap_ops *ops;
};

#endif
