/* Kernels of odd.yaml: points of a colour, of which those at the first and the last column are
 * neighbours. */
PEAL_KERNEL(start)(peal_tile t, PEAL_WRITE(double, u))
{
    PEAL_FOR_2D(t, i, j)
        PEAL_AT(u, i, j) = 0.5 * i + j * j;
}
PEAL_KERNEL(relax)(peal_tile t, PEAL_UPDATE(double, u), long s)
{
    PEAL_FOR_2D_EVEN(t, i, j, s)
    {
        PEAL_AT(u, i, j) = 0.125 * (PEAL_AT(u, i - 1, j) + PEAL_AT(u, i + 1, j) +
                                    PEAL_AT(u, i, j - 1) + PEAL_AT(u, i, j + 1));
    }
}
