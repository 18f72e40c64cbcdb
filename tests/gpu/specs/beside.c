/* Means of rows before this one. */
PEAL_KERNEL(fill)(peal_tile t, PEAL_WRITE(float, u))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(u, x, y) = (float)((7 * x + 13 * y) % 31);
    }
}

PEAL_KERNEL(behind)(peal_tile t, PEAL_READ(float, u), PEAL_WRITE(float, v))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(v, x, y) = 0.5f * (PEAL_AT(u, x, y - 1) + PEAL_AT(u, x, y - 3));
    }
}

PEAL_KERNEL(blend)(peal_tile t, PEAL_READ(float, v), PEAL_UPDATE(float, u))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(u, x, y) = 0.5f * (PEAL_AT(u, x, y) + PEAL_AT(v, x, y));
    }
}
