/* What error.yaml has beside hpgmg.c. */
#include <math.h>

PEAL_KERNEL(top)(peal_tile t, PEAL_READ(double, f), PEAL_REDUCE(double, largest))
{
    double most = 0;
    PEAL_FOR_3D(t, x, y, z) {
        most = fmax(most, fabs(PEAL_AT(f, x, y, z)));
    }
    PEAL_PARTIAL(largest, most);
}

PEAL_KERNEL(keep)(peal_tile t, PEAL_READ(double, u), PEAL_WRITE(double, k))
{
    PEAL_FOR_3D(t, x, y, z) {
        PEAL_AT(k, x, y, z) = PEAL_AT(u, x, y, z);
    }
}

/* Between a cell and the mean of the eight of the next finer grid. */
PEAL_KERNEL(differ)(peal_tile t, PEAL_READ(double, fine), PEAL_READ(double, coarse),
                    PEAL_REDUCE(double, largest))
{
    double most = 0;
    PEAL_FOR_3D(t, x, y, z) {
        double sum = 0;
        for (int k = 0; k < 2; k++)
            for (int j = 0; j < 2; j++)
                for (int i = 0; i < 2; i++)
                    sum += PEAL_AT(fine, 2 * x + i, 2 * y + j, 2 * z + k);
        most = fmax(most, fabs(PEAL_AT(coarse, x, y, z) - 0.125 * sum));
    }
    PEAL_PARTIAL(largest, most);
}
