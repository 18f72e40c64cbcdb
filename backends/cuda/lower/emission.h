/* The emission of ops in walk order: its state, and what moves it on. */
#ifndef PEAL_CUDA_EMISSION_H
#define PEAL_CUDA_EMISSION_H

#include "backends/cuda/lower/lane.h"

typedef struct peal_cuda_sink peal_cuda_sink;

/* The state of emission. */
typedef struct peal_cuda_emission {
    const peal_cuda_sink *sink; /* where launches go now */
    uint64_t epoch;             /* events of another epoch need not be waited for: each recording of
                                   a graph begins one and ends it */
    uint64_t sends;             /* in a capture: launches that write flags, so far */
    peal_status status;         /* the first failure */
    peal_diagnostics *late;     /* reports of the running thread; peal_cuda_flush_diagnostics hands
                                   them to the caller */
} peal_cuda_emission;

/* emit.c, group.c, defer.c. False of those that emit: failed, plan->emission.status says why. */
/* False: the next op of the rank waits for a message of this process that has not been enqueued
 * yet, so another rank must go on first. */
bool peal_cuda_emit_is_ready(const peal_cuda_rank *rank);
/* Passes the op at the walk's position and emits its instance. */
bool peal_cuda_emit(peal_cuda_rank *rank);
/* Launches the lane's open group, if there is one. */
bool peal_cuda_flush(peal_cuda_rank *rank, int lane);
/* Launches the open and the deferred groups of the rank; deferred waits stay. */
bool peal_cuda_flush_groups(peal_cuda_rank *rank);
/* Launches everything that the rank has emitted: open and deferred groups and deferred waits. */
bool peal_cuda_flush_all(peal_cuda_rank *rank);

#endif
