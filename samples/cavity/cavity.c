/* Lattice Boltzmann, D2Q9, one relaxation time. Component c of f is how much of the fluid at a
 * point goes to the next point in direction c: 0 rests, 1 to 4 are east, north, west and south, 5
 * to 8 the diagonals from north-east on. Walls lie half a step beyond the outermost points. */
#include <math.h>

static inline int east(int c)
{
    static const int steps[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
    return steps[c];
}

static inline int north(int c)
{
    static const int steps[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
    return steps[c];
}

static inline int back(int c)
{
    static const int opposite[9] = {0, 3, 4, 1, 2, 7, 8, 5, 6};
    return opposite[c];
}

static inline double weight(int c)
{
    return c == 0 ? 4.0 / 9.0 : c < 5 ? 1.0 / 9.0 : 1.0 / 36.0;
}

PEAL_KERNEL(rest)(peal_tile t, PEAL_WRITE_C(double, f))
{
    PEAL_FOR_2D(t, x, y) {
        for (int c = 0; c < 9; c++)
            PEAL_C(f, c, x, y) = weight(c);
    }
}

/* Each point's parts come nearer to those of a fluid in equilibrium that has its mass and velocity.
 */
PEAL_KERNEL(collide)(peal_tile t, PEAL_UPDATE_C(double, f), double omega)
{
    PEAL_FOR_2D(t, x, y) {
        double part[9], mass = 0, u = 0, v = 0;
        for (int c = 0; c < 9; c++) {
            part[c] = PEAL_C(f, c, x, y);
            mass += part[c];
            u += part[c] * east(c);
            v += part[c] * north(c);
        }
        u /= mass;
        v /= mass;
        double energy = 1.5 * (u * u + v * v);
        for (int c = 0; c < 9; c++) {
            double along = 3.0 * (u * east(c) + v * north(c));
            double balance = weight(c) * mass * (1.0 + along + 0.5 * along * along - energy);
            PEAL_C(f, c, x, y) = part[c] + omega * (balance - part[c]);
        }
    }
}

/* What goes along c comes from the point before; from a wall comes what went there, and the lid, at
 * the upper end, has pushed it along. */
PEAL_KERNEL(stream)(peal_tile t, PEAL_READ_C(double, f), PEAL_WRITE_C(double, g), long n,
                    double lid)
{
    PEAL_FOR_2D_INSIDE(t, x, y, inside, 1, n - 1, 1, n - 1) {
        for (int c = 0; c < 9; c++) {
            int i = x - east(c), j = y - north(c);
            double push = j >= n ? 6.0 * weight(c) * east(c) * lid : 0.0;
            if (!inside && (i < 0 || i >= n || j < 0 || j >= n))
                PEAL_C(g, c, x, y) = PEAL_C(f, back(c), x, y) + push;
            else
                PEAL_C(g, c, x, y) = PEAL_C(f, c, i, j);
        }
    }
}

/* The mass of all, and the largest speed along an axis. */
PEAL_KERNEL(weigh)(peal_tile t, PEAL_READ_C(double, f), PEAL_REDUCE(double, mass),
                   PEAL_REDUCE(double, fastest))
{
    double sum = 0, most = 0;
    PEAL_FOR_2D(t, x, y) {
        double here = 0, u = 0, v = 0;
        for (int c = 0; c < 9; c++) {
            double part = PEAL_C(f, c, x, y);
            here += part;
            u += part * east(c);
            v += part * north(c);
        }
        sum += here;
        most = fmax(most, fmax(fabs(u), fabs(v)) / here);
    }
    PEAL_PARTIAL(mass, sum);
    PEAL_PARTIAL(fastest, most);
}

PEAL_KERNEL(velocity)(peal_tile t, PEAL_READ_C(double, f), PEAL_WRITE_C(double, v))
{
    PEAL_FOR_2D(t, x, y) {
        double mass = 0, along[2] = {0, 0};
        for (int c = 0; c < 9; c++) {
            double part = PEAL_C(f, c, x, y);
            mass += part;
            along[0] += part * east(c);
            along[1] += part * north(c);
        }
        for (int k = 0; k < 2; k++)
            PEAL_C(v, k, x, y) = along[k] / mass;
    }
}
