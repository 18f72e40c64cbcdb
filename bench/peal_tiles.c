/* Task-graph overhead of peal: the 1-D stencil of empty tiles of peers/tiles_omp.c as a graph, one
 * process, so many workers, in every mode. The tile of a column adds one to it; it is verified that
 * no tile is dropped and that a tile sees its neighbours' values of the step before.
 *
 * usage: peal_tiles THREADS WIDTH TILES [WIDTH TILES ...] */
#include "peal_bench.h"

typedef struct column_job {
    int64_t width;
    bool check;
    bool wrong;
} column_job;

static void column(const peal_call *call)
{
    column_job *job = call->user;
    const int64_t i = call->tile.lo[0];
    const int64_t *a = call->view[0].base;
    int64_t *an = call->view[1].base;
    if (job->check) {
        int64_t left = i > 0 ? a[i - 1] : a[i], right = i < job->width - 1 ? a[i + 1] : a[i];
        if (left != a[i] || right != a[i]) {
            __atomic_store_n(&job->wrong, true, __ATOMIC_RELAXED);
        }
    }
    an[i] = a[i] + 1;
}

static peal_graph *make_graph(column_job *job)
{
    char size[32];
    peal_graph *g;
    if (peal_graph_create("tiles", &g) != PEAL_STATUS_OK) {
        exit(PEAL_STATUS_ENVIRONMENT);
    }
    snprintf(size, sizeof(size), "[%ld]", (long)job->width);
    peal_graph_set_loop(g, .repeat = "1000000000000");
    peal_graph_add_field(g, .name = "a", .type = "i64", .size = size, .halo = "1");
    peal_graph_add_field(g, .name = "an", .like = "a");
    peal_graph_begin(g, PEAL_STEP);
    peal_graph_add_task(g, .name = "column", .function = column, .user = job, .box = {.name = "a"},
                        .tile = "[1]", .read = {{.name = "a", .star = "1", .stale_ok = true}},
                        .write = {{.name = "an"}});
    peal_graph_add_swap(g, .swap = {"a", "an"});
    peal_graph_end(g);
    return g;
}

/* Whether every column has been stepped so often. */
static bool complete(peal_session *session, peal_plan *plan, int64_t width, int64_t steps)
{
    peal_plan_array array;
    bench_require(session, peal_plan_view(plan, 0, "a", &array), "view");
    for (int64_t i = 0; i < width; i++) {
        if (((const int64_t *)array.view.base)[i] != steps) {
            return false;
        }
    }
    return true;
}

static void run_case(peal_session *session, int threads, int64_t width, int64_t tiles,
                     const char *mode)
{
    char test[64];
    column_job job = {width, true, false};
    int64_t steps = tiles / width, some = steps > 1000 ? 1000 : steps, done;
    int batches = tiles > 100000 ? 1 : BENCH_BATCHES;
    peal_graph *graph = make_graph(&job);
    peal_plan *plan = bench_plan(session, graph, mode, threads);
    if (plan) {
        snprintf(test, sizeof(test), "w%ld/%ld/%dt", (long)width, (long)tiles, threads);
        bench_result r = {"tiles", test, "peal", mode, "peal", 0, {0}, false, 0};
        bench_steps(session, plan, some);
        done = some;
        r.verified = !job.wrong;
        job.check = false;
        for (int batch = 0; batch < batches; batch++, done += steps) {
            r.ns[r.batch_count++] = bench_steps(session, plan, steps) / (double)width;
        }
        r.verified = r.verified && complete(session, plan, width, done);
        bench_print(&r);
        bench_close_plan(session, plan);
    }
    peal_graph_destroy(graph);
}

int main(int argc, char **argv)
{
    if (argc < 4 || argc % 2 == 1) {
        fprintf(stderr, "usage: %s THREADS WIDTH TILES [WIDTH TILES ...]\n", argv[0]);
        return PEAL_STATUS_USAGE;
    }
    const peal_session_desc desc = {.size_bytes = sizeof(desc),
                                    .log_level = PEAL_LOG_ERROR,
                                    .log = stderr};
    peal_session *session; /* not bound to a core: the workers need theirs */
    bench_require(NULL, peal_session_create(&desc, &session), "session");
    for (int i = 2; i < argc; i += 2) {
        for (int mode = 0; mode < BENCH_MODES; mode++) {
            run_case(session, atoi(argv[1]), atol(argv[i]), atol(argv[i + 1]), bench_modes[mode]);
        }
    }
    peal_session_destroy(session);
    return 0;
}
