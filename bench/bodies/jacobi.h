/* The body of the Jacobi benchmark, the same for peal and its peers: the 5-point mean of floats on
 * columns [x0, x1) and rows [y0, y1). Points are a[y * pitch + x]; the caller shifts the pointers
 * to the coordinates that it likes. */
#ifndef PEAL_BENCH_BODIES_JACOBI_H
#define PEAL_BENCH_BODIES_JACOBI_H

#include <stddef.h>

static inline void jacobi_relax(const float *restrict a, float *restrict an, ptrdiff_t pitch,
                                ptrdiff_t x0, ptrdiff_t x1, ptrdiff_t y0, ptrdiff_t y1)
{
    for (ptrdiff_t y = y0; y < y1; y++) {
        const float *row = a + y * pitch;
        float *out = an + y * pitch;
        for (ptrdiff_t x = x0; x < x1; x++) {
            out[x] = 0.25f * (row[x - 1] + row[x + 1] + row[x - pitch] + row[x + pitch]);
        }
    }
}

#endif
