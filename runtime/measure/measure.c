/* Runs the cases of a measurement: plans of all modes and cases stay, and are run in turns, so that
 * what disturbs the machine disturbs all of them. */
#define _GNU_SOURCE
#include "runtime/measure/measure.h"
#include "runtime/plan/plan.h"

#include "dsl/dsl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 2, MOST_STEPS = 1 << 17 };

/* The steps of a sample take about so long. Processes do not begin at once, which the first of
 * their messages waits for. */
static const double sample_s = 1e-3, device_sample_s = 8e-3;

/* On cores a case is measured by one rank where that says the same: nothing waits for a second
 * core that other work may have. */
static int ranks_of(peal_session *session, bool accelerator, peal_mode mode, bool alone)
{
    bool both = accelerator || mode == PEAL_MODE_SERIAL || peal_session_processes(session) > 1;
    return both || !alone ? RANKS : 1;
}

/* Whether messages are declared or not, it computes the same. */
static const char kernels[] = "PEAL_KERNEL(mean)(peal_tile t, PEAL_READ(double, a), "
                              "PEAL_WRITE(double, b))\n{\n"
                              "    PEAL_FOR_2D(t, x, y) {\n"
                              "        PEAL_AT(b, x, y) = 1 + 0.25 * (PEAL_AT(a, x - 1, y) + "
                              "PEAL_AT(a, x, y) + PEAL_AT(a, x + 1, y));\n    }\n}\n";

typedef struct extent {
    int64_t x, y; /* of a rank */
} extent;

static extent extent_of(peal_measure_case which, bool accelerator)
{
    switch (which) {
    case PEAL_MEASURE_WIDE:
    case PEAL_MEASURE_WIDE_MESSAGE:
        return (extent){accelerator ? 1 << 23 : 1 << 15, 1};
    case PEAL_MEASURE_SMALL:
        return accelerator ? (extent){1024, 512} : (extent){256, 128};
    case PEAL_MEASURE_LARGE:
        return accelerator ? (extent){8192, 4096} : (extent){2048, 1024};
    default:
        return accelerator ? (extent){512, 64} : (extent){8, 1};
    }
}

static bool is_alone(peal_measure_case which)
{
    return which <= PEAL_MEASURE_LOCAL || which == PEAL_MEASURE_WIDE || which == PEAL_MEASURE_SMALL;
}

static bool has_message(peal_measure_case which)
{
    return which == PEAL_MEASURE_MESSAGE || which == PEAL_MEASURE_WIDE_MESSAGE ||
           which == PEAL_MEASURE_UNAWAITED;
}

peal_measure_size peal_measure_size_of(peal_measure_case which, bool accelerator)
{
    extent e = extent_of(which, accelerator);
    int64_t rows = has_message(which) ? e.x * (e.y + 2) : 0, columns = (e.x + 2) * e.y;
    int64_t most = rows > columns ? rows : columns;
    return (peal_measure_size){.points = e.x * e.y,
                               .bytes = (most + e.x * e.y) * (int64_t)sizeof(double),
                               .message_bytes =
                                   has_message(which) ? e.x * (int64_t)sizeof(double) : 0};
}

/* ---- plans ---- */

/* A chain goes from a to b and back, so that no task waits for what it overwrites. */
static void print_spec(FILE *out, peal_measure_case which, bool accelerator, int ranks)
{
    extent e = extent_of(which, accelerator);
    int tasks = which == PEAL_MEASURE_TASKS ? PEAL_MEASURE_CHAIN : 1;
    fprintf(out,
            "peal: 1\nname: bench\ntopology: {dims: [1, auto], periodic: [%s, false]}\n"
            "kernels: bench.c\n"
            "fields: {a: {size: [%lld, %lld], halo: 1}, b: {like: a}}\n"
            "repeat: 1000000000\nstep:\n",
            which == PEAL_MEASURE_LOCAL ? "true" : "false", (long long)e.x,
            (long long)(e.y * ranks));
    for (int i = 0; i < tasks; i++)
        fprintf(out,
                "  - {task: mean_%d, kernel: mean, box: a, read: {%s: {star: [1, %d]}}, "
                "write: %s}\n",
                i, i % 2 ? "b" : "a", has_message(which), i % 2 ? "a" : "b");
    if (which == PEAL_MEASURE_LOCAL)
        fputs("  - {exchange: {b: {star: [1, 0]}}}\n", out);
    if (has_message(which))
        fputs("  - {exchange: {b: {star: [0, 1]}}}\n", out);
    if (tasks == 1)
        fputs("  - {swap: [a, b]}\n", out);
}

typedef struct case_plan {
    peal_graph *graph;
    peal_plan *plan;
    int64_t steps; /* of a sample */
} case_plan;

static peal_status make_plan(peal_session *session, const char *folder, const char *backend,
                             peal_mode mode, peal_measure_case which, case_plan *out)
{
    const peal_backend_hooks hooks = {.unawaited = which == PEAL_MEASURE_UNAWAITED};
    bool accelerator = strcmp(backend, "host") != 0;
    int ranks = ranks_of(session, accelerator, mode, is_alone(which));
    char name[4096], *text = NULL;
    size_t bytes = 0;
    FILE *spec = open_memstream(&text, &bytes);
    if (!spec)
        return PEAL_STATUS_ENVIRONMENT;
    print_spec(spec, which, accelerator, ranks);
    fclose(spec);
    snprintf(name, sizeof(name), "%s/bench.yaml", folder);
    peal_status status = peal_graph_read_memory(name, text, bytes, NULL, 0,
                                                peal_session_diagnostics(session), &out->graph);
    peal_plan_options options = {.size_bytes = sizeof(options),
                                 .mode = peal_mode_name(mode),
                                 .ranks = ranks,
                                 .threads = ranks / peal_session_processes(session),
                                 .backend = backend,
                                 .hooks = &hooks};
    if (!status)
        status = peal_graph_compile(out->graph, session, &options, &out->plan);
    free(text);
    return status;
}

