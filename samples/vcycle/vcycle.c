/* Two-level multigrid for the 5-point Laplace equation 4 u - (its neighbours) = f, walls at 0. The
 * fine grid smooths the rough part of the error, a grid of half the resolution removes the rest. */

/* f: a smooth hill and a sharp point charge; its square is what the residual is measured by. */
PEAL_KERNEL(source)(peal_tile t, PEAL_WRITE(double, f), PEAL_REDUCE(double, ff), long n)
{
    double sum = 0;
    PEAL_FOR_2D(t, x, y) {
        double sx = (x + 1.0) / (double)(n + 1), sy = (y + 1.0) / (double)(n + 1);
        double v = sx * (1.0 - sx) * sy;
        if (x == n / 4 && y == n / 3)
            v -= 1.0;
        PEAL_AT(f, x, y) = v;
        sum += v * v;
    }
    PEAL_PARTIAL(ff, sum);
}

/* One damped Jacobi sweep. h2 is the square of the grid's spacing, in spacings of the fine grid. */
PEAL_KERNEL(smooth)(peal_tile t, PEAL_READ(double, u), PEAL_READ(double, f), PEAL_WRITE(double, v),
                    double h2)
{
    const double damping = 0.8;
    PEAL_FOR_2D(t, x, y) {
        double here = PEAL_AT(u, x, y);
        double jacobi = 0.25 * (h2 * PEAL_AT(f, x, y) + PEAL_AT(u, x - 1, y) +
                                PEAL_AT(u, x + 1, y) + PEAL_AT(u, x, y - 1) + PEAL_AT(u, x, y + 1));
        PEAL_AT(v, x, y) = here + damping * (jacobi - here);
    }
}

/* The tile lies on the coarse grid: point (x, y) there covers (2x, 2y) .. (2x + 1, 2y + 1). */
PEAL_KERNEL(residual)(peal_tile t, PEAL_READ(double, u), PEAL_READ(double, f),
                      PEAL_WRITE(double, fc), PEAL_WRITE(double, uc), PEAL_REDUCE(double, rr))
{
    double sum = 0;
    PEAL_FOR_2D(t, x, y) {
        double four = 0;
        for (int j = 2 * y; j <= 2 * y + 1; j++) {
            for (int i = 2 * x; i <= 2 * x + 1; i++) {
                double r = PEAL_AT(f, i, j) + PEAL_AT(u, i - 1, j) + PEAL_AT(u, i + 1, j) +
                           PEAL_AT(u, i, j - 1) + PEAL_AT(u, i, j + 1) - 4.0 * PEAL_AT(u, i, j);
                four += r;
                sum += r * r;
            }
        }
        PEAL_AT(fc, x, y) = 0.25 * four;
        PEAL_AT(uc, x, y) = 0.0;
    }
    PEAL_PARTIAL(rr, sum);
}

/* Adds to the fine grid what the coarse grid found. */
PEAL_KERNEL(correct)(peal_tile t, PEAL_READ(double, uc), PEAL_UPDATE(double, u))
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(u, x, y) += PEAL_AT(uc, x / 2, y / 2);
    }
}
