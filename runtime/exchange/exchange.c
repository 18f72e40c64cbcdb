/* The exchange alone: a schedule of one step, run on the calling thread. */
#include "runtime/exchange/exchange.h"
#include "base/backoff.h"
#include "base/clock.h"

#include "base/handle.h"
#include "base/lowering.h"
#include "base/patience.h"
#include "dsl/dsl.h"
#include "runtime/bind/peer_path.h"
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

static void choose_machine(peal_exchange *exchange, const peal_halo_desc *desc)
{
    peal_session *session = exchange->session;
    int processes = session->identity.processes;
    exchange->machine = (peal_machine){
        .ranks = processes,
        .processes = processes,
        .workers = 1,
        .cache_bytes = 1 << 20,
        .node = peal_control_hosts(session->control),
        .apart = peal_transport_sets_apart(desc->transport),
        .network = peal_transport_between_hosts(desc->transport),
    };
}

/* What this process can tell alone. */
static peal_status check(peal_exchange *exchange, const peal_halo_desc *desc)
{
    peal_session *session = exchange->session;
    peal_status status = peal_exchange_check(exchange, desc);
    if (status)
        return status;
    exchange->lowering = desc->lowering;
    exchange->transport = desc->transport;
    exchange->field_count = peal_halo_field_count(desc);
    exchange->buffers = 1;
    for (int i = 0; i < exchange->field_count; i++) {
        exchange->components[i] = peal_halo_components(&desc->field[i]);
        exchange->second[i] = desc->field[i].data[1];
        exchange->buffers = exchange->second[i] ? 2 : exchange->buffers;
    }
    status = peal_lowering_check(desc->lowering, session->diagnostics);
    if (!status)
        status = peal_transport_check(desc->transport, session->diagnostics);
    if (!status)
        status = peal_transport_check_reach(session, desc->transport);
    if (status)
        return status;
    choose_machine(exchange, desc);
    return peal_exchange_choose(exchange, desc);
}

static peal_status resolve(peal_exchange *exchange, const peal_halo_desc *desc)
{
    peal_session *session = exchange->session;
    peal_status status = peal_exchange_build(exchange, desc);
    if (status)
        return status;
    peal_graph_report_to(exchange->graph, session->diagnostics);
    status = peal_graph_resolve(exchange->graph, session->diagnostics, &exchange->data);
    if (!status)
        exchange->hash = exchange->data->hash;
    return status;
}

/* Process 0 checks the exchange as a whole. */
static peal_status schedule(peal_exchange *exchange, const peal_halo_desc *desc)
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

static peal_status bind(peal_exchange *exchange, const peal_halo_desc *desc)
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
        status = peal_exchange_lay_out(exchange, desc);
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
    status = peal_bound_puts_try(exchange->binding.puts, exchange->deadline_ns);
    if (!status)
        status = peal_bound_puts_start(exchange->binding.puts);
    status = peal_session_agree(session, status, from);
    peal_bound_puts_end_try(exchange->binding.puts);
    return status;
}

static void free_exchange(peal_exchange *exchange)
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
    exchange->source = desc->source;
    exchange->deadline_ns = session->deadline_ns;
    int from = mark(session);
    peal_status status = peal_session_agree(session, check(exchange, desc), from);
    if (!status)
        status = peal_exchange_agree(exchange, desc);
    if (!status)
        status = bind(exchange, desc);
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
        free_exchange(exchange->twin);
    free_exchange(exchange);
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

/* The others hear of it: they are in the same call. */
static peal_status refuse_null(peal_session *session, const char *what)
{
    int from = mark(session);
    if (peal_session_status(session))
        return peal_session_cause(session);
    peal_status status =
        peal_report(session->diagnostics, PEAL_E_INVALID_DESCRIPTOR, PEAL_NO_SOURCE, NULL,
                    "peal_exchange_create: %s is NULL", what);
    return peal_session_agree(session, status, from);
}

peal_status peal_exchange_create_desc(peal_session *session, const peal_halo_desc *desc,
                                      peal_exchange **out)
{
    static const char call[] = "peal_exchange_create";
    if (!peal_handle_check(session, PEAL_HANDLE_SESSION, call))
        return PEAL_STATUS_USAGE;
    peal_status status = !peal_argument_check(desc, "the descriptor", call) ||
                                 !peal_argument_check(out, "where the exchange goes", call)
                             ? refuse_null(session, desc ? "where the exchange goes" : "desc")
                             : create(session, desc, out);
    return peal_session_outcome(session, status);
}

