/* What a kernel's text says of the points that it stores at. */
#ifndef PEAL_CUDA_OWN_POINTS_H
#define PEAL_CUDA_OWN_POINTS_H

#include "backends/cuda/codegen/kernel_tokens.h"

/* Whether a kernel of so many arrays stores into the one with number `index` (of all that it reads,
 * updates and writes, in this order), which it updates and which has so many axes, at points of its
 * tile alone, though it may read others: each PEAL_AT(name, ...) that is stored to has the names of
 * the loop over the tile's points that it is in, PEAL_FOR_2D, PEAL_FOR_3D, or their forms _INSIDE
 * and _EVEN. False also where nobody can tell. */
bool peal_cuda_kernel_stores_at_own(const peal_cuda_tokens *tokens, const char *kernel, int arrays,
                                    int index, int axes, peal_arena *arena);

#endif
