/* Relaxation whose changes are summed with few digits: any other order has another sum. */
PEAL_KERNEL(begin)(peal_tile t, PEAL_WRITE(float, a), PEAL_WRITE(float, b))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(a, x, y) = (float)((x * 7 + y * 13) % 97) * 0.1f;
        PEAL_AT(b, x, y) = PEAL_AT(a, x, y);
    }
}

PEAL_KERNEL(relax)(peal_tile t, PEAL_READ(float, a), PEAL_WRITE(float, b), PEAL_REDUCE(float, sum))
{
    float all = 0;

    PEAL_FOR_2D(t, x, y) {
        float v = 0.25f * (PEAL_AT(a, x - 1, y) + PEAL_AT(a, x + 1, y) + PEAL_AT(a, x, y - 1) +
                           PEAL_AT(a, x, y + 1));
        float d = v - PEAL_AT(a, x, y);
        PEAL_AT(b, x, y) = v;
        all += d * d;
    }
    PEAL_PARTIAL(sum, all);
}
