/* Two ends of a network in one process: channels with a little of everything, and bytes that tell
 * which message they are of. */
#define _GNU_SOURCE
#include "tests/network/ends.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { MOST_S = 20 /* until what must come has come, on a machine with other work */ };

static const int64_t sizes[CHANNELS] = {0, 8, 24, 4096, 40000, LONG_MESSAGE};
static const int slot_counts[CHANNELS] = {2, 2, 4, 2, 4, 2};

uint64_t quantum_of(int slots)
{
    uint64_t period = 2;
    while (period <= 2u * ((unsigned)slots + 1))
        period *= 2;
    return UINT64_MAX / period + 1;
}

static peal_status connect_end(void *user, int process, int *stream)
{
    end *self = user;
    assert_int_equal(process, 1 - self->site.process);
    *stream = self->socket;
    self->socket = -1;
    return PEAL_STATUS_OK;
}

static peal_status read_stream(void *user, int process, int stream, void *data, size_t bytes)
{
    (void)user;
    (void)process;
    for (size_t have = 0; have < bytes;) {
        ssize_t now = recv(stream, (char *)data + have, bytes - have, MSG_DONTWAIT);
        if (now == 0)
            return PEAL_STATUS_PEER_LOST;
        have += now > 0 ? (size_t)now : 0;
        if (now < 0)
            poll(&(struct pollfd){stream, POLLIN, 0}, 1, 100);
    }
    return PEAL_STATUS_OK;
}

static void note_failure(void *user, peal_status status, const char *message)
{
    end *self = user;
    snprintf(self->message, sizeof(self->message), "%s", message);
    atomic_store(&self->failure, (int)status);
}

void open_job(job *j, const peal_network_ops *engine, int buffer)
{
    int pair[SIDES];
    memset(j, 0, sizeof(*j));
    j->engine = engine;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    for (int s = 0; s < SIDES; s++) {
        end *e = &j->side[s];
        if (buffer)
            assert_int_equal(setsockopt(pair[s], SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer)),
                             0);
        e->socket = e->other = pair[s];
        e->site = (peal_network_site){.size = sizeof(e->site),
                                      .process = s,
                                      .processes = SIDES,
                                      .user = e,
                                      .connect = connect_end,
                                      .read = read_stream,
                                      .fail = note_failure};
        assert_int_equal(j->engine->open(&e->site, NULL, &e->network), PEAL_STATUS_OK);
    }
}

void close_job(job *j)
{
    for (int s = 0; s < SIDES; s++)
        j->engine->close(j->side[s].network);
}

typedef struct attaching {
    job *j;
    pair_plan *p;
    int side;
    uint32_t number;
} attaching;

static void *attach_side(void *argument)
{
    const attaching *a = argument;
    if (a->j->engine->attach(a->j->side[a->side].network, a->number, &a->p->pair[a->side], 1, NULL,
                             &a->p->attached[a->side]))
        a->p->attached[a->side] = NULL;
    return NULL;
}

void begin_plan(job *j, pair_plan *p, uint32_t number)
{
    memset(p, 0, sizeof(*p));
    p->engine = j->engine;
    for (int s = 0; s < SIDES; s++)
        for (int i = 0; i < CHANNELS; i++) {
            channel *c = &p->from[s][i];
            size_t bytes = (size_t)sizes[i] * (size_t)slot_counts[i] + 8;
            c->slot = calloc(1, bytes);
            c->shadow = calloc(1, bytes);
            assert_true(c->slot && c->shadow);
            peal_put put = {.rank = 1 - s,
                            .word = i,
                            .slot = sizes[i] ? 0 : -1,
                            .slot_bytes = sizes[i],
                            .bytes = sizes[i],
                            .slots = slot_counts[i],
                            .quantum = quantum_of(slot_counts[i])};
            peal_put credit = {.rank = s,
                               .word = CHANNELS + i,
                               .credit = true,
                               .slot = -1,
                               .slots = slot_counts[i],
                               .quantum = quantum_of(slot_counts[i])};
            p->out[s][i] = p->in[1 - s][i] = put;
            p->out[s][i].first_slot = c->shadow;
            p->in[1 - s][i].first_slot = c->slot;
            p->in[1 - s][i].at = &c->flag;
            p->out[1 - s][CHANNELS + i] = p->in[s][CHANNELS + i] = credit;
            p->in[s][CHANNELS + i].at = &c->credit;
        }
    for (int s = 0; s < SIDES; s++) {
        p->pair[s] = (peal_pair){.process = 1 - s,
                                 .out = p->out[s],
                                 .in = p->in[s],
                                 .out_count = 2 * CHANNELS,
                                 .in_count = 2 * CHANNELS};
    }
    attaching other = {j, p, 1, number};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, attach_side, &other), 0);
    attach_side(&(attaching){j, p, 0, number});
    pthread_join(thread, NULL);
}

