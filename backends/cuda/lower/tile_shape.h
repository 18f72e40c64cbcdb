/* How a box of points is cut into device tiles of free shape. */
#ifndef PEAL_CUDA_CUT_H
#define PEAL_CUDA_CUT_H

#include "backends/cuda/codegen/device/launch.h"

#include <stdbool.h>
#include <stdint.h>

/* Rows a thread marches over in the largest tiles; as many as in whole ones. */
enum { PEAL_CUDA_MOST_ROWS = 8 };

/* From lo and hi of a box; `threads` is the shape of a task's blocks, whose number of axes beyond
 * 1 says how many the tiles have. whole: the kind of tiles (device/launch.h), 0: any, with a point
 * a thread; the box then begins `lead` points behind a line of memory. A thread marches over as
 * many of `most_rows` rows, a power of two, as leave `many` blocks; in whole tiles it has all. */
void peal_cuda_box_cut(int many, int most_rows, const int threads[3], int whole, int lead,
                       peal_launch_box *box);

#endif
