/* Embedded exchanges: plans whose exchange is enqueued on a stream of the application. */
#ifndef PEAL_CUDA_EMBED_H
#define PEAL_CUDA_EMBED_H

#include "backends/cuda/lower/sink.h"

extern const struct peal_cuda_sink_ops peal_cuda_embed_sink;
/* Enters the outermost loop of all ranks and starts the thread that watches the exchanges. Fails if
 * an expression does, or there is no thread (PEAL_E_OUT_OF_MEMORY). */
peal_status peal_cuda_embed_create(peal_cuda_plan *plan);
/* Ends the watcher. If exchanges are still under way, they are stopped and waited for first. */
void peal_cuda_embed_destroy(peal_cuda_plan *plan);

/* plan.c: moves what was reported during a run to the caller's list. Returns the status of the
 * reports. */
peal_status peal_cuda_flush_diagnostics(peal_cuda_plan *plan);

#endif
