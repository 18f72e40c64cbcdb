/* Steps of chains, and what comes between them. */
PEAL_KERNEL(start)(peal_tile t, PEAL_WRITE(float, a))
{
    PEAL_FOR_2D(t, x, y)
        PEAL_AT(a, x, y) = (float)((x * 37 + y * 11) % 64);
}

PEAL_KERNEL(poke)(peal_tile t, PEAL_WRITE(float, a), long value)
{
    PEAL_FOR_2D(t, x, y)
        PEAL_AT(a, x, y) = (float)value;
}

PEAL_KERNEL(relax)(peal_tile t, PEAL_READ(float, a), PEAL_WRITE(float, b))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(b, x, y) = 0.25f * (PEAL_AT(a, x - 1, y) + PEAL_AT(a, x + 1, y) +
                                    PEAL_AT(a, x, y - 1) + PEAL_AT(a, x, y + 1));
    }
}

PEAL_KERNEL(look)(peal_tile t, PEAL_READ(float, a), PEAL_WRITE(float, c))
{
    PEAL_FOR_2D(t, x, y)
        PEAL_AT(c, x, y) = PEAL_AT(a, x - 1, y) + PEAL_AT(a, x + 1, y);
}

PEAL_KERNEL(further)(peal_tile t, PEAL_READ(float, a), PEAL_WRITE(float, c))
{
    PEAL_FOR_2D(t, x, y)
        PEAL_AT(c, x, y) = PEAL_AT(a, x - 2, y) + PEAL_AT(a, x, y + 2);
}

PEAL_KERNEL(mix)(peal_tile t, PEAL_READ(float, a), PEAL_READ(float, c), PEAL_WRITE(float, b))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(b, x, y) = 0.25f * (PEAL_AT(a, x - 1, y) + 2 * PEAL_AT(c, x + 1, y));
    }
}
