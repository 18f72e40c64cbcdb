/* Device tiles of free shape: a point a thread (of thin boxes, too, such as borders, whose messages
 * few blocks then send), and more rows a thread where one wave of blocks would not do. In
 * communication-free kernels tiles of large boxes are whole ones (device/loops.h), and begin at
 * lines of memory where rows do. */
#include "backends/cuda/lower/tile_shape.h"

static int exponent(int length, int most)
{
    int bits = 0;
    while (bits < most && 1 << bits < length)
        bits++;
    return bits;
}

/* Threads that would be idle along a thin axis go to the other axes, as device/loops.h lays them.
 */
static void widen(const peal_launch_box *box, const int threads[3], int shape[4])
{
    int all = exponent(threads[0] * threads[1] * threads[2], 30), bits[3];

    for (int k = 0; k < 3; k++)
        bits[k] = exponent(box->hi[k] - box->lo[k], exponent(threads[k], 30));
    if (threads[2] > 1) {
        bits[1] = exponent(box->hi[1] - box->lo[1], all - bits[0] - bits[2]);
    } else if (bits[0] == exponent(threads[0], 30)) {
        bits[1] = exponent(box->hi[1] - box->lo[1], exponent(threads[1], 30));
        bits[0] = all - bits[1];
    } else {
        bits[1] = exponent(box->hi[1] - box->lo[1], all - bits[0]);
    }
    for (int k = 0; k < 3; k++)
        shape[k] = 1 << bits[k];
}

/* Sets the shape of a tile in which each thread has one row, and the axis along which threads march
 * over more. Returns the most rows that a thread of this kind of tiles has. */
static int shape_of(const peal_launch_box *box, const int threads[3], int whole, int shape[4],
                    int *marched)
{
    for (int k = 0; k < 3; k++)
        shape[k] = threads[k];
    shape[3] = 1;
    *marched = whole == PEAL_WHOLE_2 || whole == 0 ? 1 : 2;
    switch (whole) {
    case PEAL_WHOLE_2:
        shape[0] = PEAL_WHOLE_2_X;
        shape[1] = PEAL_WHOLE_2_Y / PEAL_CUDA_MOST_ROWS;
        return PEAL_CUDA_MOST_ROWS;
    case PEAL_WHOLE_3:
        shape[0] = PEAL_WHOLE_3_X;
        shape[1] = PEAL_WHOLE_3_Y;
        shape[2] = PEAL_WHOLE_3_Z / PEAL_CUDA_MOST_ROWS;
        return PEAL_CUDA_MOST_ROWS;
    case PEAL_WHOLE_FLAT:
        shape[0] = PEAL_WHOLE_FLAT_X;
        shape[1] = PEAL_WHOLE_FLAT_Y;
        shape[2] = 1;
        return PEAL_WHOLE_FLAT_Z;
    default:
        if (threads[1] > 1)
            widen(box, threads, shape);
        return PEAL_CUDA_MOST_ROWS;
    }
}

void peal_cuda_box_cut(int least_blocks, int most_rows, const int threads[3], int whole, int lead,
                       peal_launch_box *box)
{
    int shape[4], marched;
    int most = shape_of(box, threads, whole, shape, &marched);

    box->lead = whole ? lead : 0;
    for (int rows = most < most_rows ? most : most_rows;; rows /= 2) {
        box->blocks = 1;
        for (int k = 0; k < 4; k++) {
            int length = box->hi[k] - box->lo[k] + (k == 0 ? box->lead : 0);
            box->extent[k] = k == 3 ? length : shape[k] * (k == marched ? rows : 1);
            if (box->extent[k] < 1)
                box->extent[k] = 1;
            box->count[k] = (unsigned)((length + box->extent[k] - 1) / box->extent[k]);
            box->blocks *= box->count[k];
            box->tile_step[k] = 0;
        }
        box->tile = 0;
        if (rows == 1 || (int64_t)box->blocks >= least_blocks)
            return;
    }
}
