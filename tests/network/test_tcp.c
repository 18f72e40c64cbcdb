/* The engine of sockets between two ends in one process: every message arrives whole and in order,
 * however little the sockets take at a time; what makes no sense ends the job with numbers; frames
 * of a plan that has ended are skipped. */
#define _GNU_SOURCE
#include "runtime/network/tcp.h"

#include <peal/status.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SIDES = 2, CHANNELS = 6, MOST_SLOTS = 4, LONG_MESSAGE = 1 << 20 };

static const int64_t sizes[CHANNELS] = {0, 8, 24, 4096, 40000, LONG_MESSAGE};
static const int slot_counts[CHANNELS] = {2, 2, 4, 2, 4, 2};

/* A channel from a side to the other one: its words, its slots there and their shadow here. */
typedef struct channel {
    _Atomic uint64_t flag, credit;
    unsigned char *slot, *shadow;
    uint64_t sent, received; /* messages; of the sender, of the receiver */
} channel;

typedef struct pair_plan {
    channel from[SIDES][CHANNELS];
    peal_put out[SIDES][2 * CHANNELS], in[SIDES][2 * CHANNELS];
    peal_pair pair[SIDES];
    peal_network_plan *attached[SIDES];
} pair_plan;

typedef struct end {
    peal_network_site site;
    peal_network *network;
    int socket, other; /* handed out; -1 then */
    _Atomic int failure;
    char message[256];
} end;

typedef struct job {
    end side[SIDES];
} job;

static uint64_t quantum_of(int slots)
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

static void note_failure(void *user, peal_status status, const char *message)
{
    end *self = user;
    snprintf(self->message, sizeof(self->message), "%s", message);
    atomic_store(&self->failure, (int)status);
}

/* buffer: what the sockets take at a time, about; 0: what they like. */
static void open_job(job *j, int buffer)
{
    int pair[SIDES];
    memset(j, 0, sizeof(*j));
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
                                      .fail = note_failure};
        assert_int_equal(peal_network_tcp.open(&e->site, NULL, &e->network), PEAL_STATUS_OK);
    }
}

static void close_job(job *j)
{
    for (int s = 0; s < SIDES; s++)
        peal_network_tcp.close(j->side[s].network);
}

/* Number i: the flag of channel i, number CHANNELS + i: the credit of the other side's channel i.
 */
static void attach_plan(job *j, pair_plan *p, uint32_t number)
{
    memset(p, 0, sizeof(*p));
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
        assert_int_equal(peal_network_tcp.attach(j->side[s].network, number, &p->pair[s], 1, NULL,
                                                 &p->attached[s]),
                         PEAL_STATUS_OK);
    }
}

static void detach_side(pair_plan *p, int side)
{
    if (p->attached[side])
        peal_network_tcp.detach(p->attached[side]);
    p->attached[side] = NULL;
}

static void free_plan(pair_plan *p)
{
    for (int s = 0; s < SIDES; s++) {
        detach_side(p, s);
        for (int i = 0; i < CHANNELS; i++) {
            free(p->from[s][i].slot);
            free(p->from[s][i].shadow);
        }
    }
}

static unsigned char byte_of(int side, int i, uint64_t message, int64_t at)
{
    return (unsigned char)(message * 31 + (uint64_t)(at * 7) + (uint64_t)(side * 100 + i));
}

/* Sends the next message of a channel if there is a slot. */
static bool send_next(pair_plan *p, int side, int i)
{
    channel *c = &p->from[side][i];
    const peal_put *put = &p->out[side][i];
    uint64_t next = c->sent + 1, free_from = (next - (uint64_t)put->slots) * put->quantum;
    uint64_t credit = atomic_load_explicit(&c->credit, memory_order_acquire);
    if (next > (uint64_t)put->slots && credit != free_from && credit != free_from + put->quantum &&
        (credit - free_from) / put->quantum > (uint64_t)put->slots)
        return false;
    unsigned char *slot = peal_put_slot(put, next * put->quantum);
    for (int64_t at = 0; at < put->bytes; at++)
        slot[at] = byte_of(side, i, next, at);
    c->sent = next;
    peal_network_tcp.due(p->attached[side], 0, i, next * put->quantum);
    return true;
}

