/* Steps of a chain: each point from its eight neighbours and a field beside it. */
PEAL_KERNEL(begin)(peal_tile t, PEAL_WRITE(float, u), PEAL_WRITE(float, v), PEAL_WRITE(float, w),
                   long nx, long ny)
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(u, x, y) = (float)((x * 7 + y * 13) % 31) / 31;
        PEAL_AT(v, x, y) = 0;
        PEAL_AT(w, x, y) = (float)((x + 1) * (y + 2) % nx) / (float)(nx + ny);
    }
}

PEAL_KERNEL(mix)(peal_tile t, PEAL_READ(float, u), PEAL_READ(float, w), PEAL_WRITE(float, v),
                 long pace)
{
    PEAL_FOR_2D(t, x, y) {
        float round = PEAL_AT(u, x - 1, y) + PEAL_AT(u, x + 1, y) + PEAL_AT(u, x, y - 1) +
                      PEAL_AT(u, x, y + 1);
        float corners = PEAL_AT(u, x - 1, y - 1) + PEAL_AT(u, x + 1, y + 1) -
                        PEAL_AT(u, x - 1, y + 1) - PEAL_AT(u, x + 1, y - 1);
        float beside = PEAL_AT(w, x + 1, y) - PEAL_AT(w, x, y - 1);
        float mixed = 0.23f * round + 0.02f * corners + 0.1f * beside + 0.01f * (float)pace;
        PEAL_AT(v, x, y) = mixed - (x == 3 || y == 5 ? 0.001f : 0.0f); /* where it is, matters */
    }
}

PEAL_KERNEL(compare)(peal_tile t, PEAL_READ(float, u), PEAL_READ(float, v),
                     PEAL_REDUCE(double, gap))
{
    double sum = 0;
    PEAL_FOR_2D(t, x, y) {
        double d = (double)PEAL_AT(u, x, y) - PEAL_AT(v, x, y);
        sum += d * d;
    }
    PEAL_PARTIAL(gap, sum);
}

PEAL_KERNEL(keep)(peal_tile t, PEAL_READ(float, v), PEAL_WRITE(float, w))
{
    PEAL_FOR_2D(t, x, y)
        PEAL_AT(w, x, y) = 0.5f * PEAL_AT(v, x, y);
}
