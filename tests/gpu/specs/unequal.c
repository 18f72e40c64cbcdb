/* Points of the lower left corner are relaxed many times, in place of once. */
PEAL_KERNEL(begin)(peal_tile t, PEAL_WRITE(float, a), PEAL_WRITE(float, b))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(a, x, y) = (float)((5 * x + 11 * y) % 29);
        PEAL_AT(b, x, y) = PEAL_AT(a, x, y);
    }
}

PEAL_KERNEL(relax)(peal_tile t, PEAL_READ(float, a), PEAL_WRITE(float, b))
{
    PEAL_FOR_2D(t, x, y) {
        float around = PEAL_AT(a, x - 1, y) + PEAL_AT(a, x + 1, y) + PEAL_AT(a, x, y - 1) +
                       PEAL_AT(a, x, y + 1);
        float value = PEAL_AT(a, x, y);
        int times = x < 30 && y < 20 ? 60 : 1;
        for (int i = 0; i < times; i++)
            value = 0.5f * value + 0.125f * around;
        PEAL_AT(b, x, y) = value;
    }
}
