/* Kernels of walls.yaml. */
PEAL_KERNEL(start)(peal_tile t, PEAL_WRITE(double, u), PEAL_WRITE(double, v), PEAL_WRITE(double, p),
                   PEAL_WRITE(double, q))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(u, x, y) = PEAL_AT(v, x, y) = (double)((x * 7 + y * 13) % 11);
        PEAL_AT(p, x, y) = PEAL_AT(q, x, y) = (double)((x * 5 + y * 3) % 7);
    }
}

PEAL_KERNEL(drive)(peal_tile t, PEAL_WRITE(double, u), double time)
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(u, x, y) = time * (1.0 - time) + 0.125 * (double)y;
    }
}

/* wall: the first point beyond the end. */
PEAL_KERNEL(mirror)(peal_tile t, PEAL_READ(double, u), PEAL_WRITE(double, ghost), long wall)
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(ghost, x, y) = PEAL_AT(u, x, wall < 0 ? -1 - y : 2 * wall - 1 - y);
    }
}

PEAL_KERNEL(all)(peal_tile t, PEAL_READ(double, u), PEAL_WRITE(double, v))
{
    PEAL_FOR_2D(t, x, y) {
        double sum = 0;
        for (long j = -2; j <= 2; j++)
            for (long i = -2; i <= 2; i++)
                sum += PEAL_AT(u, x + i, y + j) * (double)(3 + i - j);
        PEAL_AT(v, x, y) = 0.013 * sum;
    }
}

PEAL_KERNEL(faces)(peal_tile t, PEAL_READ(double, p), PEAL_WRITE(double, q))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(q, x, y) = 0.25 * (PEAL_AT(p, x - 1, y) + PEAL_AT(p, x + 1, y) +
                                   PEAL_AT(p, x, y - 1) + PEAL_AT(p, x, y + 1));
    }
}
