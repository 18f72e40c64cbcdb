/* The exchange on a GPU: whether it is one, and its two halves on streams of the application. */
#include "runtime/bind/puts.h"
#include "runtime/exchange/exchange.h"

#include <string.h>

enum { LANES = 2 };

/* ---- where ---- */

static peal_status no_backend(const peal_exchange *exchange, const char *name, const char *reason)
{
    return peal_report(exchange->session->diagnostics, PEAL_E_NO_GPU, exchange->source,
                       "backend auto takes the CPU for host memory; `peal doctor` says more",
                       "backend %s was asked for, but %s", name, reason);
}

/* Whether some field is lent memory of a GPU. */
static bool is_on_device(const peal_exchange *exchange, const peal_backend_ops *backend)
{
    peal_session *session = exchange->session;
    bool on_device = false;
    for (int i = 0; i < exchange->field_count && !on_device; i++)
        if (exchange->lent[i] && peal_session_device(session, NULL))
            backend->memory->classify(session->device, exchange->lent[i], &on_device);
    return on_device;
}

/* Everything that is lent must be the device's then. */
static peal_status check_memory(const peal_exchange *exchange, const peal_backend_ops *backend)
{
    for (int i = 0; i < exchange->field_count; i++) {
        const void *data = exchange->lent[i];
        const char *reason =
            data ? backend->memory->refuses(exchange->session->device, PEAL_MODE_STREAM, data)
                 : NULL;
        if (reason)
            return peal_report(exchange->session->diagnostics, PEAL_E_LENT_MEMORY_UNUSABLE,
                               exchange->source,
                               "lend memory of the GPU in all fields, or let peal allocate it",
                               "field %d has lent memory that the %s backend cannot use: %s", i,
                               backend->name, reason);
    }
    return PEAL_STATUS_OK;
}

peal_status peal_exchange_choose(peal_exchange *exchange, const char *asked)
{
    peal_session *session = exchange->session;
    const char *name = asked ? asked : "auto", *reason = NULL;
    const peal_backend_ops *backend = peal_backend_accelerated();
    if (!peal_backend_is_known(name))
        return peal_report(session->diagnostics, PEAL_E_UNKNOWN_BACKEND, exchange->source,
                           "auto, host or cuda", "there is no backend '%s'", name);
    if (!strcmp(name, "host"))
        return PEAL_STATUS_OK;
    bool forced = strcmp(name, "auto") != 0;
    if (!forced && (!backend || !is_on_device(exchange, backend)))
        return PEAL_STATUS_OK;
    if (!backend)
        peal_device_count(&reason); /* it says what the build lacks */
    if (!backend || !peal_session_device(session, &reason))
        return no_backend(exchange, name, reason);
    exchange->backend = backend;
    exchange->machine.accelerator = true;
    exchange->machine.traits = backend->traits;
    exchange->machine.workers = LANES;
    return check_memory(exchange, backend);
}

peal_status peal_exchange_arm(peal_exchange *exchange)
{
    peal_session *session = exchange->session;
    peal_binding *binding = &exchange->binding;
    const peal_backend_desc desc = {
        .size = sizeof(desc),
        .mode = PEAL_MODE_STREAM,
        .rank_count = binding->count,
        .rank = binding->backend_rank,
        .workers = exchange->machine.workers,
        .abort_word = &session->abort_word,
        .deadline_ns = exchange->longest_wait_ns,
        .embedded = true,
        .lowering = exchange->lowering,
        .device = session->device,
        .network = peal_bound_puts_hook(binding->puts),
        .diagnostics = session->diagnostics,
    };
    for (int c = 0; c < binding->rank[0].schedule->channel_count; c++) {
        const peal_channel *channel = &binding->rank[0].schedule->channel[c];
        exchange->bytes += channel->outgoing ? channel->message_bytes : 0;
    }
    return exchange->backend->create(&desc, &exchange->run);
}

void peal_exchange_describe_device(const peal_exchange *exchange, char *text, size_t bytes)
{
    char device[100];
    exchange->backend->describe(exchange->session->device, device, sizeof(device));
    snprintf(text, bytes, " on %s", device);
}

/* ---- start and wait ---- */

/* What the application can mend is no failure of the job. */
static peal_status enqueue(peal_exchange *exchange, peal_backend_phase phase)
{
    peal_session *session = exchange->session;
    int from = peal_diagnostics_count(session->diagnostics);
    peal_status status = exchange->backend->enqueue(exchange->run, exchange->stream, phase);
    if (!status || (status == PEAL_STATUS_USAGE && !peal_session_status(session)))
        return status;
    exchange->failure = peal_session_fail(session, status, from);
    return exchange->failure;
}

peal_status peal_exchange_send(peal_exchange *exchange, void *stream)
{
    exchange->stream = stream;
    peal_status status = enqueue(exchange, PEAL_PHASE_SEND);
    if (status)
        return status;
    exchange->round++;
    exchange->started = true;
    return PEAL_STATUS_OK;
}

peal_status peal_exchange_receive(peal_exchange *exchange)
{
    return enqueue(exchange, PEAL_PHASE_RECEIVE);
}

peal_status peal_exchange_release(peal_exchange *exchange)
{
    return enqueue(exchange, PEAL_PHASE_RELEASE);
}

peal_status peal_exchange_settle(peal_exchange *exchange)
{
    peal_session *session = exchange->session;
    int from = peal_diagnostics_count(session->diagnostics);
    peal_status status = exchange->backend->settle(exchange->run);
    return status ? peal_session_fail(session, status, from) : PEAL_STATUS_OK;
}
