/* The GPU halo benchmark with peal, one process a GPU: the problem of gpu/halo.cuh as graphs, in
 * several modes and lowerings. Plans are made when a case is asked for the first time, and kept.
 *
 *   tasks     a ring by hand: pack, send, interior, recv, unpack (as samples/halo/halo.yaml)
 *   exchange  the halo left to peal: an exchange statement beside the interior task
 *
 * Floors are the same graphs without their messages.
 *
 * usage: peal_gpu_halo GPUS [CASE...], a case being "ring BYTES INTERIOR_US", "ring BYTES alone" or
 * "box POINTS" */
#include "gpu/ways.h"

enum { CASES = 64, CHECKED_STEPS = 150 };

typedef enum style { EXCHANGE, TASKS, STYLES } style;

typedef struct halo_case {
    bool ring, alone;
    long face, n; /* points of a ring's face; of a box along an axis */
    double interior_us;
    int ranks[3];
    char test[48];
} halo_case;

typedef struct job {
    const halo_case *test;
    const way *way;
    style style;
    bool floor;
    way_kept kept;
} job;

/* A case and its jobs. */
typedef struct opened {
    halo_case test;
    job job[WAYS * STYLES * 2];
    int job_count;
} opened;

typedef struct server {
    opened *known[CASES], *now;
    int known_count;
} server;

static bool parse_case(int count, char **word, int gpus, halo_case *c)
{
    *c = (halo_case){.ranks = {gpus, 1, 1}};
    if (count == 3 && !strcmp(word[0], "ring")) {
        c->ring = true;
        c->face = atol(word[1]) / (long)sizeof(double);
        c->alone = !strcmp(word[2], "alone");
        c->interior_us = c->alone ? 0 : atof(word[2]);
        snprintf(c->test, sizeof(c->test), "ring%d/%s/%s", gpus, word[1], word[2]);
        return c->face > 0 && gpus > 1;
    }
    if (count == 2 && !strcmp(word[0], "box")) {
        c->n = atol(word[1]);
        c->ranks[0] = gpus > 1 ? 2 : 1;
        c->ranks[1] = gpus > 2 ? 2 : 1;
        c->ranks[2] = gpus > 4 ? 2 : 1;
        snprintf(c->test, sizeof(c->test), "box%d/%s", gpus, word[1]);
        return c->n > 0 && c->n < 4096;
    }
    return false;
}

/* ---- the graphs ---- */

static void add_field(peal_graph *g, const halo_case *c)
{
    char size[96], dims[48], halo[24];
    const long x = c->ring ? 2 * c->face : c->n;
    snprintf(size, sizeof(size), c->ring ? "[%ld]" : "[%ld, %ld, %ld]", x * c->ranks[0],
             c->n * c->ranks[1], c->n * c->ranks[2]);
    snprintf(dims, sizeof(dims), c->ring ? "[%d]" : "[%d, %d, %d]", c->ranks[0], c->ranks[1],
             c->ranks[2]);
    snprintf(halo, sizeof(halo), "%ld", c->ring ? c->face : 1);
    peal_graph_set_topology(g, .dims = dims, .periodic = "true");
    peal_graph_add_field(g, .name = "u", .size = size, .halo = halo);
}

/* The extents of the whole field as arguments of a kernel. */
static void whole(const halo_case *c, char nx[24], char ny[24], char nz[24])
{
    snprintf(nx, 24, "%ld", (c->ring ? 2 * c->face : c->n) * c->ranks[0]);
    snprintf(ny, 24, "%ld", c->ring ? 1 : c->n * c->ranks[1]);
    snprintf(nz, 24, "%ld", c->ring ? 0 : c->n * c->ranks[2]);
}

static void add_setup(peal_graph *g, const halo_case *c)
{
    char nx[24], ny[24], nz[24];
    whole(c, nx, ny, nz);
    peal_graph_begin(g, PEAL_SETUP);
    peal_graph_add_task(g, .name = "fill", .box = {.name = "u"}, .write = {{.name = "u"}},
                        .args = {nx, ny});
    peal_graph_end(g);
}

