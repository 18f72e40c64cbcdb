/* Chooses how a plan runs: backend, mode, ranks, processes, workers. */
#define _GNU_SOURCE
#include "base/expression.h"
#include "base/lowering.h"
#include "runtime/bind/peer_path.h"
#include "runtime/control/control.h"
#include "runtime/select/select.h"
#include "runtime/session/device.h"

#include <sched.h>
#include <string.h>

/* What auto looks at; where nothing is known of the times, it takes the first that is applicable.
 */
static const peal_mode candidates[] = {PEAL_MODE_FUSED, PEAL_MODE_GRAPH, PEAL_MODE_STREAM,
                                       PEAL_MODE_SYNC};
enum { CANDIDATES = sizeof(candidates) / sizeof(candidates[0]), LANES = 2 };

static bool mode_of(const char *name, peal_mode *out)
{
    for (int m = 0; m < PEAL_MODE_COUNT; m++)
        if (!strcmp(name, peal_mode_name((peal_mode)m))) {
            *out = (peal_mode)m;
            return true;
        }
    return false;
}

/* Whether `require` names modes, and this is not one of them. */
static bool is_excluded(const peal_graph_data *data, peal_mode mode)
{
    bool any = false;
    for (int i = 0; i < data->require_count; i++) {
        peal_mode named;
        if (!mode_of(data->require[i], &named))
            continue;
        if (named == mode)
            return false;
        any = true;
    }
    return any;
}

/* Tasks that are functions of the application. */
typedef bool (*is_function)(const peal_task_statement *task);

static bool is_of_host(const peal_task_statement *task)
{
    return task->function != NULL;
}

static bool is_of_device(const peal_task_statement *task)
{
    return task->cuda_function || task->enqueue;
}

static const peal_statement *find_in(const peal_body *body, is_function wanted)
{
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i], *inner = NULL;
        if (s->kind == PEAL_STATEMENT_TASK && wanted(&s->u.task))
            return s;
        if (s->kind == PEAL_STATEMENT_REPEAT)
            inner = find_in(&s->u.loop.body, wanted);
        if (inner)
            return inner;
    }
    return NULL;
}

static const peal_statement *find_function(const peal_graph_data *data, is_function wanted)
{
    const peal_statement *found = find_in(&data->setup, wanted);
    if (!found)
        found = find_in(&data->step.body, wanted);
    return found ? found : find_in(&data->finish, wanted);
}

const char *peal_plan_refuses(const peal_plan *plan, peal_mode mode)
{
    if (is_excluded(plan->data, mode))
        return "the spec requires another mode";
    const char *reason = plan->backend->refuses(mode);
    return reason ? reason : peal_graph_refuses(plan->data, mode, plan->backend->open != NULL);
}

bool peal_plan_is_automatic(const peal_plan *plan)
{
    const char *asked = plan->options.mode;
    return !plan->options.check_footprints && (!asked || !strcmp(asked, "auto"));
}

/* The first that can, for now: peal_plan_decide comes once the processes have been compared. */
static peal_status choose_auto(peal_plan *plan)
{
    size_t used = 0;
    bool found = false;
    for (int i = 0; i < CANDIDATES; i++) {
        if (candidates[i] == PEAL_MODE_GRAPH && !plan->backend->open)
            continue; /* nobody expects the CPU to have it */
        const char *reason = peal_plan_refuses(plan, candidates[i]);
        if (!reason && !found)
            plan->mode = candidates[i];
        found |= !reason;
        if (reason && used < sizeof(plan->note))
            used += (size_t)snprintf(plan->note + used, sizeof(plan->note) - used, "%snot %s: %s",
                                     used ? "; " : "", peal_mode_name(candidates[i]), reason);
    }
    if (found)
        return PEAL_STATUS_OK;
    return peal_report(plan->session->diagnostics, PEAL_E_MODE_CANNOT_RUN, PEAL_NO_SOURCE, NULL,
                       "no mode can run this graph: %s", plan->note);
}

static peal_status unknown_mode(const peal_plan *plan, const char *name)
{
    const char *known[PEAL_MODE_COUNT + 1];
    char hint[80];
    for (int m = 0; m < PEAL_MODE_COUNT; m++)
        known[m] = peal_mode_name((peal_mode)m);
    known[PEAL_MODE_COUNT] = "auto";
    const char *nearest = peal_nearest_word(name, known, PEAL_MODE_COUNT + 1);
    snprintf(hint, sizeof(hint), "did you mean %s?", nearest ? nearest : "auto");
    return peal_report(plan->session->diagnostics, PEAL_E_UNKNOWN_MODE, PEAL_NO_SOURCE, hint,
                       "there is no mode '%s'", name);
}

