/* Predictions: compiles a graph for all its ranks, of which those that are alike share a schedule,
 * simulates some steps, and evaluates the model. */
#include "runtime/select/predict.h"
#include "base/expression.h"
#include "runtime/memory/available.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_OF_MANY = 64, USUAL_OPS = 200000 };

/* ---- schedules ---- */

/* Numbers of the schedules that differ, and the first rank of each. */
static int number_schedules(int ranks, int *number, int *first)
{
    int count = 0;
    for (int rank = 0; rank < ranks; rank++) {
        if (number[rank] == rank)
            first[count++] = rank;
        number[rank] = number[rank] == rank ? count - 1 : number[number[rank]];
    }
    return count;
}

/* The first ones tell what all will take where each rank has its own. */
static peal_status compile(peal_compilation *compilation, const int *first, int64_t most_bytes,
                           peal_diagnostics *diagnostics, peal_schedule_set *set)
{
    peal_status status = PEAL_STATUS_OK;
    for (int i = 0; i < set->count && !status; i++) {
        status = peal_compilation_schedule(compilation, first[i], &set->schedule[i]);
        double bytes = (double)peal_compilation_bytes(compilation);
        if (!set->alike && i >= FIRST_OF_MANY)
            bytes *= (double)set->count / (i + 1);
        if (!status && bytes > (double)most_bytes)
            status = peal_report(diagnostics, PEAL_E_SIMULATION_TOO_LARGE, (peal_source){0},
                                 "ranks that are alike share a schedule: lists of ranks, rooted "
                                 "reductions and --processes tell them apart",
                                 "%d different schedules take more than %lld MiB, half of the "
                                 "memory",
                                 set->count, (long long)(most_bytes >> 20));
    }
    return status;
}

peal_status peal_schedule_set_create(peal_compilation *compilation, int ranks, int64_t most_bytes,
                                     peal_diagnostics *diagnostics, peal_schedule_set *out)
{
    peal_status status = PEAL_STATUS_ENVIRONMENT;
    int *first = calloc((size_t)ranks, sizeof(*first));
    *out = (peal_schedule_set){.ranks = ranks, .number = calloc((size_t)ranks, sizeof(int))};
    if (first && out->number) {
        out->alike = peal_compilation_alike(compilation, out->number);
        out->count = number_schedules(ranks, out->number, first);
        out->schedule = calloc((size_t)out->count, sizeof(*out->schedule));
    }
    if (out->schedule)
        status = compile(compilation, first, most_bytes, diagnostics, out);
    else
        peal_report(diagnostics, PEAL_E_OUT_OF_MEMORY, (peal_source){0}, NULL,
                    "no memory for %d ranks", ranks);
    free(first);
    if (status)
        peal_schedule_set_release(out);
    return status;
}

void peal_schedule_set_release(peal_schedule_set *set)
{
    free(set->number);
    free(set->schedule);
    *set = (peal_schedule_set){0};
}

/* ---- predictions ---- */

static bool are_told(const peal_machine_times *times, const peal_schedule *schedule)
{
    for (int i = 0; i < schedule->task_count; i++) {
        const peal_schedule_task *task = &schedule->task[i];
        bool found = task->kind != PEAL_TASK_KERNEL;
        for (int k = 0; k < times->kernel_count && !found; k++) {
            const peal_kernel_times *kernel = &times->kernel[k];
            found = (!kernel->of_mode || kernel->mode == schedule->mode) &&
                    (!strcmp(kernel->task, task->name) ||
                     (task->kernel && !strcmp(kernel->task, task->kernel)));
        }
        if (!found)
            return false;
    }
    return true;
}

/* Steps that can be enqueued before one must have ended. */
static double periods_of(const peal_prediction_desc *desc, int64_t all_steps)
{
    peal_reason reason[PEAL_REASONS];
    int count = peal_graph_reasons(desc->graph, desc->machine, desc->mode,
                                   desc->machine->accelerator, reason);
    bool drains = false;

    for (int i = 0; i < count; i++)
        drains |= reason[i].drains;
    return drains && all_steps > 0 ? 1 : (double)all_steps;
}

static peal_op_times *op_times(const sim_description *told, int count)
{
    peal_op_times *times = calloc((size_t)count + 1, sizeof(*times));
    for (int i = 0; times && i < count; i++) {
        const sim_op_times *t = &told->op[i];
        times[i] = (peal_op_times){t->count, t->lane, t->cpu_s, t->lane_s, t->device_s, t->way_s};
    }
    return times;
}

/* The slowest of the ranks that differ. In serial mode one lane does what all of them do. */
static peal_status evaluate(const peal_prediction_desc *desc, const sim_desc *sim,
                            int64_t all_steps, peal_prediction *out)
{
    peal_status status = PEAL_STATUS_OK;
    for (int i = 0; i < sim->schedule_count && !status; i++) {
        const peal_schedule *schedule = sim->schedule[i];
        sim_description told;
        peal_period period;
        peal_model model;
        status = sim_describe(sim, i, sim->steps, &told);
        if (status)
            break;
        peal_op_times *times = op_times(&told, schedule->op_count);
        if (!times || peal_period_init(&period, schedule, times, told.lanes))
            status = peal_report(desc->diagnostics, PEAL_E_OUT_OF_MEMORY, (peal_source){0}, NULL,
                                 "no memory for a prediction");
        period.periods = periods_of(desc, all_steps);
        if (!status)
            peal_model_evaluate(&period, desc->mode, told.sharers, &model);
        if (!status && model.step_s >= out->model.step_s) {
            out->period = period;
            out->model = model;
        }
        free(times);
        free(told.op);
    }
    return status;
}

