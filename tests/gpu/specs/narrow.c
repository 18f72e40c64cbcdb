/* Kernel of narrow.yaml. */
PEAL_KERNEL(mark)(peal_tile t, PEAL_WRITE(double, f))
{
    PEAL_FOR_1D(t, x)
        PEAL_AT(f, x) = (double)x;
}

PEAL_KERNEL(see)(peal_tile t, PEAL_READ(double, f), PEAL_WRITE(double, g))
{
    PEAL_FOR_1D(t, x)
        PEAL_AT(g, x) = PEAL_AT(f, x - 1) + PEAL_AT(f, x + 1);
}
