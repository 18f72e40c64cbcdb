/* Conjugate gradients for A x = b, where A is the 5-point Laplacian on n x n points with walls at
 * 0. x is the solution so far, r the residual b - A x, p the direction of search, q = A p. */

/* b: a warm disc off the centre and a cold bar. x starts at 0, so r = p = b. */
PEAL_KERNEL(source)(peal_tile t, PEAL_WRITE(double, r), PEAL_WRITE(double, p),
                    PEAL_REDUCE(double, rr), long n)
{
    double sum = 0;
    PEAL_FOR_2D(t, x, y) {
        long dx = 3 * (long)x - n, dy = 3 * (long)y - n; /* three times the way from (n/3, n/3) */
        int disc = dx * dx + dy * dy < n * n / 4;
        int bar = 8 * (long)x > 6 * n && 8 * (long)x < 7 * n && 2 * (long)y > n;
        double b = disc ? 1.0 : bar ? -2.0 : 0.0;
        PEAL_AT(r, x, y) = b;
        PEAL_AT(p, x, y) = b;
        sum += b * b;
    }
    PEAL_PARTIAL(rr, sum);
}

/* q = A p, and p . q */
PEAL_KERNEL(apply)(peal_tile t, PEAL_READ(double, p), PEAL_WRITE(double, q),
                   PEAL_REDUCE(double, pq))
{
    double sum = 0;
    PEAL_FOR_2D(t, x, y) {
        double here = PEAL_AT(p, x, y);
        double v = 4.0 * here - (PEAL_AT(p, x - 1, y) + PEAL_AT(p, x + 1, y) +
                                 PEAL_AT(p, x, y - 1) + PEAL_AT(p, x, y + 1));
        PEAL_AT(q, x, y) = v;
        sum += here * v;
    }
    PEAL_PARTIAL(pq, sum);
}

/* Goes alpha along p; r . r of where it arrives. */
PEAL_KERNEL(descend)(peal_tile t, PEAL_READ(double, p), PEAL_READ(double, q),
                     PEAL_UPDATE(double, x), PEAL_UPDATE(double, r), PEAL_REDUCE(double, rr),
                     double alpha)
{
    double sum = 0;
    PEAL_FOR_2D(t, i, j) {
        double rest = PEAL_AT(r, i, j) - alpha * PEAL_AT(q, i, j);
        PEAL_AT(x, i, j) += alpha * PEAL_AT(p, i, j);
        PEAL_AT(r, i, j) = rest;
        sum += rest * rest;
    }
    PEAL_PARTIAL(rr, sum);
}

/* The next direction: down the residual, but conjugate to all directions before. */
PEAL_KERNEL(turn)(peal_tile t, PEAL_READ(double, r), PEAL_UPDATE(double, p), double beta)
{
    PEAL_FOR_2D(t, x, y) {
        PEAL_AT(p, x, y) = PEAL_AT(r, x, y) + beta * PEAL_AT(p, x, y);
    }
}
