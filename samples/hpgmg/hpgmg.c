/* Finite-volume multigrid as HPGMG-FV's operators.fv2 compute it: -div(beta grad u) = f on the unit
 * cube, walls at 0, cell averages, second order. Beyond a wall a cell is extrapolated from the two
 * next to it (one, where the grid has only one): nothing is stored for it. */
#include <math.h>
#include <stdint.h>

#define TAU 6.283185307179586

/* What would lie beyond a wall. */
static inline double beyond(double near, double next)
{
    return -2.5 * near + 0.5 * next;
}

static inline double beta_at(double x, double y, double z, double h, int xx, int yy, int zz)
{
    double b = 1.0 + 0.25 * sin(TAU * x) * sin(TAU * y) * sin(TAU * z);
    double c = -TAU * TAU * 0.25 * sin(TAU * x) * sin(TAU * y) * sin(TAU * z);
    if (xx)
        b += (h * h / 24.0) * c;
    if (yy)
        b += (h * h / 24.0) * c;
    if (zz)
        b += (h * h / 24.0) * c;
    return b;
}

PEAL_KERNEL(source)(peal_tile t, PEAL_WRITE(double, f), PEAL_REDUCE(double, top), double h)
{
    double most = 0;
    PEAL_FOR_3D(t, i, j, k) {
        double x = h * ((double)i + 0.5), y = h * ((double)j + 0.5), z = h * ((double)k + 0.5);
        double sx = sin(TAU * x), sy = sin(TAU * y), sz = sin(TAU * z);
        double p = 7.0;
        double v = pow(sx, p) * pow(sy, p) * pow(sz, p);
        double vxx = -TAU * TAU * p * pow(sx, p) * pow(sy, p) * pow(sz, p) +
                     TAU * TAU * p * (p - 1) * pow(sx, p - 2) * pow(sy, p) * pow(sz, p) *
                         pow(cos(TAU * x), 2);
        double vyy = -TAU * TAU * p * pow(sx, p) * pow(sy, p) * pow(sz, p) +
                     TAU * TAU * p * (p - 1) * pow(sx, p) * pow(sy, p - 2) * pow(sz, p) *
                         pow(cos(TAU * y), 2);
        double vzz = -TAU * TAU * p * pow(sx, p) * pow(sy, p) * pow(sz, p) +
                     TAU * TAU * p * (p - 1) * pow(sx, p) * pow(sy, p) * pow(sz, p - 2) *
                         pow(cos(TAU * z), 2);
        v += (h * h / 24.0) * vxx;
        v += (h * h / 24.0) * vyy;
        v += (h * h / 24.0) * vzz;
        PEAL_AT(f, i, j, k) = v;
        double a = fabs(v);
        most = a > most ? a : most;
    }
    PEAL_PARTIAL(top, most);
}

PEAL_KERNEL(face_x)(peal_tile t, PEAL_WRITE(double, b), double h)
{
    PEAL_FOR_3D(t, i, j, k) {
        double x = h * ((double)i + 0.5), y = h * ((double)j + 0.5), z = h * ((double)k + 0.5);
        PEAL_AT(b, i, j, k) = beta_at(x - h * 0.5, y, z, h, 0, 1, 1);
    }
}

PEAL_KERNEL(face_y)(peal_tile t, PEAL_WRITE(double, b), double h)
{
    PEAL_FOR_3D(t, i, j, k) {
        double x = h * ((double)i + 0.5), y = h * ((double)j + 0.5), z = h * ((double)k + 0.5);
        PEAL_AT(b, i, j, k) = beta_at(x, y - h * 0.5, z, h, 1, 0, 1);
    }
}

PEAL_KERNEL(face_z)(peal_tile t, PEAL_WRITE(double, b), double h)
{
    PEAL_FOR_3D(t, i, j, k) {
        double x = h * ((double)i + 0.5), y = h * ((double)j + 0.5), z = h * ((double)k + 0.5);
        PEAL_AT(b, i, j, k) = beta_at(x, y, z - h * 0.5, h, 1, 1, 0);
    }
}

/* A coarse face is four fine ones. */
PEAL_KERNEL(coarse_x)(peal_tile t, PEAL_READ(double, a), PEAL_WRITE(double, c))
{
    PEAL_FOR_3D(t, x, y, z) {
        PEAL_AT(c, x, y, z) =
            (PEAL_AT(a, 2 * x, 2 * y, 2 * z) + PEAL_AT(a, 2 * x, 2 * y + 1, 2 * z) +
             PEAL_AT(a, 2 * x, 2 * y, 2 * z + 1) + PEAL_AT(a, 2 * x, 2 * y + 1, 2 * z + 1)) *
            0.25;
    }
}

