/* What peal's own GPU benchmarks share: the ways in which a graph is run (mode and lowering),
 * plans, timing, and the line that the driver reads. */
#ifndef PEAL_BENCH_GPU_WAYS_H
#define PEAL_BENCH_GPU_WAYS_H

#include "ranks.h"

#include <libgen.h>
#include <limits.h>

/* Steps of a start are whole replays of peal's graphs: multiples of this, or of longer graphs. */
enum { WAYS_STEPS = 64, WAYS_BATCH = 2048 };

/* When a way is measured without being asked for by name. */
typedef enum way_when { WAY_ALWAYS, WAY_SMALL /* in one small case */, WAY_NAMED } way_when;

typedef struct way {
    const char *name; /* of the variant */
    const char *mode, *lowering;
    way_when when;
} way;

static const way ways[] = {
    {"graph", "graph", "", WAY_ALWAYS},
    {"graph, lanes=2", "graph", "lanes=2", WAY_ALWAYS},
    {"stream", "stream", "", WAY_ALWAYS},
    {"sync", "sync", "", WAY_ALWAYS},
    {"fused", "fused", "", WAY_ALWAYS},
    {"graph, steps=256", "graph", "steps=256", WAY_SMALL},
    {"graph, steps=100", "graph", "steps=100", WAY_SMALL},
    {"graph, signal=kernel", "graph", "signal=kernel", WAY_SMALL},
    {"graph, signal=memop", "graph", "signal=memop", WAY_SMALL},
    {"graph, engine, memop", "graph", "signal=memop,copy=engine,lanes=2", WAY_SMALL},
    {"graph, steps=16", "graph", "steps=16", WAY_NAMED},
    {"graph, engine", "graph", "copy=engine", WAY_NAMED},
    {"graph, signal=kernel, lanes=2", "graph", "signal=kernel,lanes=2", WAY_NAMED},
    {"stream, lanes=2", "stream", "lanes=2", WAY_NAMED},
    {"stream, engine, memop", "stream", "signal=memop,copy=engine,lanes=2", WAY_NAMED},
};

enum { WAYS = sizeof(ways) / sizeof(ways[0]), WAYS_GRAPH = 2 };

/* PEAL_BENCH_WAYS: "all", or texts separated by ';', one of which must be in the variant's name;
 * without, what is measured `when`. */
static inline bool ways_wants(way_when when, bool small, const char *variant)
{
    const char *text = getenv("PEAL_BENCH_WAYS");
    if (!text || !*text) {
        return when == WAY_ALWAYS || (when == WAY_SMALL && small);
    }
    for (size_t length; *text; text += length + (text[length] == ';')) {
        char part[64];
        length = strcspn(text, ";");
        snprintf(part, sizeof(part), "%.*s", (int)length, text);
        if (!strcmp(part, "all") || strstr(variant, part)) {
            return true;
        }
    }
    return false;
}

/* The folder of this program, where the kernels lie, too. */
static inline const char *ways_folder(void)
{
    static char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[length > 0 ? length : 0] = '\0';
    return length > 0 ? dirname(path) : ".";
}

/* What `print` of `finish` gave, on rank 0. */
typedef struct way_row {
    int count;
    double real[4];
    int64_t integer[4];
} way_row;

static inline void ways_keep_row(void *user, int64_t step, int count, const char *const *names,
                                 const peal_value *values)
{
    way_row *row = user;
    (void)step;
    (void)names;
    row->count = count < 4 ? count : 4;
    for (int i = 0; i < row->count; i++) {
        row->integer[i] = values[i].kind == PEAL_REAL ? 0 : values[i].u.integer;
        row->real[i] = values[i].kind == PEAL_REAL ? values[i].u.real : (double)values[i].u.integer;
    }
}

/* NULL: refused on this machine, the reason is on stderr. Without a GPU, `stream` stands in for
 * `graph`. */
static inline peal_plan *ways_plan(const ranks *r, peal_graph *graph, const way *w, way_row *row)
{
    const peal_plan_options options = {
        .size_bytes = sizeof(options),
        .mode = r->host && !strcmp(w->mode, "graph") ? "stream" : w->mode,
        .threads = r->host ? 1 : 2,
        /* There a compiler is a process that the deadline would end: it has ranks_watch alone. */
        .deadline_s = r->host ? 2.0 * RANKS_COMPILE_PATIENCE * ranks_patience_s() : 0,
        .backend = r->host ? "host" : "cuda",
        .lowering = r->host ? NULL : w->lowering,
        .row = row ? ways_keep_row : NULL,
        .row_user = row,
    };
    peal_plan *plan = NULL;
    ranks_enter(r, RANKS_COMPILES);
    const peal_status status = peal_graph_compile(graph, r->session, &options, &plan);
    ranks_enter(r, RANKS_BETWEEN);
    ranks_require(r, status, "compile");
    return plan;
}

