/* By which means processes exchange: on GPUs or not, which, by what transport. The same kind
 * everywhere, then the path between their GPUs. */
#define _GNU_SOURCE
#include "runtime/bind/peer_path.h"
#include "runtime/exchange/exchange.h"

#include <stdlib.h>
#include <string.h>

typedef struct means {
    int32_t accelerated, next_key;
    char transport[16]; /* as asked for */
    peal_device_identity device;
} means;

static means own_means(const peal_exchange *exchange)
{
    const peal_session *session = exchange->session;
    means own;
    memset(&own, 0, sizeof(own)); /* all of its bytes are sent */
    own.next_key = session->next_key;
    own.accelerated = exchange->backend != NULL;
    snprintf(own.transport, sizeof(own.transport), "%s",
             exchange->transport ? exchange->transport : "auto");
    if (exchange->backend)
        exchange->backend->identify(session->device, &own.device);
    return own;
}

static peal_status compare_means(const peal_exchange *exchange, const means *all, int p)
{
    peal_diagnostics *diagnostics = exchange->session->diagnostics;
    if (all[p].accelerated != all[0].accelerated)
        return peal_report(diagnostics, PEAL_E_CALLS_DIFFER, exchange->source,
                           "lend the same kind of memory in all processes",
                           "the %s of process %d is %s, that of process 0 %s", exchange->form->noun,
                           p, all[p].accelerated ? "on a GPU" : "on the host",
                           all[0].accelerated ? "on a GPU" : "on the host");
    if (strcmp(all[p].transport, all[0].transport) != 0)
        return peal_report(diagnostics, PEAL_E_CALLS_DIFFER, exchange->source,
                           "give all processes the same options",
                           "the %s of process %d has another transport than that of process 0",
                           exchange->form->noun, p);
    if (strcmp(all[p].device.model, all[0].device.model) != 0)
        return peal_report(diagnostics, PEAL_E_GPUS_DIFFER, exchange->source,
                           "let the job use equal GPUs only (CUDA_VISIBLE_DEVICES)",
                           "process %d has %s, process 0 has %s", p, all[p].device.model,
                           all[0].device.model);
    return PEAL_STATUS_OK;
}

static int compare_devices(const void *a, const void *b, void *devices)
{
    const peal_device_identity *of = devices;
    int x = *(const int *)a, y = *(const int *)b, order = strcmp(of[x].unique, of[y].unique);
    return order ? order : (x > y) - (x < y);
}

/* Whom the devices belong to: paths to neighbours depend on it. */
static peal_status keep_devices(peal_exchange *exchange, const means *all)
{
    peal_session *session = exchange->session;
    int processes = session->identity.processes;
    if (!exchange->backend)
        return PEAL_STATUS_OK;
    if (!session->neighbours)
        session->neighbours = calloc((size_t)processes, sizeof(*session->neighbours));
    if (!session->neighbours)
        return peal_report(session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                           "no memory for the devices of all processes");
    for (int p = 0; p < processes; p++)
        session->neighbours[p] = all[p].device;
    int *order = malloc((size_t)processes * sizeof(*order));
    if (!order)
        return peal_report(session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                           "no memory for the devices of all processes");
    for (int p = 0; p < processes; p++)
        order[p] = p;
    qsort_r(order, (size_t)processes, sizeof(*order), compare_devices, session->neighbours);
    for (int i = 1; i < processes; i++)
        exchange->machine.shares_device |= !strcmp(session->neighbours[order[i]].unique,
                                                   session->neighbours[order[i - 1]].unique) &&
                                           peal_session_are_near(session, order[i], order[i - 1]);
    free(order);
    return PEAL_STATUS_OK;
}

static peal_status settle_path(peal_exchange *exchange)
{
    peal_session *session = exchange->session;
    if (session->identity.processes == 1)
        return PEAL_STATUS_OK;
    if (!exchange->backend)
        return peal_transport_check_host(exchange->transport, session->diagnostics);
    return peal_peer_path_settle(session, exchange->transport, &exchange->machine, exchange->note,
                                 sizeof(exchange->note));
}

peal_status peal_exchange_gather(const peal_exchange *exchange, const void *own, size_t bytes,
                                 void *all)
{
    peal_session *session = exchange->session;
    int processes = session->identity.processes;
    if (!all)
        return peal_report(session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                           "no memory for %d processes", processes);
    if (processes > 1)
        return peal_control_allgather(session->control, own, bytes, all);
    memcpy(all, own, bytes);
    return PEAL_STATUS_OK;
}

peal_status peal_exchange_agree_on_means(peal_exchange *exchange)
{
    peal_session *session = exchange->session;
    int processes = session->identity.processes,
        from = peal_diagnostics_count(session->diagnostics);
    means own = own_means(exchange), *all = calloc((size_t)processes, sizeof(own));
    peal_status status = peal_exchange_gather(exchange, &own, sizeof(own), all);
    if (status) {
        free(all);
        return peal_session_fail(session, status, from);
    }
    for (int p = 0; p < processes; p++)
        if (all[p].next_key > session->next_key)
            session->next_key = all[p].next_key;
    from = peal_diagnostics_count(session->diagnostics);
    for (int p = 1; !status && p < processes; p++)
        status = compare_means(exchange, all, p);
    if (!status)
        status = keep_devices(exchange, all);
    free(all);
    status = peal_session_agree(session, status, from);
    return status ? status : settle_path(exchange);
}
