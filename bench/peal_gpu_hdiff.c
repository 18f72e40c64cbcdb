/* The GPU benchmark of horizontal diffusion with peal, one process a GPU: samples/hdiff with n x n
 * points a GPU and 64 levels, its four tasks or both fluxes in one, in several modes and lowerings.
 * Some levels are checked against the CPU, and digests of all equal those of the peers. Plans are
 * made when a size is asked for the first time, and kept.
 *
 * usage: peal_gpu_hdiff GPUS [N...] */
#include "bodies/hdiff.h"
#include "gpu/ways.h"

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

enum { CASES = 16, BODIES = 2 };

static const char *const bodies[BODIES] = {"four tasks", "three tasks"};

static const way hdiff_ways[] = {
    {"fused", "fused", "", WAY_ALWAYS},
    {"graph", "graph", "", WAY_ALWAYS},
    {"graph, lanes=1", "graph", "lanes=1", WAY_SMALL},
    {"stream", "stream", "", WAY_SMALL},
    {"sync", "sync", "", WAY_SMALL},
    {"fused, order=grid", "fused", "order=grid", WAY_NAMED},
    {"fused, order=tickets", "fused", "order=tickets", WAY_NAMED},
    {"fused, order=period", "fused", "order=period", WAY_NAMED},
    {"graph, lanes=2", "graph", "lanes=2", WAY_NAMED},
    {"graph, plain", "graph", "plain=1", WAY_NAMED},
    {"graph, send=last", "graph", "send=last", WAY_NAMED},
    {"stream, lanes=2", "stream", "lanes=2", WAY_NAMED},
};

enum { HDIFF_WAYS = sizeof(hdiff_ways) / sizeof(hdiff_ways[0]) };

typedef struct job {
    const struct opened *of;
    int body;
    const way *way;
    way_kept kept;
} job;

/* A size and its jobs; what is right, on rank 0. */
typedef struct opened {
    hdiff_patch patch;
    hdiff_sums truth;
    job job[HDIFF_WAYS * BODIES];
    int job_count;
} opened;

typedef struct server {
    opened *known[CASES], *now;
    int known_count;
} server;

static void add_fields(peal_graph *g, const hdiff_patch *patch)
{
    char size[80];
    snprintf(size, sizeof(size), "[%ld, %ld, %d]", patch->n * patch->rx, patch->n * patch->ry,
             HDIFF_LEVELS);
    peal_graph_add_field(g, .name = "in", .size = size, .halo = "[1, 1, 0]");
    peal_graph_add_field(g, .name = "out", .like = "in");
    peal_graph_add_field(g, .name = "lap", .like = "in", .halo = "[[0, 1], [0, 1], 0]");
    peal_graph_add_field(g, .name = "flx", .like = "in", .halo = "[[1, 0], 0, 0]");
    peal_graph_add_field(g, .name = "fly", .like = "in", .halo = "[0, [1, 0], 0]");
}

static void add_fluxes(peal_graph *g, int body)
{
    if (body == 1) {
        peal_graph_add_task(g, .name = "fluxes", .box = {.name = "flx"},
                            .read = {{.name = "in", .star = "[[0, 1], [0, 1], 0]"},
                                     {.name = "lap", .star = "[[0, 1], [0, 1], 0]"}},
                            .write = {{.name = "flx"}, {.name = "fly"}});
        peal_graph_add_exchange(g, .exchange = {{.name = "flx"}, {.name = "fly"}});
        return;
    }
    peal_graph_add_task(g, .name = "flux_x", .box = {.name = "flx"},
                        .read = {{.name = "in", .grow = "[[0, 1], 0, 0]"},
                                 {.name = "lap", .grow = "[[0, 1], 0, 0]"}},
                        .write = {{.name = "flx"}});
    peal_graph_add_exchange(g, .exchange = {{.name = "flx"}});
    peal_graph_add_task(g, .name = "flux_y", .box = {.name = "fly"},
                        .read = {{.name = "in", .grow = "[0, [0, 1], 0]"},
                                 {.name = "lap", .grow = "[0, [0, 1], 0]"}},
                        .write = {{.name = "fly"}});
    peal_graph_add_exchange(g, .exchange = {{.name = "fly"}});
}