/* Counts what is wrong after so many steps that began with `advance`. */
static void add_check(peal_graph *g, const halo_case *c, long steps)
{
    char nx[24], ny[24], nz[24], ghost[24], done[24];
    whole(c, nx, ny, nz);
    snprintf(ghost, sizeof(ghost), "%ld", c->ring ? c->face : 1);
    snprintf(done, sizeof(done), "%ld", steps);
    peal_graph_add_buffer(g, .name = "right", .type = "i64");
    peal_graph_add_buffer(g, .name = "wrong", .type = "i64");
    peal_graph_begin(g, PEAL_FINISH);
    peal_graph_add_task(g, .name = "check", .box = {.name = "u"}, .tile = c->ring ? "whole" : NULL,
                        .read = {{.name = "u", .grow = ghost}},
                        .reduce = {{.name = "right", .combine = "sum"},
                                   {.name = "wrong", .combine = "sum"}},
                        .args = {nx, ny, nz, ghost, done});
    peal_graph_add_allreduce(g, .reduce = {{.name = "right", .combine = "sum"},
                                           {.name = "wrong", .combine = "sum"}});
    peal_graph_add_print(g, .print = {{.name = "right", .value = "right"},
                                      {.name = "wrong", .value = "wrong"}});
    peal_graph_end(g);
}

static void add_interior(peal_graph *g, const halo_case *c)
{
    char cycles[32];
    const double mhz = 1980; /* of an H200 under load, as halo_interior has it */
    snprintf(cycles, sizeof(cycles), "%.0f", c->interior_us * mhz);
    if (c->interior_us > 0) {
        peal_graph_add_task(g, .name = "interior", .box = {.box = "[[0, 64]]"}, .tile = "[1]",
                            .write = {{.name = "done", .per_tile = "1"}}, .args = {cycles});
    }
}

/* One kernel packs both faces, one unpacks them; a message a side. */
static void add_tasks(peal_graph *g, const halo_case *c, bool messages)
{
    char low[128], high[128], middle[48], face[24];
    snprintf(face, sizeof(face), "%ld", c->face);
    snprintf(middle, sizeof(middle), "%ld * (2 * rank + 1)", c->face);
    snprintf(low, sizeof(low), "[[%ld * 2 * rank, %s]]", c->face, middle);
    snprintf(high, sizeof(high), "[[%s, %ld * (2 * rank + 2)]]", middle, c->face);
    peal_graph_add_task(g, .name = "pack", .box = {.name = "u"}, .read = {{.name = "u"}},
                        .write = {{.name = "out"}});
    if (messages) {
        peal_graph_add_send(g, .send = {.name = "out", .box = low}, .to = "[-1]");
        peal_graph_add_send(g, .send = {.name = "out", .box = high}, .to = "[1]");
    }
    add_interior(g, c);
    if (messages) {
        peal_graph_add_recv(g, .recv = {.name = "in", .box = low}, .from = "[-1]");
        peal_graph_add_recv(g, .recv = {.name = "in", .box = high}, .from = "[1]");
    }
    peal_graph_add_task(g, .name = "unpack", .box = {.name = "u"}, .read = {{.name = "in"}},
                        .write = {{.name = "u", .whole = true}}, .independent = true,
                        .args = {middle, face});
}

static void add_step(peal_graph *g, const job *j, bool checked)
{
    peal_graph_begin(g, PEAL_STEP);
    if (checked) {
        peal_graph_add_task(g, .name = "advance", .box = {.name = "u"}, .update = {{.name = "u"}});
    }
    if (j->style == TASKS) {
        add_tasks(g, j->test, !j->floor);
    } else {
        if (!j->floor) {
            peal_graph_add_exchange(g, .exchange = {{.name = "u"}});
        }
        add_interior(g, j->test); /* peal puts it between the sends and the receives */
    }
    peal_graph_end(g);
}

/* checked: owners change their values in every step, and the halo is counted at the end. */
static peal_graph *make_graph(const job *j, bool checked)
{
    peal_graph *g;
    if (peal_graph_create("gpu_halo", &g) != PEAL_STATUS_OK) {
        _exit(PEAL_STATUS_ENVIRONMENT);
    }
    peal_graph_set_folder(g, ways_folder());
    peal_graph_add_kernels(g, "gpu_halo.c", PEAL_HERE);
    peal_graph_set_loop(g, .repeat = "1000000000");
    add_field(g, j->test);
    if (j->test->interior_us > 0) {
        peal_graph_add_buffer(g, .name = "done", .count = "64");
    }
    if (j->style == TASKS) {
        peal_graph_add_buffer(g, .name = "out", .box = {.name = "u"});
        peal_graph_add_buffer(g, .name = "in", .box = {.name = "u"});
    }
    add_setup(g, j->test);
    add_step(g, j, checked);
    if (checked) {
        add_check(g, j->test, CHECKED_STEPS);
    }
    return g;
}

