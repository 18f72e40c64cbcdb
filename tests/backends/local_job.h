/* A whole job in one process: a spec, compiled for some ranks, run in a mode, its defined arrays
 * gathered. Used by the agreement test and by measurements. */
#ifndef PEAL_TESTS_LOCAL_JOB_H
#define PEAL_TESTS_LOCAL_JOB_H

#include "base/diagnostic.h"

#include <peal/plugin/backend.h>

typedef struct local_options {
    const char *spec;
    const char *const *overrides;
    int override_count;
    int ranks, workers;
    peal_mode mode;
    int64_t steps; /* 0: as the spec repeats */
    const char *cache;
    peal_backend_hooks hooks;
} local_options;

typedef struct local_outcome {
    unsigned char
        *bytes; /* own points of all defined arrays of all ranks, then the rows; malloc'ed */
    size_t count;
    peal_backend_result result;
} local_outcome;

/* Calls `use` with a plan's descriptor, schedules but no memory; its diagnostics are not printed.
 */
peal_status local_describe(const local_options *options,
                           peal_status (*use)(const peal_backend_desc *desc, void *user),
                           void *user);

/* Diagnostics are printed to stderr. */
peal_status local_run(const local_options *options, local_outcome *out);

#endif
