/* The GPU benchmark of horizontal diffusion with peal, one process a GPU: samples/hdiff with n x n
 * points a GPU and 64 levels, its four tasks or both fluxes in one, in several modes and lowerings.
 * Some levels are checked against the CPU, and digests of all equal those of the peers. Plans are
 * made when a size is asked for the first time, and kept.
 *
 * usage: peal_gpu_hdiff GPUS [N...] */
#include "bodies/hdiff.h"
#include "gpu/program.h"

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

enum { BODIES = 2 };

static const char *const bodies[BODIES] = {"four tasks", "three tasks"};

static const way hdiff_ways[] = {
    {"fused", "fused", "", WAY_ALWAYS},
    {"graph", "graph", "", WAY_ALWAYS},
    {"graph, lanes=1", "graph", "lanes=1", WAY_SMALL},
    {"stream", "stream", "", WAY_SMALL},
    {"sync", "sync", "", WAY_SMALL},
    {"fused, order=grid", "fused", "order=grid", WAY_NAMED},
    {"fused, order=tickets", "fused", "order=tickets", WAY_NAMED},
    {"fused, order=paper", "fused", "order=paper", WAY_NAMED},
    {"graph, lanes=2", "graph", "lanes=2", WAY_NAMED},
    {"graph, plain", "graph", "plain=1", WAY_NAMED},
    {"stream, lanes=2", "stream", "lanes=2", WAY_NAMED},
};

enum { HDIFF_WAYS = sizeof(hdiff_ways) / sizeof(hdiff_ways[0]) };

/* A size; what is right, on rank 0. */
typedef struct size {
    hdiff_patch patch;
    hdiff_sums truth;
} size;

static const size *size_of(const program_job *j)
{
    return j->of->data;
}

static void add_fields(peal_graph *g, const hdiff_patch *patch)
{
    char extents[80];
    snprintf(extents, sizeof(extents), "[%ld, %ld, %d]", patch->n * patch->rx, patch->n * patch->ry,
             HDIFF_LEVELS);
    peal_graph_add_field(g, .name = "in", .size = extents, .halo = "[1, 1, 0]");
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
static peal_graph *make_graph(const program_job *j, bool checked)
{
    const hdiff_patch *patch = &size_of(j)->patch;
    char dims[64];
    peal_graph *g;
    if (checked) {
        return NULL;
    }
    if (peal_graph_create("gpu_hdiff", &g) != PEAL_STATUS_OK) {
        _exit(PEAL_STATUS_ENVIRONMENT);
    }
    snprintf(dims, sizeof(dims), "[%ld, %ld, 1]", patch->rx, patch->ry);
    peal_graph_set_folder(g, ways_folder());
    peal_graph_add_kernels(g, "hdiff.c", PEAL_HERE);
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
static bool check(const ranks *r, program_job *j)
{
    const hdiff_sums *truth = &size_of(j)->truth;
    way_row row = {0};
    peal_graph *graph = make_graph(j, false);
    ways_run(r, graph, j->way, HDIFF_STEPS, &row);
    peal_graph_destroy(graph);
    j->kept.digest = hdiff_word((uint64_t)row.integer[0], (uint64_t)row.integer[1]);
    return row.count == 4 && (uint64_t)row.integer[2] == truth->checked_low &&
           (uint64_t)row.integer[3] == truth->checked_high;
}

static bool names(const ranks *r, const program_job *j, program_names *out)
{
    const long n = size_of(j)->patch.n;
    snprintf(out->test, sizeof(out->test), "%ld/%d", n, r->size);
    snprintf(out->variant, sizeof(out->variant), "%s, %s", bodies[j->body], j->way->name);
    return ways_wants(j->way->when, n <= 256, out->variant);
}

static bool parse_size(int count, char **word, int gpus, void *data)
{
    const long n = count == 1 ? atol(word[0]) : 0;
    ((size *)data)->patch = hdiff_split(n, gpus);
    return n >= 4 && n <= 4096;
}

static void open_size(const ranks *r, program_case *c)
{
    size *s = c->data;
    const long n = s->patch.n;
    if (r->rank == 0 && !ways_only_compiles() && !hdiff_truth(&s->patch, &s->truth)) {
        fprintf(stderr, "no memory for a reference of %ld points a rank and level\n", n * n);
        _exit(PEAL_STATUS_ENVIRONMENT);
    }
    for (int i = 0; i < HDIFF_WAYS * BODIES; i++) {
        program_add(c, (program_job){.body = i % BODIES, .way = &hdiff_ways[i / BODIES]});
    }
}

int main(int argc, char **argv)
{
    static program hdiff = {.bench = "gpu_hdiff",
                            .example = "2 128 512",
                            .data_bytes = sizeof(size),
                            .parse = parse_size,
                            .open = open_size,
                            .names = names,
                            .graph = make_graph,
                            .check = check};
    return program_main(argc, argv, &hdiff);
}
