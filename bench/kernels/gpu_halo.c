/* The tasks of the GPU halo benchmark, as peal compiles them: fill, advance and check the field,
 * pack and unpack the faces of a ring, and the interior task, which spins for a while. */

/* What the point of the whole field holds at the beginning; see halo.cuh. */
static inline double halo_value(unsigned long long number)
{
    unsigned long long h = (number + 1) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
    return (double)(h >> 12);
}

PEAL_KERNEL(fill)(peal_tile t, PEAL_WRITE(double, u), long nx, long ny)
{
    PEAL_FOR_3D(t, x, y, z) {
        PEAL_AT(u, x, y, z) = halo_value((unsigned long long)(x + nx * (y + ny * (long)z)));
    }
}

/* Every step of a check sends other values: old ones in the halo are found. */
PEAL_KERNEL(advance)(peal_tile t, PEAL_UPDATE(double, u))
{
    PEAL_FOR_3D(t, x, y, z) {
        PEAL_AT(u, x, y, z) += 1;
    }
}

/* Counts the points, halo included, that hold their owner's value after so many steps, and those
 * that do not. Points around several tiles count several times. */
PEAL_KERNEL(check)(peal_tile t, PEAL_READ(double, u), PEAL_REDUCE(int64_t, right),
                   PEAL_REDUCE(int64_t, wrong), long nx, long ny, long nz, long ghost, long steps)
{
    int64_t good = 0, bad = 0;
    peal_tile wide = t;
    for (int k = 0; k < (nz > 0 ? 3 : 1); k++) {
        wide.lo[k] -= (int)ghost;
        wide.hi[k] += (int)ghost;
    }
    const long depth = nz > 0 ? nz : 1;
    PEAL_FOR_3D(wide, x, y, z) {
        const long gx = (x + nx) % nx, gy = (y + ny) % ny, gz = (z + depth) % depth;
        const double value = halo_value((unsigned long long)(gx + nx * (gy + ny * gz)));
        const bool same = PEAL_AT(u, x, y, z) == value + (double)steps;
        good += same;
        bad += !same;
    }
    PEAL_PARTIAL(right, good);
    PEAL_PARTIAL(wrong, bad);
}

PEAL_KERNEL(pack)(peal_tile t, PEAL_READ(double, u), PEAL_WRITE(double, out))
{
    PEAL_FOR_1D(t, x) {
        PEAL_AT(out, x) = PEAL_AT(u, x);
    }
}

/* A rank's part is as wide as two faces; what came for the lower one lies in the lower half. */
PEAL_KERNEL(unpack)
(peal_tile t, PEAL_READ(double, in), PEAL_WRITE(double, u), long middle, long face)
{
    PEAL_FOR_1D(t, x) {
        PEAL_AT(u, x < middle ? x - face : x + face) = PEAL_AT(in, x);
    }
}

/* 64 tiles, each of which lasts so many cycles on a GPU. */
PEAL_KERNEL(interior)(peal_tile t, PEAL_WRITE(double, done), long cycles)
{
#ifdef __CUDACC__
    const long long start = clock64();
    while (clock64() - start < cycles) {
    }
#endif
    PEAL_ONE(t)
    {
        done[0] = (double)cycles;
    }
}
