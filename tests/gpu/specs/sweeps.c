/* Kernels of sweeps.yaml: red and black points in turn, of which only their neighbours are read. Of
 * `hidden` the text does not say which points it stores at. */
PEAL_KERNEL(start)(peal_tile t, PEAL_WRITE(double, u))
{
    PEAL_FOR_3D(t, i, j, k) {
        PEAL_AT(u, i, j, k) = (double)(i + 3 * j) + 0.125 * (double)(k * k);
    }
}

PEAL_KERNEL(relax)(peal_tile t, PEAL_UPDATE(double, u), long s)
{
    PEAL_FOR_3D_EVEN(t, i, j, k, s)
    {
        PEAL_AT(u, i, j, k) =
            0.125 * (PEAL_AT(u, i, j, k) + PEAL_AT(u, i - 1, j, k) + PEAL_AT(u, i + 1, j, k) +
                     PEAL_AT(u, i, j - 1, k) + PEAL_AT(u, i, j + 1, k) + PEAL_AT(u, i, j, k - 1) +
                     PEAL_AT(u, i, j, k + 1));
    }
}

PEAL_KERNEL(hidden)(peal_tile t, PEAL_UPDATE(double, u), long s)
{
    PEAL_FOR_3D_EVEN(t, i, j, k, s)
    {
        PEAL_AT(u, i + 0, j, k) =
            0.125 * (PEAL_AT(u, i, j, k) + PEAL_AT(u, i - 1, j, k) + PEAL_AT(u, i + 1, j, k) +
                     PEAL_AT(u, i, j - 1, k) + PEAL_AT(u, i, j + 1, k) + PEAL_AT(u, i, j, k - 1) +
                     PEAL_AT(u, i, j, k + 1));
    }
}
