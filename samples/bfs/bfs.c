/* Breadth-first search. Vertex v belongs to rank v / share, which is x + Rx * y, and is number v %
 * share there. In lists a vertex is that number; in tables of a column or a row of ranks, as deg
 * and found are, the place of its rank in it comes first: place * share + number. */

/* Edge k of vertex u. Vertices with low numbers are popular, and some are never reached. */
static inline long target_of(long u, long k, long degree, long n)
{
    uint64_t h = (uint64_t)(u * degree + k + 1) * 0x9e3779b97f4a7c15u;
    h = (h ^ (h >> 29)) * 0xbf58476d1ce4e5b9u;
    h = h ^ (h >> 32);
    long one = (long)((h & 0xffffffffu) % (uint64_t)n), other = (long)((h >> 32) % (uint64_t)n);
    return one < other ? one : other;
}

PEAL_KERNEL(edges)(peal_tile t, PEAL_WRITE(int32_t, deg), PEAL_WRITE(int32_t, next), long n,
                   long degree, long share, long rx, long across, long ry)
{
    PEAL_FOR_1D(t, i) {
        long u = (rx + across * (i / share)) * share + i % share;
        int32_t mine = 0;
        for (long k = 0; u < n && k < degree; k++) {
            long v = target_of(u, k, degree, n), rank = v / share;
            if (rank / across == ry) {
                next[degree * i + mine] = (int32_t)(rank % across * share + v % share);
                mine++;
            }
        }
        deg[i] = mine;
    }
}

PEAL_KERNEL(start)(peal_tile t, PEAL_WRITE(int32_t, level), PEAL_WRITE(int32_t, frontier),
                   PEAL_WRITE(int32_t, size), PEAL_WRITE(int32_t, sizes), long root, long share,
                   long rank, long down)
{
    int32_t here = root / share == rank ? 1 : 0;
    PEAL_FOR(t, i, share) {
        level[i] = here && i == root % share ? 0 : -1;
    }
    PEAL_FOR(t, k, down) {
        sizes[k] = here;
    }
    PEAL_ONE(t)
    {
        frontier[0] = (int32_t)(root % share);
        size[0] = here;
    }
}

PEAL_KERNEL(gather)(peal_tile t, PEAL_READ(int32_t, came), PEAL_READ(int32_t, got),
                    PEAL_WRITE(int32_t, queue), PEAL_WRITE(int32_t, length), long share, long down)
{
    long first = 0;
    for (long k = 0; k < down; k++) {
        PEAL_FOR(t, i, got[k]) {
            queue[first + i] = (int32_t)(k * share) + came[k * share + i];
        }
        first += got[k];
    }
    PEAL_ONE(t)
    {
        length[0] = (int32_t)first;
    }
}

PEAL_KERNEL(clear)(peal_tile t, PEAL_WRITE(uint8_t, found))
{
    PEAL_FOR_1D(t, i) {
        found[i] = 0;
    }
}

/* Several edges may lead to a vertex: all say the same of it. */
PEAL_KERNEL(search)(peal_tile t, PEAL_READ(int32_t, queue), PEAL_READ(int32_t, deg),
                    PEAL_READ(int32_t, next), PEAL_UPDATE(uint8_t, found), long degree)
{
    PEAL_FOR_1D(t, i) {
        int32_t u = queue[i];
        for (int32_t k = 0; k < deg[u]; k++) {
            found[next[degree * u + k]] = 1;
        }
    }
}

/* A tile lists those of one rank. */
PEAL_KERNEL(list)(peal_tile t, PEAL_READ(uint8_t, found), PEAL_WRITE(int32_t, out),
                  PEAL_WRITE(int32_t, outs), long share)
{
    PEAL_ONE(t)
    {
        int32_t count = 0;
        for (long i = 0; i < share; i++) {
            if (found[t.lo[0] * share + i]) {
                out[count] = (int32_t)i;
                count++;
            }
        }
        outs[0] = count;
    }
}

PEAL_KERNEL(visit)(peal_tile t, PEAL_READ(int32_t, in), PEAL_READ(int32_t, ins),
                   PEAL_UPDATE(int32_t, level), PEAL_WRITE(int32_t, frontier),
                   PEAL_WRITE(int32_t, size), PEAL_WRITE(int32_t, sizes), long step, long share,
                   long across, long down)
{
    PEAL_ONE(t)
    {
        int32_t count = 0;
        for (long k = 0; k < across; k++) {
            for (long i = 0; i < ins[k]; i++) {
                int32_t v = in[k * share + i];
                if (level[v] < 0) {
                    level[v] = (int32_t)(step + 1);
                    frontier[count] = v;
                    count++;
                }
            }
        }
        for (long k = 0; k < down; k++) {
            sizes[k] = count;
        }
        size[0] = count;
    }
}

PEAL_KERNEL(measure)(peal_tile t, PEAL_READ(int32_t, level), PEAL_REDUCE(int64_t, reached),
                     PEAL_REDUCE(int64_t, levels))
{
    int64_t count = 0, sum = 0;
    PEAL_FOR_1D(t, i) {
        count += level[i] >= 0;
        sum += level[i] > 0 ? level[i] : 0;
    }
    PEAL_PARTIAL(reached, count);
    PEAL_PARTIAL(levels, sum);
}
