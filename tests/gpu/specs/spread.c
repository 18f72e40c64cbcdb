/* Relaxation of two and three axes, and what it changes. */
PEAL_KERNEL(begin)(peal_tile t, PEAL_WRITE(float, a), PEAL_WRITE(float, b))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(a, x, y) = (float)((x * 7 + y * 13) % 31);
        PEAL_AT(b, x, y) = PEAL_AT(a, x, y);
    }
}

PEAL_KERNEL(fill)(peal_tile t, PEAL_WRITE(double, u), PEAL_WRITE(double, v))
{
    PEAL_FOR_3D(t, x, y, z) {
        PEAL_AT(u, x, y, z) = (double)((x * 5 + y * 11 + z * 17) % 37);
        PEAL_AT(v, x, y, z) = PEAL_AT(u, x, y, z);
    }
}

PEAL_KERNEL(relax)(peal_tile t, PEAL_READ(float, a), PEAL_WRITE(float, b))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(b, x, y) = 0.25f * (PEAL_AT(a, x - 1, y) + PEAL_AT(a, x + 1, y) +
                                    PEAL_AT(a, x, y - 1) + PEAL_AT(a, x, y + 1));
    }
}

PEAL_KERNEL(spread)(peal_tile t, PEAL_READ(double, u), PEAL_WRITE(double, v))
{
    PEAL_FOR_3D(t, x, y, z) {
        PEAL_AT(v, x, y, z) =
            0.125 * (2.0 * PEAL_AT(u, x, y, z) + PEAL_AT(u, x - 1, y, z) + PEAL_AT(u, x + 1, y, z) +
                     PEAL_AT(u, x, y - 1, z) + PEAL_AT(u, x, y + 1, z) + PEAL_AT(u, x, y, z - 1) +
                     PEAL_AT(u, x, y, z + 1));
    }
}

PEAL_KERNEL(change)(peal_tile t, PEAL_READ(float, a), PEAL_READ(float, b), PEAL_REDUCE(double, sum))
{
    double all = 0;

    PEAL_FOR_2D(t, x, y) {
        double d = (double)PEAL_AT(b, x, y) - PEAL_AT(a, x, y);
        all += d * d;
    }
    PEAL_PARTIAL(sum, all);
}
