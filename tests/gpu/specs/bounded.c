/* Counts from nothing up to the bound, and what is done with so many. */

PEAL_KERNEL(decide)(peal_tile t, PEAL_WRITE(int64_t, n), PEAL_WRITE(int32_t, k), long m, long block,
                    long rank, long ranks, long step)
{
    PEAL_ONE(t)
    {
        n[0] = step % 5 == 0 ? 0 : step % 5 == 1 ? m : (step * 137 + rank * 101) % (m + 1);
        for (long peer = 0; peer < ranks; peer++) {
            k[peer] = (int32_t)((step * 29 + rank * 31 + peer * 17) % (block + 1));
        }
    }
}

PEAL_KERNEL(fill)(peal_tile t, PEAL_UPDATE(double, a), PEAL_REDUCE(double, sum),
                  PEAL_REDUCE(int32_t, least), PEAL_REDUCE(double, most), long step)
{
    double all = 0, high = -1e9;
    int32_t low = 1000000;
    PEAL_FOR_1D(t, i) {
        double now = a[i] * 0.5 + (double)((i * 7 + step * 3) % 11);
        a[i] = now;
        all += now;
        high = now > high ? now : high;
        low = i < low ? (int32_t)i : low;
    }
    PEAL_PARTIAL(sum, all);
    PEAL_PARTIAL(least, low);
    PEAL_PARTIAL(most, high);
}

PEAL_KERNEL(pack)(peal_tile t, PEAL_WRITE(int32_t, out), long n, long step)
{
    PEAL_FOR_1D(t, i) {
        out[i] = (int32_t)(n * 1000 + step * 10 + i % 10);
    }
}
