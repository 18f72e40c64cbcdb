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
#include "gpu/program.h"

enum { CHECKED_STEPS = 150 };

/* Bodies of jobs. Floors: without messages. */
enum { EXCHANGE, TASKS, STYLES };

typedef struct halo_case {
    bool ring, alone;
    long face, n; /* points of a ring's face; of a box along an axis */
    double interior_us;
    int ranks[3];
    char test[48];
} halo_case;

static const halo_case *case_of(const program_job *j)
{
    return j->of->data;
}

static bool parse_case(int count, char **word, int gpus, void *data)
{
    halo_case *c = data;
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

static void add_step(peal_graph *g, const program_job *j, bool checked)
{
    peal_graph_begin(g, PEAL_STEP);
    if (checked) {
        peal_graph_add_task(g, .name = "advance", .box = {.name = "u"}, .update = {{.name = "u"}});
    }
    if (j->body == TASKS) {
        add_tasks(g, case_of(j), !j->floor);
    } else {
        if (!j->floor) {
            peal_graph_add_exchange(g, .exchange = {{.name = "u"}});
        }
        add_interior(g, case_of(j)); /* peal puts it between the sends and the receives */
    }
    peal_graph_end(g);
}

/* checked: owners change their values in every step, and the halo is counted at the end. */
static peal_graph *make_graph(const program_job *j, bool checked)
{
    const halo_case *c = case_of(j);
    peal_graph *g;
    if (checked && j->floor) {
        return NULL; /* nothing arrives */
    }
    if (peal_graph_create("gpu_halo", &g) != PEAL_STATUS_OK) {
        _exit(PEAL_STATUS_ENVIRONMENT);
    }
    peal_graph_set_folder(g, ways_folder());
    peal_graph_add_kernels(g, "gpu_halo.c", PEAL_HERE);
    peal_graph_set_loop(g, .repeat = "1000000000");
    add_field(g, c);
    if (c->interior_us > 0) {
        peal_graph_add_buffer(g, .name = "done", .count = "64");
    }
    if (j->body == TASKS) {
        peal_graph_add_buffer(g, .name = "out", .box = {.name = "u"});
        peal_graph_add_buffer(g, .name = "in", .box = {.name = "u"});
    }
    add_setup(g, c);
    add_step(g, j, checked);
    if (checked) {
        add_check(g, c, CHECKED_STEPS);
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

static bool check(const ranks *r, program_job *j)
{
    way_row row = {0};
    if (j->floor) {
        return true;
    }
    peal_graph *graph = make_graph(j, true);
    ways_run(r, graph, j->way, CHECKED_STEPS, &row);
    peal_graph_destroy(graph);
    return row.count == 2 && row.integer[0] >= stored_points(case_of(j)) * r->size &&
           row.integer[1] == 0;
}

/* The case in which all lowerings are shown. */
static bool is_small(const halo_case *c)
{
    return c->ring && !c->alone && c->face * (long)sizeof(double) == 4096 && c->interior_us == 0;
}

/* By hand only where a lowering is of interest. */
static bool names(const ranks *r, const program_job *j, program_names *out)
{
    const char *const words[] = {"exchange", "tasks"}, *const empty[] = {"interior", "no exchange"};
    const bool often = j->floor || j->body == EXCHANGE || j->way < ways + WAYS_GRAPH;
    (void)r;
    snprintf(out->test, sizeof(out->test), "%s", case_of(j)->test);
    if (j->floor) {
        snprintf(out->variant, sizeof(out->variant), "%s, %s", j->way->name, empty[j->body]);
    } else {
        snprintf(out->variant, sizeof(out->variant), "%s, %s", words[j->body], j->way->name);
    }
    return ways_wants(often ? j->way->when : WAY_NAMED, is_small(case_of(j)), out->variant) ||
           (j->floor && j->way == ways);
}

static void add_jobs(const ranks *r, program_case *o)
{
    const halo_case *c = o->data;
    (void)r;
    for (int s = 0; s < (c->ring && !c->alone ? STYLES : 1); s++) {
        for (int w = 0; w < WAYS; w++) {
            program_add(o, (program_job){.body = s, .way = &ways[w]});
        }
        /* floors in the first ways; a step of nothing is none */
        for (int w = 0; w < WAYS_GRAPH && (s == TASKS || c->interior_us > 0); w++) {
            program_add(o, (program_job){.body = s, .way = &ways[w], .floor = true});
        }
    }
}

int main(int argc, char **argv)
{
    static program halo = {.bench = "gpu_halo",
                           .example = "2 \"ring 4096 20\" \"box 64\"",
                           .data_bytes = sizeof(halo_case),
                           .parse = parse_case,
                           .open = add_jobs,
                           .names = names,
                           .graph = make_graph,
                           .check = check};
    return program_main(argc, argv, &halo);
}
