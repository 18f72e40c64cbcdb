/* What an exchange runs on: from its descriptor to memory, paths and a program, and back. */
#include "base/handle.h"
#include "base/lowering.h"
#include "dsl/dsl.h"
#include "runtime/bind/peer_path.h"
#include "runtime/bind/puts.h"
#include "runtime/exchange/exchange.h"

#include <stdlib.h>

static int mark(const peal_session *session)
{
    return peal_diagnostics_count(session->diagnostics);
}

static void choose_machine(peal_exchange *exchange)
{
    peal_session *session = exchange->session;
    int processes = session->identity.processes;
    exchange->machine = (peal_machine){
        .ranks = processes,
        .processes = processes,
        .workers = 1,
        .cache_bytes = 1 << 20,
        .node = peal_control_hosts(session->control),
        .apart = peal_transport_sets_apart(exchange->transport),
        .network = peal_transport_between_hosts(exchange->transport),
    };
}

peal_status peal_exchange_check_options(peal_exchange *exchange)
{
    peal_session *session = exchange->session;
    peal_status status = peal_lowering_check(exchange->lowering, session->diagnostics);
    if (!status)
        status = peal_transport_check(exchange->transport, session->diagnostics);
    if (!status)
        status = peal_transport_check_reach(session, exchange->transport);
    if (!status)
        choose_machine(exchange);
    return status;
}

/* The others hear of it: they are in the same call. */
peal_status peal_exchange_refuse_null(peal_session *session, const char *call, const char *what)
{
    int from = mark(session);
    if (peal_session_status(session))
        return peal_session_cause(session);
    peal_status status = peal_report(session->diagnostics, PEAL_E_INVALID_DESCRIPTOR,
                                     PEAL_NO_SOURCE, NULL, "%s: %s is NULL", call, what);
    return peal_session_agree(session, status, from);
}

static peal_status resolve(peal_exchange *exchange, const void *desc)
{
    peal_session *session = exchange->session;
    peal_status status = exchange->form->build(exchange, desc);
    if (status)
        return status;
    peal_graph_report_to(exchange->graph, session->diagnostics);
    status = peal_graph_resolve(exchange->graph, session->diagnostics, &exchange->data);
    if (!status)
        exchange->hash = exchange->data->hash;
    return status;
}

/* Process 0 checks the exchange as a whole. */
static peal_status schedule(peal_exchange *exchange, const void *desc)
{
    peal_session *session = exchange->session;
    peal_mode mode = exchange->backend ? PEAL_MODE_STREAM : PEAL_MODE_SYNC;
    peal_status status = resolve(exchange, desc);
    if (!status)
        status = peal_compilation_create(exchange->data, &exchange->machine, mode,
                                         session->diagnostics, &exchange->compilation);
    if (!status)
        peal_compilation_limit(exchange->compilation, session->deadline_ns);
    if (!status && session->identity.process == 0)
        status = peal_compilation_check(exchange->compilation);
    return status;
}

peal_status peal_exchange_bind(peal_exchange *exchange, const void *desc)
{
    peal_session *session = exchange->session;
    int from = mark(session);
    peal_session_running(session, true); /* the others wait for it, however long it takes */
    peal_status status = schedule(exchange, desc);
    peal_session_running(session, false);
    status = peal_session_agree(session, status, from);
    if (!status)
        status = peal_binding_check_memory(session, exchange->compilation, &exchange->machine);
    if (status)
        return status;
    from = mark(session);
    status = peal_binding_allocate(&exchange->binding, session, exchange->compilation,
                                   &exchange->machine, session->identity.process);
    if (!status)
        status = exchange->form->lay_out(exchange, desc);
    status = peal_session_agree(session, status, from);
    if (status)
        return status;
    from = mark(session);
    status = peal_binding_attach(&exchange->binding);
    if (peal_machine_hosts(&exchange->machine) > 1) { /* as of a plan */
        status = peal_session_agree(session, status, from);
        if (status)
            return status;
        from = mark(session);
        status = peal_binding_connect(&exchange->binding);
    }
    if (!status)
        status = exchange->backend ? peal_exchange_arm(exchange) : peal_exchange_flatten(exchange);
    status = peal_session_agree(session, status, from);
    if (status || peal_machine_hosts(&exchange->machine) == 1)
        return status;
    from = mark(session);
    status = peal_bound_puts_begin_try(exchange->binding.puts);
    status = peal_session_agree(session, status, from);
    if (status)
        return status;
    from = mark(session);
    status = peal_bound_puts_try(exchange->binding.puts, exchange->deadline_ns);
    if (!status)
        status = peal_bound_puts_start(exchange->binding.puts);
    status = peal_session_agree(session, status, from);
    peal_bound_puts_end_try(exchange->binding.puts);
    return status;
}

peal_status peal_exchange_leave(peal_exchange *exchange, peal_status status)
{
    peal_session *session = exchange->session;
    if (!status && exchange->run)
        status = peal_exchange_settle(exchange);
    int from = mark(session);
    if (!status && peal_bound_puts_end(exchange->binding.puts, exchange->deadline_ns))
        status = peal_session_fail(session, PEAL_STATUS_DEADLINE, from);
    peal_session_running(session, false);
    return status;
}

void peal_exchange_free(peal_exchange *exchange)
{
    peal_bound_puts_end(exchange->binding.puts, exchange->deadline_ns);
    if (exchange->run)
        exchange->backend->destroy(exchange->run);
    free(exchange->array);
    free(exchange->schedule);
    for (int buffer = 0; buffer < 2; buffer++) {
        free(exchange->program[buffer].action);
        free(exchange->program[buffer].copy);
    }
    peal_binding_release(&exchange->binding);
    peal_compilation_destroy(exchange->compilation);
    if (exchange->graph)
        peal_graph_report_to(exchange->graph, NULL);
    peal_graph_destroy(exchange->graph);
    peal_decomposition_free(&exchange->grid);
    if (exchange->is_twin) {
        free(exchange);
        return;
    }
    peal_handle_close(exchange);
    peal_handle_free(exchange);
}