void attach_plan(job *j, pair_plan *p, uint32_t number)
{
    begin_plan(j, p, number);
    assert_true(p->attached[0] && p->attached[1]);
}

void detach_side(pair_plan *p, int side)
{
    if (p->attached[side])
        p->engine->detach(p->attached[side]);
    p->attached[side] = NULL;
}

void free_plan(pair_plan *p)
{
    for (int s = 0; s < SIDES; s++)
        detach_side(p, s);
    for (int s = 0; s < SIDES; s++) {
        for (int i = 0; i < CHANNELS; i++) {
            free(p->from[s][i].target);
            free(p->from[s][i].slot);
            free(p->from[s][i].shadow);
        }
    }
}

static unsigned char byte_of(int side, int i, uint64_t message, int64_t at)
{
    return (unsigned char)(message * 31 + (uint64_t)(at * 7) + (uint64_t)(side * 100 + i));
}

bool send_next(pair_plan *p, int side, int i)
{
    channel *c = &p->from[side][i];
    const peal_put *put = &p->out[side][i];
    uint64_t next = c->sent + 1, free_from = (next - (uint64_t)put->slots) * put->quantum;
    uint64_t credit = atomic_load_explicit(&c->credit, memory_order_acquire);
    if (next > (uint64_t)put->slots && credit != free_from && credit != free_from + put->quantum &&
        (credit - free_from) / put->quantum > (uint64_t)put->slots)
        return false;
    bool lends = p->engine->due_from && put->bytes >= 8192 && next % 2; /* as backends do */
    unsigned char *data =
        lends ? malloc((size_t)put->bytes) : peal_put_slot(put, next * put->quantum);
    for (int64_t at = 0; at < put->bytes; at++)
        data[at] = byte_of(side, i, next, at);
    c->sent = next;
    if (!lends) {
        p->engine->due(p->attached[side], 0, i, next * put->quantum);
        return true;
    }
    p->engine->due_from(p->attached[side], 0, i, next * put->quantum, data);
    memset(data, 0xee, (size_t)put->bytes); /* it is its owner's again */
    free(data);
    return true;
}

static void expect_next(pair_plan *p, int side, int i)
{
    channel *c = &p->from[1 - side][i];
    const peal_put *put = &p->in[side][i];
    if (!p->engine->expect || !put->bytes || c->target)
        return;
    c->target = malloc((size_t)put->bytes);
    c->is_expected =
        p->engine->expect(p->attached[side], 0, i, (c->received + 1) * put->quantum, c->target);
    if (c->is_expected)
        return;
    free(c->target);
    c->target = NULL;
}

static void withdraw_next(pair_plan *p, int side, int i)
{
    channel *c = &p->from[1 - side][i];
    if (!c->is_expected)
        return;
    c->is_expected = false;
    c->has_landed = p->engine->withdraw(p->attached[side], 0, i);
    if (c->has_landed)
        return;
    memset(c->target, 0xee, (size_t)p->in[side][i].bytes);
    free(c->target);
    c->target = NULL;
}

bool take_next(pair_plan *p, int side, int i)
{
    channel *c = &p->from[1 - side][i];
    const peal_put *put = &p->in[side][i];
    uint64_t next = c->received + 1, flag = atomic_load_explicit(&c->flag, memory_order_acquire);
    if ((flag - next * put->quantum) / put->quantum > (uint64_t)put->slots)
        return false; /* not yet */
    withdraw_next(p, side, i);
    const unsigned char *data = c->has_landed ? c->target : peal_put_slot(put, next * put->quantum);
    c->landed += c->has_landed;
    c->packed += !c->has_landed;
    for (int64_t at = 0; at < put->bytes; at++)
        if (data[at] != byte_of(1 - side, i, next, at))
            fail_msg("side %d, channel %d, message %d, byte %d", 1 - side, i, (int)next, (int)at);
    free(c->target);
    c->target = NULL;
    c->has_landed = false;
    c->received = next;
    p->engine->due(p->attached[side], 0, CHANNELS + i, next * put->quantum);
    return true;
}

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 16;
}