static peal_status choose_mode(peal_plan *plan)
{
    const char *name = plan->options.check_footprints ? "serial" : plan->options.mode;
    if (peal_plan_is_automatic(plan))
        return choose_auto(plan);
    if (!mode_of(name, &plan->mode))
        return unknown_mode(plan, name);
    const char *reason = peal_plan_refuses(plan, plan->mode);
    if (!reason)
        return PEAL_STATUS_OK;
    if (is_excluded(plan->data, plan->mode))
        return peal_report(plan->session->diagnostics, PEAL_E_REQUIRED_PATH_MISSING, PEAL_NO_SOURCE,
                           NULL, "mode %s was asked for, but %s", name, reason);
    return peal_report(plan->session->diagnostics, PEAL_E_MODE_CANNOT_RUN, PEAL_NO_SOURCE,
                       "--mode auto takes one that can", "mode %s cannot run: %s", name, reason);
}

int peal_plan_threads_of(const peal_session *session)
{
    cpu_set_t set;
    int cores = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    cores = session->cores < cores ? session->cores : cores; /* a control group may give less */
    int threads = cores / session->identity.local_processes;
    return threads > 0 ? threads : 1;
}

int peal_plan_workers_of(const peal_machine *machine, int threads)
{
    int ranks = (machine->ranks + machine->processes - 1) / machine->processes;
    if (machine->accelerator)
        return LANES; /* they are streams there */
    return threads / ranks > 0 ? threads / ranks : 1;
}

static int64_t cache_bytes(void)
{
    return 1 << 20; /* of a core's second level, within a factor of two on today's processors */
}

/* Lent memory is that of one rank. */
static peal_status check_lent(const peal_plan *plan)
{
    const peal_machine *machine = &plan->machine;
    bool one_each = machine->ranks == plan->session->identity.processes;
    bool alone = plan->session->identity.processes == 1;
    for (int a = 0; a < plan->data->array_count; a++) {
        const peal_array *array = &plan->data->arrays[a];
        if (!array->data)
            continue;
        if (!one_each)
            return peal_report(plan->session->diagnostics, PEAL_E_LENT_MEMORY_UNUSABLE,
                               array->source, "use as many processes as ranks",
                               "'%s' has lent memory, but there are %d ranks in %d processes",
                               array->name, machine->ranks, plan->session->identity.processes);
        if (plan->mode == PEAL_MODE_SERIAL && !alone)
            return peal_report(plan->session->diagnostics, PEAL_E_LENT_MEMORY_UNUSABLE,
                               array->source, "let peal allocate it, or use another mode",
                               "'%s' has lent memory, which process 0 cannot reach in serial mode",
                               array->name);
    }
    return PEAL_STATUS_OK;
}

/* ---- backend ---- */

/* An array whose lent memory the device cannot work in; NULL: there is none. */
static const peal_array *unfit_memory(const peal_plan *plan, const peal_backend_ops *backend,
                                      peal_mode mode, const char **reason)
{
    for (int a = 0; a < plan->data->array_count; a++) {
        const peal_array *array = &plan->data->arrays[a];
        *reason =
            array->data ? backend->memory->refuses(plan->session->device, mode, array->data) : NULL;
        if (*reason)
            return array;
    }
    return NULL;
}

static const peal_backend_ops *automatic_backend(const peal_plan *plan)
{
    const peal_backend_ops *backend = peal_backend_accelerated();
    const char *reason;
    if (!backend || find_function(plan->data, is_of_host) ||
        !peal_session_device(plan->session, &reason) ||
        unfit_memory(plan, backend, PEAL_MODE_STREAM, &reason))
        return &peal_backend_host;
    return backend;
}

static peal_status choose_backend(const peal_plan *plan, const peal_backend_ops **out)
{
    const char *name = plan->options.backend ? plan->options.backend : "auto", *reason = NULL;
    if (!peal_backend_is_known(name))
        return peal_report(plan->session->diagnostics, PEAL_E_UNKNOWN_BACKEND, PEAL_NO_SOURCE,
                           "auto, host or cuda", "there is no backend '%s'", name);
    *out = !strcmp(name, "auto") ? automatic_backend(plan) : peal_backend_named(name);
    bool has_device = !*out || !(*out)->open || peal_session_device(plan->session, &reason);
    if (!*out)
        peal_device_count(&reason); /* it says what the build lacks */
    if (*out && has_device)
        return PEAL_STATUS_OK;
    return peal_report(plan->session->diagnostics, PEAL_E_NO_GPU, PEAL_NO_SOURCE,
                       "--backend auto takes the CPU then; `peal doctor` says more",
                       "backend %s was asked for, but %s", name, reason);
}

