/* Lanes that follow each other. */
#ifndef PEAL_CUDA_LANES_H
#define PEAL_CUDA_LANES_H

#include "backends/cuda/lower/plan.h"

/* The origin is the first lane of the first rank. fork: every other lane waits for the origin's
 * work so far. Else the origin waits for theirs. False: failed, plan->emission.status says why. */
bool peal_cuda_join_lanes(peal_cuda_plan *plan, bool fork);

#endif
