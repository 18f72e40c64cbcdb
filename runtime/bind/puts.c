/* Gives puts their addresses and attaches them to the session's network. */
#include "runtime/bind/puts.h"
#include "base/arena.h"
#include "runtime/bind/binding.h"
#include "runtime/bind/poster.h"
#include "runtime/bind/probe.h"
#include "runtime/session/network.h"

#include <stdlib.h>

/* Where a channel's flag or credit stands. */
typedef struct put_place {
    int pair, put;
} put_place;

struct peal_bound_puts {
    peal_network_hook hook;
    peal_session *session;
    peal_session_network *network;
    peal_arena *arena;
    peal_pair *pair;
    int count;
    put_place **place; /* by rank here: by channel, flag and credit */
    peal_network_plan *plan;
    peal_poster *poster; /* NULL: the backend tells what it stores */
    bool rings;          /* the backend does: nothing is to be posted */
    uint32_t number;     /* of the plan */
    const char **edge;   /* by pair: one that goes between them */
    peal_probe *probe;   /* NULL: nothing is to be tried (any more) */
};

static bool has_puts(const peal_binding *binding, int process)
{
    for (int i = 0; i < binding->count; i++) {
        const peal_schedule *schedule = binding->rank[i].schedule;
        for (int k = 0; k < schedule->channel_count; k++)
            if (peal_transport_is_network(schedule->channel[k].transport) &&
                schedule->peer[schedule->channel[k].peer_index].process == process)
                return true;
    }
    return false;
}

/* What goes out is packed into the shadow of the receiver's segment; what comes in lands here. */
static void bind_outgoing(peal_bound_puts *puts, const peal_binding *binding, int pair, int number,
                          peal_put *put)
{
    const peal_bound_rank *rank = &binding->rank[put->index];
    const peal_channel *channel = &rank->schedule->channel[put->channel];
    unsigned char *shadow = rank->peer_words[channel->peer_index];
    put->at = (_Atomic uint64_t *)(void *)(shadow + put->word);
    put->first = peal_flag_value(channel, binding->first_message);
    atomic_store(put->at, put->first);
    if (put->bytes)
        put->first_slot = shadow + put->slot;
    puts->place[put->index][2 * put->channel + put->credit] = (put_place){pair, number};
}

static void bind_incoming(peal_bound_puts *puts, const peal_binding *binding, int pair, int number,
                          peal_put *put)
{
    const peal_bound_rank *rank = &binding->rank[put->index];
    unsigned char *segment = rank->words;
    put->first = peal_flag_value(&rank->schedule->channel[put->channel], binding->first_message);
    put->at = (_Atomic uint64_t *)(void *)(segment + put->word);
    if (put->bytes)
        put->first_slot = segment + put->slot;
    if (!put->credit) /* that of its channel is an outgoing put's */
        puts->place[put->index][2 * put->channel] = (put_place){pair, number};
}

static void bind_pair(peal_bound_puts *puts, const peal_binding *binding,
                      const peal_schedule *const *schedule, int process)
{
    peal_pair *pair = &puts->pair[puts->count];
    peal_list_puts(schedule, binding->count, process, puts->arena, pair);
    peal_put *out = PEAL_ARENA_ARRAY(puts->arena, peal_put, pair->out_count);
    peal_put *in = PEAL_ARENA_ARRAY(puts->arena, peal_put, pair->in_count);
    for (int i = 0; i < pair->out_count; i++) {
        out[i] = pair->out[i];
        bind_outgoing(puts, binding, puts->count, i, &out[i]);
    }
    for (int i = 0; i < pair->in_count; i++) {
        in[i] = pair->in[i];
        bind_incoming(puts, binding, puts->count, i, &in[i]);
    }
    pair->out = out;
    pair->in = in;
    const peal_put *any = pair->in_count ? in : out;
    puts->edge[puts->count++] = binding->rank[any->index].schedule->channel[any->channel].edge;
}

static peal_status no_memory(const peal_binding *binding)
{
    return peal_report(binding->session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                       "no memory for the messages of a plan between hosts");
}