PEAL_KERNEL(coarse_y)(peal_tile t, PEAL_READ(double, a), PEAL_WRITE(double, c))
{
    PEAL_FOR_3D(t, x, y, z) {
        PEAL_AT(c, x, y, z) =
            (PEAL_AT(a, 2 * x, 2 * y, 2 * z) + PEAL_AT(a, 2 * x + 1, 2 * y, 2 * z) +
             PEAL_AT(a, 2 * x, 2 * y, 2 * z + 1) + PEAL_AT(a, 2 * x + 1, 2 * y, 2 * z + 1)) *
            0.25;
    }
}

PEAL_KERNEL(coarse_z)(peal_tile t, PEAL_READ(double, a), PEAL_WRITE(double, c))
{
    PEAL_FOR_3D(t, x, y, z) {
        PEAL_AT(c, x, y, z) =
            (PEAL_AT(a, 2 * x, 2 * y, 2 * z) + PEAL_AT(a, 2 * x + 1, 2 * y, 2 * z) +
             PEAL_AT(a, 2 * x, 2 * y + 1, 2 * z) + PEAL_AT(a, 2 * x + 1, 2 * y + 1, 2 * z)) *
            0.25;
    }
}

/* The value of a neighbour: `value` is its own or, where a wall is in between, that of the cell on
 * the other side. Without branches, so that all loads of a cell are under way together. */
static inline double facing(int wall, double near, double value)
{
    return wall ? beyond(near, value) : value;
}

#define LEFT(u, x, y, z, inside)                                                                   \
    facing(!(inside) && (x) == 0, PEAL_AT(u, x, y, z),                                             \
           PEAL_AT(u, !(inside) && (x) == 0 ? (x) + 1 : (x)-1, y, z))
#define RIGHT(u, x, y, z, inside)                                                                  \
    facing(!(inside) && (x) == n - 1, PEAL_AT(u, x, y, z),                                         \
           PEAL_AT(u, !(inside) && (x) == n - 1 ? (x)-1 : (x) + 1, y, z))
#define FRONT(u, x, y, z, inside)                                                                  \
    facing(!(inside) && (y) == 0, PEAL_AT(u, x, y, z),                                             \
           PEAL_AT(u, x, !(inside) && (y) == 0 ? (y) + 1 : (y)-1, z))
#define BACK(u, x, y, z, inside)                                                                   \
    facing(!(inside) && (y) == n - 1, PEAL_AT(u, x, y, z),                                         \
           PEAL_AT(u, x, !(inside) && (y) == n - 1 ? (y)-1 : (y) + 1, z))
#define BELOW(u, x, y, z, inside)                                                                  \
    facing(!(inside) && (z) == 0, PEAL_AT(u, x, y, z),                                             \
           PEAL_AT(u, x, y, !(inside) && (z) == 0 ? (z) + 1 : (z)-1))
#define ABOVE(u, x, y, z, inside)                                                                  \
    facing(!(inside) && (z) == n - 1, PEAL_AT(u, x, y, z),                                         \
           PEAL_AT(u, x, y, !(inside) && (z) == n - 1 ? (z)-1 : (z) + 1))

/* At cell (x, y, z), of which it may be known that no neighbour is a wall. */
#define OPERATOR(u, x, y, z, inside)                                                               \
    (-1.0 * ((double)n * (double)n) *                                                              \
     (PEAL_AT(bx, (x) + 1, y, z) * (RIGHT(u, x, y, z, inside) - PEAL_AT(u, x, y, z)) +             \
      PEAL_AT(bx, x, y, z) * (LEFT(u, x, y, z, inside) - PEAL_AT(u, x, y, z)) +                    \
      PEAL_AT(by, x, (y) + 1, z) * (BACK(u, x, y, z, inside) - PEAL_AT(u, x, y, z)) +              \
      PEAL_AT(by, x, y, z) * (FRONT(u, x, y, z, inside) - PEAL_AT(u, x, y, z)) +                   \
      PEAL_AT(bz, x, y, (z) + 1) * (ABOVE(u, x, y, z, inside) - PEAL_AT(u, x, y, z)) +             \
      PEAL_AT(bz, x, y, z) * (BELOW(u, x, y, z, inside) - PEAL_AT(u, x, y, z))))

