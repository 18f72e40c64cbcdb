/* A transfer's descriptor: what makes no sense, what all processes say alike, and the graph of one
 * message that it is. On demand there is one in front, from who asks. */
#include "runtime/exchange/transfer.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#define MOST_BYTES INT64_C(0x7fffffff)

/* What each process says of it. */
typedef struct claim {
    int64_t bytes;
    int32_t from, to, on_demand;
    uint32_t alignment;
    int32_t accelerated, unused;
} claim;

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

peal_status peal_transfer_check(peal_transfer *transfer, const peal_transfer_desc *desc)
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
    transfer->on_demand = desc->on_demand;
    if (takes_part(transfer) && !desc->data)
        return refuse(transfer, "set .data in both processes", "process %d has no memory",
                      session->identity.process);
    bool answers = desc->on_demand && session->identity.process == desc->from;
    /* a wait that may be long holds nothing of the GPU */
    exchange->lowering = desc->lowering || !answers ? desc->lowering : "signal=memop";
    exchange->transport = desc->transport;
    exchange->buffers = exchange->field_count = 1;
    exchange->lent[0] = takes_part(transfer) ? desc->data : NULL;
    status = peal_exchange_check_options(exchange);
    if (status || !takes_part(transfer)) /* then it is as the others say */
        return status;
    return peal_exchange_choose(exchange, desc->backend);
}

/* ---- the same everywhere ---- */

const char *peal_transfer_on_demand(bool it_is)
{
    return it_is ? " on demand" : "";
}

static peal_status compare(peal_transfer *transfer, const claim *all)
{
    const int processes = transfer->exchange.session->identity.processes;
    for (int p = 1; p < processes; p++)
        if (all[p].from != all[0].from || all[p].to != all[0].to || all[p].bytes != all[0].bytes ||
            all[p].on_demand != all[0].on_demand)
            return refuse(transfer,
                          "`from`, `to`, `bytes` and `on_demand` are equal in all processes",
                          "process %d says %" PRId64 " bytes from process %d to %d%s, process 0 "
                          "says %" PRId64 " from %d to %d%s",
                          p, all[p].bytes, all[p].from, all[p].to,
                          peal_transfer_on_demand(all[p].on_demand), all[0].bytes, all[0].from,
                          all[0].to, peal_transfer_on_demand(all[0].on_demand));
    transfer->alignment = all[transfer->from].alignment | all[transfer->to].alignment;
    transfer->alignment &= ~transfer->alignment + 1; /* the lowest bit of both */
    if (takes_part(transfer))
        return PEAL_STATUS_OK;
    return peal_exchange_choose(&transfer->exchange,
                                all[transfer->from].accelerated ? "cuda" : "host");
}

peal_status peal_transfer_agree(peal_transfer *transfer)
{
    peal_exchange *exchange = &transfer->exchange;
    peal_session *session = exchange->session;
    int processes = session->identity.processes, from = mark(session);
    uint64_t bits = (uint64_t)transfer->bytes | (uint64_t)(uintptr_t)exchange->lent[0] | 8;
    claim own = {.bytes = transfer->bytes,
                 .from = transfer->from,
                 .to = transfer->to,
                 .on_demand = transfer->on_demand,
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

typedef struct ends {
    char from[16], to[16], is_from[24], is_to[24];
} ends;

static const peal_transfer *transfer_of(const peal_exchange *exchange)
{
    _Static_assert(offsetof(peal_transfer, exchange) == 0, "it is its first member");
    return (const peal_transfer *)exchange;
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

static void add_message(const peal_exchange *exchange, const char *what, const char *from,
                        const char *to, const char *is_from, const char *is_to)
{
    const peal_message_desc send = {.size_bytes = sizeof(send),
                                    .source = exchange->source,
                                    .send = {.name = what},
                                    .to = to,
                                    .when = is_from};
    const peal_message_desc receive = {.size_bytes = sizeof(receive),
                                       .source = exchange->source,
                                       .recv = {.name = what},
                                       .from = from,
                                       .when = is_to};
    peal_graph_add_send_desc(exchange->graph, &send);
    peal_graph_add_recv_desc(exchange->graph, &receive);
}

static void application(const peal_call *call)
{
    (void)call;
}

/* Who has heard the demand may write data until it is sent: so it is not packed before. */
static void add_demand(const peal_exchange *exchange, const ends *e)
{
    const peal_task_desc task = {.size_bytes = sizeof(task),
                                 .source = exchange->source,
                                 .name = "application_answers",
                                 .function = application,
                                 .tile = "whole",
                                 .when = e->is_from,
                                 .read = {{.name = "demand", .whole = true}},
                                 .update = {{.name = "data", .whole = true}}};
    add_message(exchange, "demand", e->to, e->from, e->is_to, e->is_from);
    peal_graph_add_task_desc(exchange->graph, &task);
}

static peal_status build(peal_exchange *exchange, const void *desc)
{
    const peal_transfer *transfer = transfer_of(exchange);
    const peal_source source = exchange->source;
    char count[24];
    ends e;
    static int64_t nobodys; /* lent where nothing is sent from, and nothing arrives */
    void *data = takes_part(transfer) ? ((const peal_transfer_desc *)desc)->data : &nobodys;

    peal_status status = peal_graph_create("transfer", &exchange->graph);
    if (status)
        return status;
    snprintf(count, sizeof(count), "%" PRId64, transfer->bytes / element_bytes(transfer));
    snprintf(e.from, sizeof(e.from), "%d", transfer->from);
    snprintf(e.to, sizeof(e.to), "%d", transfer->to);
    snprintf(e.is_from, sizeof(e.is_from), "rank == %d", transfer->from);
    snprintf(e.is_to, sizeof(e.is_to), "rank == %d", transfer->to);
    const peal_buffer_desc buffer = {.size_bytes = sizeof(buffer),
                                     .source = source,
                                     .name = "data",
                                     .type = type_of(transfer),
                                     .count = count,
                                     .data = data};
    const peal_buffer_desc demand = {.size_bytes = sizeof(demand),
                                     .source = source,
                                     .name = "demand",
                                     .type = "i64",
                                     .count = "1"};
    peal_graph_add_buffer_desc(exchange->graph, &buffer);
    if (transfer->on_demand)
        peal_graph_add_buffer_desc(exchange->graph, &demand);
    peal_graph_set_loop(exchange->graph, .repeat = "9223372036854775807");
    peal_graph_begin_at(exchange->graph, PEAL_STEP, source);
    if (transfer->on_demand)
        add_demand(exchange, &e);
    add_message(exchange, "data", e.from, e.to, e.is_from, e.is_to);
    peal_graph_end_at(exchange->graph, source);
    return PEAL_STATUS_OK;
}

static peal_status lay_out(peal_exchange *exchange, const void *desc)
{
    const peal_transfer *transfer = transfer_of(exchange);
    uintptr_t first = (uintptr_t)exchange->lent[0];
    (void)desc;
    bool wraps = (uint64_t)transfer->bytes > UINTPTR_MAX - first;
    if (exchange->backend || !first ||
        (!wraps && peal_is_memory(first, first + (uintptr_t)transfer->bytes)))
        return PEAL_STATUS_OK;
    return refuse(transfer, "data is the first of `bytes` bytes",
                  "data of process %d does not lie in memory that it may write, all %" PRId64
                  " bytes",
                  exchange->session->identity.process, transfer->bytes);
}

const peal_exchange_form peal_transfer_form = {.noun = "transfer",
                                               .brings = "a message",
                                               .build = build,
                                               .lay_out = lay_out,
                                               .in_order = true};
