/* Kernels of the specs whose course only the run knows. */

PEAL_KERNEL(start)(peal_tile t, PEAL_WRITE(double, u))
{
    PEAL_FOR_1D(t, x) {
        PEAL_AT(u, x) = (double)(x * x % 97);
    }
}

PEAL_KERNEL(relax)(peal_tile t, PEAL_READ(double, u), PEAL_WRITE(double, v))
{
    PEAL_FOR_1D(t, x) {
        PEAL_AT(v, x) = 0.25 * PEAL_AT(u, x - 1) + 0.5 * PEAL_AT(u, x) + 0.3 * PEAL_AT(u, x + 1) +
                        0.01 * (double)(x % 5);
    }
}

PEAL_KERNEL(accept)(peal_tile t, PEAL_READ(double, v), PEAL_UPDATE(double, u), double weight)
{
    PEAL_FOR_1D(t, x) {
        PEAL_AT(u, x) = PEAL_AT(u, x) * (1 - weight) + weight * PEAL_AT(v, x);
    }
}

/* Shrinks what is not 0, and says how much there was. */
PEAL_KERNEL(damp)(peal_tile t, PEAL_READ(double, u), PEAL_WRITE(double, v), PEAL_REDUCE(double, r))
{
    double most = 0;
    PEAL_FOR_1D(t, x) {
        double value = 0.3 * (PEAL_AT(u, x - 1) + PEAL_AT(u, x) + PEAL_AT(u, x + 1));
        double size = PEAL_AT(u, x) < 0 ? -PEAL_AT(u, x) : PEAL_AT(u, x);
        PEAL_AT(v, x) = value;
        most = size > most ? size : most;
    }
    PEAL_PARTIAL(r, most);
}

PEAL_KERNEL(excite)(peal_tile t, PEAL_UPDATE(double, u), long step)
{
    PEAL_FOR_1D(t, x) {
        PEAL_AT(u, x) += (double)((x + step * step) % 13) + 4 * (double)(step % 5);
    }
}
