/* Chooses how a plan runs: backend, mode, ranks, processes, workers. */
#define _GNU_SOURCE
#include "runtime/plan.h"

#include <sched.h>
#include <string.h>

/* Until times can be predicted, auto takes the first of these that is applicable. */
static const peal_mode candidates[] = {PEAL_MODE_FUSED, PEAL_MODE_STREAM, PEAL_MODE_SYNC};
enum { CANDIDATES = sizeof(candidates) / sizeof(candidates[0]) };

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

static const char *refusal(const peal_plan *plan, peal_mode mode)
{
    if (is_excluded(plan->data, mode))
        return "the spec requires another mode";
    const char *reason = plan->backend->refuses(mode);
    return reason ? reason : peal_graph_refuses(plan->data, mode);
}

static peal_status choose_auto(peal_plan *plan)
{
    size_t used = 0;
    for (int i = 0; i < CANDIDATES; i++) {
        const char *reason = refusal(plan, candidates[i]);
        if (!reason) {
            plan->mode = candidates[i];
            return PEAL_STATUS_OK;
        }
        if (used < sizeof(plan->note))
            used += (size_t)snprintf(plan->note + used, sizeof(plan->note) - used, "%snot %s: %s",
                                     used ? "; " : "", peal_mode_name(candidates[i]), reason);
    }
    return peal_report(plan->session->diagnostics, PEAL_E355, PEAL_NO_SOURCE, NULL,
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
    return peal_report(plan->session->diagnostics, PEAL_E352, PEAL_NO_SOURCE, hint,
                       "there is no mode '%s'", name);
}

static peal_status choose_mode(peal_plan *plan)
{
    const char *name = plan->options.mode;
    if (plan->options.check_footprints)
        name = "serial";
    if (!name || !strcmp(name, "auto"))
        return choose_auto(plan);
    if (!mode_of(name, &plan->mode))
        return unknown_mode(plan, name);
    const char *reason = refusal(plan, plan->mode);
    if (!reason)
        return PEAL_STATUS_OK;
    if (is_excluded(plan->data, plan->mode))
        return peal_report(plan->session->diagnostics, PEAL_E357, PEAL_NO_SOURCE, NULL,
                           "mode %s was asked for, but %s", name, reason);
    return peal_report(plan->session->diagnostics, PEAL_E355, PEAL_NO_SOURCE,
                       "--mode auto takes the first mode that can", "mode %s cannot run: %s", name,
                       reason);
}

static int default_threads(const peal_session *session)
{
    cpu_set_t set;
    int cores = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    int threads = cores / session->identity.local_processes;
    return threads > 0 ? threads : 1;
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
            return peal_report(plan->session->diagnostics, PEAL_E365, array->source,
                               "use as many processes as ranks",
                               "'%s' has lent memory, but there are %d ranks in %d processes",
                               array->name, machine->ranks, plan->session->identity.processes);
        if (plan->mode == PEAL_MODE_SERIAL && !alone)
            return peal_report(plan->session->diagnostics, PEAL_E365, array->source,
                               "let peal allocate it, or use another mode",
                               "'%s' has lent memory, which process 0 cannot reach in serial mode",
                               array->name);
    }
    return PEAL_STATUS_OK;
}

peal_status peal_plan_choose(peal_plan *plan)
{
    const peal_plan_options *options = &plan->options;
    int processes = plan->session->identity.processes;
    plan->backend = &peal_backend_host;
    int ranks = options->ranks ? options->ranks : processes;
    if (ranks < processes)
        return peal_report(plan->session->diagnostics, PEAL_E356, PEAL_NO_SOURCE,
                           "use fewer processes or more ranks", "%d ranks in %d processes", ranks,
                           processes);
    if (options->threads < 0 || !(options->deadline_s >= 0))
        return peal_report(plan->session->diagnostics, PEAL_E350, PEAL_NO_SOURCE, NULL,
                           "plan options: threads %d, deadline %g", options->threads,
                           options->deadline_s);
    peal_status status = choose_mode(plan);
    if (status)
        return status;
    plan->machine.ranks = ranks;
    plan->machine.processes = plan->mode == PEAL_MODE_SERIAL ? 1 : processes;
    plan->machine.cache_bytes = cache_bytes();
    /* threads of the process for now: compare.c takes the fewest of all processes */
    plan->machine.workers = options->threads ? options->threads : default_threads(plan->session);
    return check_lent(plan);
}

peal_status peal_plan_check_required(peal_plan *plan)
{
    peal_status status = PEAL_STATUS_OK;
    for (int i = 0; i < plan->data->require_count; i++) {
        const char *name = plan->data->require[i];
        for (int k = 0; k < PEAL_TRANSPORT_COUNT; k++)
            if (!strcmp(name, peal_transport_name((peal_transport_kind)k)) &&
                !(plan->transports >> k & 1))
                status = peal_report(plan->session->diagnostics, PEAL_E357, PEAL_NO_SOURCE, NULL,
                                     "the spec requires %s, but no message of this plan (%d ranks "
                                     "in %d processes) goes that way",
                                     name, plan->machine.ranks, plan->machine.processes);
    }
    return status;
}
