/* Embedded exchanges, and what their calls share with those of other plans. */
#ifndef PEAL_CUDA_EMBED_H
#define PEAL_CUDA_EMBED_H

#include "backends/cuda/lower/sink.h"

extern const struct peal_cuda_sink_ops peal_cuda_embed_sink;
peal_status peal_cuda_embed_create(peal_cuda_plan *plan);
void peal_cuda_embed_destroy(peal_cuda_plan *plan);

/* plan.c: what was reported during a run, into the caller's list. */
peal_status peal_cuda_flush_diagnostics(peal_cuda_plan *plan);

#endif
