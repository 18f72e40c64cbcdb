/* Kernels of around.yaml: tiles that read two points far, or one, or their own. */

PEAL_KERNEL(start_plane)(peal_tile t, PEAL_WRITE(double, u))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(u, x, y) = (double)((x * x + 3 * y) % 97);
    }
}

PEAL_KERNEL(around)(peal_tile t, PEAL_READ(double, u), PEAL_WRITE(double, v))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(v, x, y) = 0.5 * PEAL_AT(u, x, y) +
                           0.125 * (PEAL_AT(u, x - 2, y) + PEAL_AT(u, x + 2, y)) +
                           0.125 * (PEAL_AT(u, x, y - 2) + PEAL_AT(u, x, y + 2));
    }
}

PEAL_KERNEL(keep)(peal_tile t, PEAL_READ(double, u), PEAL_WRITE(double, v))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(v, x, y) = PEAL_AT(u, x, y);
    }
}

PEAL_KERNEL(nearby)(peal_tile t, PEAL_READ(double, v), PEAL_WRITE(double, u))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(u, x, y) = 0.5 * (PEAL_AT(v, x - 1, y) + PEAL_AT(v, x, y + 1));
    }
}
