/* The exchange alone: a schedule of one step, run on the calling thread. */
#include "runtime/exchange/exchange.h"

#include "base/handle.h"
#include "runtime/bind/puts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int mark(const peal_session *session)
{
    return peal_diagnostics_count(session->diagnostics);
}

static peal_status no_memory(peal_session *session)
{
    return peal_report(session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                       "no memory for the tables of an exchange");
}

/* ---- create ---- */

static peal_status build(peal_exchange *exchange, const void *desc)
{
    return peal_exchange_build(exchange, desc);
}

static peal_status lay_out(peal_exchange *exchange, const void *desc)
{
    return peal_exchange_lay_out(exchange, desc);
}

static const peal_exchange_form halo = {.noun = "exchange",
                                        .brings = "the border",
                                        .build = build,
                                        .lay_out = lay_out};

/* What this process can tell alone. */
static peal_status check(peal_exchange *exchange, const peal_halo_desc *desc)
{
    peal_status status = peal_exchange_check(exchange, desc);
    if (status)
        return status;
    exchange->lowering = desc->lowering;
    exchange->transport = desc->transport;
    exchange->field_count = peal_halo_field_count(desc);
    exchange->buffers = 1;
    for (int i = 0; i < exchange->field_count; i++) {
        exchange->components[i] = peal_halo_components(&desc->field[i]);
        exchange->lent[i] = desc->field[i].data[0];
        exchange->second[i] = desc->field[i].data[1];
        exchange->buffers = exchange->second[i] ? 2 : exchange->buffers;
    }
    status = peal_exchange_check_options(exchange);
    return status ? status : peal_exchange_choose(exchange, desc->backend);
}

static peal_status make(peal_exchange *exchange, const peal_halo_desc *desc);

/* An exchange of the second buffers alone. */
static peal_status make_twin(peal_exchange *exchange, const peal_halo_desc *desc)
{
    peal_halo_desc other = *desc;
    int from = mark(exchange->session);
    for (int i = 0; i < exchange->field_count; i++) {
        other.field[i].data[0] = desc->field[i].data[desc->field[i].data[1] ? 1 : 0];
        other.field[i].data[1] = NULL;
    }
    exchange->twin = calloc(1, sizeof(*exchange->twin));
    if (!exchange->twin)
        return peal_session_fail(exchange->session, no_memory(exchange->session), from);
    exchange->twin->session = exchange->session;
    exchange->twin->is_twin = true;
    return make(exchange->twin, &other);
}

static peal_status make(peal_exchange *exchange, const peal_halo_desc *desc)
{
    peal_session *session = exchange->session;
    exchange->form = &halo;
    exchange->source = desc->source;
    exchange->deadline_ns = exchange->longest_wait_ns = session->deadline_ns;
    int from = mark(session);
    peal_status status = peal_session_agree(session, check(exchange, desc), from);
    if (!status)
        status = peal_exchange_agree(exchange, desc);
    if (!status)
        status = peal_exchange_bind(exchange, desc);
    if (!status && exchange->backend && exchange->buffers > 1)
        status = make_twin(exchange, desc);
    if (!status)
        peal_session_running(session, true);
    return status;
}

/* What was made of one that could not be made whole. */
static void give_back(peal_exchange *exchange)
{
    if (exchange->twin)
        peal_exchange_free(exchange->twin);
    peal_exchange_free(exchange);
}

static peal_status create(peal_session *session, const peal_halo_desc *desc, peal_exchange **out)
{
    if (peal_session_status(session))
        return peal_session_cause(session);
    peal_exchange *exchange = calloc(1, sizeof(*exchange));
    if (!exchange || !peal_handle_open(exchange, PEAL_HANDLE_EXCHANGE, session)) {
        int from = mark(session);
        free(exchange);
        return peal_session_fail(session, no_memory(session), from);
    }
    exchange->session = session;
    peal_status status = make(exchange, desc);
    if (status) {
        give_back(exchange);
        return status;
    }
    if (session->log && session->log_level >= PEAL_LOG_INFO) {
        char line[400];
        peal_exchange_describe(exchange, line, sizeof(line));
        fprintf(session->log, "peal: %s\n", line);
    }
    *out = exchange;
    return PEAL_STATUS_OK;
}

