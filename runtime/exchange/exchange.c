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

static peal_status choose_machine(peal_exchange *exchange, const peal_halo_desc *desc)
{
    peal_session *session = exchange->session;
    int processes = session->identity.processes;
    exchange->machine = (peal_machine){
        .ranks = desc->ranks ? desc->ranks : processes,
        .processes = processes,
        .workers = 1,
        .cache_bytes = 1 << 20,
        .node = peal_control_hosts(session->control),
        .apart = peal_transport_sets_apart(desc->transport),
        .network = peal_transport_between_hosts(desc->transport),
    };
    if (exchange->machine.ranks < processes)
        return peal_report(session->diagnostics, PEAL_E_FEWER_RANKS_THAN_PROCESSES,
                           exchange->source, "use fewer processes or more ranks",
                           "%d ranks in %d processes", exchange->machine.ranks, processes);
    for (int i = 0; i < desc->field_count; i++)
        if (desc->field[i].data && exchange->machine.ranks != processes)
            return peal_report(session->diagnostics, PEAL_E_LENT_MEMORY_UNUSABLE, exchange->source,
                               "use as many processes as ranks, or let peal allocate",
                               "field %d is lent memory, but there are %d ranks in %d processes", i,
                               exchange->machine.ranks, processes);
    return PEAL_STATUS_OK;
}

/* The caller's strides, in a copy of the schedule. Only its owner addresses lent memory: neighbours
 * send to staging. */
static peal_status apply_strides(peal_exchange *exchange, const peal_halo_desc *desc)
{
    peal_binding *binding = &exchange->binding;
    size_t count = (size_t)binding->count;
    exchange->schedule = calloc(count + 1, sizeof(*exchange->schedule));
    exchange->array = calloc(count + 1, sizeof(*exchange->array));
    if (!exchange->schedule || !exchange->array)
        return no_memory(exchange->session);
    for (size_t i = 0; i < count; i++) {
        const peal_schedule *schedule = binding->rank[i].schedule;
        size_t bytes = (size_t)schedule->array_count * sizeof(*schedule->array);
        peal_schedule_array *array = exchange->array[i] = malloc(bytes + 1);
        if (!array)
            return no_memory(exchange->session);
        memcpy(array, schedule->array, bytes);
        for (int f = 0; f < desc->field_count; f++)
            for (int k = 1; k < desc->axis_count; k++) {
                int64_t asked = desc->field[f].stride[k], *stride = &array[f].layout.stride[k];
                if (!desc->field[f].data || !asked)
                    continue;
                if (asked < *stride)
                    return peal_report(exchange->session->diagnostics, PEAL_E_INVALID_EXCHANGE,
                                       exchange->source,
                                       "strides count elements, and rows must not overlap",
                                       "field %d of rank %d has stride[%d] = %" PRId64
                                       ", its stored points need %" PRId64,
                                       f, schedule->rank, k, asked, *stride);
                *stride = asked;
            }
        exchange->schedule[i] = *schedule;
        exchange->schedule[i].array = array;
        binding->rank[i].schedule = &exchange->schedule[i];
        binding->backend_rank[i].schedule = &exchange->schedule[i];
    }
    return PEAL_STATUS_OK;
}

static peal_status resolve(peal_exchange *exchange, const peal_halo_desc *desc)
{
    peal_session *session = exchange->session;
    const peal_graph_data *data;
    peal_status status = peal_exchange_build(exchange, desc);
    if (status)
        return status;
    exchange->field_count = desc->field_count;
    peal_graph_report_to(exchange->graph, session->diagnostics);
    status = peal_graph_resolve(exchange->graph, session->diagnostics, &data);
    if (!status)
        status = peal_transport_check(desc->transport, session->diagnostics);
    if (!status)
        status = peal_transport_check_reach(session, desc->transport);
    if (!status)
        status = choose_machine(exchange, desc);
    if (!status)
        status = peal_exchange_choose(exchange, desc);
    if (status)
        return status;
    exchange->data = data;
    exchange->hash = data->hash;
    return PEAL_STATUS_OK;
}

/* Process 0 checks the exchange as a whole. */
static peal_status schedule(peal_exchange *exchange)
{
    peal_session *session = exchange->session;
    peal_mode mode = exchange->backend ? PEAL_MODE_STREAM : PEAL_MODE_SYNC;
    peal_status status = peal_compilation_create(exchange->data, &exchange->machine, mode,
                                                 session->diagnostics, &exchange->compilation);
    if (!status)
        peal_compilation_limit(exchange->compilation, session->deadline_ns);
    if (!status && session->identity.process == 0)
        status = peal_compilation_check(exchange->compilation);
    return status;
}

