/* What a kernel's text says of its tile. */
#ifndef PEAL_CUDA_TILE_LOOPS_H
#define PEAL_CUDA_TILE_LOOPS_H

#include "base/kernel_source.h"

#include <stdbool.h>

/* Whether the tile of a kernel stands only in PEAL_FOR_2D and PEAL_FOR_3D, and in their forms
 * _INSIDE, and nothing in it branches, so that it writes all points. False also where nobody can
 * tell: a macro may hide more. */
bool peal_cuda_kernel_loops_alone(const peal_kernel_files *files, const char *kernel,
                                  peal_arena *arena);

#endif
