/* The problem of the Jacobi benchmark apart from its body: start values, digest and norm of rows
 * [first, first + rows) of a mesh with n columns and n rows. A rank stores its rows with one more
 * on either side, n floats each. Mesh rows 0 and n - 1 repeat rows n - 2 and 1; columns 0 and n - 1
 * are fixed. */
#ifndef PEAL_BENCH_BODIES_MESH_H
#define PEAL_BENCH_BODIES_MESH_H

#include "../measure.h"
#include "jacobi.h"

#include <math.h>

typedef struct mesh {
    long n, first, rows;
} mesh;

static inline float mesh_wall(long n, long row)
{
    return (float)sin(2.0 * 3.14159265358979323846 * (double)row / (double)(n - 1));
}

static inline void mesh_start(const mesh *m, float *a)
{
    memset(a, 0, (size_t)(m->rows + 2) * (size_t)m->n * sizeof(float));
    for (long y = 0; y < m->rows + 2; y++) {
        a[y * m->n] = a[y * m->n + m->n - 1] = mesh_wall(m->n, m->first - 1 + y);
    }
}

/* Over the rank's own points, numbered as in a mesh that begins at mesh row 1. */
static inline uint64_t mesh_digest(const mesh *m, const float *a)
{
    uint64_t sum = 0;
    for (long y = 0; y < m->rows; y++) {
        for (long x = 0; x < m->n; x++) {
            sum += bench_hash((uint64_t)((m->first - 1 + y) * m->n + x),
                              bench_bits_f32(a[(y + 1) * m->n + x]));
        }
    }
    return sum;
}

/* The sum of squares of what one step would change. */
static inline double mesh_change(const mesh *m, const float *a)
{
    double sum = 0;
    for (long y = 1; y <= m->rows; y++) {
        for (long x = 1; x < m->n - 1; x++) {
            const float *p = a + y * m->n + x;
            float d = 0.25f * (p[-1] + p[1] + p[-m->n] + p[m->n]) - *p;
            sum += (double)d * d;
        }
    }
    return sum;
}

/* Digest of some rows and norm of all after so many steps, computed by one thread; false: no
 * memory.
 */
static inline bool mesh_reference(const mesh *part, int steps, uint64_t *digest, double *norm)
{
    const long n = part->n;
    const mesh m = {n, 1, n - 2};
    size_t bytes = (size_t)n * (size_t)n * sizeof(float);
    float *a = malloc(bytes), *an = malloc(bytes);
    bool good = a && an;
    for (int step = -1; good && step < steps; step++) {
        if (step < 0) {
            mesh_start(&m, a);
            mesh_start(&m, an);
        } else {
            jacobi_relax(a, an, n, 1, n - 1, 1, n - 1);
            float *other = a;
            a = an;
            an = other;
        }
        memcpy(a + 1, a + (n - 2) * n + 1, (size_t)(n - 2) * sizeof(float));
        memcpy(a + (n - 1) * n + 1, a + n + 1, (size_t)(n - 2) * sizeof(float));
    }
    if (good) {
        *digest = mesh_digest(part, a + (part->first - 1) * n);
        *norm = sqrt(mesh_change(&m, a));
    }
    free(a);
    free(an);
    return good;
}

/* How many steps are verified: enough for the norms that NVIDIA's samples print for step 100, few
 * where a step takes long. */
static inline int mesh_verified_steps(long n)
{
    return n <= 1024 ? 100 : 4;
}

/* The norm printed for step 100, where there is one; else 0. */
static inline double mesh_known_norm(long n)
{
    return n == 256 ? 0.110318 : n == 1024 ? 0.224180 : 0;
}

/* Whether the digest of these rows after mesh_verified_steps is that of one thread, whose norm is
 * that of the table. */
static inline bool mesh_verified(const mesh *part, uint64_t digest)
{
    uint64_t right;
    double norm, known = mesh_known_norm(part->n);
    return mesh_reference(part, mesh_verified_steps(part->n), &right, &norm) && digest == right &&
           (known == 0 || fabs(norm - known) <= 1e-5 * known);
}

#endif
