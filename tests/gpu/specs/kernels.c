/* Kernels of the specs that provoke faults. */

PEAL_KERNEL(start)(peal_tile t, PEAL_WRITE(double, u), PEAL_WRITE(double, v))
{
    PEAL_FOR_1D(t, x) {
        PEAL_AT(u, x) = (double)(x * x % 97);
        PEAL_AT(v, x) = 0;
    }
}

PEAL_KERNEL(start_one)(peal_tile t, PEAL_WRITE(double, u))
{
    PEAL_FOR_1D(t, x) {
        PEAL_AT(u, x) = (double)(x * x % 97);
    }
}

/* Takes its time before it looks at its neighbours: `delay` roundings, each of the one before,
 * whose end no compiler knows. (A volatile count is one in a register on a GPU, and may be
 * skipped.) */
PEAL_KERNEL(relax)(peal_tile t, PEAL_READ(double, u), PEAL_WRITE(double, v), long delay)
{
    PEAL_FOR_1D(t, x) {
        double value = PEAL_AT(u, x);
        for (long k = 0; k < delay; k++)
            value = 0.5 * value + 1;
        PEAL_AT(v, x) = value != value ? 0
                                       : 0.25 * PEAL_AT(u, x - 1) + 0.5 * PEAL_AT(u, x) +
                                             0.3 * PEAL_AT(u, x + 1) + 0.01 * (double)(x % 5);
    }
}

PEAL_KERNEL(accept)(peal_tile t, PEAL_READ(double, v), PEAL_WRITE(double, u))
{
    PEAL_FOR_1D(t, x) {
        PEAL_AT(u, x) = PEAL_AT(v, x);
    }
}

/* For ever, if it is told to: the value never becomes unequal to itself, which no compiler knows.
 */
PEAL_KERNEL(spin)(peal_tile t, PEAL_UPDATE(double, u), long forever)
{
    PEAL_FOR_1D(t, x) {
        double value = PEAL_AT(u, x) + 1;
        while (forever && value == value)
            value = 0.5 * value + 1;
        PEAL_AT(u, x) = value;
    }
}

PEAL_KERNEL(mark)(peal_tile t, PEAL_UPDATE(int64_t, n))
{
    PEAL_ONE(t)
    {
        n[0] = 1;
    }
}

PEAL_KERNEL(grow)(peal_tile t, PEAL_UPDATE(int64_t, m), PEAL_UPDATE(int64_t, n), long w)
{
    PEAL_FOR_1D(t, x) {
        m[x] = 3 * m[x] % 1000003 + w;
    }
    PEAL_ONE(t)
    {
        n[0] = w + 1;
    }
}
