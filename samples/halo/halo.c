/* A smoothing sweep on a ring with walls, and the two kernels of a halo exchange written by hand.
 * pack and unpack serve all sides: the box of the task says which points they visit. */

/* A plate with a checkerboard of warm squares; the walls beyond y = 0 and y = ny - 1 are at 0
 * and 1. */
PEAL_KERNEL(start)(peal_tile t, PEAL_WRITE(float, u), PEAL_WRITE(float, v), long nx, long ny)
{
    PEAL_FOR_2D(t, x, y) {
        long column = 6 * (long)x / nx, row = 4 * (long)y / ny;
        float value = y < 0 ? 0.0f : y >= ny ? 1.0f : (float)((column + row) % 2);
        PEAL_AT(u, x, y) = value;
        PEAL_AT(v, x, y) = value;
    }
}

/* A buffer with a box is addressed as the field is: by global coordinates. */
PEAL_KERNEL(pack)(peal_tile t, PEAL_READ(float, u), PEAL_WRITE(float, message))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(message, x, y) = PEAL_AT(u, x, y);
    }
}

PEAL_KERNEL(unpack)(peal_tile t, PEAL_READ(float, message), PEAL_WRITE(float, u))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(u, x, y) = PEAL_AT(message, x, y);
    }
}

PEAL_KERNEL(relax)(peal_tile t, PEAL_READ(float, u), PEAL_WRITE(float, v))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(v, x, y) = 0.25f * (PEAL_AT(u, x - 1, y) + PEAL_AT(u, x + 1, y) +
                                    PEAL_AT(u, x, y - 1) + PEAL_AT(u, x, y + 1));
    }
}

/* How far the last sweep moved the points. */
PEAL_KERNEL(measure)(peal_tile t, PEAL_READ(float, u), PEAL_READ(float, v), PEAL_REDUCE(double, d2))
{
    double sum = 0;
    PEAL_FOR_2D(t, x, y) {
        double d = (double)PEAL_AT(u, x, y) - PEAL_AT(v, x, y);
        sum += d * d;
    }
    PEAL_PARTIAL(d2, sum);
}
