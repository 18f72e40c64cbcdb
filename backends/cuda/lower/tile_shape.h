/* Cuts a box of points into device tiles, whose shape the backend may choose. */
#ifndef PEAL_CUDA_CUT_H
#define PEAL_CUDA_CUT_H

#include "backends/cuda/codegen/device/launch.h"

#include <stdbool.h>
#include <stdint.h>

/* The most rows that a thread marches over; whole tiles have so many. */
enum { PEAL_CUDA_MOST_ROWS = 8 };

/* Sets the tiles of a box from its lo and hi.
 *
 * threads: the shape of the task's blocks; tiles have as many axes as it has axes longer than 1.
 * whole: the kind of tiles (PEAL_WHOLE_ of device/launch.h); 0: of any shape, a point a thread.
 * lead: of whole tiles, how many points the box begins behind the beginning of a line of memory.
 * most_rows: a power of two. A thread marches over as many rows, at most most_rows, as leave the
 * box at least `least_blocks` blocks; the threads of a whole tile that is cut in full have all
 * rows. */
void peal_cuda_box_cut(int least_blocks, int most_rows, const int threads[3], int whole, int lead,
                       peal_launch_box *box);

#endif
