/* What a step of a graph takes in each mode: many short samples, of which the fastest counts. Each
 * plan is run for some only, since a loop ends. */
#include "runtime/measure/calibrate.h"
#include "runtime/session/device.h"

#include "dsl/dsl.h"

#include <string.h>

/* On devices plans take long to make, and samples differ less; `serial` is there for its results,
 * and takes longest. */
enum { PLANS = 12, DEVICE_PLANS = 3, SAMPLES = 8, MOST_STEPS = 1 << 17 };

static const double sample_s = 2e-3;

/* As many as make a sample, all processes alike. */
static peal_status choose_steps(peal_session *session, double step_s, int64_t left, int64_t *steps)
{
    double enough = step_s > 0 ? sample_s / step_s : 1;
    *steps = enough < 2 ? 2 : enough > MOST_STEPS ? MOST_STEPS : (int64_t)enough;
    *steps = *steps < left ? *steps : left;
    return peal_session_processes(session) > 1
               ? peal_control_broadcast(session->control, 0, steps, sizeof(*steps))
               : PEAL_STATUS_OK;
}

static peal_status run(peal_plan *plan, int64_t steps)
{
    peal_status status = peal_plan_start(plan, steps, NULL);
    return status ? status : peal_plan_wait(plan);
}

/* Some steps that are not counted, then samples while there are steps left. */
static peal_status take_samples(peal_session *session, peal_plan *plan, double *least)
{
    peal_plan_statistics before, after = {0};
    peal_status status = PEAL_STATUS_OK;
    double step_s = sample_s;
    for (int i = 0; i <= SAMPLES && !status && !after.stopped; i++) {
        int64_t before_them, steps;
        status = choose_steps(session, step_s, peal_plan_steps_left(plan), &steps);
        if (status || steps == 0)
            break;
        status = peal_plan_whole_steps(plan, steps, &before_them, &steps);
        if (!status && before_them > 0)
            status = run(plan, before_them);
        peal_plan_statistics_get(plan, &before);
        if (!status)
            status = run(plan, steps);
        peal_plan_statistics_get(plan, &after);
        step_s = (after.seconds - before.seconds) / (double)steps;
        if (i > 0 && !after.stopped && step_s > 0 && (*least <= 0 || step_s < *least))
            *least = step_s;
    }
    return status;
}

static bool can_run(const peal_backend_ops *backend, const peal_graph_data *data, peal_mode mode)
{
    return !backend->refuses(mode) && !peal_graph_refuses(data, mode, backend->open != NULL);
}

peal_status peal_measure_plan(peal_session *session, peal_graph *graph, const char *backend,
                              peal_mode mode, int ranks, peal_plan **out)
{
    const peal_graph_data *data;
    peal_status status = peal_graph_resolve(graph, session->diagnostics, &data);
    peal_plan_options options = {.size_bytes = sizeof(options),
                                 .mode = peal_mode_name(mode),
                                 .ranks = ranks,
                                 .threads = ranks,
                                 .backend = backend};
    *out = NULL;
    if (status || !can_run(peal_backend_named(backend), data, mode))
        return status;
    int from = peal_diagnostics_count(session->diagnostics);
    status = peal_graph_compile(graph, session, &options, out);
    if (status != PEAL_STATUS_ENVIRONMENT || peal_session_status(session))
        return status;
    peal_diagnostics_take_back(session->diagnostics, from); /* the mode has no room */
    peal_plan_destroy(*out);
    *out = NULL;
    return PEAL_STATUS_OK;
}

peal_status peal_measure_graph(peal_session *session, peal_graph *graph, const char *backend,
                               int ranks, double step_s[PEAL_MODE_COUNT])
{
    peal_status status = PEAL_STATUS_OK;
    bool device = peal_backend_named(backend)->open != NULL;
    int plans = device ? DEVICE_PLANS : PLANS;
    memset(step_s, 0, PEAL_MODE_COUNT * sizeof(*step_s));
    for (int i = 0; i < plans * PEAL_MODE_COUNT && !status; i++) {
        int mode = i % PEAL_MODE_COUNT;
        peal_plan *plan = NULL;
        if (device && mode == PEAL_MODE_SERIAL)
            continue;
        status = peal_measure_plan(session, graph, backend, (peal_mode)mode, ranks, &plan);
        if (!status && plan)
            status = take_samples(session, plan, &step_s[mode]);
        peal_plan_destroy(plan);
    }
    return status;
}
