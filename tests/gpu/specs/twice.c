/* Relaxation that converges. */
PEAL_KERNEL(walls)(peal_tile t, PEAL_WRITE(float, a), PEAL_WRITE(float, b))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(a, x, y) = PEAL_AT(b, x, y) = (float)((3 * x + 5 * y) % 7);
    }
}

PEAL_KERNEL(relax)(peal_tile t, PEAL_READ(float, a), PEAL_WRITE(float, b), PEAL_REDUCE(double, r))
{
    double all = 0;
    PEAL_FOR_2D(t, x, y) {
        float v = 0.25f * (PEAL_AT(a, x - 1, y) + PEAL_AT(a, x + 1, y) + PEAL_AT(a, x, y - 1) +
                           PEAL_AT(a, x, y + 1));
        float d = v - PEAL_AT(a, x, y);
        PEAL_AT(b, x, y) = v;
        all += (double)d * d;
    }
    PEAL_PARTIAL(r, all);
}
