/* What a kernel's text says of its tile. */
#ifndef PEAL_CUDA_TILE_LOOPS_H
#define PEAL_CUDA_TILE_LOOPS_H

#include "backends/cuda/codegen/kernel_tokens.h"

/* Whether a kernel of so many arrays, which have so many axes, reads them by PEAL_AT but the one
 * with number `written` (of all, in the order of its parameters), which it writes: its tile
 * stands only in PEAL_FOR_2D and PEAL_FOR_3D, and in their forms _INSIDE, and that array only in
 * statements PEAL_AT(name, x, y, z) = ... that are directly in such a loop of the kernel's, at the
 * loop's point; and nothing branches. So it writes all points, and reads none of them. False also
 * where nobody can tell. */
bool peal_cuda_kernel_loops_alone(const peal_cuda_tokens *tokens, const char *kernel, int arrays,
                                  int written, int axes, peal_arena *arena);

#endif
