/* What peal's own GPU benchmarks share: the ways in which a graph is run (mode and lowering),
 * plans, timing, and the line that the driver reads. */
#ifndef PEAL_BENCH_GPU_WAYS_H
#define PEAL_BENCH_GPU_WAYS_H

#include "ranks.h"

#include <libgen.h>
#include <limits.h>

/* Steps of a start are multiples of this: whole replays of peal's graphs, but for the longest. */
enum { WAYS_STEPS = 64, WAYS_LONG = 256, WAYS_BATCH = 2048 };

typedef struct way {
    const char *name; /* of the variant */
    const char *mode, *lowering;
    bool rare; /* only with PEAL_BENCH_WAYS=all: has not been the best one anywhere */
} way;

static const way ways[] = {
    {"graph", "graph", "", false},
    {"graph, lanes=2", "graph", "lanes=2", false},
    {"graph, signal=kernel", "graph", "signal=kernel", false},
    {"graph, engine, memop", "graph", "signal=memop,copy=engine,lanes=2", false},
    {"stream", "stream", "", false},
    {"graph, fuse=0", "graph", "fuse=0", true},
    {"graph, steps=16", "graph", "steps=16", true},
    {"graph, steps=256", "graph", "steps=256", true},
    {"graph, signal=memop", "graph", "signal=memop", true},
    {"graph, engine", "graph", "copy=engine", true},
    {"graph, signal=kernel, lanes=2", "graph", "signal=kernel,lanes=2", true},
    {"stream, lanes=2", "stream", "lanes=2", true},
    {"stream, engine, memop", "stream", "signal=memop,copy=engine,lanes=2", true},
    {"sync", "sync", "", true},
};

enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

/* PEAL_BENCH_WAYS: "all", or texts separated by ';', one of which must be in the variant's name. */
static inline bool ways_wants(const way *w, const char *variant)
{
    const char *text = getenv("PEAL_BENCH_WAYS");
    if (!text || !*text) {
        return !w->rare;
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

/* PEAL_BENCH_SKIP: "case|variant;...", what has failed before. */
static inline bool ways_skips(const char *test, const char *variant)
{
    const char *text = getenv("PEAL_BENCH_SKIP");
    char name[160];
    const size_t length = (size_t)snprintf(name, sizeof(name), "%s|%s", test, variant);
    for (const char *at = text; at && (at = strstr(at, name)); at += length) {
        if ((at == text || at[-1] == ';') && (at[length] == ';' || at[length] == '\0')) {
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
        .backend = r->host ? "host" : "cuda",
        .lowering = r->host ? NULL : w->lowering,
        .row = row ? ways_keep_row : NULL,
        .row_user = row,
    };
    peal_plan *plan = NULL;
    ranks_beat(r);
    const peal_status status = peal_graph_compile(graph, r->session, &options, &plan);
    ranks_beat(r);
    ranks_require(r, status, "compile");
    return plan;
}

static inline void ways_steps(const ranks *r, peal_plan *plan, long steps)
{
    ranks_require(r, peal_plan_start(plan, steps, NULL), "start");
    ranks_require(r, peal_plan_wait(plan), "wait");
    ranks_beat(r);
}

static inline void ways_close(const ranks *r, peal_plan *plan)
{
    ranks_require(r, peal_plan_finish(plan), "finish");
    peal_plan_destroy(plan);
    ranks_beat(r);
}

/* Runs so many steps from the start, then `finish`; what it prints is in *row on rank 0. */
static inline void ways_run(const ranks *r, peal_graph *graph, const way *w, long steps,
                            way_row *row)
{
    peal_plan *plan = ways_plan(r, graph, w, row);
    ways_steps(r, plan, steps);
    ways_close(r, plan);
}

/* Steps of a batch: 2048, but not longer than PEAL_BENCH_BATCH_MS, 20 by default: a start costs
 * some 50 us, which count. */
static inline long ways_batch(double ns, long chunk)
{
    const double budget_ns = getenv("PEAL_BENCH_BATCH_MS") ? bench_budget_ns() : 20e6;
    const long steps = 1 + bench_repetitions(ns, budget_ns);
    return ((steps < WAYS_BATCH ? steps : WAYS_BATCH) + chunk - 1) / chunk * chunk;
}

static inline double ways_cpu_seconds(const peal_plan *plan)
{
    peal_plan_statistics statistics;
    peal_plan_statistics_get(plan, &statistics);
    return statistics.cpu_seconds;
}

/* Times batches of steps and fills result->ns; returns the CPU's nanoseconds a step. */
static inline double ways_time(const ranks *r, peal_graph *graph, const way *w,
                               bench_result *result)
{
    double cpu_ns[BENCH_BATCHES];
    const long chunk = strstr(w->lowering, "steps=256") ? WAYS_LONG : WAYS_STEPS;
    long steps = chunk;
    peal_plan *plan = ways_plan(r, graph, w, NULL);
    for (int batch = -2; batch < BENCH_BATCHES; batch++) {
        const double before = ways_cpu_seconds(plan);
        ranks_barrier(r);
        const double start = bench_now_ns();
        ways_steps(r, plan, steps);
        const double ns = ranks_max(r, (bench_now_ns() - start) / (double)steps);
        const double cpu = ranks_max(r, (ways_cpu_seconds(plan) - before) * 1e9 / (double)steps);
        if (batch < 0) { /* warm-up, and how long a batch must be */
            steps = ways_batch(ns, chunk);
            continue;
        }
        result->ns[batch] = ns;
        cpu_ns[batch] = cpu;
        result->batch_count = batch + 1;
    }
    ways_close(r, plan);
    return bench_median(cpu_ns, BENCH_BATCHES);
}

/* The line that the driver reads, on rank 0. */
static inline void ways_print(const ranks *r, const bench_result *result, double cpu_ns)
{
    if (r->rank != 0) {
        return;
    }
    printf("{\"bench\": \"%s\", \"case\": \"%s\", \"peer\": \"%s\", \"variant\": \"%s\", "
           "\"kind\": \"%s\", \"ns\": %.1f, \"cpu_ns\": %.1f, "
           "\"digest\": \"%016llx\", \"verified\": %s}\n",
           result->bench, result->test, result->peer, result->variant, result->kind,
           bench_median(result->ns, result->batch_count), cpu_ns,
           (unsigned long long)result->digest, result->verified ? "true" : "false");
    fflush(stdout);
}

/* Remembers what is under way, for the line about a failure. False: it is not wanted. */
static inline bool ways_begin(const ranks *r, bool wanted, const char *test, const char *variant)
{
    if (!wanted || ways_skips(test, variant)) {
        return false;
    }
    ranks_barrier(r);
    if (r->rank == 0) {
        snprintf(r->shared->what, sizeof(r->shared->what), "%s|%s", test, variant);
    }
    ranks_barrier(r);
    return true;
}

#endif
