/* Kernels of the specs here: buffers of four numbers, a sweep from the left. */
#include <peal/kernel.h>

PEAL_KERNEL(take)(peal_tile t, PEAL_READ(double, m), PEAL_UPDATE(double, in))
{
    for (int i = 0; i < 4; i++) {
        PEAL_AT(in, i) += PEAL_AT(m, i);
    }
}

PEAL_KERNEL(bump)(peal_tile t, PEAL_UPDATE(double, b), int64_t by)
{
    for (int i = 0; i < 4; i++) {
        PEAL_AT(b, i) = 0.75 * PEAL_AT(b, i) + (double)by + i;
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
    PEAL_PARTIAL(s, PEAL_AT(b, 0) + PEAL_AT(b, 3));
}