/* One over the operator's diagonal, walls included: what it makes of a cell that alone is 1. */
PEAL_KERNEL(diagonal)(peal_tile t, PEAL_READ(double, bx), PEAL_READ(double, by),
                      PEAL_READ(double, bz), PEAL_WRITE(double, d), long n)
{
    double wall = n > 1 ? beyond(1.0, 0.0) : -1.0;
    PEAL_FOR_3D(t, x, y, z) {
        double a = -1.0 * ((double)n * (double)n) *
                   (PEAL_AT(bx, x + 1, y, z) * ((x < n - 1 ? 0.0 : wall) - 1.0) +
                    PEAL_AT(bx, x, y, z) * ((x > 0 ? 0.0 : wall) - 1.0) +
                    PEAL_AT(by, x, y + 1, z) * ((y < n - 1 ? 0.0 : wall) - 1.0) +
                    PEAL_AT(by, x, y, z) * ((y > 0 ? 0.0 : wall) - 1.0) +
                    PEAL_AT(bz, x, y, z + 1) * ((z < n - 1 ? 0.0 : wall) - 1.0) +
                    PEAL_AT(bz, x, y, z) * ((z > 0 ? 0.0 : wall) - 1.0));
        PEAL_AT(d, x, y, z) = 1.0 / a;
    }
}

/* Half a Gauss-Seidel sweep, in place: cells of one colour, which read those of the other. */
PEAL_KERNEL(gsrb)(peal_tile t, PEAL_READ(double, f), PEAL_READ(double, d), PEAL_READ(double, bx),
                  PEAL_READ(double, by), PEAL_READ(double, bz), PEAL_UPDATE(double, u), long colour,
                  long n)
{
    PEAL_FOR_3D_EVEN(t, x, y, z, colour)
    {
        PEAL_AT(u, x, y, z) +=
            PEAL_AT(d, x, y, z) * (PEAL_AT(f, x, y, z) - OPERATOR(u, x, y, z, 0));
    }
}

PEAL_KERNEL(residual)(peal_tile t, PEAL_READ(double, u), PEAL_READ(double, f),
                      PEAL_READ(double, bx), PEAL_READ(double, by), PEAL_READ(double, bz),
                      PEAL_WRITE(double, r), long n)
{
    PEAL_FOR_3D_INSIDE(t, x, y, z, inside, 1, n - 1, 1, n - 1, 1, n - 1) {
        PEAL_AT(r, x, y, z) = PEAL_AT(f, x, y, z) - OPERATOR(u, x, y, z, inside);
    }
}

/* The tile is coarse: the mean of 8 cells. */
PEAL_KERNEL(coarsen)(peal_tile t, PEAL_READ(double, f), PEAL_WRITE(double, c))
{
    PEAL_FOR_3D(t, x, y, z) {
        int i = 2 * x, j = 2 * y, k = 2 * z;
        PEAL_AT(c, x, y, z) =
            (PEAL_AT(f, i, j, k) + PEAL_AT(f, i + 1, j, k) + PEAL_AT(f, i, j + 1, k) +
             PEAL_AT(f, i + 1, j + 1, k) + PEAL_AT(f, i, j, k + 1) + PEAL_AT(f, i + 1, j, k + 1) +
             PEAL_AT(f, i, j + 1, k + 1) + PEAL_AT(f, i + 1, j + 1, k + 1)) *
            0.125;
    }
}

/* A neighbour's value is own * (the cell's) + other * (that of cell `at`). */
typedef struct neighbour {
    int at;
    double own, other;
} neighbour;

/* The neighbour `at` of cell i of n; the one on the other side is `opposite`. */
static inline neighbour neighbour_of(int i, int at, int opposite, long n)
{
    neighbour cell = {at, 0.0, 1.0};
    if (at < 0 || at > n - 1) {
        cell.at = n > 1 ? opposite : i;
        cell.own = n > 1 ? -2.5 : -1.0;
        cell.other = n > 1 ? 0.5 : 0.0;
    }
    return cell;
}

/* Quadratic interpolation that keeps the mean of a coarse cell, along one axis: its two fine cells.
 * No neighbour is a wall if it is `inside`. */