static peal_status bind_all(peal_bound_puts *puts, const peal_binding *binding)
{
    PEAL_ARENA_GUARD(puts->arena, return no_memory(binding));
    const peal_schedule **schedule =
        PEAL_ARENA_ARRAY(puts->arena, const peal_schedule *, binding->count);
    puts->pair = PEAL_ARENA_ARRAY(puts->arena, peal_pair, binding->processes);
    puts->edge = PEAL_ARENA_ARRAY(puts->arena, const char *, binding->processes);
    puts->place = PEAL_ARENA_ARRAY(puts->arena, put_place *, binding->count);
    for (int i = 0; i < binding->count; i++) {
        schedule[i] = binding->rank[i].schedule;
        puts->place[i] =
            PEAL_ARENA_ARRAY(puts->arena, put_place, 2 * (size_t)schedule[i]->channel_count);
    }
    for (int p = 0; p < binding->processes; p++)
        if (has_puts(binding, p))
            bind_pair(puts, binding, schedule, p);
    return PEAL_STATUS_OK;
}

static void due(void *user, int index, int channel, bool credit, uint64_t value)
{
    const peal_bound_puts *puts = user;
    put_place place = puts->place[index][2 * channel + credit];
    puts->network->engine->due(puts->plan, place.pair, place.put, value);
}

static void due_from(void *user, int index, int channel, uint64_t value, const void *from)
{
    const peal_bound_puts *puts = user;
    put_place place = puts->place[index][2 * channel];
    puts->network->engine->due_from(puts->plan, place.pair, place.put, value, from);
}

static bool expect(void *user, int index, int channel, uint64_t value, void *to)
{
    const peal_bound_puts *puts = user;
    put_place place = puts->place[index][2 * channel];
    return puts->network->engine->expect(puts->plan, place.pair, place.put, value, to);
}

static bool withdraw(void *user, int index, int channel)
{
    const peal_bound_puts *puts = user;
    put_place place = puts->place[index][2 * channel];
    return puts->network->engine->withdraw(puts->plan, place.pair, place.put);
}

static void flush(void *user)
{
    const peal_bound_puts *puts = user;
    if (puts->network->engine->flush)
        puts->network->engine->flush(puts->plan);
}

static void progress(void *user)
{
    const peal_bound_puts *puts = user;
    peal_session_turn(puts->session);
}

static void sleep_until_some(void *user, int64_t ns)
{
    const peal_bound_puts *puts = user;
    puts->network->engine->sleep(puts->network->opened, ns);
}

static bool settle(void *user)
{
    const peal_bound_puts *puts = user;
    peal_session_turn(puts->session);
    return puts->network->engine->settle(puts->network->opened);
}

static bool others_run(void *user)
{
    const peal_bound_puts *puts = user;
    return peal_session_others_run(puts->session);
}

/* ---- what the backend rings for ---- */

static void take_over(void *user)
{
    peal_bound_puts *puts = user;
    puts->rings = true;
}

static peal_status doorbell(void *user, int index, int channel, bool credit,
                            peal_network_doorbell *out)
{
    const peal_bound_puts *puts = user;
    put_place place = puts->place[index][2 * channel + credit];
    return puts->network->engine->doorbell(puts->plan, place.pair, place.put, out);
}

static bool ahead(void *user, int index, int channel, bool credit, uint64_t message)
{
    const peal_bound_puts *puts = user;
    put_place place = puts->place[index][2 * channel + credit];
    return puts->network->engine->ahead(puts->plan, place.pair, place.put, message);
}

static int stores(void *user, int index, int channel, bool credit, uint64_t message,
                  peal_network_store out[PEAL_NETWORK_STORES])
{
    const peal_bound_puts *puts = user;
    put_place place = puts->place[index][2 * channel + credit];
    return puts->network->engine->stores(puts->plan, place.pair, place.put, message, out);
}

static void silence(void *user)
{
    const peal_bound_puts *puts = user;
    puts->network->engine->silence(puts->plan);
}

/* ---- all of it ---- */

static void fill_hook(peal_bound_puts *puts)
{
    const peal_network_ops *engine = puts->network->engine;
    if (engine->due_from)
        puts->hook.due_from = due_from;
    if (engine->expect) {
        puts->hook.expect = expect;
        puts->hook.withdraw = withdraw;
    }
    if (engine->doorbell) {
        puts->hook.take_over = take_over;
        puts->hook.doorbell = doorbell;
        puts->hook.ahead = ahead;
        puts->hook.stores = stores;
        puts->hook.silence = silence;
    }
}

