/* Kernels of the specs in this folder. */
PEAL_KERNEL(start)(peal_tile t, PEAL_WRITE(double, a))
{
    PEAL_FOR_2D(t, x, y)
    {
        PEAL_AT(a, x, y) = (double)((x * 37 + y * 101) % 64);
    }
}

PEAL_KERNEL(relax)(peal_tile t, PEAL_READ(double, a), PEAL_WRITE(double, b), PEAL_REDUCE(double, d))
{
    double sum = 0;
    PEAL_FOR_2D(t, x, y)
    {
        double v = 0.25 * (PEAL_AT(a, x - 1, y) + PEAL_AT(a, x + 1, y) + PEAL_AT(a, x, y - 1) +
                           PEAL_AT(a, x, y + 1));
        sum += (v - PEAL_AT(a, x, y)) * (v - PEAL_AT(a, x, y));
        PEAL_AT(b, x, y) = v;
    }
    PEAL_PARTIAL(d, sum);
}

PEAL_KERNEL(greedy)(peal_tile t, PEAL_READ(double, a), PEAL_WRITE(double, b))
{
    PEAL_FOR_2D(t, x, y)
    {
        PEAL_AT(b, x, y) = PEAL_AT(a, x - 1, y); /* its task declares the point itself only */
    }
}
