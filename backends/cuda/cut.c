/* Device tiles of free shape: a point a thread, and more rows a thread where there are many. In
 * plain kernels those of large boxes are whole ones (device/loops.h), and begin at whole sectors of
 * memory where rows do. */
#include "backends/cuda/cut.h"

/* Points along x. */
enum { ALIGNMENT = 32 };

/* Rows a thread marches over in the largest tiles; as many as in whole ones. */
enum { MOST_ROWS = 8 };

static void shape_of(const int threads[3], bool plain, int shape[4], int *marched)
{
    bool flat = threads[1] == 1, deep = threads[2] > 1;

    for (int k = 0; k < 3; k++)
        shape[k] = threads[k];
    shape[3] = 1;
    *marched = 1;
    if (!plain || flat)
        return;
    shape[0] = deep ? PEAL_WHOLE_3_X : PEAL_WHOLE_2_X;
    shape[1] = deep ? PEAL_WHOLE_3_Y : PEAL_WHOLE_2_Y / MOST_ROWS;
    shape[2] = deep ? PEAL_WHOLE_3_Z / MOST_ROWS : 1;
    *marched = deep ? 2 : 1;
}

void cuda_box_cut(int sm_count, const int threads[3], bool plain, int begin, peal_launch_box *box)
{
    int64_t many = (plain ? 3 : 16) * (int64_t)sm_count;
    int shape[4], marched;

    shape_of(threads, plain, shape, &marched);
    box->lead = 0;
    if (plain && threads[1] > 1)
        box->lead = (int)(((unsigned)box->lo[0] - (unsigned)begin) % ALIGNMENT);
    for (int rows = MOST_ROWS;; rows /= 2) {
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
        if (rows == 1 || box->blocks >= many)
            return;
    }
}
