/* Kernels of long.yaml: what is sent is changed at once, what is received is read slowly. */
#include <time.h>

PEAL_KERNEL(begin)
(peal_tile t, PEAL_WRITE(double, a), PEAL_WRITE(double, c), PEAL_WRITE(double, sum), long rank)
{
    PEAL_ONE(t)
    {
        for (int i = 0; i < 5000; i++) {
            a[i] = 1000.0 * (double)rank + i;
            c[i] = -a[i];
            sum[i] = 0;
        }
    }
}

PEAL_KERNEL(change)(peal_tile t, PEAL_UPDATE(double, a), long rank, long step)
{
    PEAL_ONE(t)
    {
        for (int i = 0; i < 5000; i++)
            a[i] = a[i] * 0.5 + (double)(rank + step * i);
    }
}

PEAL_KERNEL(take)(peal_tile t, PEAL_READ(double, b), PEAL_UPDATE(double, sum), long rank)
{
    PEAL_ONE(t)
    {
        for (int i = 0; i < 5000; i++) {
            if (rank % 2 && i % 1000 == 0)
                nanosleep(&(struct timespec){0, 1000000}, 0);
            sum[i] = sum[i] * 0.25 + b[i] + b[4999];
        }
    }
}
