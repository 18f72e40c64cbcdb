/* Heat that flows along the edges of an irregular mesh. A rank keeps its nodes in u and copies of
 * its neighbours' nodes in ghost; an index beyond its own nodes means a ghost. */

/* Every 50th node of the whole mesh starts hot. */
PEAL_KERNEL(ignite)(peal_tile t, PEAL_READ(int32_t, nodes), PEAL_WRITE(double, u))
{
    PEAL_FOR_1D(t, i) {
        u[i] = nodes[i] % 50 == 0 ? 100.0 : 0.0;
    }
}

PEAL_KERNEL(measure)(peal_tile t, PEAL_READ(double, u), PEAL_REDUCE(double, heat),
                     PEAL_REDUCE(double, hottest))
{
    double sum = 0, most = 0;
    PEAL_FOR_1D(t, i) {
        sum += u[i];
        most = u[i] > most ? u[i] : most;
    }
    PEAL_PARTIAL(heat, sum);
    PEAL_PARTIAL(hottest, most);
}

/* Packs what the peers need, in the order of their messages. */
PEAL_KERNEL(gather)(peal_tile t, PEAL_READ(double, u), PEAL_READ(int32_t, border),
                    PEAL_WRITE(double, outgoing))
{
    PEAL_FOR_1D(t, i) {
        outgoing[i] = u[border[i]];
    }
}

/* A node's neighbours are listed in the order of their numbers in the whole mesh, so the sum has
 * the same bits however the mesh is cut. */
PEAL_KERNEL(spread)(peal_tile t, PEAL_READ(double, u), PEAL_READ(double, ghost),
                    PEAL_READ(int32_t, first), PEAL_READ(int32_t, next), PEAL_WRITE(double, v),
                    long mine, double rate)
{
    PEAL_FOR_1D(t, i) {
        double here = u[i], inflow = 0;
        for (int32_t k = first[i]; k < first[i + 1]; k++) {
            int32_t j = next[k];
            inflow += (j < mine ? u[j] : ghost[j - mine]) - here;
        }
        v[i] = here + rate * inflow;
    }
}