/* A side's turn: something at random. True: all of its messages are sent and received. */
static bool take_turn(job *j, pair_plan *p, int side, uint64_t messages, unsigned *state)
{
    int i = (int)(next_random(state) % CHANNELS);
    bool done = true;
    if (next_random(state) % 2 && p->from[side][i].sent < messages)
        send_next(p, side, i);
    if (next_random(state) % 2)
        take_next(p, side, i);
    if (next_random(state) % 2)
        expect_next(p, side, (int)(next_random(state) % CHANNELS));
    if (next_random(state) % 8 == 0)
        withdraw_next(p, side, (int)(next_random(state) % CHANNELS));
    j->engine->progress(j->side[side].network);
    for (int k = 0; k < CHANNELS; k++)
        done &= p->from[side][k].sent == messages && p->from[1 - side][k].received == messages;
    return done && j->engine->settle(j->side[side].network);
}

void both_ways(const peal_network_ops *engine, int buffer, uint64_t messages)
{
    job j;
    pair_plan p;
    unsigned state = (unsigned)buffer + 1;
    bool done[SIDES] = {false};
    open_job(&j, engine, buffer);
    attach_plan(&j, &p, 3);
    while (!done[0] || !done[1]) {
        int side = (int)(next_random(&state) % SIDES);
        done[side] = take_turn(&j, &p, side, messages, &state);
        assert_int_equal(j.side[0].failure, 0);
        assert_int_equal(j.side[1].failure, 0);
    }
    const channel *longest = &p.from[0][CHANNELS - 1];
    assert_true(!engine->expect || messages < 20 || (longest->landed && longest->packed));
    free_plan(&p);
    close_job(&j);
}

/* ---- threads ---- */

typedef struct thread_side {
    job *j;
    pair_plan *p;
    int side;
} thread_side;

static void *run_side(void *argument)
{
    const thread_side *t = argument;
    unsigned state = (unsigned)t->side + 77;
    while (!take_turn(t->j, t->p, t->side, 15, &state) &&
           !atomic_load(&t->j->side[t->side].failure))
        if (next_random(&state) % 16 == 0)
            t->j->engine->sleep(t->j->side[t->side].network, 100000);
    return NULL;
}

/* One that only helps. */
static _Atomic int helping;
static void *help(void *argument)
{
    job *j = argument;
    while (atomic_load(&helping))
        for (int s = 0; s < SIDES; s++)
            j->engine->progress(j->side[s].network);
    return NULL;
}

void by_threads(const peal_network_ops *engine, int buffer)
{
    job j;
    pair_plan p;
    pthread_t thread[SIDES], helper;
    thread_side side[SIDES];
    open_job(&j, engine, buffer);
    attach_plan(&j, &p, 1);
    atomic_store(&helping, 1);
    assert_int_equal(pthread_create(&helper, NULL, help, &j), 0);
    for (int s = 0; s < SIDES; s++) {
        side[s] = (thread_side){&j, &p, s};
        assert_int_equal(pthread_create(&thread[s], NULL, run_side, &side[s]), 0);
    }
    for (int s = 0; s < SIDES; s++)
        pthread_join(thread[s], NULL);
    atomic_store(&helping, 0);
    pthread_join(helper, NULL);
    assert_int_equal(j.side[0].failure, 0);
    assert_int_equal(j.side[1].failure, 0);
    free_plan(&p);
    close_job(&j);
}

void turn_until_taken(job *j, pair_plan *p, int side, int i)
{
    const time_t begin = time(NULL);
    for (int turn = 0; turn < 100000 || time(NULL) < begin + MOST_S; turn++) {
        j->engine->progress(j->side[0].network);
        j->engine->progress(j->side[1].network);
        if (take_next(p, side, i))
            return;
        if (turn % 16 == 0)
            sched_yield(); /* an adapter of software needs a core, too */
    }
    fail_msg("channel %d: nothing has come", i);
}

void expect_failure(job *j, peal_status status, const char *text)
{
    for (int turn = 0; turn < 20000 && !j->side[1].failure; turn++)
        for (int s = 0; s < SIDES; s++)
            j->engine->progress(j->side[s].network);
    assert_int_equal(j->side[1].failure, status);
    if (!strstr(j->side[1].message, text))
        fail_msg("\"%s\" does not say \"%s\"", j->side[1].message, text);
}

void without_slots(const peal_network_ops *engine)
{
    const uint64_t wrong[] = {5 * quantum_of(2), quantum_of(2) + 1, 0 - quantum_of(2)};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        job j;
        pair_plan p;
        open_job(&j, engine, 0);
        attach_plan(&j, &p, 1);
        engine->due(p.attached[0], 0, 1, wrong[i]);
        assert_int_equal(j.side[0].failure, PEAL_STATUS_INTERNAL);
        free_plan(&p);
        close_job(&j);
    }
}
