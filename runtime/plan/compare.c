/* Compares graph, options and devices over the processes before anything is allocated. */
#include "base/number.h"
#include "runtime/bind/peer_path.h"
#include "runtime/plan/plan.h"
#include "runtime/select/select.h"
#include "runtime/session/device.h"

#include <stdlib.h>
#include <string.h>

enum { MESSAGE_BYTES = 240, TEXT_BYTES = 8192, NAME_BYTES = 16 };

/* What a process is about to do. */
typedef struct claim {
    int32_t status;
    int32_t ranks, threads, next_key;
    int32_t verify, verify_ranks, watched, check_footprints, no_tuning;
    int32_t accelerated; /* chose a backend with devices, and has one */
    char mode[NAME_BYTES], backend[NAME_BYTES], transport[NAME_BYTES]; /* as asked for */
    char lowering[PEAL_LOWERING_BYTES];
    peal_device_identity device;
    uint64_t graph_hash, kernel_hash;
    char message[MESSAGE_BYTES];
} claim;

static claim claim_of(const peal_plan *plan, peal_status mine, int from)
{
    claim own = {
        .status = (int32_t)mine,
        .ranks = plan->machine.ranks,
        .threads = plan->machine.workers,
        .next_key = plan->session->next_key,
        .verify = plan->options.verify,
        .verify_ranks = plan->options.verify_ranks,
        .watched = plan->watch.what,
        .check_footprints = plan->options.check_footprints,
        .no_tuning = plan->options.no_tuning,
        .graph_hash = plan->data ? plan->data->hash : 0,
        .kernel_hash = plan->kernel_hash,
    };
    const char *mode = plan->options.mode, *backend = plan->options.backend,
               *transport = plan->options.transport;
    snprintf(own.mode, sizeof(own.mode), "%s", mode ? mode : "auto");
    snprintf(own.backend, sizeof(own.backend), "%s", backend ? backend : "auto");
    snprintf(own.transport, sizeof(own.transport), "%s", transport ? transport : "auto");
    snprintf(own.lowering, sizeof(own.lowering), "%s",
             plan->options.lowering ? plan->options.lowering : "");
    own.accelerated = plan->machine.accelerator;
    if (own.accelerated)
        plan->backend->identify(plan->session->device, &own.device);
    const char *message = mine ? peal_session_first_message(plan->session, from) : NULL;
    if (mine)
        snprintf(own.message, sizeof(own.message), "%s",
                 message ? message : peal_status_name(mine));
    return own;
}

/* The graph and its kernels in words, a line a thing, as far as it fits. */
static void write_graph(const peal_plan *plan, char *text)
{
    const peal_graph_data *data = plan->data;
    size_t used = 0;
#define ADD(...)                                                                                   \
    do {                                                                                           \
        if (used < TEXT_BYTES)                                                                     \
            used += (size_t)snprintf(text + used, TEXT_BYTES - used, __VA_ARGS__);                 \
    } while (0)
    for (int i = 0; i < data->param_count; i++) {
        char number[PEAL_NUMBER_TEXT];
        const peal_value *value = &data->params[i].value;
        const char *name = data->params[i].name;
        if (value->kind == PEAL_INTEGER)
            ADD("param %s = %lld\n", name, (long long)value->u.integer);
        else if (value->kind == PEAL_REAL)
            ADD("param %s = %s\n", name,
                peal_number_print(number, PEAL_NUMBER_EXACT, value->u.real));
        else if (value->kind == PEAL_BOOLEAN)
            ADD("param %s = %s\n", name, value->u.boolean ? "true" : "false");
        else
            ADD("param %s = '%s'\n", name, value->u.text);
    }
    for (int i = 0; i < data->array_count; i++)
        ADD("%s %s, %s%s\n", data->arrays[i].kind == PEAL_ARRAY_FIELD ? "field" : "buffer",
            data->arrays[i].name, peal_type_name(data->arrays[i].type),
            data->arrays[i].data ? ", lent memory" : "");
    for (int i = 0; i < data->kernel_count; i++)
        ADD("kernels %s\n", data->kernels[i]);
    if (used < TEXT_BYTES)
        used += peal_plan_kernel_text(plan, text + used, TEXT_BYTES - used);
    ADD("%d statements\n", data->statement_count);
    ADD("name %s\n", data->name); /* it may differ */
#undef ADD
    text[TEXT_BYTES - 1] = 0;
}