/* ---- run ---- */

static peal_status give_up(peal_exchange *exchange, const peal_exchange_word *word)
{
    peal_session *session = exchange->session;
    int from = mark(session);
    peal_status status = PEAL_STATUS_OK;
    if (!peal_session_status(session))
        status =
            peal_report(session->diagnostics, PEAL_E_BORDER_LATE, exchange->source, NULL,
                        "process %d has waited %g s for %s of process %d (exchange %" PRIu64 ")",
                        session->identity.process, (double)exchange->deadline_ns * 1e-9,
                        word->channel->outgoing ? "a credit" : "the border",
                        peal_machine_process(&exchange->machine, word->channel->peer),
                        exchange->round);
    exchange->failure = peal_session_fail(session, status, from);
    return exchange->failure;
}

/* At the clock, while nobody sleeps. */
enum { ROUNDS_A_LOOK = 1000 };

static bool is_reached(const peal_exchange_word *word, uint64_t value)
{
    /* pairs with the release in write_word of the other side; cyclic: flags wrap */
    return (int64_t)(atomic_load_explicit(word->word, memory_order_acquire) - value) >= 0;
}

static peal_status wait_word(peal_exchange *exchange, const peal_exchange_word *word,
                             uint64_t value)
{
    peal_patience patience = peal_patience_begin(peal_clock_ns(), exchange->deadline_ns);
    peal_backoff backoff = peal_session_backoff(exchange->session);
    for (int round = 1; !is_reached(word, value); round++) {
        if (peal_session_status(exchange->session))
            return give_up(exchange, word);
        peal_exchange_pause(exchange, word, &backoff);
        if (round % ROUNDS_A_LOOK != 0 && !peal_backoff_sleeps(&backoff))
            continue;
        if (peal_patience_is_over(&patience, peal_clock_ns()))
            return give_up(exchange, word);
    }
    return PEAL_STATUS_OK;
}

/* Actions [first, end) of exchange number `round`. */
static peal_status run(peal_exchange *exchange, const peal_exchange_program *program, int first,
                       int end)
{
    uint64_t round = exchange->round;
    for (int i = first; i < end; i++) {
        const peal_exchange_action *action = &program->action[i];
        if (action->kind == PEAL_EXCHANGE_COPY) {
            peal_copies_run(&program->copy[action->first], action->count,
                            (int64_t)(round % action->slots));
            continue;
        }
        if (action->kind == PEAL_EXCHANGE_FETCH) {
            int64_t next = (int64_t)((round + 1) % action->slots);
            peal_prefetch_write(action->staging + next * action->slot_bytes, action->message_bytes);
            continue;
        }
        const peal_exchange_word *word = &action->word;
        if (round <= word->behind)
            continue;
        uint64_t value = (round - word->behind) * word->quantum;
        if (action->kind == PEAL_EXCHANGE_WRITE) {
            /* pairs with the acquire in is_reached: what was moved before is seen after */
            atomic_store_explicit(word->word, value, memory_order_release);
            if (word->index >= 0)
                peal_exchange_tell(exchange, word, value);
            continue;
        }
        peal_status status =
            is_reached(word, value) ? PEAL_STATUS_OK : wait_word(exchange, word, value);
        if (status)
            return status;
    }
    peal_exchange_flush(exchange);
    return PEAL_STATUS_OK;
}

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
    return run(exchange, program, 0, program->send_count);
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
    peal_status status = run(exchange, program, program->send_count, program->count);
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
    if (!status && exchange->run)
        status = peal_exchange_settle(exchange);
    int from = mark(session);
    if (!status && peal_bound_puts_end(exchange->binding.puts, exchange->deadline_ns))
        status = peal_session_fail(session, PEAL_STATUS_DEADLINE, from);
    peal_session_running(session, false);
    if (!status)
        status = peal_session_barrier(session, PEAL_BARRIER_EXCHANGE, exchange->hash,
                                      (int64_t)exchange->round);
    free_exchange(exchange);
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
