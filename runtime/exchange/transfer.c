/* A transfer: an exchange of one message. Each end does its whole half in one call: `from` waits
 * for a slot, packs and tells; `to` waits, unpacks and gives the slot back. On demand `to` has two
 * calls, one that tells and one that waits, and `from` hears it before it packs. */
#include "runtime/exchange/transfer.h"
#include "base/handle.h"

#include <inttypes.h>
#include <stdlib.h>

static bool is_transfer(const peal_transfer *transfer, const char *call)
{
    return peal_session_check_handle(transfer, PEAL_HANDLE_TRANSFER, call);
}

static int mark(const peal_session *session)
{
    return peal_diagnostics_count(session->diagnostics);
}

/* ---- create ---- */

static peal_status make(peal_transfer *transfer, const peal_transfer_desc *desc)
{
    peal_exchange *exchange = &transfer->exchange;
    peal_session *session = exchange->session;
    exchange->form = &peal_transfer_form;
    exchange->source = desc->source;
    exchange->deadline_ns = session->deadline_ns;
    /* who answers waits as long as nobody asks */
    bool answers = desc->on_demand && session->identity.process == desc->from;
    exchange->longest_wait_ns = answers ? 0 : session->deadline_ns;
    int from = mark(session);
    peal_status status = peal_session_agree(session, peal_transfer_check(transfer, desc), from);
    if (!status)
        status = peal_transfer_agree(transfer);
    if (!status)
        status = peal_exchange_bind(exchange, desc);
    if (!status)
        peal_session_running(session, true); /* the others wait for it, however long it takes */
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
        char line[500];
        peal_transfer_describe(transfer, line, sizeof(line));
        fprintf(session->log, "peal: %s\n", line);
    }
    *out = transfer;
    return PEAL_STATUS_OK;
}

peal_status peal_transfer_create_desc(peal_session *session, const peal_transfer_desc *desc,
                                      peal_transfer **out)
{
    static const char call[] = "peal_transfer_create";
    if (!peal_handle_check(session, PEAL_HANDLE_SESSION, call))
        return PEAL_STATUS_USAGE;
    peal_status status =
        !peal_argument_check(desc, "the descriptor", call) ||
                !peal_argument_check(out, "where the transfer goes", call)
            ? peal_exchange_refuse_null(session, call, desc ? "where the transfer goes" : "desc")
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
             "transfer of %" PRId64 " bytes%s from process %d to %d of %d%s by %s, plan %016" PRIx64
             "%s%s%s",
             transfer->bytes, device, transfer->from, transfer->to, exchange->machine.processes,
             peal_transfer_on_demand(transfer->on_demand), paths, exchange->hash,
             exchange->note[0] ? " (" : "", exchange->note, exchange->note[0] ? ")" : "");
}

/* ---- run ---- */

static peal_status misuse(const peal_transfer *transfer, const char *call, const char *why)
{
    const peal_exchange *exchange = &transfer->exchange;
    return peal_report(exchange->session->diagnostics, PEAL_E_CALL_OUT_OF_ORDER, exchange->source,
                       NULL, "%s: %s", call, why);
}

/* What a call does of this process's part in the next message. */
typedef enum half { FIRST = 1, REST = 2, WHOLE = 3 } half;

static peal_status put_onto(peal_transfer *transfer, void *stream, half what)
{
    peal_exchange *exchange = &transfer->exchange;
    peal_status status = what & FIRST ? peal_exchange_send(exchange, stream) : PEAL_STATUS_OK;
    if (!status && (what & REST)) {
        status = peal_exchange_receive(exchange);
        exchange->started = false;
    }
    bool answers = what == WHOLE && transfer->on_demand;
    return !status && answers ? peal_exchange_release(exchange) : status;
}

static peal_status run_here(peal_transfer *transfer, half what)
{
    peal_exchange *exchange = &transfer->exchange;
    const peal_exchange_program *program = &exchange->program[0];
    exchange->round += what & FIRST ? 1 : 0;
    exchange->started = what == FIRST;
    peal_status status =
        peal_exchange_run(exchange, program, what & FIRST ? 0 : program->send_count,
                          what & REST ? program->count : program->send_count);
    return status ? status : peal_exchange_await_sent(exchange);
}