/* Reports the first line that differs. Lines are cut at their ends in place. */
static peal_status report_difference(const peal_plan *plan, char *mine, char *first)
{
    char *a = mine, *b = first;
    const char *here = NULL, *there = NULL;
    while (a && b && !here) {
        char *next_a = strchr(a, '\n'), *next_b = strchr(b, '\n');
        if (next_a)
            *next_a++ = 0;
        if (next_b)
            *next_b++ = 0;
        if (strcmp(a, b)) {
            here = a;
            there = b;
        }
        a = next_a;
        b = next_b;
    }
    const char *hint = "give all processes the same spec, kernels and --set";
    if (!here)
        return peal_report(plan->session->diagnostics, PEAL_E_GRAPHS_DIFFER, PEAL_NO_SOURCE, hint,
                           "the graph of process %d differs from that of process 0 in its "
                           "statements (%016llx)",
                           plan->session->identity.process, (unsigned long long)plan->data->hash);
    return peal_report(plan->session->diagnostics, PEAL_E_GRAPHS_DIFFER, PEAL_NO_SOURCE, hint,
                       "the graph of process %d differs from that of process 0: \"%s\" here, "
                       "\"%s\" there",
                       plan->session->identity.process, here, there);
}

static bool differs(const claim *a, const claim *b)
{
    return a->graph_hash != b->graph_hash || a->kernel_hash != b->kernel_hash;
}

/* Collective: names the difference in the processes that differ from process 0. */
static peal_status name_difference(peal_plan *plan, const claim *all)
{
    int from = peal_diagnostics_count(plan->session->diagnostics);
    char mine[TEXT_BYTES], first[TEXT_BYTES];
    write_graph(plan, mine);
    memcpy(first, mine, TEXT_BYTES);
    peal_status status = peal_control_broadcast(plan->session->control, 0, first, TEXT_BYTES);
    if (!status && differs(&all[0], &all[plan->session->identity.process]))
        status = report_difference(plan, mine, first);
    return peal_session_agree(plan->session, status, from);
}

static peal_status compare_options(peal_plan *plan, const claim *all, int processes)
{
    for (int p = 1; p < processes; p++) {
        const char *what = NULL;
        if (strcmp(all[p].mode, all[0].mode) != 0)
            what = "mode";
        else if (strcmp(all[p].backend, all[0].backend) != 0)
            what = "backend";
        else if (strcmp(all[p].transport, all[0].transport) != 0)
            what = "transport";
        else if (strcmp(all[p].lowering, all[0].lowering) != 0)
            what = "lowering";
        else if (all[p].ranks != all[0].ranks)
            what = "number of ranks";
        else if (all[p].verify != all[0].verify)
            what = "verify";
        else if (all[p].verify_ranks != all[0].verify_ranks)
            what = "verify_ranks";
        else if (all[p].watched != all[0].watched)
            what = "watch";
        else if (all[p].no_tuning != all[0].no_tuning)
            what = "no_tuning";
        else if (all[p].check_footprints != all[0].check_footprints)
            what = "check_footprints";
        if (what)
            return peal_report(plan->session->diagnostics, PEAL_E_CALLS_DIFFER, PEAL_NO_SOURCE,
                               "give all processes the same options",
                               "peal_graph_compile: process %d has another %s than process 0", p,
                               what);
    }
    return PEAL_STATUS_OK;
}

/* If one process has no device, all work on the host. */
static peal_status settle_backend(peal_plan *plan, const claim *all, int processes)
{
    int without = -1;
    for (int p = processes - 1; p >= 0; p--)
        if (!all[p].accelerated)
            without = p;
    if (without >= 0 && plan->machine.accelerator) {
        peal_status status = peal_plan_choose_on(plan, &peal_backend_host);
        size_t used = strlen(plan->note);
        snprintf(plan->note + used, sizeof(plan->note) - used, "%snot on GPUs: process %d has none",
                 used ? "; " : "", without);
        return status;
    }
    for (int p = 1; without < 0 && p < processes; p++)
        if (strcmp(all[p].device.model, all[0].device.model) != 0)
            return peal_report(plan->session->diagnostics, PEAL_E_GPUS_DIFFER, PEAL_NO_SOURCE,
                               "let the job use equal GPUs only (CUDA_VISIBLE_DEVICES), or the "
                               "host backend",
                               "process %d has %s, process 0 has %s", p, all[p].device.model,
                               all[0].device.model);
    return PEAL_STATUS_OK;
}