peal_status peal_exchange_create_desc(peal_session *session, const peal_halo_desc *desc,
                                      peal_exchange **out)
{
    static const char call[] = "peal_exchange_create";
    if (!peal_handle_check(session, PEAL_HANDLE_SESSION, call))
        return PEAL_STATUS_USAGE;
    peal_status status =
        !peal_argument_check(desc, "the descriptor", call) ||
                !peal_argument_check(out, "where the exchange goes", call)
            ? peal_exchange_refuse_null(session, call, desc ? "where the exchange goes" : "desc")
            : create(session, desc, out);
    return peal_session_outcome(session, status);
}

/* ---- run ---- */

static peal_status misuse(const peal_exchange *exchange, const char *call, const char *why)
{
    if (exchange->failure)
        return exchange->failure;
    return peal_report(exchange->session->diagnostics, PEAL_E_CALL_OUT_OF_ORDER, exchange->source,
                       NULL, "%s: the exchange %s", call, why);
}

/* On a GPU: the exchange of the buffer that was started last. */
static peal_exchange *of_buffer(peal_exchange *exchange)
{
    return exchange->buffer ? exchange->twin : exchange;
}

static peal_status send(peal_exchange *exchange, void *stream)
{
    peal_exchange *of = of_buffer(exchange);
    peal_status status = peal_exchange_send(of, stream);
    exchange->failure = of->failure;
    exchange->started = !status;
    return status;
}

static peal_status receive(peal_exchange *exchange)
{
    peal_exchange *of = of_buffer(exchange);
    of->started = false;
    peal_status status = peal_exchange_receive(of);
    exchange->failure = of->failure;
    return status;
}

static peal_status start(peal_exchange *exchange, int buffer, void *stream)
{
    if (exchange->started || exchange->failure)
        return misuse(exchange, "peal_exchange_start", "was started and not waited for");
    if (stream && !exchange->backend)
        return misuse(exchange, "peal_exchange_start",
                      "is of host memory: the stream must be NULL");
    if (buffer < 0 || buffer >= exchange->buffers)
        return misuse(exchange, "peal_exchange_start", "has no such buffer");
    exchange->buffer = buffer;
    if (exchange->backend)
        return send(exchange, stream);
    const peal_exchange_program *program = &exchange->program[buffer];
    exchange->round++;
    exchange->started = true;
    return peal_exchange_run(exchange, program, 0, program->send_count);
}

peal_status peal_exchange_start(peal_exchange *exchange, int buffer, void *stream)
{
    if (!peal_is_exchange(exchange, __func__))
        return PEAL_STATUS_USAGE;
    return peal_session_outcome(exchange->session, start(exchange, buffer, stream));
}

static peal_status wait_for(peal_exchange *exchange)
{
    if (!exchange->started || exchange->failure)
        return misuse(exchange, "peal_exchange_wait", "was not started");
    exchange->started = false;
    if (exchange->backend)
        return receive(exchange);
    const peal_exchange_program *program = &exchange->program[exchange->buffer];
    peal_status status = peal_exchange_run(exchange, program, program->send_count, program->count);
    return status ? status : peal_exchange_await_sent(exchange);
}

peal_status peal_exchange_wait(peal_exchange *exchange)
{
    if (!peal_is_exchange(exchange, __func__))
        return PEAL_STATUS_USAGE;
    return peal_session_outcome(exchange->session, wait_for(exchange));
}

/* ---- end ---- */

static peal_status end(peal_exchange *exchange)
{
    peal_session *session = exchange->session;
    peal_status status = exchange->failure;
    if (!status && exchange->started)
        status = wait_for(exchange);
    peal_status twin = exchange->twin ? end(exchange->twin) : PEAL_STATUS_OK;
    status = status ? status : twin;
    status = peal_exchange_leave(exchange, status);
    if (!status)
        status = peal_session_barrier(session, PEAL_BARRIER_EXCHANGE, exchange->hash,
                                      (int64_t)exchange->round);
    peal_exchange_free(exchange);
    return status;
}

peal_status peal_exchange_destroy(peal_exchange *exchange)
{
    if (!exchange)
        return PEAL_STATUS_OK;
    if (!peal_is_exchange(exchange, __func__))
        return PEAL_STATUS_USAGE;
    peal_session *session = exchange->session;
    return peal_session_outcome(session, end(exchange));
}
