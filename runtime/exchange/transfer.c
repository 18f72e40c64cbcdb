/* A transfer: an exchange of one message. Each end does its whole half in one call: `from` waits
 * for a slot, packs and tells; `to` waits, unpacks and gives the slot back. */
#include <peal/transfer.h>

#include "base/handle.h"
#include "base/lowering.h"
#include "runtime/bind/peer_path.h"
#include "runtime/exchange/exchange.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES INT64_C(0x7fffffff)

struct peal_transfer {
    peal_exchange exchange;
    int from, to;
    int64_t bytes;
    uint64_t alignment; /* of the bytes, and of their addresses at both ends: up to 8 */
};

/* What each process says of it. */
typedef struct claim {
    int64_t bytes;
    int32_t from, to;
    uint32_t alignment;
    int32_t accelerated;
} claim;

static bool is_transfer(const peal_transfer *transfer, const char *call)
{
    return peal_session_check_handle(transfer, PEAL_HANDLE_TRANSFER, call);
}

static int mark(const peal_session *session)
{
    return peal_diagnostics_count(session->diagnostics);
}

static bool takes_part(const peal_transfer *transfer)
{
    int process = transfer->exchange.session->identity.process;
    return process == transfer->from || process == transfer->to;
}

/* ---- what makes no sense ---- */