peal_status peal_bound_puts_create(const peal_binding *binding, peal_transport_kind kind,
                                   peal_bound_puts **out)
{
    peal_bound_puts *puts = calloc(1, sizeof(*puts));
    peal_arena *arena = peal_arena_create();
    if (!puts || !arena) {
        free(puts);
        peal_arena_destroy(arena);
        return no_memory(binding);
    }
    *puts = (peal_bound_puts){.session = binding->session,
                              .arena = arena,
                              .number = (uint32_t)binding->key};
    puts->hook = (peal_network_hook){.size = sizeof(puts->hook),
                                     .user = puts,
                                     .due = due,
                                     .flush = flush,
                                     .progress = progress,
                                     .sleep = sleep_until_some,
                                     .settle = settle,
                                     .others_run = others_run};
    peal_status status = bind_all(puts, binding);
    if (!status)
        status = peal_session_open_network(binding->session, kind, &puts->network);
    if (!status)
        fill_hook(puts);
    if (!status) /* the number is the same in all processes */
        status =
            puts->network->engine->attach(puts->network->opened, puts->number, puts->pair,
                                          puts->count, binding->session->diagnostics, &puts->plan);
    if (!status && binding->space.memory) {
        puts->poster = peal_poster_create(puts->network, puts->plan, puts->pair, puts->count);
        status = puts->poster ? PEAL_STATUS_OK : no_memory(binding);
    }
    if (status)
        peal_bound_puts_destroy(puts);
    else
        *out = puts;
    return status;
}

peal_status peal_bound_puts_begin_try(peal_bound_puts *puts)
{
    if (!puts)
        return PEAL_STATUS_OK;
    /* plans are numbered from 0 */
    return peal_probe_create(puts->network, ~puts->number, puts->pair, puts->edge, puts->count,
                             &puts->probe);
}

peal_status peal_bound_puts_try(peal_bound_puts *puts, int64_t deadline_ns)
{
    if (!puts)
        return PEAL_STATUS_OK;
    int64_t all_ns = puts->session->deadline_ns; /* so long those wait that have nothing to try */
    return peal_probe_run(puts->probe, (deadline_ns < all_ns ? deadline_ns : all_ns) / 5 * 4);
}

void peal_bound_puts_end_try(peal_bound_puts *puts)
{
    if (!puts)
        return;
    peal_probe_destroy(puts->probe);
    puts->probe = NULL;
}

peal_status peal_bound_puts_start(peal_bound_puts *puts)
{
    return puts && !puts->rings ? peal_poster_start(puts->poster) : PEAL_STATUS_OK;
}

peal_status peal_bound_puts_end(peal_bound_puts *puts, int64_t deadline_ns)
{
    if (!puts || !puts->poster)
        return PEAL_STATUS_OK;
    return puts->rings ? peal_poster_settle(puts->poster, deadline_ns)
                       : peal_poster_end(puts->poster, deadline_ns);
}

bool peal_bound_puts_are_rung_for(const peal_bound_puts *puts)
{
    return puts && puts->rings;
}

double peal_bound_puts_seconds(const peal_bound_puts *puts)
{
    return puts ? peal_poster_seconds(puts->poster) : 0;
}

void peal_bound_puts_destroy(peal_bound_puts *puts)
{
    if (!puts)
        return;
    peal_poster_destroy(puts->poster);
    peal_probe_destroy(puts->probe);
    if (puts->plan)
        puts->network->engine->detach(puts->plan);
    peal_arena_destroy(puts->arena);
    free(puts);
}

static uint64_t directed(uint64_t hash, int from, int to)
{
    uint64_t way = ((uint64_t)(uint32_t)from << 32 | (uint32_t)to) + 1;
    hash = (hash ^ way * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xd6e8feb86659fd93);
    return hash ^ hash >> 32;
}

void peal_bound_puts_sum(const peal_bound_puts *puts, int process, uint64_t *sent, uint64_t *taken)
{
    *sent = *taken = 0;
    for (int i = 0; puts && i < puts->count; i++) {
        const peal_pair *pair = &puts->pair[i];
        *sent ^= directed(pair->out_hash, process, pair->process);
        *taken ^= directed(pair->in_hash, pair->process, process);
    }
}

const peal_network_hook *peal_bound_puts_hook(const peal_bound_puts *puts)
{
    return puts ? &puts->hook : NULL;
}
