/* What compiling a graph costs, from the first builder call to the schedule of rank 0, all ranks
 * checked, and how many bytes the compilation holds.
 *
 *   regular    a 3-D stencil on 8 ranks, cut into about N tiles: should not depend on N
 *   irregular  every rank sends to 10 others that a list names: N messages in all; should grow with
 *              N, and no faster
 *   ranks      the regular graph on N ranks: ranks that look alike are analysed once
 *   statements a step of N statements (exchanges, tasks, values) on two fields, on 4 ranks, halos
 *              stored in place: should grow with N, and no faster
 *
 * usage: peal_compile regular|irregular|ranks|statements N [...] */
#include "measure.h"

#include "dsl/dsl.h"
#include "scheduler/scheduler.h"

#include <math.h>

enum { DEGREE = 10, CELLS = 8 /* points along a tile's side */ };

static void nothing(const peal_call *call)
{
    (void)call;
}

static peal_graph *new_graph(void)
{
    peal_graph *g;
    if (peal_graph_create("compile", &g) != PEAL_STATUS_OK) {
        exit(PEAL_STATUS_ENVIRONMENT);
    }
    return g;
}

/* tiles^3 tiles in all. */
static peal_graph *make_regular(long tiles)
{
    char size[96], tile[48];
    peal_graph *g = new_graph();
    snprintf(size, sizeof(size), "[%ld, %ld, %ld]", tiles * CELLS, tiles * CELLS, tiles * CELLS);
    snprintf(tile, sizeof(tile), "[%d, %d, %d]", CELLS, CELLS, CELLS);
    peal_graph_set_topology(g, .dims = "[auto, auto, auto]", .periodic = "true");
    peal_graph_set_loop(g, .repeat = "1000");
    peal_graph_add_field(g, .name = "u", .size = size, .halo = "1");
    peal_graph_add_field(g, .name = "v", .like = "u");
    peal_graph_begin(g, PEAL_STEP);
    peal_graph_add_exchange(g, .exchange = {{.name = "u"}});
    peal_graph_add_task(g, .name = "step", .function = nothing, .box = {.name = "u"}, .tile = tile,
                        .read = {{.name = "u", .grow = "1"}}, .write = {{.name = "v"}});
    peal_graph_add_swap(g, .swap = {"u", "v"});
    peal_graph_end(g);
    return g;
}

/* Rank r sends to r +- 1, 3, 9, 27, 81. */
static peal_graph *make_irregular(void)
{
    char values[512];
    size_t used = 0;
    long distance = 1;
    for (int k = 0; k < DEGREE; k += 2, distance *= 3) {
        used += (size_t)snprintf(values + used, sizeof(values) - used,
                                 "%s(rank + %ld) %% ranks, (rank - %ld) %% ranks", k ? ", " : "[",
                                 distance, distance);
    }
    snprintf(values + used, sizeof(values) - used, "]");
    peal_graph *g = new_graph();
    peal_graph_set_loop(g, .repeat = "1000");
    peal_graph_add_buffer(g, .name = "peers", .type = "i32", .values = values);
    peal_graph_add_buffer(g, .name = "out", .count = "80");
    peal_graph_add_buffer(g, .name = "in", .count = "80");
    peal_graph_begin(g, PEAL_STEP);
    peal_graph_add_task(g, .name = "fill", .function = nothing, .write = {{.name = "out"}});
    peal_graph_add_send(g, .send = {.name = "out"}, .to = "peers", .offsets = "8");
    peal_graph_add_recv(g, .recv = {.name = "in"}, .from = "peers", .offsets = "8");
    peal_graph_add_task(g, .name = "use", .function = nothing, .update = {{.name = "in"}});
    peal_graph_end(g);
    return g;
}

static peal_graph *make_statements(long count)
{
    peal_graph *g = new_graph();
    peal_graph_set_topology(g, .dims = "[2, 2]");
    peal_graph_add_field(g, .name = "a", .size = "[2048, 2048]", .halo = "1");
    peal_graph_add_field(g, .name = "b", .like = "a");
    peal_graph_add_buffer(g, .name = "s");
    peal_graph_begin(g, PEAL_STEP);
    for (long i = 0; i < count / 3; i++) {
        const char *from = i % 2 ? "b" : "a", *to = i % 2 ? "a" : "b";
        char name[32];
        snprintf(name, sizeof(name), "t%ld", i);
        peal_graph_add_exchange(g, .exchange = {{.name = from}});
        peal_graph_add_task(g, .name = name, .function = nothing, .box = {.name = to},
                            .read = {{.name = from, .star = "1"}}, .write = {{.name = to}});
        peal_graph_add_set(g, .set = "s", .value = "s + 1");
    }
    peal_graph_end(g);
    return g;
}

/* One compile; nanoseconds, and the bytes that it holds at its end. */
static double compile(const char *kind, long number, double *bytes)
{
    const bool irregular = strcmp(kind, "irregular") == 0, many = strcmp(kind, "ranks") == 0;
    const bool statements = strcmp(kind, "statements") == 0;
    int ranks = irregular ? (int)(number / DEGREE) : many ? (int)number : statements ? 4 : 8;
    const peal_machine machine = {.ranks = ranks,
                                  .processes = ranks,
                                  .workers = 2,
                                  .cache_bytes = 1 << 20};
    const peal_graph_data *data;
    const peal_schedule *schedule;
    peal_compilation *compilation = NULL;
    peal_diagnostics *diagnostics = peal_diagnostics_create();
    double start = bench_now_ns();
    peal_graph *graph = irregular    ? make_irregular()
                        : statements ? make_statements(number)
                                     : make_regular(many ? 256 : number);
    peal_status status = peal_graph_resolve(graph, diagnostics, &data);
    if (status == PEAL_STATUS_OK) {
        status =
            peal_compilation_create(data, &machine, PEAL_MODE_FUSED, diagnostics, &compilation);
    }
    if (status == PEAL_STATUS_OK) {
        status = peal_compilation_check(compilation);
    }
    if (status == PEAL_STATUS_OK) {
        status = peal_compilation_schedule(compilation, 0, &schedule);
    }
    double ns = bench_now_ns() - start;
    if (status != PEAL_STATUS_OK) {
        peal_diagnostics_print(diagnostics, stderr, 5);
        exit(status);
    }
    *bytes = (double)peal_compilation_bytes(compilation);
    peal_compilation_destroy(compilation);
    peal_graph_destroy(graph);
    peal_diagnostics_destroy(diagnostics);
    return ns;
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc % 2 == 0) {
        fprintf(stderr, "usage: %s regular|irregular|ranks|statements N [...]\n", argv[0]);
        return PEAL_STATUS_USAGE;
    }
    bench_pin(0);
    for (int i = 1; i < argc; i += 2) {
        char test[64];
        double bytes = 0;
        long number = atol(argv[i + 1]);
        snprintf(test, sizeof(test), "%s/%s", argv[i], argv[i + 1]);
        bench_result r = {"compile", test, "peal", "fused", "peal", 0, {0}, true, 0};
        long given = strcmp(argv[i], "regular") == 0 ? lround(cbrt((double)number)) : number;
        compile(argv[i], given, &bytes);
        for (int batch = 0; batch < BENCH_BATCHES; batch++) {
            r.ns[r.batch_count++] = compile(argv[i], given, &bytes);
        }
        bench_print_bytes(&r, bytes);
    }
    return 0;
}
