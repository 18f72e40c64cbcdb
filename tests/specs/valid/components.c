/* Kernels of components.yaml: planes of three values a point. */
PEAL_KERNEL(begin)(peal_tile t, PEAL_WRITE_C(double, f), PEAL_WRITE(double, u))
{
    PEAL_FOR_3D(t, x, y, z)
    {
        PEAL_AT(u, x, y, z) = (double)(x * 7 + y * 3 + z);
        for (int c = 0; c < 3; c++)
            PEAL_C(f, c, x, y, z) = (double)(x + 100 * y + 10000 * z + 1000000 * c);
    }
}

PEAL_KERNEL(spread)
(peal_tile t, PEAL_READ_C(double, f), PEAL_READ(double, u), PEAL_WRITE_C(double, g))
{
    PEAL_FOR_3D(t, x, y, z)
    {
        for (int c = 0; c < 3; c++)
            PEAL_C(g, c, x, y, z) =
                0.25 * (PEAL_C(f, c, x - 1, y, z) + PEAL_C(f, (c + 1) % 3, x + 1, y, z) +
                        PEAL_C(f, (c + 2) % 3, x, y - 1, z) + PEAL_AT(u, x, y + 1, z));
    }
}

PEAL_KERNEL(mean)(peal_tile t, PEAL_READ_C(double, p), PEAL_WRITE(double, u))
{
    PEAL_FOR_3D(t, x, y, z)
    {
        PEAL_AT(u, x, y, z) =
            (PEAL_C(p, 0, x, y, z) + PEAL_C(p, 1, x, y, z) + PEAL_C(p, 2, x, y, z)) / 3.0;
    }
}

PEAL_KERNEL(gather)(peal_tile t, PEAL_READ_C(double, g), PEAL_WRITE(double, edge))
{
    PEAL_FOR_3D(t, x, y, z)
    {
        PEAL_AT(edge, x, y, z) = PEAL_C(g, 2, x, y, z);
    }
}
