/* The Jacobi benchmark with peal: the problem of bodies/mesh.h as a graph with our own functions, 2
 * processes, rows split, in every mode, with tiles of peal's choice and as one tile a rank.
 *
 * usage: peal_jacobi N [N ...], two processes under a launcher */
#include "bodies/mesh.h"
#include "peal_bench.h"

typedef struct tiling {
    const char *name;
    const char *tile; /* NULL: peal chooses */
} tiling;

static const tiling tilings[] = {{"auto", NULL}, {"whole", "whole"}, {"rows", "[1000000, 32]"}};

enum { TILINGS = sizeof(tilings) / sizeof(tilings[0]) };

/* Fixed columns of both arrays; row y here is mesh row y + 1. */
static void walls(const peal_call *call)
{
    const long n = *(const long *)call->user;
    for (int view = 0; view < 2; view++) {
        float *a = call->view[view].base;
        for (int64_t y = call->tile.lo[1]; y < call->tile.hi[1]; y++) {
            for (int64_t x = call->tile.lo[0]; x < call->tile.hi[0]; x++) {
                a[x + y * call->view[view].stride[1]] = mesh_wall(n, y + 1);
            }
        }
    }
}

static void relax(const peal_call *call)
{
    const peal_tile *t = &call->tile;
    jacobi_relax(call->view[0].base, call->view[1].base, call->view[0].stride[1], t->lo[0],
                 t->hi[0], t->lo[1], t->hi[1]);
}

static peal_graph *make_graph(long *n, const char *tile)
{
    char size[64];
    peal_graph *g;
    if (peal_graph_create("jacobi", &g) != PEAL_STATUS_OK) {
        exit(PEAL_STATUS_ENVIRONMENT);
    }
    snprintf(size, sizeof(size), "[%ld, %ld]", *n, *n - 2);
    peal_graph_set_topology(g, .dims = "[1, auto]", .periodic = "[false, true]");
    peal_graph_set_loop(g, .repeat = "1000000000");
    peal_graph_add_field(g, .name = "a", .type = "f32", .size = size, .halo = "[0, 1]");
    peal_graph_add_field(g, .name = "an", .like = "a");
    peal_graph_begin(g, PEAL_SETUP);
    peal_graph_add_task(g, .name = "walls", .function = walls, .user = n,
                        .box = {.name = "a", .rim = "[1, 0]"},
                        .write = {{.name = "a"}, {.name = "an"}});
    peal_graph_add_exchange(g, .exchange = {{.name = "a"}});
    peal_graph_end(g);
    peal_graph_begin(g, PEAL_STEP);
    peal_graph_add_task(g, .name = "relax", .function = relax,
                        .box = {.name = "a", .grow = "[-1, 0]"}, .tile = tile,
                        .read = {{.name = "a", .star = "1"}}, .write = {{.name = "an"}});
    peal_graph_add_exchange(g, .exchange = {{.name = "an"}});
    peal_graph_add_swap(g, .swap = {"a", "an"});
    peal_graph_end(g);
    return g;
}

/* Digest of my rows, and whether they are those of one thread. */
static uint64_t digest(peal_session *session, peal_plan *plan, long n, bool *verified)
{
    peal_plan_array array;
    int rank, end;
    peal_plan_ranks(plan, &rank, &end);
    bench_require(session, peal_plan_view(plan, rank, "a", &array), "view");
    const mesh m = {n, array.part.lo[1] + 1, array.part.hi[1] - array.part.lo[1]};
    const float *a = array.view.base;
    uint64_t sum = 0;
    for (long y = array.part.lo[1]; y < array.part.hi[1]; y++) {
        for (long x = 0; x < n; x++) {
            sum +=
                bench_hash((uint64_t)(y * n + x), bench_bits_f32(a[x + y * array.view.stride[1]]));
        }
    }
    *verified = mesh_verified(&m, sum);
    return sum;
}

/* About how long a step takes on one of two ranks, for a number of steps that both agree on. */
static long repetitions(long n)
{
    double points = 0.5 * (double)n * (double)n;
    return 1 + bench_repetitions(500 + points * (n > 2048 ? 0.4 : 0.13), bench_budget_ns());
}

static void run_case(peal_session *session, long n, const tiling *tiles, const char *mode)
{
    char test[32], variant[48];
    peal_graph *graph = make_graph(&n, tiles->tile);
    peal_plan *plan = bench_plan(session, graph, mode, 1);
    if (plan) {
        snprintf(test, sizeof(test), "%ld", n);
        snprintf(variant, sizeof(variant), "%s-%s", mode, tiles->name);
        bench_result r = {"jacobi", test, "peal", variant, "peal", 0, {0}, false, 0};
        bench_steps(session, plan, mesh_verified_steps(n));
        r.digest = digest(session, plan, n, &r.verified);
        bench_steps(session, plan, 2);
        for (int batch = 0; batch < BENCH_BATCHES; batch++) {
            r.ns[r.batch_count++] = bench_steps(session, plan, repetitions(n));
        }
        bench_print(&r);
        bench_close_plan(session, plan);
    }
    peal_graph_destroy(graph);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s N [N ...]\n", argv[0]);
        return PEAL_STATUS_USAGE;
    }
    peal_session *session = bench_open();
    if (peal_session_processes(session) != 2) {
        fprintf(stderr, "%s needs two processes\n", argv[0]);
        return PEAL_STATUS_USAGE;
    }
    for (int i = 1; i < argc; i++) {
        for (int t = 0; t < TILINGS; t++) {
            for (int mode = 0; mode < BENCH_MODES; mode++) {
                run_case(session, atol(argv[i]), &tilings[t], bench_modes[mode]);
            }
        }
    }
    peal_session_destroy(session);
    return 0;
}
