/* The tasks of the GPU Jacobi benchmark, as peal compiles them: the mesh of samples/jacobi2d and
 * its body, with the squared change and without; the same body marching down columns with three
 * rows in registers; and the digest of a result. */
#include <math.h>

/* Row y of the field is row y + 1 of the mesh of n rows. */
PEAL_KERNEL(walls)(peal_tile t, PEAL_WRITE(float, a), PEAL_WRITE(float, an), long n)
{
    const double pi = 3.14159265358979323846;
    PEAL_FOR_2D(t, x, y) {
        float wall = (float)sin(2.0 * pi * (double)(y + 1) / (double)(n - 1));
        PEAL_AT(a, x, y) = wall;
        PEAL_AT(an, x, y) = wall;
    }
}

PEAL_KERNEL(relax)(peal_tile t, PEAL_READ(float, a), PEAL_WRITE(float, an))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(an, x, y) = 0.25f * (PEAL_AT(a, x - 1, y) + PEAL_AT(a, x + 1, y) +
                                     PEAL_AT(a, x, y - 1) + PEAL_AT(a, x, y + 1));
    }
}

PEAL_KERNEL(relax_norm)
(peal_tile t, PEAL_READ(float, a), PEAL_WRITE(float, an), PEAL_REDUCE(double, d2))
{
    double sum = 0;
    PEAL_FOR_2D(t, x, y) {
        float v = 0.25f * (PEAL_AT(a, x - 1, y) + PEAL_AT(a, x + 1, y) + PEAL_AT(a, x, y - 1) +
                           PEAL_AT(a, x, y + 1));
        float d = v - PEAL_AT(a, x, y);
        PEAL_AT(an, x, y) = v;
        sum += (double)d * d;
    }
    PEAL_PARTIAL(d2, sum);
}

/* Each thread has a column of the tile: rows are loaded once, but for the tile's first and last. */
PEAL_KERNEL(march)(peal_tile t, PEAL_READ(float, a), PEAL_WRITE(float, an))
{
    PEAL_FOR(t, i, t.hi[0] - t.lo[0]) {
        const int x = t.lo[0] + (int)i;
        float up = PEAL_AT(a, x, t.lo[1] - 1), mid = PEAL_AT(a, x, t.lo[1]);
        for (int y = t.lo[1]; y < t.hi[1]; y++) {
            const float down = PEAL_AT(a, x, y + 1);
            PEAL_AT(an, x, y) = 0.25f * (PEAL_AT(a, x - 1, y) + PEAL_AT(a, x + 1, y) + up + down);
            up = mid;
            mid = down;
        }
    }
}

PEAL_KERNEL(march_norm)
(peal_tile t, PEAL_READ(float, a), PEAL_WRITE(float, an), PEAL_REDUCE(double, d2))
{
    double sum = 0;
    PEAL_FOR(t, i, t.hi[0] - t.lo[0]) {
        const int x = t.lo[0] + (int)i;
        float up = PEAL_AT(a, x, t.lo[1] - 1), mid = PEAL_AT(a, x, t.lo[1]);
        for (int y = t.lo[1]; y < t.hi[1]; y++) {
            const float down = PEAL_AT(a, x, y + 1);
            const float v = 0.25f * (PEAL_AT(a, x - 1, y) + PEAL_AT(a, x + 1, y) + up + down);
            const float d = v - mid;
            PEAL_AT(an, x, y) = v;
            sum += (double)d * d;
            up = mid;
            mid = down;
        }
    }
    PEAL_PARTIAL(d2, sum);
}

/* As mesh_digest in bench/bodies/mesh.h: halves of 64-bit hashes, added up. */
PEAL_KERNEL(digest)
(peal_tile t, PEAL_READ(float, a), PEAL_REDUCE(int64_t, low), PEAL_REDUCE(int64_t, high), long n)
{
    int64_t sum_low = 0, sum_high = 0;
    PEAL_FOR_2D(t, x, y) {
        union {
            float value;
            unsigned bits;
        } point;
        point.value = PEAL_AT(a, x, y);
        unsigned long long h = (unsigned long long)(y * n + x) * 0x9e3779b97f4a7c15u ^ point.bits;
        h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
        h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
        h ^= h >> 32;
        sum_low += (int64_t)(h & 0xffffffffu);
        sum_high += (int64_t)(h >> 32);
    }
    PEAL_PARTIAL(low, sum_low);
    PEAL_PARTIAL(high, sum_high);
}