/* ---- jobs ---- */

/* Of a rank, halo included. */
static int64_t stored_points(const halo_case *c)
{
    const int64_t side = c->n + 2;
    return c->ring ? 4 * (int64_t)c->face : side * side * side;
}

static bool is_right(const ranks *r, const job *j)
{
    way_row row = {0};
    peal_graph *graph = make_graph(j, true);
    ways_run(r, graph, j->way, CHECKED_STEPS, &row);
    peal_graph_destroy(graph);
    const bool right =
        row.count == 2 && row.integer[0] >= stored_points(j->test) * r->size && row.integer[1] == 0;
    return ranks_max(r, r->rank == 0 && !right) == 0;
}

/* The case in which all lowerings are shown. */
static bool is_small(const halo_case *c)
{
    return c->ring && !c->alone && c->face * (long)sizeof(double) == 4096 && c->interior_us == 0;
}

/* By hand only where a lowering is of interest. */
static bool is_wanted(const job *j, const char *variant)
{
    const bool often = j->floor || j->style == EXCHANGE || j->way < ways + WAYS_GRAPH;
    return ways_wants(often ? j->way->when : WAY_NAMED, is_small(j->test), variant) ||
           (j->floor && j->way == ways);
}

static void run_job(ranks *r, int index, void *user)
{
    job *j = &((const server *)user)->now->job[index];
    const char *const words[] = {"exchange", "tasks"}, *const empty[] = {"interior", "no exchange"};
    char variant[64];
    if (j->floor) {
        snprintf(variant, sizeof(variant), "%s, %s", j->way->name, empty[j->style]);
    } else {
        snprintf(variant, sizeof(variant), "%s, %s", words[j->style], j->way->name);
    }
    if (!is_wanted(j, variant)) {
        return;
    }
    if (ways_only_compiles()) {
        ways_compile(r, make_graph(j, false), j->way);
        if (!j->floor) {
            ways_compile(r, make_graph(j, true), j->way);
        }
        return;
    }
    if (ways_begin(r, &j->kept, j->test->test, variant)) {
        j->kept.verified = j->floor || is_right(r, j);
    }
    if (j->kept.left_out) {
        return;
    }
    if (!j->kept.plan) {
        j->kept.graph = make_graph(j, false);
        j->kept.plan = ways_plan(r, j->kept.graph, j->way, NULL);
    }
    bench_result result = {"gpu_halo", j->test->test, "peal", variant, j->floor ? "floor" : "peal",
                           0,          {0},           true,   0};
    result.verified = j->kept.verified;
    const double cpu_ns = ways_time(r, j->way, &j->kept, &result);
    if (r->rank == 0) {
        serve_print(&result, cpu_ns, "");
    }
    ways_let_go(r, &j->kept);
}

static void add_jobs(opened *o)
{
    const halo_case *c = &o->test;
    for (int s = 0; s < (c->ring && !c->alone ? STYLES : 1); s++) {
        for (int w = 0; w < WAYS; w++) {
            o->job[o->job_count++] = (job){c, &ways[w], (style)s, false, {0}};
        }
        /* floors in the first ways; a step of nothing is none */
        for (int w = 0; w < WAYS_GRAPH && (s == TASKS || c->interior_us > 0); w++) {
            o->job[o->job_count++] = (job){c, &ways[w], (style)s, true, {0}};
        }
    }
}

static int open_case(ranks *r, int count, char **word, void *user)
{
    server *all = user;
    halo_case test;
    if (!parse_case(count, word, r->size, &test)) {
        return 0;
    }
    for (int i = 0; i < all->known_count; i++) {
        if (!strcmp(all->known[i]->test.test, test.test)) {
            all->now = all->known[i];
            return all->now->job_count;
        }
    }
    opened *o = all->known_count < CASES ? calloc(1, sizeof(*o)) : NULL;
    if (!o) {
        return 0;
    }
    o->test = test;
    add_jobs(o);
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
    halo_case test;
    return parse_case(count, word, gpus, &test);
}

int main(int argc, char **argv)
{
    static server all;
    const ranks_work work = {argv + 2, open_case, run_job, close_cases, &all};
    return ranks_main(argc, argv, "2 \"ring 4096 20\" \"box 64\"", takes, &work);
}
