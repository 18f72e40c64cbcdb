/* Halos that go one way. */
PEAL_KERNEL(fill)(peal_tile t, PEAL_WRITE(double, u), PEAL_WRITE(double, v))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(u, x, y) = (double)(x + 3 * y % 7);
        PEAL_AT(v, x, y) = (double)(x + 3 * y % 7);
    }
}

PEAL_KERNEL(carry)
(peal_tile t, PEAL_READ(double, u), PEAL_WRITE(double, v), PEAL_REDUCE(double, heat))
{
    double sum = 0;
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(v, x, y) = 0.5 * (PEAL_AT(u, x, y) + PEAL_AT(u, x, y - 1));
        sum += PEAL_AT(u, x, y);
    }
    PEAL_PARTIAL(heat, sum);
}
