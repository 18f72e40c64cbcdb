/* Horizontal diffusion as the weather model COSMO has it: fourth order, with a limiter, each level
 * by itself. Nothing but + - * and comparisons, so a CPU and a GPU compute the same bits. */

/* A hill of warm air on every level, the same one, and under it noise that differs from point to
 * point: diffusion takes the noise away and leaves the hill. */
PEAL_KERNEL(weather)(peal_tile t, PEAL_WRITE(double, in), long nx, long ny, double scale, long seed)
{
    PEAL_FOR_3D(t, x, y, z) {
        double hill = (double)x * (double)(nx - x) * (double)y * (double)(ny - y) * scale;
        long noise = (x * 37 + y * 101 + z * 53 + x * y + seed) % 64;
        PEAL_AT(in, x, y, z) = hill + 0.03125 * (double)noise;
    }
}

PEAL_KERNEL(laplacian)(peal_tile t, PEAL_READ(double, in), PEAL_WRITE(double, lap))
{
    PEAL_FOR_3D(t, x, y, z) {
        PEAL_AT(lap, x, y, z) =
            -4.0 * PEAL_AT(in, x, y, z) + (PEAL_AT(in, x - 1, y, z) + PEAL_AT(in, x + 1, y, z) +
                                           PEAL_AT(in, x, y - 1, z) + PEAL_AT(in, x, y + 1, z));
    }
}

/* What flows from a point to the one after it along x; uphill (the limiter) nothing does. */
PEAL_KERNEL(flux_x)
(peal_tile t, PEAL_READ(double, in), PEAL_READ(double, lap), PEAL_WRITE(double, flx))
{
    PEAL_FOR_3D(t, x, y, z) {
        double flow = PEAL_AT(lap, x + 1, y, z) - PEAL_AT(lap, x, y, z);
        double slope = PEAL_AT(in, x + 1, y, z) - PEAL_AT(in, x, y, z);
        PEAL_AT(flx, x, y, z) = flow * slope > 0.0 ? 0.0 : flow;
    }
}

/* The same along y. */
PEAL_KERNEL(flux_y)
(peal_tile t, PEAL_READ(double, in), PEAL_READ(double, lap), PEAL_WRITE(double, fly))
{
    PEAL_FOR_3D(t, x, y, z) {
        double flow = PEAL_AT(lap, x, y + 1, z) - PEAL_AT(lap, x, y, z);
        double slope = PEAL_AT(in, x, y + 1, z) - PEAL_AT(in, x, y, z);
        PEAL_AT(fly, x, y, z) = flow * slope > 0.0 ? 0.0 : flow;
    }
}

/* What flows in and out changes a point. */
PEAL_KERNEL(diffuse)
(peal_tile t, PEAL_READ(double, in), PEAL_READ(double, flx), PEAL_READ(double, fly),
 PEAL_WRITE(double, out), double coeff)
{
    PEAL_FOR_3D(t, x, y, z) {
        double gain = PEAL_AT(flx, x, y, z) - PEAL_AT(flx, x - 1, y, z) +
                      (PEAL_AT(fly, x, y, z) - PEAL_AT(fly, x, y - 1, z));
        PEAL_AT(out, x, y, z) = PEAL_AT(in, x, y, z) - coeff * gain;
    }
}

/* The sum of all points, which stays what it was, and the steepest step from a point to the next
 * one along x. */
PEAL_KERNEL(measure)
(peal_tile t, PEAL_READ(double, in), PEAL_REDUCE(double, total), PEAL_REDUCE(double, steepest))
{
    double sum = 0, most = 0;
    PEAL_FOR_3D(t, x, y, z) {
        double slope = PEAL_AT(in, x + 1, y, z) - PEAL_AT(in, x, y, z);
        slope = slope < 0 ? -slope : slope;
        sum += PEAL_AT(in, x, y, z);
        most = slope > most ? slope : most;
    }
    PEAL_PARTIAL(total, sum);
    PEAL_PARTIAL(steepest, most);
}
