/* What makes the device repeat recorded iterations: a CUDA graph (graph/capture.c), or the
 * persistent kernel (fused/engine.c). graph/replay.c conducts either: it finds how many steps are
 * recorded, walks them into the engine's sink, and launches rounds. */
#ifndef PEAL_CUDA_LOWER_ENGINE_H
#define PEAL_CUDA_LOWER_ENGINE_H

#include "backends/cuda/lower/sink.h"

struct peal_cuda_engine {
    const struct peal_cuda_sink_ops *sink;
    bool is_one_kernel; /* as in peal_cuda_sink */
    int most_launches;  /* of a rank in a recording; 0: any number */
    /* Whether what a launch waits for is a launch of its own. NULL: no. */
    bool (*receives_apart)(const peal_cuda_plan *plan);
    int reports; /* how often a recording counts its steps, so that the host sees them */
    /* Before the number of steps is chosen. NULL: nothing is to be done. */
    peal_status (*prepare)(peal_cuda_plan *plan);
    /* Gives up what makes periods longer. False: there was nothing of that. NULL: the same. */
    bool (*shorten_period)(peal_cuda_plan *plan);
    /* When it is chosen. NULL: nothing is to be done. */
    peal_status (*settle)(peal_cuda_plan *plan);
    /* A recording begins and ends; slot: 0 or 1, of the rows that it prints. */
    CUresult (*begin)(peal_cuda_plan *plan, int slot);
    CUresult (*end)(peal_cuda_plan *plan, int slot);
    /* Makes it ready to be launched. What fails has been reported, or is *result. */
    peal_status (*build)(peal_cuda_plan *plan, int slot, CUresult *result);
    /* Enqueues rounds of a recording on the origin. */
    CUresult (*launch)(peal_cuda_plan *plan, int slot, int64_t rounds);
    /* That one launch may have. NULL: one. */
    int64_t (*most_rounds)(const peal_cuda_plan *plan);
};

#endif
