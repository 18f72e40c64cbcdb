/* Heat in a box that is periodic in x, y and z: an explicit step of the heat equation with all 26
 * neighbours of a point, weighted so that heat spreads alike in all directions. */

/* A hot ball in the cold: 100 degrees within `radius` of (cx, cy, cz), 0 elsewhere. */
PEAL_KERNEL(ignite)(peal_tile t, PEAL_WRITE(double, u), long cx, long cy, long cz, long radius)
{
    PEAL_FOR_3D(t, x, y, z) {
        long dx = x - cx, dy = y - cy, dz = z - cz;
        PEAL_AT(u, x, y, z) = dx * dx + dy * dy + dz * dz <= radius * radius ? 100.0 : 0.0;
    }
}

/* Heat is neither made nor lost, and the hottest point can only cool. */
PEAL_KERNEL(measure)(peal_tile t, PEAL_READ(double, u), PEAL_REDUCE(double, heat),
                     PEAL_REDUCE(double, hottest))
{
    double sum = 0, most = 0;
    PEAL_FOR_3D(t, x, y, z) {
        double here = PEAL_AT(u, x, y, z);
        sum += here;
        most = here > most ? here : most;
    }
    PEAL_PARTIAL(heat, sum);
    PEAL_PARTIAL(hottest, most);
}

PEAL_KERNEL(spread)(peal_tile t, PEAL_READ(double, u), PEAL_WRITE(double, v), double rate)
{
    PEAL_FOR_3D(t, x, y, z) {
        double faces = 0, edges = 0, corners = 0;
        for (int dz = -1; dz <= 1; dz += 2)
            for (int dy = -1; dy <= 1; dy += 2)
                for (int dx = -1; dx <= 1; dx += 2)
                    corners += PEAL_AT(u, x + dx, y + dy, z + dz);
        for (int b = -1; b <= 1; b += 2) {
            for (int a = -1; a <= 1; a += 2) {
                edges += PEAL_AT(u, x + a, y + b, z);
                edges += PEAL_AT(u, x + a, y, z + b);
                edges += PEAL_AT(u, x, y + a, z + b);
            }
            faces += PEAL_AT(u, x + b, y, z);
            faces += PEAL_AT(u, x, y + b, z);
            faces += PEAL_AT(u, x, y, z + b);
        }
        double here = PEAL_AT(u, x, y, z);
        double laplacian = (14.0 * faces + 3.0 * edges + corners - 128.0 * here) / 30.0;
        PEAL_AT(v, x, y, z) = here + rate * laplacian;
    }
}