/* What a process is about to do. */
typedef struct claim {
    uint64_t hash;
    int32_t ranks, accelerated, next_key;
    char transport[16]; /* as asked for */
    peal_device_identity device;
} claim;

static peal_status judge(const peal_exchange *exchange, const claim *all)
{
    peal_diagnostics *diagnostics = exchange->session->diagnostics;
    for (int p = 1; p < exchange->session->identity.processes; p++) {
        if (all[p].hash != all[0].hash || all[p].ranks != all[0].ranks)
            return peal_report(diagnostics, PEAL_E_GRAPHS_DIFFER, exchange->source,
                               "give all processes the same peal_halo_desc (but for where "
                               "data lies, stride and own_...)",
                               "the exchange of process %d differs from that of process 0", p);
        if (all[p].accelerated != all[0].accelerated)
            return peal_report(diagnostics, PEAL_E_CALLS_DIFFER, exchange->source,
                               "lend the same kind of memory in all processes",
                               "the exchange of process %d is %s, that of process 0 %s", p,
                               all[p].accelerated ? "on a GPU" : "on the host",
                               all[0].accelerated ? "on a GPU" : "on the host");
        if (strcmp(all[p].transport, all[0].transport) != 0)
            return peal_report(diagnostics, PEAL_E_CALLS_DIFFER, exchange->source,
                               "give all processes the same options",
                               "the exchange of process %d has another transport than that of "
                               "process 0",
                               p);
        if (strcmp(all[p].device.model, all[0].device.model) != 0)
            return peal_report(diagnostics, PEAL_E_GPUS_DIFFER, exchange->source,
                               "let the job use equal GPUs only (CUDA_VISIBLE_DEVICES)",
                               "process %d has %s, process 0 has %s", p, all[p].device.model,
                               all[0].device.model);
    }
    return PEAL_STATUS_OK;
}

/* Whom the devices belong to: paths to neighbours depend on it. */
static peal_status keep_devices(peal_exchange *exchange, const claim *all)
{
    peal_session *session = exchange->session;
    int processes = session->identity.processes;
    if (!exchange->backend)
        return PEAL_STATUS_OK;
    if (!session->neighbours)
        session->neighbours = calloc((size_t)processes, sizeof(*session->neighbours));
    if (!session->neighbours)
        return no_memory(session);
    for (int p = 0; p < processes; p++) {
        session->neighbours[p] = all[p].device;
        for (int q = 0; q < p; q++)
            if (!strcmp(all[p].device.unique, all[q].device.unique) &&
                peal_session_are_near(session, p, q))
                exchange->machine.shares_device = true;
    }
    return PEAL_STATUS_OK;
}

/* Equal graphs, before anything is allocated. */
static peal_status compare(peal_exchange *exchange)
{
    peal_session *session = exchange->session;
    int processes = session->identity.processes, from = mark(session);
    claim own = {.hash = exchange->hash,
                 .ranks = exchange->machine.ranks,
                 .next_key = session->next_key,
                 .accelerated = exchange->backend != NULL};
    snprintf(own.transport, sizeof(own.transport), "%s",
             exchange->transport ? exchange->transport : "auto");
    if (exchange->backend)
        exchange->backend->identify(session->device, &own.device);
    if (processes == 1)
        return keep_devices(exchange, &own);
    claim *all = calloc((size_t)processes, sizeof(own));
    peal_status status =
        all ? peal_control_allgather(session->control, &own, sizeof(own), all) : no_memory(session);
    if (status) {
        free(all);
        return peal_session_fail(session, status, from);
    }
    for (int p = 0; p < processes; p++)
        if (all[p].next_key > session->next_key)
            session->next_key = all[p].next_key;
    status = judge(exchange, all);
    if (!status)
        status = keep_devices(exchange, all);
    free(all);
    if (!status && !exchange->backend)
        return peal_transport_check_host(exchange->transport, session->diagnostics);
    return status ? status
                  : peal_peer_path_settle(session, exchange->transport, &exchange->machine,
                                          exchange->note, sizeof(exchange->note));
}

