/* Jacobi's method for Laplace's equation on a mesh that is periodic in y: every point between the
 * walls becomes the mean of its four neighbours. */

/* Both walls are hot along their first half and cold along the second. */
PEAL_KERNEL(walls)(peal_tile t, PEAL_WRITE(float, a), PEAL_WRITE(float, an), long ny)
{
    PEAL_FOR_2D(t, x, y) {
        float wall = 2 * y < ny ? 1.0f : -1.0f;
        PEAL_AT(a, x, y) = wall;
        PEAL_AT(an, x, y) = wall;
    }
}

/* One sweep, and the squared change that it makes: what `until` looks at. */
PEAL_KERNEL(relax)(peal_tile t, PEAL_READ(float, a), PEAL_WRITE(float, an), PEAL_REDUCE(double, d2))
{
    double sum = 0;
    PEAL_FOR_2D(t, x, y) {
        float v = 0.25f * (PEAL_AT(a, x - 1, y) + PEAL_AT(a, x + 1, y) + PEAL_AT(a, x, y - 1) +
                           PEAL_AT(a, x, y + 1));
        float d = v - PEAL_AT(a, x, y);
        PEAL_AT(an, x, y) = v;
        sum += (double)d * d;
    }
    PEAL_PARTIAL(d2, sum);
}
