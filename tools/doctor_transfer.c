/* The verified transfer of `peal doctor`: a ring of ranks, made with the builder. Each sends a
 * pattern that depends on rank, step and position; each compares what it gets. */
#include "tools/doctor.h"
#include "tools/job.h"

#include "runtime/session/session.h"

#include <peal/graph.h>
#include <peal/plan.h>

#include <inttypes.h>

enum { ELEMENTS = 4096, STEPS = 20 };

static const peal_source nowhere;

/* Never 0, which is what memory holds at first. */
static int64_t pattern(int64_t rank, int64_t step, int64_t index)
{
    uint64_t x = (uint64_t)(rank + 1) * 0x9e3779b97f4a7c15u + (uint64_t)step * 1000003u;
    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u + (uint64_t)index;
    return (int64_t)(x | 1);
}

static void fill(const peal_call *call)
{
    int64_t *out = call->view[0].base;
    for (int64_t i = 0; i < ELEMENTS; i++)
        out[i] = pattern(call->argument[0].integer, call->argument[1].integer, i);
}

/* good counts the elements that are what they should be. */
static void compare(const peal_call *call)
{
    const int64_t *in = call->view[0].base;
    int64_t *good = call->view[1].base;
    for (int64_t i = 0; i < ELEMENTS; i++)
        *good += in[i] == pattern(call->argument[0].integer, call->argument[1].integer, i);
}

static peal_status make_graph(peal_graph **out)
{
    peal_graph *g;
    peal_status status = peal_graph_create("doctor", &g);
    if (status != PEAL_STATUS_OK)
        return status;
    peal_graph_set_topology(g, .dims = "[auto]", .periodic = "true");
    peal_graph_add_param(g, .name = "m", .value = "4096");
    peal_graph_add_buffer(g, .name = "out", .type = "i64", .count = "m");
    peal_graph_add_buffer(g, .name = "in", .type = "i64", .count = "m");
    peal_graph_add_buffer(g, .name = "good", .type = "i64", .keep = true);
    peal_graph_set_loop(g, .repeat = "20");
    peal_graph_begin(g, PEAL_STEP);
    peal_graph_add_task(g, .name = "fill", .function = fill, .write = {{.name = "out"}},
                        .args = {"rank", "step"});
    peal_graph_add_send(g, .send = {.name = "out"}, .to = "[1]");
    peal_graph_add_recv(g, .recv = {.name = "in"}, .from = "[-1]");
    peal_graph_add_task(g, .name = "compare", .function = compare, .read = {{.name = "in"}},
                        .update = {{.name = "good"}}, .args = {"(rank - 1) % ranks", "step"});
    peal_graph_end(g);
    *out = g;
    return PEAL_STATUS_OK;
}

static peal_status count_good(const peal_plan *plan, peal_mode mode, peal_diagnostics *diagnostics)
{
    int first, end;
    peal_plan_ranks(plan, &first, &end);
    for (int rank = first; rank < end; rank++) {
        peal_plan_array good;
        peal_status status = peal_plan_view(plan, rank, "good", &good);
        if (status != PEAL_STATUS_OK)
            return status;
        int64_t count = *(const int64_t *)good.view.base;
        if (count != (int64_t)ELEMENTS * STEPS)
            return peal_report(diagnostics, PEAL_E_RESULT_DIFFERS, nowhere, NULL,
                               "doctor's transfer to rank %d in mode %s: %" PRId64
                               " of %d elements are right",
                               rank, peal_mode_name(mode), count, ELEMENTS * STEPS);
    }
    return PEAL_STATUS_OK;
}

static peal_status run_once(peal_session *session, peal_mode mode, int ranks, double deadline_s,
                            peal_diagnostics *diagnostics)
{
    peal_graph *graph = NULL;
    peal_plan *plan = NULL;
    peal_plan_options options = {.size_bytes = sizeof(options),
                                 .mode = peal_mode_name(mode),
                                 .ranks = ranks,
                                 .threads = 1,
                                 .deadline_s = deadline_s,
                                 .backend = "host"};
    peal_status status = make_graph(&graph);
    if (status == PEAL_STATUS_OK)
        status = peal_graph_compile(graph, session, &options, &plan);
    if (status == PEAL_STATUS_OK)
        status = peal_plan_start(plan, PEAL_STEPS_ALL, NULL);
    if (status == PEAL_STATUS_OK)
        status = peal_plan_wait(plan);
    if (status == PEAL_STATUS_OK)
        status = peal_plan_finish(plan);
    if (status == PEAL_STATUS_OK)
        status = count_good(plan, mode, diagnostics);
    if (status != PEAL_STATUS_OK) /* before the plan's end, which may take long */
        peal_session_print_diagnostics(session, stderr, 0);
    peal_plan_destroy(plan);
    peal_graph_destroy(graph);
    return status;
}

peal_status transfer_verify(peal_session *session, int ranks, const peal_options *options,
                            peal_diagnostics *diagnostics)
{
    static const peal_mode modes[] = {PEAL_MODE_SYNC, PEAL_MODE_STREAM, PEAL_MODE_FUSED};
    const double deadline_s = (double)options->deadline_ns * 1e-9;
    peal_status status = PEAL_STATUS_OK;
    for (size_t i = 0; i < 3 && status == PEAL_STATUS_OK; i++)
        status = run_once(session, modes[i], ranks, deadline_s, diagnostics);
    return status;
}
