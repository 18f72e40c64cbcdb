/* Task-graph overhead of the OpenMP run-time library: a 1-D stencil of empty tiles, tile (t, i)
 * after tiles (t - 1, i - 1 .. i + 1), without wrap. Each tile adds to a counter of its own column,
 * so that no tile can be dropped, and checks its neighbours' counters, so that order is verified.
 *
 * A task a tile: tasks with depend on two rows of tokens used in turns (not with one thread, where
 * its time grew with the square of the steps), tasks with depend on a token a tile, a taskloop a
 * step. Also shown, but no task graph (kind "loop"): a taskloop a step that the library cuts as it
 * likes, and a worksharing loop with its barrier a step.
 *
 * usage: tiles_omp WIDTH TILES [WIDTH TILES ...]   (threads: OMP_NUM_THREADS) */
#include "../measure.h"

#include <omp.h>

#ifdef __clang__
#define PEER "libomp"
#else
#define PEER "libgomp"
#endif

enum { LINE = 16 /* counters apart, so that columns don't share cache lines */ };

static long *count; /* column i: steps done */
static long wrong;  /* tiles that ran before what they depend on */
static char token[2][4098];
static char *tokens; /* one a tile */

/* The body: as good as empty. With checks, a neighbour must have done at least as many steps. */
static inline void tile(long step, long i, long width, bool check)
{
    if (check) {
        long left = i > 0 ? count[(i - 1) * LINE] : step;
        long right = i < width - 1 ? count[(i + 1) * LINE] : step;
        if (count[i * LINE] != step || left < step || right < step) {
#pragma omp atomic
            wrong++;
        }
    }
    count[i * LINE] = step + 1;
}

static void run_depend_rows(long width, long steps, bool check)
{
#pragma omp parallel
#pragma omp single
    for (long t = 0; t < steps; t++) {
        const char *from = token[t % 2];
        char *to = token[(t + 1) % 2];
        (void)from; /* some compilers don't count depend as a use */
        (void)to;
        for (long i = 0; i < width; i++) {
#pragma omp task depend(in                                                                         \
                        : from[i], from[i + 1], from[i + 2]) depend(out                            \
                                                                    : to[i + 1])                   \
    firstprivate(t, i)
            tile(t, i, width, check);
        }
    }
}

static void run_depend_tiles(long width, long steps, bool check)
{
#pragma omp parallel
#pragma omp single
    for (long t = 0; t < steps; t++) {
        const char *from = tokens + t * (width + 2);
        char *to = tokens + (t + 1) * (width + 2);
        (void)from;
        (void)to;
        for (long i = 0; i < width; i++) {
#pragma omp task depend(in                                                                         \
                        : from[i], from[i + 1], from[i + 2]) depend(out                            \
                                                                    : to[i + 1])                   \
    firstprivate(t, i)
            tile(t, i, width, check);
        }
    }
}

static void run_taskloop(long width, long steps, bool check)
{
#pragma omp parallel
#pragma omp single
    for (long t = 0; t < steps; t++) {
#pragma omp taskloop grainsize(1) firstprivate(t)
        for (long i = 0; i < width; i++) {
            tile(t, i, width, check);
        }
    }
}

static void run_taskloop_chunks(long width, long steps, bool check)
{
#pragma omp parallel
#pragma omp single
    for (long t = 0; t < steps; t++) {
#pragma omp taskloop firstprivate(t)
        for (long i = 0; i < width; i++) {
            tile(t, i, width, check);
        }
    }
}

static void run_loop(long width, long steps, bool check)
{
#pragma omp parallel
    for (long t = 0; t < steps; t++) {
#pragma omp for schedule(static)
        for (long i = 0; i < width; i++) {
            tile(t, i, width, check);
        }
    }
}

typedef struct tiles_way {
    const char *name;
    const char *kind;
    void (*run)(long width, long steps, bool check);
} tiles_way;

static const tiles_way ways[] = {
    {"task-depend", "peer", run_depend_rows}, {"task-depend-per-tile", "peer", run_depend_tiles},
    {"taskloop", "peer", run_taskloop},       {"taskloop-chunks", "loop", run_taskloop_chunks},
    {"for-barrier", "loop", run_loop},
};

enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

static double run_way(const tiles_way *way, long width, long steps, bool check)
{
    memset(count, 0, (size_t)(width * LINE) * sizeof(long));
    double start = bench_now_ns();
    way->run(width, steps, check);
    return (bench_now_ns() - start) / (double)(width * steps);
}

static bool complete(long width, long steps)
{
    for (long i = 0; i < width; i++) {
        if (count[i * LINE] != steps) {
            return false;
        }
    }
    return wrong == 0;
}

static void run_case(long width, long tiles)
{
    static bench_result result[WAYS];
    long steps = tiles / width;
    char test[48];
    snprintf(test, sizeof(test), "w%ld/%ld/%dt", width, tiles, omp_get_max_threads());
    count = aligned_alloc(64, (size_t)(width * LINE) * sizeof(long));
    tokens = calloc((size_t)(steps + 1) * (size_t)(width + 2), 1);
    if (!count || !tokens) {
        exit(4);
    }
    int batches = tiles > 100000 ? 1 : BENCH_BATCHES;
    for (int batch = -1; batch < batches; batch++) {
        for (int w = 0; w < WAYS; w++) {
            bench_result *r = &result[w];
            if (w == 0 && omp_get_max_threads() == 1) {
                continue;
            }
            if (batch < 0) {
                *r = (bench_result){"tiles", test, PEER, ways[w].name, ways[w].kind, batches,
                                    {0},     true, 0};
                long some = steps > 1000 ? 1000 : steps;
                wrong = 0;
                run_way(&ways[w], width, some, true);
                r->verified = complete(width, some);
            } else {
                r->ns[batch] = run_way(&ways[w], width, steps, false);
                r->verified = r->verified && complete(width, steps);
            }
        }
    }
    for (int w = omp_get_max_threads() == 1; w < WAYS; w++) {
        bench_print(&result[w]);
    }
    free(count);
    free(tokens);
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc % 2 == 0) {
        fprintf(stderr, "usage: %s WIDTH TILES [WIDTH TILES ...]\n", argv[0]);
        return 2;
    }
    for (int i = 1; i < argc; i += 2) {
        run_case(atol(argv[i]), atol(argv[i + 1]));
    }
    return 0;
}
