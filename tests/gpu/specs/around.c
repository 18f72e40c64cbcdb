/* Kernels of around.yaml (tiles that read two points far, or one, or their own) and slices.yaml. */

PEAL_KERNEL(start_plane)(peal_tile t, PEAL_WRITE(double, u))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(u, x, y) = (double)((x * x + 3 * y) % 97);
    }
}

PEAL_KERNEL(around)(peal_tile t, PEAL_READ(double, u), PEAL_WRITE(double, v))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(v, x, y) = 0.5 * PEAL_AT(u, x, y) +
                           0.125 * (PEAL_AT(u, x - 2, y) + PEAL_AT(u, x + 2, y)) +
                           0.125 * (PEAL_AT(u, x, y - 2) + PEAL_AT(u, x, y + 2));
    }
}

PEAL_KERNEL(keep)(peal_tile t, PEAL_READ(double, u), PEAL_WRITE(double, v))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(v, x, y) = PEAL_AT(u, x, y);
    }
}

PEAL_KERNEL(nearby)(peal_tile t, PEAL_READ(double, v), PEAL_WRITE(double, u))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(u, x, y) = 0.5 * (PEAL_AT(v, x - 1, y) + PEAL_AT(v, x, y + 1));
    }
}

PEAL_KERNEL(slices)(peal_tile t, PEAL_WRITE(double, b), PEAL_REDUCE(double, s), long step)
{
    double sum = 0;

    for (int w = t.lo[3]; w < t.hi[3]; w++)
        PEAL_FOR_3D(t, x, y, z) {
            double value = (double)(x + 3 * y + 5 * z + 7 * w + step);
            PEAL_AT(b, x, y, z, w) = value;
            sum += value;
        }
    PEAL_PARTIAL(s, sum);
}
