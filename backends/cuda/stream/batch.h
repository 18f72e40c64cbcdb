/* Memory operations that follow each other on a lane, put onto its stream by one call: they take
 * one place of the finite number that a stream has, and one call of the driver. */
#ifndef PEAL_CUDA_STREAM_BATCH_H
#define PEAL_CUDA_STREAM_BATCH_H

#include "backends/cuda/lower/sink.h"

/* Of plans whose streams ring. Memory runs out: as everywhere in an arena. */
struct peal_cuda_batch *peal_cuda_batch_create(const peal_cuda_plan *plan);
/* Each puts an operation behind what the lane has so far. Operations are put off while others of
 * the same lane follow; whatever else is enqueued anywhere comes behind peal_cuda_batch_submit. */
CUresult peal_cuda_batch_write(peal_cuda_rank *rank, peal_cuda_lane *lane, CUdeviceptr word,
                               uint64_t value, unsigned bytes);
CUresult peal_cuda_batch_wait(peal_cuda_rank *rank, peal_cuda_lane *lane, CUdeviceptr word,
                              uint64_t value);
/* What follows waits until the host lets it go on, if a kernel of the plan has failed before: call
 * it before a write that must not be done then. */
CUresult peal_cuda_batch_gate(peal_cuda_rank *rank, peal_cuda_lane *lane);
/* A plan without a batch has put nothing off. */
CUresult peal_cuda_batch_submit(peal_cuda_plan *plan);
/* Called once after each op: whether what it enqueued takes a place of the stream of its own, and
 * does not share that of an earlier one. */
bool peal_cuda_batch_takes_place(peal_cuda_plan *plan);

#endif