/* Without messages, for a difference: what they add. */
static peal_status simulate_free(sim_desc *sim, peal_prediction *out)
{
    sim_result result;
    sim->free_messages = true;
    peal_status status = sim_run(sim, &result);
    sim->free_messages = false;
    if (status)
        return status;
    out->without_s = result.step_s;
    sim_result_release(&result);
    return PEAL_STATUS_OK;
}

/* `peal run --steps 0`. */
static bool has_no_step(const peal_graph_data *graph)
{
    const peal_scope scope = {.graph = graph};
    int64_t repeat = 1;
    return graph->step.repeat && !peal_expr_uses(graph->step.repeat) &&
           !peal_expr_integer(graph->step.repeat, &scope, 1, &repeat, NULL) && repeat < 1;
}

static peal_status simulate(const peal_prediction_desc *desc, const peal_schedule_set *set,
                            int64_t most_bytes, peal_prediction *out)
{
    sim_result sent;
    sim_desc sim = {.size = sizeof(sim),
                    .ranks = set->ranks,
                    .number = set->number,
                    .schedule = set->schedule,
                    .schedule_count = set->count,
                    .times = desc->times,
                    .steps = -1,
                    .most_ops = desc->most_ops ? desc->most_ops : USUAL_OPS,
                    .most_bytes = most_bytes,
                    .diagnostics = desc->diagnostics};
    peal_status status = sim_run(&sim, &sent);
    if (status)
        return status;
    *out = (peal_prediction){.step_s = sent.step_s,
                             .kernel_s = sent.kernel_s,
                             .steps = sent.steps,
                             .kernels_are_told = are_told(desc->times, set->schedule[0])};
    sim.steps = sent.steps;
    status = simulate_free(&sim, out);
    if (!status)
        status = evaluate(desc, &sim, sent.all_steps, out);
    sim_result_release(&sent);
    return status;
}

peal_status peal_predict(const peal_prediction_desc *desc, peal_prediction *out)
{
    peal_compilation *compilation = NULL;
    peal_schedule_set set = {0};
    char reason[120];
    int64_t most_bytes = peal_memory_available("", reason, sizeof(reason)) / 2;
    /* A run of no steps is told what a step would take. */
    const peal_expr four = {.kind = PEAL_EXPR_CONSTANT, .value = {PEAL_INTEGER, {.integer = 4}}};
    peal_graph_data stepping = *desc->graph;
    if (has_no_step(desc->graph))
        stepping.step.repeat = &four;
    peal_status status = peal_compilation_create(&stepping, desc->machine, desc->mode,
                                                 desc->diagnostics, &compilation);
    if (!status)
        peal_compilation_limit(compilation, desc->deadline_ns);
    if (!status)
        status = peal_compilation_check(compilation);
    if (!status)
        status = peal_schedule_set_create(compilation, desc->machine->ranks, most_bytes,
                                          desc->diagnostics, &set);
    if (!status)
        status = simulate(desc, &set, most_bytes, out);
    peal_schedule_set_release(&set);
    peal_compilation_destroy(compilation);
    return status;
}

/* The lesser of two modes' steps that are predicted; 0: none is. */
static double least_of(const double step_s[PEAL_MODE_COUNT], peal_mode a, peal_mode b)
{
    if (step_s[a] <= 0 || (step_s[b] > 0 && step_s[b] < step_s[a]))
        return step_s[b];
    return step_s[a];
}

peal_mode peal_prediction_fastest(const peal_machine *machine, const double step_s[PEAL_MODE_COUNT])
{
    static const peal_mode on_cpus[] = {PEAL_MODE_STREAM, PEAL_MODE_GRAPH, PEAL_MODE_FUSED,
                                        PEAL_MODE_SYNC};
    static const peal_mode graph_gpu[] = {PEAL_MODE_GRAPH, PEAL_MODE_FUSED, PEAL_MODE_STREAM,
                                          PEAL_MODE_SYNC};
    static const peal_mode fused_gpu[] = {PEAL_MODE_FUSED, PEAL_MODE_GRAPH, PEAL_MODE_STREAM,
                                          PEAL_MODE_SYNC};
    const double tie = machine->accelerator ? 1.05 : 1.02;
    const double long_s = 100e-6, short_s = 30e-6;
    double least = least_of(step_s, PEAL_MODE_SYNC, PEAL_MODE_STREAM);
    double recorded = least_of(step_s, PEAL_MODE_GRAPH, PEAL_MODE_FUSED);
    if (recorded > 0 && (machine->accelerator || least <= 0 || recorded < least))
        least = recorded;
    bool fused_first = least < long_s && (machine->ranks > 1 || least > short_s);
    const peal_mode *order = !machine->accelerator ? on_cpus : fused_first ? fused_gpu : graph_gpu;
    for (int k = 0; k < 4; k++)
        if (step_s[order[k]] > 0 && step_s[order[k]] <= tie * least)
            return order[k];
    return PEAL_MODE_COUNT;
}