static void add_step(peal_graph *g, int body)
{
    peal_graph_begin(g, PEAL_STEP);
    peal_graph_add_task(g, .name = "laplacian", .box = {.name = "lap"},
                        .read = {{.name = "in", .star = "[1, 1, 0]"}}, .write = {{.name = "lap"}});
    peal_graph_add_exchange(g, .exchange = {{.name = "lap", .star = "[[0, 1], [0, 1], 0]"}});
    add_fluxes(g, body);
    peal_graph_add_task(g, .name = "diffuse", .box = {.name = "out"},
                        .read = {{.name = "in"},
                                 {.name = "flx", .grow = "[[1, 0], 0, 0]"},
                                 {.name = "fly", .grow = "[0, [1, 0], 0]"}},
                        .write = {{.name = "out"}}, .args = {TEXT(HDIFF_COEFF)});
    peal_graph_add_exchange(g, .exchange = {{.name = "out", .star = "[1, 1, 0]"}});
    peal_graph_add_swap(g, .swap = {"in", "out"});
    peal_graph_end(g);
}

/* Prints the digests of what is there at the end. */
static void add_finish(peal_graph *g, const hdiff_patch *patch)
{
    static const char *const sums[] = {"low", "high", "checked_low", "checked_high"};
    peal_task_desc digest = {.size_bytes = sizeof(digest),
                             .source = PEAL_HERE,
                             .name = "digest",
                             .box = {.name = "in"},
                             .read = {{.name = "in"}}};
    peal_rank_reduce_desc all = {.size_bytes = sizeof(all), .source = PEAL_HERE};
    peal_print_row_desc print = {.size_bytes = sizeof(print), .source = PEAL_HERE};
    char nx[24], ny[24], levels[24];
    snprintf(nx, sizeof(nx), "%ld", patch->n * patch->rx);
    snprintf(ny, sizeof(ny), "%ld", patch->n * patch->ry);
    snprintf(levels, sizeof(levels), "%d", HDIFF_LEVELS);
    digest.args[0] = nx;
    digest.args[1] = ny;
    digest.args[2] = levels;
    for (int i = 0; i < 4; i++) {
        peal_graph_add_buffer(g, .name = sums[i], .type = "i64");
        digest.reduce[i] = (peal_reduce_desc){.name = sums[i], .combine = "sum"};
        all.reduce[i] = digest.reduce[i];
        print.print[i] = (peal_print_desc){.name = sums[i], .value = sums[i]};
    }
    peal_graph_begin(g, PEAL_FINISH);
    peal_graph_add_task_desc(g, &digest);
    peal_graph_add_allreduce_desc(g, &all);
    peal_graph_add_print_desc(g, &print);
    peal_graph_end(g);
}

/* The same for checks and for times: kernels are compiled once. */
static peal_graph *make_graph(const job *j)
{
    const hdiff_patch *patch = &j->of->patch;
    char dims[64];
    peal_graph *g;
    if (peal_graph_create("gpu_hdiff", &g) != PEAL_STATUS_OK) {
        _exit(PEAL_STATUS_ENVIRONMENT);
    }
    snprintf(dims, sizeof(dims), "[%ld, %ld, 1]", patch->rx, patch->ry);
    peal_graph_set_folder(g, ways_folder());
    peal_graph_add_kernels(g, "gpu_hdiff.c", PEAL_HERE);
    peal_graph_set_topology(g, .dims = dims, .periodic = "[true, true, false]");
    peal_graph_set_loop(g, .repeat = "1000000000");
    add_fields(g, patch);
    peal_graph_begin(g, PEAL_SETUP);
    peal_graph_add_task(g, .name = "start", .box = {.name = "in"}, .write = {{.name = "in"}});
    peal_graph_add_exchange(g, .exchange = {{.name = "in", .star = "[1, 1, 0]"}});
    peal_graph_end(g);
    add_step(g, j->body);
    add_finish(g, patch);
    return g;
}

