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

/* Those of components-beside.yaml. */
PEAL_KERNEL(fill)(peal_tile t, PEAL_WRITE(double, u))
{
    PEAL_FOR_3D(t, x, y, z)
    {
        PEAL_AT(u, x, y, z) = (double)(x * 7 + y * 3 + z);
    }
}

PEAL_KERNEL(plane)(peal_tile t, PEAL_WRITE_C(double, p))
{
    PEAL_FOR_2D(t, x, y)
    {
        for (int c = 0; c < 3; c++)
            PEAL_C(p, c, x, y) = (double)(x + 100 * y + 10000 * c);
    }
}

PEAL_KERNEL(more)(peal_tile t, PEAL_UPDATE_C(double, p))
{
    PEAL_FOR_2D(t, x, y)
    {
        for (int c = 0; c < 3; c++)
            PEAL_C(p, c, x, y) += (double)c;
    }
}

PEAL_KERNEL(blur)(peal_tile t, PEAL_READ_C(double, p), PEAL_WRITE_C(double, q))
{
    PEAL_FOR_2D(t, x, y)
    {
        for (int c = 0; c < 3; c++)
            PEAL_C(q, c, x, y) = 0.5 * (PEAL_C(p, c, x - 1, y - 1) + PEAL_C(p, 2 - c, x + 1, y));
    }
}

PEAL_KERNEL(below)(peal_tile t, PEAL_READ_C(double, p), PEAL_UPDATE(double, u))
{
    PEAL_FOR_3D(t, x, y, z)
    {
        PEAL_AT(u, x, y, z) += PEAL_C(p, 0, x, y) - PEAL_C(p, 2, x, y);
    }
}

PEAL_KERNEL(floor)(peal_tile t, PEAL_READ_C(double, q), PEAL_WRITE(double, u))
{
    PEAL_FOR_3D(t, x, y, z)
    {
        PEAL_AT(u, x, y, z) = PEAL_C(q, 1, x, 0);
    }
}

/* Those of components-cut.yaml. */
PEAL_KERNEL(line)(peal_tile t, PEAL_WRITE_C(double, p))
{
    PEAL_FOR_1D(t, x)
    {
        for (int c = 0; c < 3; c++)
            PEAL_C(p, c, x) = (double)(x + 100 * c);
    }
}

PEAL_KERNEL(flat)(peal_tile t, PEAL_WRITE(double, u))
{
    PEAL_FOR_2D(t, x, y)
    {
        PEAL_AT(u, x, y) = (double)y;
    }
}

PEAL_KERNEL(along)(peal_tile t, PEAL_READ_C(double, p), PEAL_UPDATE(double, u))
{
    PEAL_FOR_2D(t, x, y)
    {
        PEAL_AT(u, x, y) += PEAL_C(p, 0, x - 1) + PEAL_C(p, 2, x + 1);
    }
}
