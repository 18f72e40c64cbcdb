/* The kernels of files.yaml and files_until.yaml: a relaxation, and its greatest value. */
PEAL_KERNEL(start)(peal_tile t, PEAL_WRITE(double, a), PEAL_WRITE(double, b))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(a, x, y) = x * 7 % 13 + y;
        PEAL_AT(b, x, y) = 0;
    }
}

PEAL_KERNEL(relax)(peal_tile t, PEAL_READ(double, a), PEAL_WRITE(double, b),
                   PEAL_REDUCE(double, top))
{
    double most = 0;
    PEAL_FOR_2D(t, x, y) {
        double v = 0.25 * (PEAL_AT(a, x - 1, y) + PEAL_AT(a, x + 1, y) + PEAL_AT(a, x, y - 1) +
                           PEAL_AT(a, x, y + 1));
        PEAL_AT(b, x, y) = v;
        most = v > most ? v : most;
    }
    PEAL_PARTIAL(top, most);
}