/* ---- rounds ---- */

static peal_status sample(case_plan *c, int64_t steps, double *step_s, double *cpu_s)
{
    peal_plan_statistics before, after;
    peal_plan_statistics_get(c->plan, &before);
    peal_status status = peal_plan_start(c->plan, steps, NULL);
    if (!status)
        status = peal_plan_wait(c->plan);
    peal_plan_statistics_get(c->plan, &after);
    *step_s = (after.seconds - before.seconds) / (double)steps;
    *cpu_s = (after.cpu_seconds - before.cpu_seconds) / (double)steps;
    return status;
}

/* The first steps make what is made once, and few are not worth a thread's waking; all processes
 * take as many. */
static peal_status choose_steps(peal_session *session, bool accelerator, case_plan *c)
{
    const double least_s = accelerator ? device_sample_s : sample_s;
    double step_s = 0, cpu_s;
    peal_status status = sample(c, 1, &step_s, &cpu_s);
    for (c->steps = 2; !status && c->steps < MOST_STEPS; c->steps *= 2) {
        int enough;
        status = sample(c, c->steps, &step_s, &cpu_s);
        enough = step_s * (double)c->steps >= least_s;
        if (!status && peal_session_processes(session) > 1)
            status = peal_control_broadcast(session->control, 0, &enough, sizeof(enough));
        if (enough)
            break;
    }
    int64_t before = 0;
    if (!status)
        status = peal_plan_whole_steps(c->plan, c->steps, &before, &c->steps);
    return status || before == 0 ? status : sample(c, before, &step_s, &cpu_s);
}

static void keep_least(double *least, double value)
{
    if (*least <= 0 || value < *least)
        *least = value;
}

static peal_status run_rounds(peal_session *session, case_plan (*plans)[PEAL_MEASURE_CASES],
                              int rounds, peal_measure_table *out)
{
    peal_status status = PEAL_STATUS_OK;
    for (int round = -1; round < rounds && !status; round++) {
        if (!out->accelerator)
            keep_least(&out->line_s, peal_measure_line());
        for (int mode = 0; mode < PEAL_MODE_COUNT && !status; mode++)
            for (int i = 0; i < PEAL_MEASURE_CASES && !status; i++) {
                double step_s, cpu_s;
                if (!plans[mode][i].plan)
                    continue;
                if (round < 0) {
                    status = choose_steps(session, out->accelerator, &plans[mode][i]);
                    continue;
                }
                status = sample(&plans[mode][i], plans[mode][i].steps, &step_s, &cpu_s);
                keep_least(&out->step_s[mode][i], step_s);
                keep_least(&out->cpu_s[mode][i], cpu_s);
            }
    }
    return status;
}

static peal_status make_plans(peal_session *session, const char *folder, const char *backend,
                              case_plan (*plans)[PEAL_MEASURE_CASES], peal_measure_table *out)
{
    peal_status status = PEAL_STATUS_OK;
    for (int mode = 0; mode < PEAL_MODE_COUNT && !status; mode++) {
        if (mode == PEAL_MODE_GRAPH && !out->accelerator)
            continue;
        out->given[mode] = true;
        for (int i = 0; i < PEAL_MEASURE_CASES && !status; i++)
            if (i != PEAL_MEASURE_UNAWAITED || out->accelerator)
                status = make_plan(session, folder, backend, (peal_mode)mode, (peal_measure_case)i,
                                   &plans[mode][i]);
    }
    return status;
}

/* In a new folder, whose name and the file's are malloc'ed; what could not be made is NULL. */
static bool write_kernels(char **folder, char **path)
{
    const char *base = getenv("TMPDIR");
    if (asprintf(folder, "%s/peal-bench-XXXXXX", base && *base ? base : "/tmp") < 0)
        *folder = NULL;
    if (!*folder || !mkdtemp(*folder) || asprintf(path, "%s/bench.c", *folder) < 0)
        return false;
    FILE *file = fopen(*path, "w");
    bool fine = file && fputs(kernels, file) >= 0;
    return file && !fclose(file) && fine;
}

static void remove_kernels(char *folder, char *path)
{
    if (path)
        unlink(path);
    if (folder)
        rmdir(folder);
    free(path);
    free(folder);
}

peal_status peal_measure(peal_session *session, const char *backend, int rounds,
                         peal_measure_table *out)
{
    case_plan plans[PEAL_MODE_COUNT][PEAL_MEASURE_CASES] = {0};
    char *folder = NULL, *path = NULL;
    bool accelerator = strcmp(backend, "host") != 0;
    peal_status status;
    *out = (peal_measure_table){.accelerator = accelerator,
                                .apart = peal_session_processes(session) > 1};
    if (!write_kernels(&folder, &path))
        status = peal_report(session->diagnostics, PEAL_E_SOURCE_NOT_WRITTEN, PEAL_NO_SOURCE,
                             "make room, or set TMPDIR to a folder that can be written",
                             "cannot write the kernels of the measurement");
    else
        status = make_plans(session, folder, backend, plans, out);
    if (!status)
        status = run_rounds(session, plans, rounds, out);
    for (int mode = 0; mode < PEAL_MODE_COUNT; mode++)
        for (int i = 0; i < PEAL_MEASURE_CASES; i++) {
            peal_plan_destroy(plans[mode][i].plan);
            peal_graph_destroy(plans[mode][i].graph);
        }
    remove_kernels(folder, path);
    return status;
}