static peal_status refuse(const peal_transfer *transfer, const char *hint, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static peal_status refuse(const peal_transfer *transfer, const char *hint, const char *format, ...)
{
    char text[PEAL_EXCHANGE_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return peal_report(transfer->exchange.session->diagnostics, PEAL_E_INVALID_TRANSFER,
                       transfer->exchange.source, hint, "%s", text);
}

static peal_status check_ends(const peal_transfer *transfer, const peal_transfer_desc *desc)
{
    const int processes = transfer->exchange.session->identity.processes;
    const int end[2] = {desc->from, desc->to};
    for (int i = 0; i < 2; i++)
        if (end[i] < 0 || end[i] >= processes)
            return refuse(transfer, "name processes of the session, counted from 0",
                          "`%s` is process %d of %d", i ? "to" : "from", end[i], processes);
    if (desc->from == desc->to)
        return refuse(transfer, "copy it, or name two processes", "process %d would send to itself",
                      desc->from);
    if (desc->bytes < 1 || desc->bytes > MOST_BYTES)
        return refuse(transfer, "send 1 byte or more; larger messages as several transfers",
                      "%" PRId64 " bytes are not in 1 to %" PRId64, desc->bytes, MOST_BYTES);
    return PEAL_STATUS_OK;
}

static peal_status check(peal_transfer *transfer, const peal_transfer_desc *desc)
{
    peal_exchange *exchange = &transfer->exchange;
    peal_session *session = exchange->session;
    if (desc->size_bytes != sizeof(*desc))
        return peal_report(
            session->diagnostics, PEAL_E_INVALID_DESCRIPTOR, exchange->source,
            "set .size_bytes = sizeof(peal_transfer_desc) and build against this version",
            "peal_transfer_desc has %zu bytes here, the caller's has %zu", sizeof(*desc),
            desc->size_bytes);
    peal_status status = check_ends(transfer, desc);
    if (status)
        return status;
    transfer->from = desc->from;
    transfer->to = desc->to;
    transfer->bytes = desc->bytes;
    if (takes_part(transfer) && !desc->data)
        return refuse(transfer, "set .data in both processes", "process %d has no memory",
                      session->identity.process);
    exchange->lowering = desc->lowering;
    exchange->transport = desc->transport;
    exchange->buffers = exchange->field_count = 1;
    exchange->lent[0] = takes_part(transfer) ? desc->data : NULL;
    status = peal_lowering_check(desc->lowering, session->diagnostics);
    if (!status)
        status = peal_transport_check(desc->transport, session->diagnostics);
    if (!status)
        status = peal_transport_check_reach(session, desc->transport);
    if (status)
        return status;
    peal_exchange_choose_machine(exchange);
    return takes_part(transfer) ? peal_exchange_choose(exchange, desc->backend) : PEAL_STATUS_OK;
}

/* ---- the same everywhere ---- */

static peal_status compare(peal_transfer *transfer, const claim *all)
{
    const int processes = transfer->exchange.session->identity.processes;
    for (int p = 1; p < processes; p++)
        if (all[p].from != all[0].from || all[p].to != all[0].to || all[p].bytes != all[0].bytes)
            return refuse(transfer, "`from`, `to` and `bytes` are equal in all processes",
                          "process %d says %" PRId64 " bytes from process %d to %d, process 0 "
                          "says %" PRId64 " from %d to %d",
                          p, all[p].bytes, all[p].from, all[p].to, all[0].bytes, all[0].from,
                          all[0].to);
    transfer->alignment = all[transfer->from].alignment | all[transfer->to].alignment;
    transfer->alignment &= ~transfer->alignment + 1; /* the lowest bit of both */
    if (takes_part(transfer))
        return PEAL_STATUS_OK;
    return peal_exchange_choose(&transfer->exchange,
                                all[transfer->from].accelerated ? "cuda" : "host");
}

static peal_status agree(peal_transfer *transfer)
{
    peal_exchange *exchange = &transfer->exchange;
    peal_session *session = exchange->session;
    int processes = session->identity.processes, from = mark(session);
    uint64_t bits = (uint64_t)transfer->bytes | (uint64_t)(uintptr_t)exchange->lent[0] | 8;
    claim own = {.bytes = transfer->bytes,
                 .from = transfer->from,
                 .to = transfer->to,
                 .alignment = (uint32_t)(bits & (~bits + 1)),
                 .accelerated = exchange->backend != NULL};
    claim *all = calloc((size_t)processes, sizeof(own));
    peal_status status = peal_exchange_gather(exchange, &own, sizeof(own), all);
    if (status) {
        free(all);
        return peal_session_fail(session, status, from);
    }
    from = mark(session);
    status = compare(transfer, all);
    free(all);
    status = peal_session_agree(session, status, from);
    return status ? status : peal_exchange_agree_on_means(exchange);
}

/* ---- the graph ---- */

static const peal_transfer *transfer_of(const peal_exchange *exchange)
{
    return (const peal_transfer *)exchange; /* its first member */
}

static const char *type_of(const peal_transfer *transfer)
{
    return peal_type_name(transfer->alignment == 8   ? PEAL_I64
                          : transfer->alignment == 4 ? PEAL_I32
                                                     : PEAL_U8);
}

static int64_t element_bytes(const peal_transfer *transfer)
{
    return transfer->alignment >= 4 ? (int64_t)transfer->alignment : 1;
}

static peal_status build(peal_exchange *exchange, const void *desc)
{
    const peal_transfer *transfer = transfer_of(exchange);
    const peal_source source = exchange->source;
    char count[24], from[16], to[16], sends[24], receives[24];
    static int64_t nobodys; /* lent where nothing is sent from, and nothing arrives */
    void *data = takes_part(transfer) ? ((const peal_transfer_desc *)desc)->data : &nobodys;

    peal_status status = peal_graph_create("transfer", &exchange->graph);
    if (status)
        return status;
    snprintf(count, sizeof(count), "%" PRId64, transfer->bytes / element_bytes(transfer));
    snprintf(from, sizeof(from), "%d", transfer->from);
    snprintf(to, sizeof(to), "%d", transfer->to);
    snprintf(sends, sizeof(sends), "rank == %d", transfer->from);
    snprintf(receives, sizeof(receives), "rank == %d", transfer->to);
    const peal_buffer_desc buffer = {.size_bytes = sizeof(buffer),
                                     .source = source,
                                     .name = "data",
                                     .type = type_of(transfer),
                                     .count = count,
                                     .data = data};
    const peal_message_desc send = {.size_bytes = sizeof(send),
                                    .source = source,
                                    .send = {.name = "data"},
                                    .to = to,
                                    .when = sends};
    const peal_message_desc receive = {.size_bytes = sizeof(receive),
                                       .source = source,
                                       .recv = {.name = "data"},
                                       .from = from,
                                       .when = receives};
    peal_graph_add_buffer_desc(exchange->graph, &buffer);
    peal_graph_set_loop(exchange->graph, .repeat = "9223372036854775807");
    peal_graph_begin_at(exchange->graph, PEAL_STEP, source);
    peal_graph_add_send_desc(exchange->graph, &send);
    peal_graph_add_recv_desc(exchange->graph, &receive);
    peal_graph_end_at(exchange->graph, source);
    return PEAL_STATUS_OK;
}

static peal_status lay_out(peal_exchange *exchange, const void *desc)
{
    const peal_transfer *transfer = transfer_of(exchange);
    uintptr_t first = (uintptr_t)exchange->lent[0];
    (void)desc;
    if (exchange->backend || !first || peal_is_memory(first, first + (uintptr_t)transfer->bytes))
        return PEAL_STATUS_OK;
    return refuse(transfer, "data is the first of `bytes` bytes",
                  "data of process %d does not lie in memory that it may write, all %" PRId64
                  " bytes",
                  exchange->session->identity.process, transfer->bytes);
}

static const peal_exchange_form form = {.noun = "transfer",
                                        .brings = "a message",
                                        .build = build,
                                        .lay_out = lay_out};

/* ---- create ---- */

static peal_status make(peal_transfer *transfer, const peal_transfer_desc *desc)
{
    peal_exchange *exchange = &transfer->exchange;
    peal_session *session = exchange->session;
    exchange->form = &form;
    exchange->source = desc->source;
    exchange->deadline_ns = session->deadline_ns;
    int from = mark(session);
    peal_status status = peal_session_agree(session, check(transfer, desc), from);
    if (!status)
        status = agree(transfer);
    if (!status)
        status = peal_exchange_bind(exchange, desc);
    if (!status)
        peal_session_running(session, true);
    return status;
}

static peal_status no_memory(const peal_session *session)
{
    return peal_report(session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                       "no memory for a transfer");
}

static peal_status create(peal_session *session, const peal_transfer_desc *desc,
                          peal_transfer **out)
{
    if (peal_session_status(session))
        return peal_session_cause(session);
    int from = mark(session);
    peal_transfer *transfer = calloc(1, sizeof(*transfer));
    if (!transfer || !peal_handle_open(transfer, PEAL_HANDLE_TRANSFER, session)) {
        free(transfer);
        return peal_session_fail(session, no_memory(session), from);
    }
    transfer->exchange.session = session;
    peal_status status = make(transfer, desc);
    if (status) {
        peal_exchange_free(&transfer->exchange);
        return status;
    }
    if (session->log && session->log_level >= PEAL_LOG_INFO) {
        char line[300];
        peal_transfer_describe(transfer, line, sizeof(line));
        fprintf(session->log, "peal: %s\n", line);
    }
    *out = transfer;
    return PEAL_STATUS_OK;
}

/* The others hear of it: they are in the same call. */
static peal_status refuse_null(peal_session *session, const char *what)
{
    int from = mark(session);
    if (peal_session_status(session))
        return peal_session_cause(session);
    peal_status status =
        peal_report(session->diagnostics, PEAL_E_INVALID_DESCRIPTOR, PEAL_NO_SOURCE, NULL,
                    "peal_transfer_create: %s is NULL", what);
    return peal_session_agree(session, status, from);
}

peal_status peal_transfer_create_desc(peal_session *session, const peal_transfer_desc *desc,
                                      peal_transfer **out)
{
    static const char call[] = "peal_transfer_create";
    if (!peal_handle_check(session, PEAL_HANDLE_SESSION, call))
        return PEAL_STATUS_USAGE;
    peal_status status = !peal_argument_check(desc, "the descriptor", call) ||
                                 !peal_argument_check(out, "where the transfer goes", call)
                             ? refuse_null(session, desc ? "where the transfer goes" : "desc")
                             : create(session, desc, out);
    return peal_session_outcome(session, status);
}

void peal_transfer_describe(const peal_transfer *transfer, char *text, size_t bytes)
{
    if (!text || !bytes)
        return;
    *text = 0;
    if (!is_transfer(transfer, __func__))
        return;
    const peal_exchange *exchange = &transfer->exchange;
    char paths[96], device[120] = "";
    if (exchange->backend)
        peal_exchange_describe_device(exchange, device, sizeof(device));
    peal_exchange_describe_paths(exchange, paths, sizeof(paths));
    snprintf(text, bytes,
             "transfer of %" PRId64 " bytes%s from process %d to %d of %d by %s, plan %016" PRIx64,
             transfer->bytes, device, transfer->from, transfer->to, exchange->machine.processes,
             paths, exchange->hash);
}

/* ---- run ---- */

static peal_status misuse(const peal_transfer *transfer, const char *call, const char *why)
{
    const peal_exchange *exchange = &transfer->exchange;
    return peal_report(exchange->session->diagnostics, PEAL_E_CALL_OUT_OF_ORDER, exchange->source,
                       NULL, "%s: %s", call, why);
}

/* This end's half of the next message. */
static peal_status go(peal_transfer *transfer, void *stream, const char *call)
{
    peal_exchange *exchange = &transfer->exchange;
    if (exchange->failure)
        return exchange->failure;
    if (stream && !exchange->backend)
        return misuse(transfer, call, "the transfer is of host memory: the stream must be NULL");
    if (exchange->backend) {
        peal_status status = peal_exchange_send(exchange, stream);
        if (!status)
            status = peal_exchange_receive(exchange);
        exchange->started = false;
        return status;
    }
    exchange->round++;
    const peal_exchange_program *program = &exchange->program[0];
    peal_status status = peal_exchange_run(exchange, program, 0, program->count);
    return status ? status : peal_exchange_await_sent(exchange);
}

static peal_status run(peal_transfer *transfer, int process, void *stream, const char *call)
{
    const peal_session *session = transfer->exchange.session;
    char why[120];
    if (session->identity.process == process)
        return go(transfer, stream, call);
    snprintf(why, sizeof(why), "this is process %d, the transfer goes from process %d to %d",
             session->identity.process, transfer->from, transfer->to);
    return misuse(transfer, call, why);
}

peal_status peal_transfer_start(peal_transfer *transfer, void *stream)
{
    if (!is_transfer(transfer, __func__))
        return PEAL_STATUS_USAGE;
    return peal_session_outcome(transfer->exchange.session,
                                run(transfer, transfer->from, stream, __func__));
}

peal_status peal_transfer_wait(peal_transfer *transfer, void *stream)
{
    if (!is_transfer(transfer, __func__))
        return PEAL_STATUS_USAGE;
    return peal_session_outcome(transfer->exchange.session,
                                run(transfer, transfer->to, stream, __func__));
}

/* ---- end ---- */

static peal_status compare_rounds(const peal_transfer *transfer)
{
    const peal_exchange *exchange = &transfer->exchange;
    peal_session *session = exchange->session;
    int from = mark(session);
    const uint64_t own = exchange->round;
    uint64_t *all = calloc((size_t)session->identity.processes, sizeof(own));
    peal_status status = peal_exchange_gather(exchange, &own, sizeof(own), all);
    if (!status && all[transfer->from] != all[transfer->to])
        status = peal_report(session->diagnostics, PEAL_E_CALLS_DIFFER, exchange->source, NULL,
                             "peal_transfer_destroy: process %d has started %" PRIu64
                             " messages, process %d has waited for %" PRIu64,
                             transfer->from, all[transfer->from], transfer->to, all[transfer->to]);
    free(all);
    return status ? peal_session_fail(session, status, from) : PEAL_STATUS_OK;
}

static peal_status end(peal_transfer *transfer)
{
    peal_exchange *exchange = &transfer->exchange;
    peal_session *session = exchange->session;
    peal_status status = peal_exchange_leave(exchange, exchange->failure);
    if (!status)
        status = peal_session_barrier(session, PEAL_BARRIER_TRANSFER, exchange->hash, 0);
    if (!status)
        status = compare_rounds(transfer);
    peal_exchange_free(exchange);
    return status;
}

peal_status peal_transfer_destroy(peal_transfer *transfer)
{
    if (!transfer)
        return PEAL_STATUS_OK;
    if (!is_transfer(transfer, __func__))
        return PEAL_STATUS_USAGE;
    peal_session *session = transfer->exchange.session;
    return peal_session_outcome(session, end(transfer));
}
