/* A kernel that reads something that is no argument of it. */
#include <time.h>

PEAL_KERNEL(fickle)(peal_tile t, PEAL_WRITE(double, a))
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    PEAL_FOR_2D(t, x, y)
    {
        PEAL_AT(a, x, y) = (double)now.tv_nsec + (double)now.tv_sec * 1e9;
    }
}