/* Takes the next message of the other side's channel, if it is there. */
static bool take_next(pair_plan *p, int side, int i)
{
    channel *c = &p->from[1 - side][i];
    const peal_put *put = &p->in[side][i];
    uint64_t next = c->received + 1, flag = atomic_load_explicit(&c->flag, memory_order_acquire);
    if ((flag - next * put->quantum) / put->quantum > (uint64_t)put->slots)
        return false; /* not yet */
    const unsigned char *slot = peal_put_slot(put, next * put->quantum);
    for (int64_t at = 0; at < put->bytes; at++)
        if (slot[at] != byte_of(1 - side, i, next, at))
            fail_msg("side %d, channel %d, message %d, byte %d", 1 - side, i, (int)next, (int)at);
    c->received = next;
    peal_network_tcp.due(p->attached[side], 0, CHANNELS + i, next * put->quantum);
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
    peal_network_tcp.progress(j->side[side].network);
    for (int k = 0; k < CHANNELS; k++)
        done &= p->from[side][k].sent == messages && p->from[1 - side][k].received == messages;
    return done && peal_network_tcp.settle(j->side[side].network);
}

static void both_ways(int buffer, uint64_t messages)
{
    job j;
    pair_plan p;
    unsigned state = (unsigned)buffer + 1;
    bool done[SIDES] = {false};
    open_job(&j, buffer);
    attach_plan(&j, &p, 3);
    while (!done[0] || !done[1]) {
        int side = (int)(next_random(&state) % SIDES);
        done[side] = take_turn(&j, &p, side, messages, &state);
        assert_int_equal(j.side[0].failure, 0);
        assert_int_equal(j.side[1].failure, 0);
    }
    free_plan(&p);
    close_job(&j);
}

static void messages_arrive(void **state)
{
    (void)state;
    both_ways(4096, 7);
    both_ways(0, 20);
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
            peal_network_tcp.sleep(t->j->side[t->side].network, 100000);
    return NULL;
}

/* One that only helps. */
static _Atomic int helping;
static void *help(void *argument)
{
    job *j = argument;
    while (atomic_load(&helping))
        for (int s = 0; s < SIDES; s++)
            peal_network_tcp.progress(j->side[s].network);
    return NULL;
}

