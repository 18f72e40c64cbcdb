/* Means over stars of a radius that is an argument. */
PEAL_KERNEL(fill)(peal_tile t, PEAL_WRITE(float, u))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(u, x, y) = (float)((7 * x + 13 * y) % 31);
    }
}

PEAL_KERNEL(blur)(peal_tile t, PEAL_READ(float, u), PEAL_WRITE(float, v), long radius)
{
    PEAL_FOR_2D(t, x, y) {
        float sum = PEAL_AT(u, x, y);
        for (long i = 1; i <= radius; i++)
            sum += PEAL_AT(u, x - i, y) + PEAL_AT(u, x + i, y) + PEAL_AT(u, x, y - i) +
                   PEAL_AT(u, x, y + i);
        PEAL_AT(v, x, y) = sum / (float)(4 * radius + 1);
    }
}

PEAL_KERNEL(blend)(peal_tile t, PEAL_READ(float, v), PEAL_UPDATE(float, u))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(u, x, y) = 0.5f * (PEAL_AT(u, x, y) + PEAL_AT(v, x, y));
    }
}
