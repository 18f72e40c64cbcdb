/* Steps that tell whether fields, messages or steps have been taken for others. */
PEAL_KERNEL(mix)(peal_tile t, PEAL_READ(double, a), PEAL_UPDATE(double, b))
{
    PEAL_FOR_2D(t, x, y)
        PEAL_AT(b, x, y) += 3 * PEAL_AT(a, x, y - 1) + PEAL_AT(a, x, y + 1) + x + 7 * y + 1;
}

PEAL_KERNEL(pass)(peal_tile t, PEAL_READ(double, a), PEAL_UPDATE(double, b))
{
    PEAL_FOR_2D(t, x, y)
        PEAL_AT(b, x, y) = 3 * PEAL_AT(b, x, y) + PEAL_AT(a, x, y) + 1;
}
