/* Finite-volume multigrid as HPGMG-FV's operators.fv2 compute it: -div(beta grad u) = f on the unit
 * cube, walls at 0, cell averages, second order. Beyond a wall a cell is extrapolated from the two
 * next to it (one, where the grid has only one): nothing is stored for it. */
#include <math.h>
#include <stdint.h>

#define TAU 6.283185307179586

static inline double ghost(double near, double next, long n)
{
    return n < 2 ? -near : -2.5 * near + 0.5 * next;
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

#define LEFT(u, x, y, z, v)                                                                        \
    ((x) > 0 ? PEAL_AT(u, (x)-1, y, z) : ghost(v, n > 1 ? PEAL_AT(u, (x) + 1, y, z) : 0.0, n))
#define RIGHT(u, x, y, z, v)                                                                       \
    ((x) < n - 1 ? PEAL_AT(u, (x) + 1, y, z) : ghost(v, n > 1 ? PEAL_AT(u, (x)-1, y, z) : 0.0, n))
#define FRONT(u, x, y, z, v)                                                                       \
    ((y) > 0 ? PEAL_AT(u, x, (y)-1, z) : ghost(v, n > 1 ? PEAL_AT(u, x, (y) + 1, z) : 0.0, n))
#define BACK(u, x, y, z, v)                                                                        \
    ((y) < n - 1 ? PEAL_AT(u, x, (y) + 1, z) : ghost(v, n > 1 ? PEAL_AT(u, x, (y)-1, z) : 0.0, n))
#define BELOW(u, x, y, z, v)                                                                       \
    ((z) > 0 ? PEAL_AT(u, x, y, (z)-1) : ghost(v, n > 1 ? PEAL_AT(u, x, y, (z) + 1) : 0.0, n))
#define ABOVE(u, x, y, z, v)                                                                       \
    ((z) < n - 1 ? PEAL_AT(u, x, y, (z) + 1) : ghost(v, n > 1 ? PEAL_AT(u, x, y, (z)-1) : 0.0, n))

#define OPERATOR(u, x, y, z, v)                                                                    \
    (-1.0 * ((double)n * (double)n) *                                                              \
     (PEAL_AT(bx, (x) + 1, y, z) * (RIGHT(u, x, y, z, v) - (v)) +                                  \
      PEAL_AT(bx, x, y, z) * (LEFT(u, x, y, z, v) - (v)) +                                         \
      PEAL_AT(by, x, (y) + 1, z) * (BACK(u, x, y, z, v) - (v)) +                                   \
      PEAL_AT(by, x, y, z) * (FRONT(u, x, y, z, v) - (v)) +                                        \
      PEAL_AT(bz, x, y, (z) + 1) * (ABOVE(u, x, y, z, v) - (v)) +                                  \
      PEAL_AT(bz, x, y, z) * (BELOW(u, x, y, z, v) - (v))))

/* The operator's diagonal, walls included: what it makes of a cell that alone is 1. */
PEAL_KERNEL(diagonal)(peal_tile t, PEAL_READ(double, bx), PEAL_READ(double, by),
                      PEAL_READ(double, bz), PEAL_WRITE(double, d), long n)
{
    double wall = ghost(1.0, 0.0, n);
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
    PEAL_FOR_3D(t, x, y, z) {
        if (((x ^ y ^ z ^ (int)colour) & 1) == 0) {
            double v = PEAL_AT(u, x, y, z), a;
            if (x > 0 && y > 0 && z > 0 && x < n - 1 && y < n - 1 && z < n - 1) {
                a = -1.0 * ((double)n * (double)n) *
                    (PEAL_AT(bx, x + 1, y, z) * (PEAL_AT(u, x + 1, y, z) - v) +
                     PEAL_AT(bx, x, y, z) * (PEAL_AT(u, x - 1, y, z) - v) +
                     PEAL_AT(by, x, y + 1, z) * (PEAL_AT(u, x, y + 1, z) - v) +
                     PEAL_AT(by, x, y, z) * (PEAL_AT(u, x, y - 1, z) - v) +
                     PEAL_AT(bz, x, y, z + 1) * (PEAL_AT(u, x, y, z + 1) - v) +
                     PEAL_AT(bz, x, y, z) * (PEAL_AT(u, x, y, z - 1) - v));
            } else {
                a = OPERATOR(u, x, y, z, v);
            }
            PEAL_AT(u, x, y, z) = v + PEAL_AT(d, x, y, z) * (PEAL_AT(f, x, y, z) - a);
        }
    }
}

/* The tile is coarse: c becomes the mean of the residual over 8 cells, e starts at 0. */
PEAL_KERNEL(descend)(peal_tile t, PEAL_READ(double, u), PEAL_READ(double, f), PEAL_READ(double, bx),
                     PEAL_READ(double, by), PEAL_READ(double, bz), PEAL_WRITE(double, c), long n)
{
    PEAL_FOR_3D(t, x, y, z) {
        double r[8];
        for (int m = 0; m < 8; m++) {
            int i = 2 * x + (m & 1), j = 2 * y + (m >> 1 & 1), k = 2 * z + (m >> 2);
            double v = PEAL_AT(u, i, j, k);
            r[m] = PEAL_AT(f, i, j, k) - OPERATOR(u, i, j, k, v);
        }
        PEAL_AT(c, x, y, z) = (r[0] + r[1] + r[2] + r[3] + r[4] + r[5] + r[6] + r[7]) * 0.125;
    }
}

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

/* Quadratic interpolation that keeps the mean of a coarse cell; one axis after the other, with what
 * lies beyond walls extrapolated along the same axis. */
#define ALONG_Z(y_, x_)                                                                            \
    (kk < 0       ? ghost(PEAL_AT(c, x_, y_, kk + 1), n > 1 ? PEAL_AT(c, x_, y_, kk + 2) : 0.0, n) \
     : kk > n - 1 ? ghost(PEAL_AT(c, x_, y_, kk - 1), n > 1 ? PEAL_AT(c, x_, y_, kk - 2) : 0.0, n) \
                  : PEAL_AT(c, x_, y_, kk))

#define GATHER                                                                                     \
    double v[3][3][3];                                                                             \
    for (int dk = 0; dk < 3; dk++) {                                                               \
        int kk = Z + dk - 1;                                                                       \
        for (int dj = 0; dj < 3; dj++) {                                                           \
            int jj = Y + dj - 1;                                                                   \
            if (jj < 0 || jj > n - 1)                                                              \
                continue;                                                                          \
            for (int di = 0; di < 3; di++) {                                                       \
                int ii = X + di - 1;                                                               \
                if (ii < 0 || ii > n - 1)                                                          \
                    continue;                                                                      \
                v[dk][dj][di] = ALONG_Z(jj, ii);                                                   \
            }                                                                                      \
        }                                                                                          \
        for (int di = 0; di < 3; di++) {                                                           \
            if (X + di - 1 < 0 || X + di - 1 > n - 1)                                              \
                continue;                                                                          \
            if (Y == 0)                                                                            \
                v[dk][0][di] = ghost(v[dk][1][di], n > 1 ? v[dk][2][di] : 0.0, n);                 \
            if (Y == n - 1)                                                                        \
                v[dk][2][di] = ghost(v[dk][1][di], n > 1 ? v[dk][0][di] : 0.0, n);                 \
        }                                                                                          \
        for (int dj = 0; dj < 3; dj++) {                                                           \
            if (X == 0)                                                                            \
                v[dk][dj][0] = ghost(v[dk][dj][1], n > 1 ? v[dk][dj][2] : 0.0, n);                 \
            if (X == n - 1)                                                                        \
                v[dk][dj][2] = ghost(v[dk][dj][1], n > 1 ? v[dk][dj][0] : 0.0, n);                 \
        }                                                                                          \
    }

#define AT_CELL(x, y, z, result)                                                                   \
    double si = (x)&1 ? -0.125 : 0.125, sj = (y)&1 ? -0.125 : 0.125, sk = (z)&1 ? -0.125 : 0.125;  \
    double w[3];                                                                                   \
    for (int dk = 0; dk < 3; dk++) {                                                               \
        double a0 = v[dk][0][1] + si * (v[dk][0][0] - v[dk][0][2]);                                \
        double a1 = v[dk][1][1] + si * (v[dk][1][0] - v[dk][1][2]);                                \
        double a2 = v[dk][2][1] + si * (v[dk][2][0] - v[dk][2][2]);                                \
        w[dk] = a1 + sj * (a0 - a2);                                                               \
    }                                                                                              \
    double result = w[1] + sk * (w[0] - w[2]);

/* The same, where the tile is coarse. */
PEAL_KERNEL(spread)(peal_tile t, PEAL_READ(double, c), PEAL_WRITE(double, u), long n)
{
    PEAL_FOR_3D(t, X, Y, Z) {
        GATHER
        for (int m = 0; m < 8; m++) {
            int x = 2 * X + (m & 1), y = 2 * Y + (m >> 1 & 1), z = 2 * Z + (m >> 2);
            AT_CELL(x, y, z, e)
            PEAL_AT(u, x, y, z) = e;
        }
    }
}

PEAL_KERNEL(spread_add)(peal_tile t, PEAL_READ(double, c), PEAL_UPDATE(double, u), long n)
{
    PEAL_FOR_3D(t, X, Y, Z) {
        GATHER
        for (int m = 0; m < 8; m++) {
            int x = 2 * X + (m & 1), y = 2 * Y + (m >> 1 & 1), z = 2 * Z + (m >> 2);
            AT_CELL(x, y, z, e)
            PEAL_AT(u, x, y, z) = PEAL_AT(u, x, y, z) + e;
        }
    }
}

PEAL_KERNEL(measure)(peal_tile t, PEAL_READ(double, u), PEAL_READ(double, f), PEAL_READ(double, bx),
                     PEAL_READ(double, by), PEAL_READ(double, bz), PEAL_REDUCE(double, top), long n)
{
    double most = 0;
    PEAL_FOR_3D(t, x, y, z) {
        double v = PEAL_AT(u, x, y, z);
        double r = fabs(PEAL_AT(f, x, y, z) - OPERATOR(u, x, y, z, v));
        most = r > most ? r : most;
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
