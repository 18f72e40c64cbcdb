/* What a kernel's text says of its tile. */
#ifndef PEAL_CUDA_TILE_LOOPS_H
#define PEAL_CUDA_TILE_LOOPS_H

#include "base/kernel_source.h"

#include <stdbool.h>

/* Whether the tile of a kernel stands only in PEAL_FOR_2D and PEAL_FOR_3D, and in their forms
 * _INSIDE, and its one written array only in statements PEAL_AT(name, ...) = ... that are directly
 * in such a loop, and nothing branches: so it writes all points, and reads none of them. False also
 * where nobody can tell: a macro may hide more, or there are several definitions. */
bool peal_cuda_kernel_loops_alone(const peal_kernel_files *files, const char *kernel,
                                  peal_arena *arena);

#endif