/* Whom the devices belong to: paths to neighbours depend on it. */
static peal_status keep_devices(peal_plan *plan, const claim *all, int processes)
{
    peal_session *session = plan->session;
    if (!plan->machine.accelerator)
        return PEAL_STATUS_OK;
    if (!session->neighbours)
        session->neighbours = calloc((size_t)processes, sizeof(*session->neighbours));
    if (!session->neighbours)
        return peal_report(session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                           "no memory for %d devices", processes);
    for (int p = 0; p < processes; p++) {
        session->neighbours[p] = all[p].device;
        for (int q = 0; q < p; q++)
            if (!strcmp(all[p].device.unique, all[q].device.unique) &&
                peal_session_are_near(session, p, q))
                plan->machine.shares_device = plan->machine.processes > 1;
    }
    return PEAL_STATUS_OK;
}

/* The fewest threads of all, shared among the ranks of the fullest process. */
static void settle_workers(peal_plan *plan, const claim *all, int processes)
{
    int threads = all[0].threads;
    for (int p = 1; p < processes; p++)
        if (all[p].threads < threads)
            threads = all[p].threads;
    plan->machine.workers = peal_plan_workers_of(&plan->machine, threads);
}

/* Collective: how messages get from process to process. */
static peal_status settle_path(peal_plan *plan)
{
    peal_session *session = plan->session;
    const char *asked = plan->options.transport;
    char passed_over[PEAL_NOTE_BYTES] = "";
    size_t used = strlen(plan->note);
    if (plan->machine.processes == 1)
        return PEAL_STATUS_OK;
    if (!plan->machine.accelerator)
        return peal_transport_check_host(asked, session->diagnostics);
    peal_status status =
        peal_peer_path_settle(session, asked, &plan->machine, passed_over, sizeof(passed_over));
    if (!status && passed_over[0])
        snprintf(plan->note + used, sizeof(plan->note) - used, "%s%s", used ? "; " : "",
                 passed_over);
    return status;
}

static peal_status judge(peal_plan *plan, peal_status mine, const claim *all, int processes)
{
    for (int p = 0; p < processes; p++)
        if (all[p].status) {
            char who[PEAL_PROCESS_TEXT];
            if (!mine)
                peal_report(plan->session->diagnostics, PEAL_E_PEER_CALL_FAILED, PEAL_NO_SOURCE,
                            NULL, "%s: %.*s", peal_control_name(plan->session->control, p, who),
                            MESSAGE_BYTES - 1, all[p].message);
            return (peal_status)all[p].status;
        }
    for (int p = 1; p < processes; p++)
        if (differs(&all[0], &all[p]))
            return name_difference(plan, all);
    peal_status status = compare_options(plan, all, processes);
    if (!status)
        status = settle_backend(plan, all, processes);
    if (!status)
        status = keep_devices(plan, all, processes);
    if (!status)
        settle_workers(plan, all, processes);
    return status;
}

peal_status peal_plan_compare(peal_plan *plan, peal_status mine, int from)
{
    peal_session *session = plan->session;
    int processes = session->identity.processes;
    if (plan->data && !mine)
        mine = peal_plan_hash_kernels(plan);
    claim own = claim_of(plan, mine, from);
    if (processes == 1)
        return judge(plan, mine, &own, 1);
    claim *all = calloc((size_t)processes, sizeof(*all));
    if (!all)
        return peal_session_fail(session,
                                 peal_report(session->diagnostics, PEAL_E_OUT_OF_MEMORY,
                                             PEAL_NO_SOURCE, NULL, "no memory for %d claims",
                                             processes),
                                 from);
    peal_status status = peal_control_allgather(session->control, &own, sizeof(own), all);
    if (status)
        status = peal_session_status(session) ? peal_session_cause(session) : status;
    else
        status = judge(plan, mine, all, processes);
    for (int p = 0; p < processes; p++)
        if (all[p].next_key > session->next_key)
            session->next_key = all[p].next_key;
    free(all);
    return status ? status : settle_path(plan);
}