/* process: whose call it is. */
static peal_status run(peal_transfer *transfer, int process, half what, void *stream,
                       const char *call)
{
    peal_exchange *exchange = &transfer->exchange;
    const peal_session *session = exchange->session;
    char why[120];
    snprintf(why, sizeof(why), "this is process %d, the transfer goes from process %d to %d%s",
             session->identity.process, transfer->from, transfer->to,
             peal_transfer_on_demand(transfer->on_demand));
    if (session->identity.process != process)
        return misuse(transfer, call, why);
    if (exchange->failure || peal_session_status(session))
        return exchange->failure ? exchange->failure : peal_session_cause(exchange->session);
    if (stream && !exchange->backend)
        return misuse(transfer, call, "the transfer is of host memory: the stream must be NULL");
    if (exchange->started != (what == REST))
        return misuse(transfer, call,
                      exchange->started ? "what was asked for was not waited for"
                                        : "nothing was asked for");
    if (what == REST && stream != exchange->stream)
        return misuse(transfer, call, "the stream is another one than that of the start");
    return exchange->backend ? put_onto(transfer, stream, what) : run_here(transfer, what);
}

peal_status peal_transfer_start(peal_transfer *transfer, void *stream)
{
    if (!is_transfer(transfer, __func__))
        return PEAL_STATUS_USAGE;
    peal_status status = transfer->on_demand
                             ? run(transfer, transfer->to, FIRST, stream, __func__)
                             : run(transfer, transfer->from, WHOLE, stream, __func__);
    return peal_session_outcome(transfer->exchange.session, status);
}

peal_status peal_transfer_wait(peal_transfer *transfer, void *stream)
{
    if (!is_transfer(transfer, __func__))
        return PEAL_STATUS_USAGE;
    half what = transfer->on_demand ? REST : WHOLE;
    return peal_session_outcome(transfer->exchange.session,
                                run(transfer, transfer->to, what, stream, __func__));
}

peal_status peal_transfer_answer(peal_transfer *transfer, void *stream)
{
    if (!is_transfer(transfer, __func__))
        return PEAL_STATUS_USAGE;
    peal_status status = transfer->on_demand
                             ? run(transfer, transfer->from, WHOLE, stream, __func__)
                             : misuse(transfer, __func__, "the transfer is not on demand");
    return peal_session_outcome(transfer->exchange.session, status);
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
    if (status) {
        free(all);
        return peal_session_fail(session, status, from);
    }
    if (all[transfer->from] != all[transfer->to])
        status = peal_report(session->diagnostics, PEAL_E_CALLS_DIFFER, exchange->source, NULL,
                             "peal_transfer_destroy: process %d has %s %" PRIu64
                             " messages, process %d has %s %" PRIu64,
                             transfer->from, transfer->on_demand ? "answered with" : "started",
                             all[transfer->from], transfer->to,
                             transfer->on_demand ? "asked for" : "waited for", all[transfer->to]);
    free(all);
    return peal_session_agree(session, status, from); /* all have found the same */
}

/* As many starts as waits: else somebody waits for what does not come, and is told so at once. */
static peal_status settle(peal_transfer *transfer)
{
    peal_exchange *exchange = &transfer->exchange;
    peal_session *session = exchange->session;
    peal_status status = peal_session_barrier(session, PEAL_BARRIER_TRANSFER, exchange->hash, 0);
    if (!status)
        status = compare_rounds(transfer);
    if (status) {
        peal_session_running(session, false);
        return status;
    }
    if (exchange->started)
        status = run(transfer, transfer->to, REST, exchange->stream, "peal_transfer_destroy");
    status = peal_exchange_leave(exchange, status);
    return status ? status
                  : peal_session_barrier(session, PEAL_BARRIER_TRANSFER, exchange->hash, 0);
}

static peal_status end(peal_transfer *transfer)
{
    peal_exchange *exchange = &transfer->exchange;
    peal_status status = exchange->failure;
    if (status)
        peal_session_running(exchange->session, false);
    else
        status = settle(transfer);
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
