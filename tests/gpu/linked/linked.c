/* Kernels in C beside linked.cu's function. */
PEAL_KERNEL(begin)
(peal_tile t, PEAL_WRITE(float, u), PEAL_WRITE(float, v), PEAL_WRITE(float, un),
 PEAL_WRITE(float, vn))
{
    PEAL_FOR_2D(t, x, y)
    {
        float value = (float)((x * 37 + y * 101) % 1000) / 1000;
        PEAL_AT(u, x, y) = PEAL_AT(v, x, y) = PEAL_AT(un, x, y) = PEAL_AT(vn, x, y) = value;
    }
}

PEAL_KERNEL(relax)
(peal_tile t, PEAL_READ(float, u), PEAL_WRITE(float, un), PEAL_REDUCE(float, most), double weight,
 long parts)
{
    float highest = -INFINITY;
    PEAL_FOR_2D(t, x, y)
    {
        float value = (float)weight * (PEAL_AT(u, x - 1, y) + PEAL_AT(u, x + 1, y) +
                                       PEAL_AT(u, x, y - 1) + PEAL_AT(u, x, y + 1));
        float change = fabsf(value - PEAL_AT(u, x, y)) / (float)parts;
        PEAL_AT(un, x, y) = value;
        highest = change > highest ? change : highest;
    }
    PEAL_PARTIAL(most, highest);
}

PEAL_KERNEL(compare)
(peal_tile t, PEAL_READ(float, u), PEAL_READ(float, v), PEAL_REDUCE(float, worst))
{
    float highest = -INFINITY;
    PEAL_FOR_2D(t, x, y)
    {
        float apart = fabsf(PEAL_AT(u, x, y) - PEAL_AT(v, x, y));
        highest = apart > highest ? apart : highest;
    }
    PEAL_PARTIAL(worst, highest);
}
