/* The exchange benchmark's application, the same for peal and its peers: heat conduction on a
 * periodic grid of doubles, 7 points. A rank owns nx * ny * nz points with
 * one halo point on every side; point (x, y, z), each from 0 to n + 1, is
 * u[z * plane + y * pitch + x]. */
#ifndef PEAL_BENCH_BODIES_HEAT_H
#define PEAL_BENCH_BODIES_HEAT_H

#include "../measure.h"

#include <stddef.h>

typedef struct heat_grid {
    ptrdiff_t n[3], pitch, plane;
    long first_x, global_x; /* my first column and the number of all */
} heat_grid;

/* A dense grid: nx columns from first_x on, of global_x in all; n rows and planes. */
static inline heat_grid heat_dense(long nx, long n, long first_x, long global_x)
{
    return (heat_grid){{nx, n, n}, nx + 2, (nx + 2) * (n + 2), first_x, global_x};
}

static inline size_t heat_points(const heat_grid *g)
{
    return (size_t)(g->plane * (g->n[2] + 2));
}

/* One step on the points from lo to before hi, counted from 1. */
static inline void heat_box(const heat_grid *g, const double *restrict u, double *restrict un,
                            const ptrdiff_t lo[3], const ptrdiff_t hi[3])
{
    const ptrdiff_t p = g->pitch, q = g->plane, x0 = lo[0], x1 = hi[0];
    for (ptrdiff_t z = lo[2]; z < hi[2]; z++) {
        for (ptrdiff_t y = lo[1]; y < hi[1]; y++) {
            const double *c = u + z * q + y * p;
            double *out = un + z * q + y * p;
            for (ptrdiff_t x = x0; x < x1; x++) {
                const double *s = c + x;
                double sum = s[-1] + s[1] + s[-p] + s[p] + s[-q] + s[q];
                out[x] = s[0] + 0.125 * (sum - 6.0 * s[0]);
            }
        }
    }
}

/* One step on all points of the columns [x0, x1). */
static inline void heat_step(const heat_grid *g, const double *restrict u, double *restrict un,
                             ptrdiff_t x0, ptrdiff_t x1)
{
    const ptrdiff_t lo[3] = {x0, 1, 1}, hi[3] = {x1, g->n[1] + 1, g->n[2] + 1};
    heat_box(g, u, un, lo, hi);
}

/* One step on the points that need no halo point, */
static inline void heat_inner(const heat_grid *g, const double *restrict u, double *restrict un)
{
    const ptrdiff_t lo[3] = {2, 2, 2}, hi[3] = {g->n[0], g->n[1], g->n[2]};
    heat_box(g, u, un, lo, hi);
}

/* and on the others: two planes, of the planes between two rows, of the rows between two ends. */
static inline void heat_shell(const heat_grid *g, const double *restrict u, double *restrict un)
{
    for (int axis = 0; axis < 3; axis++) {
        for (int side = 0; side < 2; side++) {
            ptrdiff_t lo[3], hi[3];
            for (int k = 0; k < 3; k++) {
                lo[k] = k > axis ? 2 : 1;
                hi[k] = k > axis ? g->n[k] : g->n[k] + 1;
            }
            lo[axis] = side ? g->n[axis] : 1;
            hi[axis] = lo[axis] + 1;
            heat_box(g, u, un, lo, hi);
        }
    }
}

/* Own points get their start value, halo points a value that shows when it is used. */
static inline void heat_start(const heat_grid *g, double *u)
{
    for (ptrdiff_t z = 0; z < g->n[2] + 2; z++) {
        for (ptrdiff_t y = 0; y < g->n[1] + 2; y++) {
            for (ptrdiff_t x = 0; x < g->n[0] + 2; x++) {
                bool own = x > 0 && x <= g->n[0] && y > 0 && y <= g->n[1] && z > 0 && z <= g->n[2];
                long value = ((g->first_x + x - 1) * 73 + (y - 1) * 179 + (z - 1) * 283) % 1009;
                u[z * g->plane + y * g->pitch + x] = own ? (double)value / 1009.0 : -1e6;
            }
        }
    }
}

static inline uint64_t heat_digest(const heat_grid *g, const double *u)
{
    uint64_t sum = 0;
    for (ptrdiff_t z = 0; z < g->n[2]; z++) {
        for (ptrdiff_t y = 0; y < g->n[1]; y++) {
            for (ptrdiff_t x = 0; x < g->n[0]; x++) {
                uint64_t number = (uint64_t)((z * g->n[1] + y) * g->global_x + g->first_x + x);
                ptrdiff_t at = (z + 1) * g->plane + (y + 1) * g->pitch + x + 1;
                sum += bench_hash(number, bench_bits_f64(u[at]));
            }
        }
    }
    return sum;
}

/* All halo points of a grid that is one rank's alone. */
static inline void heat_wrap(const heat_grid *g, double *u)
{
    const ptrdiff_t *n = g->n, p = g->pitch, q = g->plane;
    for (ptrdiff_t z = 0; z < n[2] + 2; z++) {
        for (ptrdiff_t y = 0; y < n[1] + 2; y++) {
            for (ptrdiff_t x = 0; x < n[0] + 2; x++) {
                ptrdiff_t from = ((z + n[2] - 1) % n[2] + 1) * q + ((y + n[1] - 1) % n[1] + 1) * p +
                                 (x + n[0] - 1) % n[0] + 1;
                u[z * q + y * p + x] = u[from];
            }
        }
    }
}

/* The digest of columns [first_x, first_x + columns) after so many steps on a grid of ranks * n by
 * n by n points, by one thread; 0: no memory. */
static inline uint64_t heat_reference(int n, int ranks, int steps, long first_x, long columns)
{
    const heat_grid g = heat_dense((long)n * ranks, n, 0, (long)n * ranks);
    double *u = malloc(heat_points(&g) * sizeof(double));
    double *un = malloc(heat_points(&g) * sizeof(double));
    uint64_t digest = 0;
    if (u && un) {
        heat_start(&g, u);
        for (int step = 0; step < steps; step++) {
            heat_wrap(&g, u);
            heat_step(&g, u, un, 1, g.n[0] + 1);
            double *other = u;
            u = un;
            un = other;
        }
        heat_grid part = g;
        part.n[0] = columns;
        part.first_x = first_x;
        digest = heat_digest(&part, u + first_x);
    }
    free(u);
    free(un);
    return digest;
}

#endif
