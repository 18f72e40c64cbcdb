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

PEAL_KERNEL(halve)(peal_tile t, PEAL_UPDATE(double, u))
{
    PEAL_FOR_1D(t, x)
    {
        PEAL_AT(u, x) *= 0.5;
    }
}
