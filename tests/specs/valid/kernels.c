/* Kernels of the valid specs. */
PEAL_KERNEL(relax)(peal_tile t, PEAL_READ(double, a), PEAL_WRITE(double, b))
{
    PEAL_FOR_2D(t, x, y)
    {
        PEAL_AT(b, x, y) = 0.25 * (PEAL_AT(a, x - 1, y) + PEAL_AT(a, x + 1, y) +
                                   PEAL_AT(a, x, y - 1) + PEAL_AT(a, x, y + 1));
    }
}

PEAL_KERNEL(fill)(peal_tile t, PEAL_WRITE(double, p))
{
    PEAL_FOR(t, i, 16)
    {
        p[i] = (double)i;
    }
}

PEAL_KERNEL(total)(peal_tile t, PEAL_READ(double, a), PEAL_REDUCE(double, d))
{
    double sum = 0;
    PEAL_FOR_1D(t, x)
    {
        sum += PEAL_AT(a, x) + (double)x;
    }
    PEAL_PARTIAL(d, sum);
}

PEAL_KERNEL(climb)(peal_tile t, PEAL_WRITE(double, u))
{
    PEAL_FOR_1D(t, x)
    {
        PEAL_AT(u, x) = (double)(x * x % 97);
    }
}

PEAL_KERNEL(blur)(peal_tile t, PEAL_READ(double, u), PEAL_WRITE(double, v))
{
    PEAL_FOR_1D(t, x)
    {
        PEAL_AT(v, x) = 0.25 * PEAL_AT(u, x - 1) + 0.5 * PEAL_AT(u, x) + 0.3 * PEAL_AT(u, x + 1);
    }
}

PEAL_KERNEL(lean)(peal_tile t, PEAL_READ(double, u), PEAL_WRITE(double, v))
{
    PEAL_FOR_1D(t, x)
    {
        PEAL_AT(v, x) = 0.6 * PEAL_AT(u, x) + 0.3 * PEAL_AT(u, x + 1);
    }
}

PEAL_KERNEL(halve)(peal_tile t, PEAL_UPDATE(double, u))
{
    PEAL_FOR_1D(t, x)
    {
        PEAL_AT(u, x) *= 0.5;
    }
}

/* ---- Walls, at whose ends `ghost` is the field's second parameter ---- */

PEAL_KERNEL(start)(peal_tile t, PEAL_WRITE(double, u), PEAL_WRITE(double, v))
{
    PEAL_FOR_2D(t, x, y)
    {
        PEAL_AT(u, x, y) = (double)((x * 7 + y * 13) % 11);
        PEAL_AT(v, x, y) = (double)((x * 5 + y * 3) % 7);
    }
}

PEAL_KERNEL(drive)(peal_tile t, PEAL_WRITE(double, u), double time)
{
    PEAL_FOR_2D(t, x, y)
    {
        PEAL_AT(u, x, y) = time * (1.0 - time) + 0.125 * (double)y;
    }
}

PEAL_KERNEL(leave)(peal_tile t, PEAL_READ(double, u), PEAL_WRITE(double, ghost))
{
    PEAL_FOR_2D(t, x, y)
    {
        PEAL_AT(ghost, x, y) = PEAL_AT(u, x - 1, y);
    }
}

/* wall: the first point beyond the end; a ghost point takes the value of its mirror image. */
PEAL_KERNEL(reflect)(peal_tile t, PEAL_READ(double, u), PEAL_WRITE(double, ghost), long wall)
{
    PEAL_FOR_2D(t, x, y)
    {
        PEAL_AT(ghost, x, y) = PEAL_AT(u, x, wall < 0 ? -1 - y : 2 * wall - 1 - y);
    }
}

PEAL_KERNEL(advance)(peal_tile t, PEAL_READ(double, u), PEAL_READ(double, v), PEAL_WRITE(double, w))
{
    PEAL_FOR_2D(t, x, y)
    {
        double sum = PEAL_AT(u, x - 1, y) + PEAL_AT(u, x + 1, y) + PEAL_AT(u, x, y - 1) +
                     PEAL_AT(u, x, y + 1);
        PEAL_AT(w, x, y) = PEAL_AT(u, x, y) + 0.25 * sum - PEAL_AT(v, x, y);
    }
}

/* Corners, too. */
PEAL_KERNEL(advance_all)(peal_tile t, PEAL_READ(double, u), PEAL_WRITE(double, w))
{
    PEAL_FOR_2D(t, x, y)
    {
        double sum = 0;
        for (long j = -2; j <= 2; j++)
            for (long i = -2; i <= 2; i++)
                sum += PEAL_AT(u, x + i, y + j) * (double)(3 + i - j);
        PEAL_AT(w, x, y) = 0.013 * sum;
    }
}
