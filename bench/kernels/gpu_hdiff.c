/* What the GPU benchmark of horizontal diffusion has beside the tasks of samples/hdiff, as peal
 * compiles it: a start, both fluxes in one task, and digests of a result. Start values and digests
 * are those of bench/bodies/hdiff.h. */

PEAL_KERNEL(start)(peal_tile t, PEAL_WRITE(double, in))
{
    PEAL_FOR_3D(t, x, y, z) {
        const long hill = ((long)x * 5 + (long)y * 3) % 512;
        const long noise = ((long)x * 37 + (long)y * 101 + (long)z * 53 + (long)x * y) % 64;
        PEAL_AT(in, x, y, z) =
            0.25 * (double)(hill < 256 ? hill : 512 - hill) + 0.03125 * (double)noise;
    }
}

PEAL_KERNEL(fluxes)
(peal_tile t, PEAL_READ(double, in), PEAL_READ(double, lap), PEAL_WRITE(double, flx),
 PEAL_WRITE(double, fly))
{
    PEAL_FOR_3D(t, x, y, z) {
        const double lap_here = PEAL_AT(lap, x, y, z), here = PEAL_AT(in, x, y, z);
        const double flow_x = PEAL_AT(lap, x + 1, y, z) - lap_here;
        const double flow_y = PEAL_AT(lap, x, y + 1, z) - lap_here;
        const double slope_x = PEAL_AT(in, x + 1, y, z) - here;
        const double slope_y = PEAL_AT(in, x, y + 1, z) - here;
        PEAL_AT(flx, x, y, z) = flow_x * slope_x > 0.0 ? 0.0 : flow_x;
        PEAL_AT(fly, x, y, z) = flow_y * slope_y > 0.0 ? 0.0 : flow_y;
    }
}

/* Over all levels, and over those that the CPU checks. */
PEAL_KERNEL(digest)
(peal_tile t, PEAL_READ(double, in), PEAL_REDUCE(int64_t, low), PEAL_REDUCE(int64_t, high),
 PEAL_REDUCE(int64_t, checked_low), PEAL_REDUCE(int64_t, checked_high), long nx, long ny,
 long levels)
{
    int64_t sum[4] = {0, 0, 0, 0};
    PEAL_FOR_3D(t, x, y, z) {
        union {
            double value;
            unsigned long long bits;
        } point;
        point.value = PEAL_AT(in, x, y, z);
        unsigned long long h =
            (unsigned long long)(x + nx * (y + ny * (long)z)) * 0x9e3779b97f4a7c15u ^ point.bits;
        h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
        h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
        h ^= h >> 32;
        const int64_t checked = z == 0 || z == 21 || z == levels - 1;
        sum[0] += (int64_t)(h & 0xffffffffu);
        sum[1] += (int64_t)(h >> 32);
        sum[2] += checked * (int64_t)(h & 0xffffffffu);
        sum[3] += checked * (int64_t)(h >> 32);
    }
    PEAL_PARTIAL(low, sum[0]);
    PEAL_PARTIAL(high, sum[1]);
    PEAL_PARTIAL(checked_low, sum[2]);
    PEAL_PARTIAL(checked_high, sum[3]);
}
