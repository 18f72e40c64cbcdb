/* Jacobi's method for Laplace's equation on a mesh that is periodic in y. Every interior point
 * becomes the mean of its four neighbours; the walls at both ends of x keep their values. */
#include <math.h>

/* The walls hold one wave of a sine. Row y of the field is row y + 1 of the mesh of ny rows. */
PEAL_KERNEL(walls)(peal_tile t, PEAL_WRITE(float, a), PEAL_WRITE(float, an), long ny)
{
    const double pi = 3.14159265358979323846;
    PEAL_FOR_2D(t, x, y) {
        float wall = (float)sin(2.0 * pi * (y + 1.0) / (double)(ny - 1));
        PEAL_AT(a, x, y) = wall;
        PEAL_AT(an, x, y) = wall;
    }
}

/* One sweep, and the squared change that it makes. */
PEAL_KERNEL(relax)(peal_tile t, PEAL_READ(float, a), PEAL_WRITE(float, an), PEAL_REDUCE(double, d2))
{
    double sum = 0;
    PEAL_FOR_2D(t, x, y) { /* x, y: global coordinates, on every rank */
        float v = 0.25f * (PEAL_AT(a, x - 1, y) + PEAL_AT(a, x + 1, y) + PEAL_AT(a, x, y - 1) +
                           PEAL_AT(a, x, y + 1));
        float d = v - PEAL_AT(a, x, y);
        PEAL_AT(an, x, y) = v;
        sum += (double)d * d;
    }
    PEAL_PARTIAL(d2, sum); /* once a tile */
}
