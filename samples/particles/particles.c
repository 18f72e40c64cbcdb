/* Particles in a ring of slabs: rank r has those at r <= x < r + 1. Who passes a wall is handed to
 * the neighbour there; a particle stays with its rank otherwise, so its number may grow and shrink.
 */

/* Evenly spaced, with velocities from -2 to 2 that only the number of the particle decides. */
PEAL_KERNEL(seed)(peal_tile t, PEAL_WRITE(double, pos), PEAL_WRITE(double, vel),
                  PEAL_WRITE(int32_t, n), long each, long rank)
{
    PEAL_FOR(t, i, each) {
        long number = rank * each + (long)i;
        long draw = (number * number * 37 + number * 7919 + 13) % 4001;
        pos[i] = (double)rank + ((double)i + 0.5) / (double)each;
        vel[i] = (double)draw / 1000.0 - 2.0;
    }
    PEAL_ONE(t)
    {
        n[0] = (int32_t)each;
    }
}

PEAL_KERNEL(move)(peal_tile t, PEAL_READ(double, vel), PEAL_UPDATE(double, pos), double dt)
{
    PEAL_FOR_1D(t, i) {
        pos[i] = pos[i] + vel[i] * dt;
    }
}

/* Closes the gaps of those that leave. More than `out` are counted, but not stored: the send then
 * ends the run and says so. A position is one of the ring when it arrives. */
PEAL_KERNEL(leave)(peal_tile t, PEAL_UPDATE(double, pos), PEAL_UPDATE(double, vel),
                   PEAL_UPDATE(int32_t, n), PEAL_WRITE(double, left), PEAL_WRITE(int32_t, nleft),
                   PEAL_WRITE(double, right), PEAL_WRITE(int32_t, nright), long out, long rank,
                   long ranks)
{
    PEAL_ONE(t)
    {
        long kept = 0, lefts = 0, rights = 0;
        for (long i = 0; i < n[0]; i++) {
            double x = pos[i], v = vel[i];
            if (x < (double)rank) {
                if (lefts < out) {
                    left[2 * lefts] = rank == 0 ? x + (double)ranks : x;
                    left[2 * lefts + 1] = v;
                }
                lefts++;
            } else if (x >= (double)(rank + 1)) {
                if (rights < out) {
                    right[2 * rights] = rank == ranks - 1 ? x - (double)ranks : x;
                    right[2 * rights + 1] = v;
                }
                rights++;
            } else {
                pos[kept] = x;
                vel[kept] = v;
                kept++;
            }
        }
        n[0] = (int32_t)kept;
        nleft[0] = (int32_t)(2 * lefts);
        nright[0] = (int32_t)(2 * rights);
    }
}

/* Those from the left first. More than `room` are counted, but not stored: the next move says so.
 */
PEAL_KERNEL(join)(peal_tile t, PEAL_READ(double, from_left), PEAL_READ(int32_t, got_left),
                  PEAL_READ(double, from_right), PEAL_READ(int32_t, got_right),
                  PEAL_UPDATE(double, pos), PEAL_UPDATE(double, vel), PEAL_UPDATE(int32_t, n),
                  long room)
{
    PEAL_ONE(t)
    {
        long count = n[0], lefts = got_left[0] / 2, rights = got_right[0] / 2;
        for (long i = 0; i < lefts + rights; i++, count++) {
            if (count < room) {
                pos[count] = i < lefts ? from_left[2 * i] : from_right[2 * (i - lefts)];
                vel[count] = i < lefts ? from_left[2 * i + 1] : from_right[2 * (i - lefts) + 1];
            }
        }
        n[0] = (int32_t)count;
    }
}

PEAL_KERNEL(measure)(peal_tile t, PEAL_READ(double, vel), PEAL_REDUCE(double, momentum),
                     PEAL_REDUCE(double, energy))
{
    double p = 0, e = 0;
    PEAL_FOR_1D(t, i) {
        p += vel[i];
        e += 0.5 * vel[i] * vel[i];
    }
    PEAL_PARTIAL(momentum, p);
    PEAL_PARTIAL(energy, e);
}
