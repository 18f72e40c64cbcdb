/* The body of the exchange benchmark, the same for peal and its peers: one explicit step of heat
 * conduction (7 points, doubles) on a box of nx * ny * nz points with one halo point on every side.
 * Point (x, y, z), each from -1 to n, is u[(z * rows + y) * pitch + x]. */
#ifndef PEAL_BENCH_BODIES_HEAT_H
#define PEAL_BENCH_BODIES_HEAT_H

#include <stddef.h>

static inline void heat_step(const double *restrict u, double *restrict un, ptrdiff_t pitch,
                             ptrdiff_t rows, const ptrdiff_t lo[3], const ptrdiff_t hi[3])
{
    const ptrdiff_t plane = pitch * rows;
    for (ptrdiff_t z = lo[2]; z < hi[2]; z++) {
        for (ptrdiff_t y = lo[1]; y < hi[1]; y++) {
            const double *row = u + z * plane + y * pitch;
            double *out = un + z * plane + y * pitch;
            for (ptrdiff_t x = lo[0]; x < hi[0]; x++) {
                double sum = row[x - 1] + row[x + 1] + row[x - pitch] + row[x + pitch] +
                             row[x - plane] + row[x + plane];
                out[x] = row[x] + 0.1 * (sum - 6.0 * row[x]);
            }
        }
    }
}

/* The value that a point starts with, from its global coordinates. */
static inline double heat_start(long x, long y, long z)
{
    return (double)((x * 73 + y * 179 + z * 283) % 1009) / 1009.0;
}

#endif