/* On rank 0: whether the levels that the CPU has computed are right. */
static bool check(const ranks *r, const job *j, uint64_t *digest)
{
    const hdiff_sums *truth = &j->of->truth;
    way_row row = {0};
    peal_graph *graph = make_graph(j);
    ways_run(r, graph, j->way, HDIFF_STEPS, &row);
    peal_graph_destroy(graph);
    *digest = hdiff_word((uint64_t)row.integer[0], (uint64_t)row.integer[1]);
    return row.count == 4 && (uint64_t)row.integer[2] == truth->checked_low &&
           (uint64_t)row.integer[3] == truth->checked_high;
}

static void run_job(ranks *r, int index, void *user)
{
    job *j = &((const server *)user)->now->job[index];
    const long n = j->of->patch.n;
    char test[48], variant[64];
    snprintf(test, sizeof(test), "%ld/%d", n, r->size);
    snprintf(variant, sizeof(variant), "%s, %s", bodies[j->body], j->way->name);
    if (!ways_wants(j->way->when, n <= 256, variant)) {
        return;
    }
    if (ways_only_compiles()) {
        ways_compile(r, make_graph(j), j->way);
        return;
    }
    if (ways_begin(r, &j->kept, test, variant)) {
        j->kept.verified = check(r, j, &j->kept.digest);
    }
    if (j->kept.left_out) {
        return;
    }
    if (!j->kept.plan) {
        j->kept.graph = make_graph(j);
        j->kept.plan = ways_plan(r, j->kept.graph, j->way, NULL);
    }
    bench_result result = {"gpu_hdiff", test, "peal", variant, "peal", 0, {0}, true, 0};
    result.verified = j->kept.verified;
    result.digest = j->kept.digest;
    const double cpu_ns = ways_time(r, j->way, &j->kept, &result);
    if (r->rank == 0) {
        serve_print(&result, cpu_ns, "");
    }
    ways_let_go(r, &j->kept);
}

static bool parse_size(int count, char **word, long *n)
{
    *n = count == 1 ? atol(word[0]) : 0;
    return *n >= 4 && *n <= 4096;
}

static int open_case(ranks *r, int count, char **word, void *user)
{
    server *all = user;
    long n;
    if (!parse_size(count, word, &n)) {
        return 0;
    }
    for (int i = 0; i < all->known_count; i++) {
        if (all->known[i]->patch.n == n) {
            all->now = all->known[i];
            return all->now->job_count;
        }
    }
    opened *o = all->known_count < CASES ? calloc(1, sizeof(*o)) : NULL;
    if (!o) {
        return 0;
    }
    o->patch = hdiff_split(n, r->size);
    if (r->rank == 0 && !ways_only_compiles() && !hdiff_truth(&o->patch, &o->truth)) {
        fprintf(stderr, "no memory for a reference of %ld points a rank and level\n", n * n);
        _exit(PEAL_STATUS_ENVIRONMENT);
    }
    for (int i = 0; i < HDIFF_WAYS * BODIES; i++) {
        o->job[o->job_count++] = (job){o, i % BODIES, &hdiff_ways[i / BODIES], {0}};
    }
    all->now = all->known[all->known_count++] = o;
    return o->job_count;
}

static void close_cases(void *user)
{
    server *all = user;
    for (int i = 0; i < all->known_count; i++) {
        for (int k = 0; k < all->known[i]->job_count; k++) {
            ways_forget(&all->known[i]->job[k].kept);
        }
        free(all->known[i]);
    }
}

static bool takes(int count, char **word, int gpus)
{
    long n;
    (void)gpus;
    return parse_size(count, word, &n);
}

int main(int argc, char **argv)
{
    static server all;
    const ranks_work work = {argv + 2, open_case, run_job, close_cases, &all};
    return ranks_main(argc, argv, "2 128 512", takes, &work);
}