static peal_status check_host_use(const peal_plan *plan)
{
    const peal_statement *task = find_function(plan->data, is_of_device);
    const char *reason = NULL;
    if (!task)
        return PEAL_STATUS_OK;
    if (find_function(plan->data, is_of_host))
        reason = "another task is a function of the host";
    else if (plan->options.backend && !strcmp(plan->options.backend, "host"))
        reason = "the host backend was asked for";
    else if (peal_session_device(plan->session, &reason))
        reason = "lent memory is the host's, or another process has no GPU";
    return peal_report(plan->session->diagnostics, PEAL_E_GPU_WORK_ON_HOST, task->source,
                       "leave the backend to auto, on a machine with a GPU",
                       "task '%s' is work of a GPU, but the graph would run on the host: %s",
                       task->name, reason);
}

/* What auto has looked at before it took the backend. */
static peal_status check_device_use(const peal_plan *plan)
{
    const char *reason;
    if (!plan->machine.accelerator)
        return check_host_use(plan);
    const peal_statement *task = find_function(plan->data, is_of_host);
    if (task && plan->mode != PEAL_MODE_SERIAL)
        return peal_report(plan->session->diagnostics, PEAL_E_HOST_FUNCTION_ON_GPU, task->source,
                           "name a PEAL_KERNEL, or use the host backend",
                           "task '%s' is a function of the host, which a GPU cannot run",
                           task->name);
    const peal_array *array = unfit_memory(plan, plan->backend, plan->mode, &reason);
    if (array)
        return peal_report(plan->session->diagnostics, PEAL_E_LENT_MEMORY_UNUSABLE, array->source,
                           "lend memory of the GPU, or let peal allocate it",
                           "'%s' has lent memory that the %s backend cannot use: %s", array->name,
                           plan->backend->name, reason);
    return PEAL_STATUS_OK;
}

peal_status peal_plan_choose_on(peal_plan *plan, const peal_backend_ops *backend)
{
    const peal_plan_options *options = &plan->options;
    int processes = plan->session->identity.processes;
    bool accelerator = backend->open != NULL;
    plan->backend = backend;
    plan->note[0] = 0;
    peal_status status = choose_mode(plan);
    if (status)
        return status;
    plan->machine.ranks = options->ranks ? options->ranks : processes;
    plan->machine.processes = plan->mode == PEAL_MODE_SERIAL ? 1 : processes;
    plan->machine.cache_bytes = cache_bytes();
    plan->machine.tile_points = peal_lowering_tile(options->lowering);
    plan->machine.accelerator = accelerator;
    plan->machine.apart = peal_transport_sets_apart(options->transport);
    plan->machine.network = peal_transport_between_hosts(options->transport);
    plan->machine.node = peal_control_hosts(plan->session->control);
    plan->machine.traits = backend->traits;
    /* threads of the process for now: compare.c takes the fewest of all processes */
    plan->machine.workers =
        options->threads ? options->threads : peal_plan_threads_of(plan->session);
    status = check_lent(plan);
    return status ? status : check_device_use(plan);
}

peal_status peal_plan_choose(peal_plan *plan)
{
    const peal_plan_options *options = &plan->options;
    const peal_backend_ops *backend = &peal_backend_host;
    int processes = plan->session->identity.processes;
    int ranks = options->ranks ? options->ranks : processes;
    if (ranks < processes)
        return peal_report(plan->session->diagnostics, PEAL_E_FEWER_RANKS_THAN_PROCESSES,
                           PEAL_NO_SOURCE, "use fewer processes or more ranks",
                           "%d ranks in %d processes", ranks, processes);
    if (options->threads < 0 || !(options->deadline_s >= 0))
        return peal_report(plan->session->diagnostics, PEAL_E_INVALID_DESCRIPTOR, PEAL_NO_SOURCE,
                           NULL, "plan options: threads %d, deadline %g", options->threads,
                           options->deadline_s);
    peal_status status = peal_transport_check(options->transport, plan->session->diagnostics);
    if (!status)
        status = peal_transport_check_reach(plan->session, options->transport);
    if (!status)
        status = peal_lowering_check(options->lowering, plan->session->diagnostics);
    if (!status)
        status = choose_backend(plan, &backend);
    if (!status)
        status = peal_plan_choose_on(plan, backend);
    return status;
}

peal_status peal_plan_check_required(peal_plan *plan)
{
    peal_status status = PEAL_STATUS_OK;
    for (int i = 0; i < plan->data->require_count; i++) {
        const char *name = plan->data->require[i];
        for (int k = 0; k < PEAL_TRANSPORT_COUNT; k++)
            if (!strcmp(name, peal_transport_name((peal_transport_kind)k)) &&
                !(plan->transports >> k & 1))
                status = peal_report(plan->session->diagnostics, PEAL_E_REQUIRED_PATH_MISSING,
                                     PEAL_NO_SOURCE, NULL,
                                     "the spec requires %s, but no message of this plan (%d ranks "
                                     "in %d processes) goes that way",
                                     name, plan->machine.ranks, plan->machine.processes);
    }
    return status;
}