static peal_status bind(peal_exchange *exchange, const peal_halo_desc *desc)
{
    peal_session *session = exchange->session;
    int from = mark(session);
    peal_session_running(session, true); /* the others wait for it, however long it takes */
    peal_status status = schedule(exchange);
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
        status = apply_strides(exchange, desc);
    if (!status)
        status = peal_exchange_check_own(exchange, desc);
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
    for (int i = 0; exchange->array && i < exchange->binding.count; i++)
        free(exchange->array[i]);
    free(exchange->array);
    free(exchange->schedule);
    free(exchange->program.action);
    free(exchange->program.copy);
    peal_binding_release(&exchange->binding);
    peal_compilation_destroy(exchange->compilation);
    if (exchange->graph)
        peal_graph_report_to(exchange->graph, NULL);
    peal_graph_destroy(exchange->graph);
    peal_handle_close(exchange);
    peal_handle_free(exchange);
}

static peal_status create(peal_session *session, const peal_halo_desc *desc, peal_source source,
                          peal_exchange **out)
{
    if (peal_session_status(session))
        return peal_session_cause(session);
    peal_exchange *exchange = calloc(1, sizeof(*exchange));
    if (!exchange || !peal_handle_open(exchange, PEAL_HANDLE_EXCHANGE, session)) {
        free(exchange);
        return no_memory(session);
    }
    exchange->session = session;
    exchange->source = source;
    exchange->deadline_ns = session->deadline_ns;
    exchange->lowering = desc->lowering;
    exchange->transport = desc->transport;
    int from = mark(session);
    peal_status words = peal_lowering_check(desc->lowering, session->diagnostics);
    peal_status status = peal_session_agree(session, words ? words : resolve(exchange, desc), from);
    if (!status)
        status = compare(exchange);
    if (!status)
        status = bind(exchange, desc);
    if (status) {
        free_exchange(exchange);
        return status;
    }
    peal_session_running(session, true);
    if (session->log && session->log_level >= PEAL_LOG_INFO) {
        char line[400];
        peal_exchange_describe(exchange, line, sizeof(line));
        fprintf(session->log, "peal: %s\n", line);
    }
    *out = exchange;
    return PEAL_STATUS_OK;
}

peal_status peal_exchange_create_at(peal_session *session, const peal_halo_desc *desc,
                                    peal_source source, peal_exchange **out)
{
    static const char call[] = "peal_exchange_create";
    if (!peal_handle_check(session, PEAL_HANDLE_SESSION, call) ||
        !peal_argument_check(desc, "the descriptor", call) ||
        !peal_argument_check(out, "where the exchange goes", call))
        return PEAL_STATUS_USAGE;
    return peal_session_outcome(session, create(session, desc, source, out));
}

/* ---- run ---- */

static peal_status give_up(peal_exchange *exchange, const peal_exchange_word *word)
{
    peal_session *session = exchange->session;
    int from = mark(session);
    peal_status status = PEAL_STATUS_OK;
    if (!peal_session_status(session))
        status = peal_report(session->diagnostics, PEAL_E_BORDER_LATE, word->channel->source, NULL,
                             "rank %d has waited %g s for %s of rank %d (%s, exchange %" PRIu64 ")",
                             word->rank, (double)exchange->deadline_ns * 1e-9,
                             word->channel->outgoing ? "a credit" : "the border",
                             word->channel->peer, word->channel->edge, exchange->round);
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
static peal_status run(peal_exchange *exchange, int first, int end)
{
    const peal_exchange_program *program = &exchange->program;
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

static peal_status start(peal_exchange *exchange, void *stream)
{
    if (exchange->started || exchange->failure)
        return misuse(exchange, "peal_exchange_start", "was started and not waited for");
    if (stream && !exchange->backend)
        return misuse(exchange, "peal_exchange_start",
                      "is of host memory: the stream must be NULL");
    if (exchange->backend)
        return peal_exchange_send(exchange, stream);
    exchange->round++;
    exchange->started = true;
    return run(exchange, 0, exchange->program.send_count);
}

peal_status peal_exchange_start(peal_exchange *exchange, void *stream)
{
    if (!peal_is_exchange(exchange, __func__))
        return PEAL_STATUS_USAGE;
    return peal_session_outcome(exchange->session, start(exchange, stream));
}

static peal_status wait_for(peal_exchange *exchange)
{
    if (!exchange->started || exchange->failure)
        return misuse(exchange, "peal_exchange_wait", "was not started");
    exchange->started = false;
    if (exchange->backend)
        return peal_exchange_receive(exchange);
    peal_status status = run(exchange, exchange->program.send_count, exchange->program.count);
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