static inline void ways_steps(const ranks *r, peal_plan *plan, long steps)
{
    ranks_enter(r, RANKS_STEPS);
    ranks_require(r, peal_plan_start(plan, steps, NULL), "start");
    ranks_require(r, peal_plan_wait(plan), "wait");
    ranks_enter(r, RANKS_BETWEEN);
}

static inline void ways_close(const ranks *r, peal_plan *plan)
{
    ranks_require(r, peal_plan_finish(plan), "finish");
    peal_plan_destroy(plan);
    ranks_beat(r);
}

/* PEAL_BENCH_COMPILE: nothing runs and nothing is measured; kernels get into the cache. Programs
 * that only compile may share GPUs: none of them waits there. */
static inline bool ways_only_compiles(void)
{
    return getenv("PEAL_BENCH_COMPILE") != NULL;
}

/* Takes the graph. */
static inline void ways_compile(const ranks *r, peal_graph *graph, const way *w)
{
    peal_plan_destroy(ways_plan(r, graph, w, NULL));
    peal_graph_destroy(graph);
}

/* Runs so many steps from the start, then `finish`; what it prints is in *row on rank 0. */
static inline void ways_run(const ranks *r, peal_graph *graph, const way *w, long steps,
                            way_row *row)
{
    peal_plan *plan = ways_plan(r, graph, w, row);
    ways_steps(r, plan, steps);
    ways_close(r, plan);
}

/* What is kept of a variant between rounds. */
typedef struct way_kept {
    bool open, left_out;
    peal_graph *graph;
    peal_plan *plan;
    long steps; /* of a batch */
    bool verified;
    uint64_t digest;
} way_kept;

static inline void ways_forget(way_kept *kept)
{
    peal_plan_destroy(kept->plan);
    if (kept->plan) {
        peal_graph_destroy(kept->graph);
    }
}

/* PEAL_BENCH_FRESH: plans are made anew in every round. */
static inline void ways_let_go(const ranks *r, way_kept *kept)
{
    if (getenv("PEAL_BENCH_FRESH")) {
        ways_close(r, kept->plan);
        peal_graph_destroy(kept->graph);
        kept->plan = NULL;
    }
}

static inline double ways_cpu_seconds(const peal_plan *plan)
{
    peal_plan_statistics statistics;
    peal_plan_statistics_get(plan, &statistics);
    return statistics.cpu_seconds;
}

/* Nanoseconds of a step, and those of the CPU. */
static inline double ways_batch(const ranks *r, peal_plan *plan, long steps, double *cpu)
{
    const double before = ways_cpu_seconds(plan);
    ranks_barrier(r);
    const double start = bench_now_ns();
    ways_steps(r, plan, steps);
    const double ns = ranks_max(r, (bench_now_ns() - start) / (double)steps);
    *cpu = ranks_max(r, (ways_cpu_seconds(plan) - before) * 1e9 / (double)steps);
    return ns;
}

/* How many steps such a batch has, when one takes so long. */
static inline long ways_length(double ns, long chunk)
{
    const long steps = bench_repetitions(ns, serve_budget_ns());
    return ((steps < WAYS_BATCH ? steps : WAYS_BATCH) + chunk - 1) / chunk * chunk;
}

/* Times batches of steps, after a short one, and fills result->ns; returns the CPU's nanoseconds a
 * step. */
static inline double ways_time(const ranks *r, const way *w, way_kept *kept, bench_result *result)
{
    double cpu_ns[SERVE_BATCHES];
    const char *text = strstr(w->lowering, "steps=");
    const long graph = text ? atol(text + 6) : 0, chunk = graph > WAYS_STEPS ? graph : WAYS_STEPS;
    for (int i = 0; i < 2 && kept->steps == 0; i++) { /* the first one is setup, too */
        const double ns = ways_batch(r, kept->plan, chunk, cpu_ns);
        kept->steps = i == 1 ? ways_length(ns, chunk) : 0;
    }
    ways_batch(r, kept->plan, chunk, cpu_ns);
    for (int batch = 0; batch < SERVE_BATCHES; batch++) {
        result->ns[batch] = ways_batch(r, kept->plan, kept->steps, &cpu_ns[batch]);
        result->batch_count = batch + 1;
    }
    kept->steps = ways_length(bench_median(result->ns, SERVE_BATCHES), chunk);
    return bench_median(cpu_ns, SERVE_BATCHES);
}

/* Begins a variant of a case. True: it must be set up and checked. */
static inline bool ways_begin(const ranks *r, way_kept *kept, const char *test, const char *variant)
{
    ranks_barrier(r);
    kept->left_out = kept->left_out || serve_skips(test, variant) ||
                     serve_lists(r->shared->failed, test, variant);
    if (kept->left_out) {
        return false;
    }
    if (r->rank == 0) {
        snprintf(r->shared->what, sizeof(r->shared->what), "%s|%s", test, variant);
    }
    const bool first = !kept->open;
    kept->open = true;
    if (first && r->rank == 0) {
        serve_trying(test, variant);
    }
    ranks_barrier(r);
    return first;
}

#endif