static void threads_share_the_work(void **state)
{
    job j;
    pair_plan p;
    pthread_t thread[SIDES], helper;
    thread_side side[SIDES];
    (void)state;
    open_job(&j, 8192);
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

/* ---- plans ---- */

static void turn_until_taken(job *j, pair_plan *p, int side, int i)
{
    for (int turn = 0; turn < 100000; turn++) {
        peal_network_tcp.progress(j->side[0].network);
        peal_network_tcp.progress(j->side[1].network);
        if (take_next(p, side, i))
            return;
    }
    fail_msg("channel %d: nothing has come", i);
}

/* Two plans alive at a time; then one ends at the receiver while its frames are on their way, once
 * amid a frame. */
static void late_frames_are_skipped(void **state)
{
    (void)state;
    for (int amid = 0; amid < 2; amid++) {
        job j;
        pair_plan first, second;
        open_job(&j, 0);
        attach_plan(&j, &first, 7);
        attach_plan(&j, &second, 8);
        assert_true(send_next(&first, 0, 3) && send_next(&second, 0, 3));
        turn_until_taken(&j, &second, 1, 3);
        turn_until_taken(&j, &first, 1, 3);
        assert_true(send_next(&first, 0, CHANNELS - 1)); /* longer than a socket takes at once */
        if (amid)
            peal_network_tcp.progress(j.side[1].network);
        assert_true(send_next(&second, 0, 4) && send_next(&first, 0, 1));
        detach_side(&first, 1);
        memset(first.from[0][CHANNELS - 1].slot, 0x55, 2 * LONG_MESSAGE);
        turn_until_taken(&j, &second, 1, 4);
        for (int64_t at = 0; at < 2 * LONG_MESSAGE; at++)
            assert_int_equal(first.from[0][CHANNELS - 1].slot[at], 0x55);
        assert_int_equal(j.side[0].failure, 0);
        assert_int_equal(j.side[1].failure, 0);
        free_plan(&first);
        free_plan(&second);
        close_job(&j);
    }
}

/* The ring holds what the plans that there are may need, however many there have been. */
static void rooms_do_not_add_up(void **state)
{
    job j;
    pair_plan p, other;
    size_t room = 0;
    (void)state;
    open_job(&j, 0);
    for (uint32_t number = 1; number <= 10; number += 2) {
        attach_plan(&j, &p, number);
        attach_plan(&j, &other, number + 1);
        size_t now = j.side[0].network->link[1]->queue.room;
        assert_true(!room || now == room);
        room = now;
        free_plan(&p);
        free_plan(&other);
    }
    close_job(&j);
}

/* A plan that is given up with frames half sent: the stream carries nothing any more. */
static void what_is_half_sent_ends_the_stream(void **state)
{
    job j;
    pair_plan p;
    (void)state;
    open_job(&j, 4096);
    attach_plan(&j, &p, 1);
    assert_true(send_next(&p, 0, CHANNELS - 1));
    assert_false(peal_network_tcp.settle(j.side[0].network));
    detach_side(&p, 0);
    assert_true(peal_network_tcp.settle(j.side[0].network));
    free_plan(&p);
    close_job(&j);
}

/* ---- what makes no sense ---- */

static void expect_failure(job *j, peal_status status, const char *text)
{
    for (int turn = 0; turn < 1000 && !j->side[1].failure; turn++)
        peal_network_tcp.progress(j->side[1].network);
    assert_int_equal(j->side[1].failure, status);
    if (!strstr(j->side[1].message, text))
        fail_msg("\"%s\" does not say \"%s\"", j->side[1].message, text);
}

static void bad_frames_are_told(void **state)
{
    const uint64_t q = quantum_of(2);
    const struct {
        peal_put_frame frame;
        const char *text;
    } cases[] = {
        {{1, 2 * CHANNELS, q, 0}, "(plan 1, put 12) has the number 12, expected 12"},
        {{1, 1, q, 9}, "has a size of 9, expected 8"},
        {{1, 0, 0, 0}, "has the value 0"},
        {{1, 0, 2 * q, 0}, "has the value"},
        {{1, 0, q + 1, 0}, "has the value"},
        {{1, CHANNELS, 4 * q, 0}, "has the value"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        job j;
        pair_plan p;
        open_job(&j, 0);
        attach_plan(&j, &p, 1);
        assert_int_equal(send(j.side[0].other, &cases[i].frame, sizeof(cases[i].frame), 0),
                         sizeof(cases[i].frame));
        expect_failure(&j, PEAL_STATUS_INTERNAL, cases[i].text);
        free_plan(&p);
        close_job(&j);
    }
}

/* Who raises a word by more than there are slots, or by a part of a message. */
static void a_message_without_a_slot_is_told(void **state)
{
    const uint64_t wrong[] = {5 * quantum_of(2), quantum_of(2) + 1, 0 - quantum_of(2)};
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        job j;
        pair_plan p;
        open_job(&j, 0);
        attach_plan(&j, &p, 1);
        peal_network_tcp.due(p.attached[0], 0, 1, wrong[i]);
        assert_int_equal(j.side[0].failure, PEAL_STATUS_INTERNAL);
        free_plan(&p);
        close_job(&j);
    }
}

static void a_closed_stream_is_told(void **state)
{
    job j;
    pair_plan p;
    (void)state;
    open_job(&j, 0);
    attach_plan(&j, &p, 1);
    assert_int_equal(shutdown(j.side[0].other, SHUT_RDWR), 0);
    expect_failure(&j, PEAL_STATUS_PEER_LOST, "process 0 has ended");
    assert_true(send_next(&p, 1, 0)); /* goes nowhere, but no harm */
    assert_true(peal_network_tcp.settle(j.side[1].network));
    free_plan(&p);
    close_job(&j);
}

/* A copy of the process that was forked closes its ends, and the streams go on. */
static void a_fork_leaves_the_streams(void **state)
{
    job j;
    pair_plan p;
    int status = 0;
    (void)state;
    open_job(&j, 0);
    attach_plan(&j, &p, 1);
    pid_t child = fork();
    if (child == 0) {
        peal_network_tcp.disown(j.side[0].network);
        peal_network_tcp.disown(j.side[1].network);
        peal_network_tcp.progress(j.side[0].network);
        _exit(fcntl(j.side[0].other, F_GETFD) >= 0 || fcntl(j.side[1].other, F_GETFD) >= 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(send_next(&p, 0, 4));
    turn_until_taken(&j, &p, 1, 4);
    free_plan(&p);
    close_job(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_arrive),
        cmocka_unit_test(threads_share_the_work),
        cmocka_unit_test(late_frames_are_skipped),
        cmocka_unit_test(rooms_do_not_add_up),
        cmocka_unit_test(what_is_half_sent_ends_the_stream),
        cmocka_unit_test(bad_frames_are_told),
        cmocka_unit_test(a_message_without_a_slot_is_told),
        cmocka_unit_test(a_closed_stream_is_told),
        cmocka_unit_test(a_fork_leaves_the_streams),
    };
    alarm(120); /* instead of a hang */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