static inline void halve(double fine[2], double before, double cell, double behind,
                         neighbour is_before, neighbour is_behind, int inside)
{
    double a = inside ? before : is_before.own * cell + is_before.other * before;
    double b = inside ? behind : is_behind.own * cell + is_behind.other * behind;
    fine[0] = cell + 0.125 * (a - b);
    fine[1] = cell - 0.125 * (a - b);
}

/* fine[i][j][k]: the 8 cells of the coarse cell (X, Y, Z), one axis after the other. */
#define HALVE_ALL(fine, c, X, Y, Z, inside)                                                        \
    neighbour left = neighbour_of(X, X - 1, X + 1, n), right = neighbour_of(X, X + 1, X - 1, n);   \
    neighbour front = neighbour_of(Y, Y - 1, Y + 1, n), back = neighbour_of(Y, Y + 1, Y - 1, n);   \
    neighbour below = neighbour_of(Z, Z - 1, Z + 1, n), above = neighbour_of(Z, Z + 1, Z - 1, n);  \
    const int xs[3] = {(inside) ? X - 1 : left.at, X, (inside) ? X + 1 : right.at};                \
    const int ys[3] = {(inside) ? Y - 1 : front.at, Y, (inside) ? Y + 1 : back.at};                \
    const int zs[3] = {(inside) ? Z - 1 : below.at, Z, (inside) ? Z + 1 : above.at};               \
    double along_x[3][2], along_y[3][2][2], fine[2][2][2];                                         \
    for (int k = 0; k < 3; k++) {                                                                  \
        for (int j = 0; j < 3; j++)                                                                \
            halve(along_x[j], PEAL_AT(c, xs[0], ys[j], zs[k]), PEAL_AT(c, xs[1], ys[j], zs[k]),    \
                  PEAL_AT(c, xs[2], ys[j], zs[k]), left, right, inside);                           \
        for (int i = 0; i < 2; i++)                                                                \
            halve(along_y[k][i], along_x[0][i], along_x[1][i], along_x[2][i], front, back,         \
                  inside);                                                                         \
    }                                                                                              \
    for (int i = 0; i < 2; i++)                                                                    \
        for (int j = 0; j < 2; j++)                                                                \
            halve(fine[i][j], along_y[0][i][j], along_y[1][i][j], along_y[2][i][j], below, above,  \
                  inside);

/* The tile is coarse. */
PEAL_KERNEL(spread)(peal_tile t, PEAL_READ(double, c), PEAL_WRITE(double, u), long n)
{
    PEAL_FOR_3D_INSIDE(t, X, Y, Z, inside, 1, n - 1, 1, n - 1, 1, n - 1) {
        HALVE_ALL(fine, c, X, Y, Z, inside)
        for (int k = 0; k < 2; k++)
            for (int j = 0; j < 2; j++)
                for (int i = 0; i < 2; i++)
                    PEAL_AT(u, 2 * X + i, 2 * Y + j, 2 * Z + k) = fine[i][j][k];
    }
}

PEAL_KERNEL(spread_add)(peal_tile t, PEAL_READ(double, c), PEAL_UPDATE(double, u), long n)
{
    PEAL_FOR_3D_INSIDE(t, X, Y, Z, inside, 1, n - 1, 1, n - 1, 1, n - 1) {
        HALVE_ALL(fine, c, X, Y, Z, inside)
        for (int k = 0; k < 2; k++)
            for (int j = 0; j < 2; j++)
                for (int i = 0; i < 2; i++)
                    PEAL_AT(u, 2 * X + i, 2 * Y + j, 2 * Z + k) += fine[i][j][k];
    }
}

PEAL_KERNEL(measure)(peal_tile t, PEAL_READ(double, r), PEAL_REDUCE(double, top))
{
    double most = 0;
    PEAL_FOR_3D(t, x, y, z) {
        double a = fabs(PEAL_AT(r, x, y, z));
        most = a > most ? a : most;
    }
    PEAL_PARTIAL(top, most);
}

PEAL_KERNEL(clear)(peal_tile t, PEAL_WRITE(double, u))
{
    PEAL_FOR_3D(t, x, y, z) {
        PEAL_AT(u, x, y, z) = 0.0;
    }
}

PEAL_KERNEL(bottom)(peal_tile t, PEAL_READ(double, f), PEAL_READ(double, d), PEAL_WRITE(double, u))
{
    PEAL_FOR_3D(t, x, y, z) {
        PEAL_AT(u, x, y, z) = PEAL_AT(d, x, y, z) * PEAL_AT(f, x, y, z);
    }
}
