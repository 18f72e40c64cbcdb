/* Kernels of the specs here: buffers of four numbers, a sweep from the left. */
#include <peal/kernel.h>

PEAL_KERNEL(take)(peal_tile t, PEAL_READ(double, m), PEAL_UPDATE(double, in))
{
    PEAL_FOR(t, i, 4)
    {
        PEAL_AT(in, i) += PEAL_AT(m, i);
    }
}

PEAL_KERNEL(bump)(peal_tile t, PEAL_UPDATE(double, b), int64_t by)
{
    PEAL_FOR(t, i, 4)
    {
        PEAL_AT(b, i) = 0.75 * PEAL_AT(b, i) + (double)by + (double)i;
    }
}

PEAL_KERNEL(start)(peal_tile t, PEAL_WRITE(double, u))
{
    PEAL_FOR_1D(t, x)
    {
        PEAL_AT(u, x) = (double)(x * x % 7);
    }
}

PEAL_KERNEL(sweep)(peal_tile t, PEAL_READ(double, u), PEAL_WRITE(double, v))
{
    PEAL_FOR_1D(t, x)
    {
        PEAL_AT(v, x) = 0.5 * PEAL_AT(u, x - 1) + 0.25 * PEAL_AT(u, x);
    }
}

PEAL_KERNEL(sum)(peal_tile t, PEAL_READ(double, b), PEAL_REDUCE(double, s))
{
    double sum = 0;
    PEAL_FOR(t, i, 4)
    {
        sum += PEAL_AT(b, i);
    }
    PEAL_PARTIAL(s, sum);
}
