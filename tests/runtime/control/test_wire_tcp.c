/* Calls over TCP on the loopback: which of several addresses is taken, who is turned away, and that
 * each way to fail ends in time. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "runtime/control/wire_tcp.h"

#include <dlfcn.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { SECRET = 1, OTHER_SECRET = 2 };
static const int64_t long_ns = INT64_C(20000000000);
static const peal_caller caller = {PEAL_HELLO_STREAM, 3, 70};

/* What somebody who listens does with those who call, until one has got through. */
typedef enum deed {
    ANSWERS,
    ANSWERS_LATE,
    ANSWERS_THE_THIRD,
    SAYS_NOTHING,
    CLOSES,
    SPEAKS_OTHERWISE
} deed;

typedef struct host {
    deed does;
    int secret, listener, socket, over;
    int calls;
    peal_address address;
    peal_handshake heard;
    pthread_t thread;
} host;

static void receive(int socket, peal_handshake *h)
{
    char in[PEAL_CALL_BYTES];
    size_t needs;
    while ((needs = peal_handshake_needs(h)) > 0) {
        ssize_t got = recv(socket, in, needs, 0); /* it blocks: see accept() below */
        if (got <= 0)
            return;
        peal_handshake_take(h, in, (size_t)got);
    }
}

static void hang_up(host *self)
{
    close(self->socket);
    self->socket = -1;
}

/* Whether it has kept the connection. */
static bool serve_one(host *self)
{
    unsigned char secret[PEAL_SECRET_BYTES], nonce[PEAL_NONCE_BYTES];
    char out[PEAL_ANSWER_BYTES + 5];
    size_t bytes;
    self->socket = accept(self->listener, NULL, NULL);
    self->calls++;
    if (self->does == CLOSES || (self->does == ANSWERS_THE_THIRD && self->calls < 3)) {
        hang_up(self);
        return false;
    }
    if (self->does == SPEAKS_OTHERWISE)
        send(self->socket, "220 mail.example.org ESMTP; pipelining, if you please", 53, 0);
    if (self->does == SPEAKS_OTHERWISE || self->does == SAYS_NOTHING)
        return true;
    memset(secret, self->secret, sizeof(secret));
    peal_random_bytes(nonce, sizeof(nonce));
    peal_handshake_called(&self->heard, secret, nonce);
    const void *said = peal_handshake_say(&self->heard, &bytes);
    send(self->socket, said, bytes, 0);
    receive(self->socket, &self->heard);
    if (self->does == ANSWERS_LATE)
        poll(NULL, 0, 1500);
    said = peal_handshake_say(&self->heard, &bytes);
    if (said) { /* with what comes behind it, at once */
        memcpy(out, said, bytes);
        memcpy(out + bytes, "hello", 5);
        send(self->socket, out, bytes + 5, 0);
    } else
        hang_up(self);
    return said;
}

static void *serve(void *argument)
{
    host *self = argument;
    struct pollfd event[2] = {{self->listener, POLLIN, 0}, {self->over, POLLIN, 0}};
    while (poll(event, 2, 20000) > 0 && !event[1].revents && !serve_one(self)) {
    }
    return NULL;
}

static void address_on_loopback(peal_address *address, const unsigned char port[2])
{
    *address = (peal_address){.version = 4, .bytes = {127, 0, 0, 1}};
    memcpy(address->port, port, 2);
}

static void begin(host *self, deed does, int secret)
{
    unsigned char port[2];
    *self = (host){.does = does, .secret = secret, .socket = -1};
    self->listener = peal_wire_listen_tcp(NULL, NULL, port);
    self->over = eventfd(0, EFD_CLOEXEC);
    assert_true(self->listener >= 0 && self->over >= 0);
    address_on_loopback(&self->address, port);
    assert_int_equal(pthread_create(&self->thread, NULL, serve, self), 0);
}

static void end(host *self)
{
    eventfd_write(self->over, 1);
    pthread_join(self->thread, NULL);
    close(self->over);
    close(self->listener);
    if (self->socket >= 0)
        close(self->socket);
}

static int call(peal_address address[PEAL_ADDRESSES], int stop, int64_t limit_ns,
                peal_handshake *state)
{
    unsigned char secret[PEAL_SECRET_BYTES];
    memset(secret, SECRET, sizeof(secret));
    return peal_wire_call_tcp(address, secret, caller, stop, peal_clock_ns() + limit_ns, state);
}

/* An address where nobody listens. */
static void nobody(peal_address *address)
{
    unsigned char port[2];
    int listener = peal_wire_listen_tcp(NULL, NULL, port);
    assert_true(listener >= 0);
    close(listener);
    address_on_loopback(address, port);
}

static void expect_connected(host *self, int socket, const peal_handshake *state)
{
    char in[8] = "";
    assert_true(socket >= 0);
    assert_int_equal(state->state, PEAL_HANDSHAKE_DONE);
    struct pollfd ready = {socket, POLLIN, 0};
    assert_int_equal(poll(&ready, 1, 20000), 1);
    assert_int_equal(recv(socket, in, sizeof(in), 0), 5); /* nothing of it is lost */
    assert_memory_equal(in, "hello", 5);
    pthread_join(self->thread, NULL);
    assert_int_equal(self->heard.state, PEAL_HANDSHAKE_DONE);
    assert_int_equal(self->heard.caller.kind, caller.kind);
    assert_int_equal(self->heard.caller.process, caller.process);
    assert_int_equal(self->heard.caller.key, caller.key);
    assert_true(peal_wire_send_small(socket, "and back", 8));
    assert_int_equal(recv(self->socket, in, sizeof(in), MSG_WAITALL), 8);
    assert_memory_equal(in, "and back", 8);
    close(self->listener);
    close(self->socket);
    close(socket);
}

static void check_call(void **state)
{
    peal_address address[PEAL_ADDRESSES] = {{0}};
    peal_handshake shaken;
    host good;
    (void)state;
    begin(&good, ANSWERS, SECRET);
    address[0] = good.address;
    expect_connected(&good, call(address, -1, long_ns, &shaken), &shaken);
}

/* Who is dropped comes again, a few times: by itself it ends long before the limit. */
static void check_drops(void **state)
{
    peal_address address[PEAL_ADDRESSES] = {{0}};
    peal_handshake shaken;
    host full, closed;
    (void)state;
    begin(&full, ANSWERS_THE_THIRD, SECRET);
    begin(&closed, CLOSES, SECRET);
    address[0] = full.address;
    expect_connected(&full, call(address, -1, long_ns, &shaken), &shaken);
    address[0] = closed.address;
    assert_int_equal(call(address, -1, long_ns, &shaken), -1);
    assert_int_equal(errno, ECONNRESET);
    assert_int_equal(shaken.state, PEAL_HANDSHAKE_GOES_ON);
    end(&closed);
    assert_int_equal(closed.calls, 12);
}

/* Those before it are of a port where nobody listens, of another job, of no peal, and of one that
 * closes at once. */
static void check_addresses_in_turn(void **state)
{
    static const deed wrong[] = {ANSWERS, SPEAKS_OTHERWISE, CLOSES};
    (void)state;
    for (int i = 0; i < 3; i++) {
        peal_address address[PEAL_ADDRESSES] = {{0}};
        peal_handshake shaken;
        host good, bad;
        begin(&good, ANSWERS, SECRET);
        begin(&bad, wrong[i], OTHER_SECRET);
        nobody(&address[0]);
        address[1] = bad.address;
        address[2] = good.address;
        expect_connected(&good, call(address, -1, long_ns, &shaken), &shaken);
        end(&bad);
    }
}

/* One that says nothing takes its share of the time, and no more. */
static void check_silent_first(void **state)
{
    peal_address address[PEAL_ADDRESSES] = {{0}};
    peal_handshake shaken;
    host good, silent;
    (void)state;
    begin(&good, ANSWERS, SECRET);
    begin(&silent, SAYS_NOTHING, SECRET);
    address[0] = silent.address;
    address[1] = good.address;
    int64_t start = peal_clock_ns();
    int socket = call(address, -1, long_ns / 10, &shaken);
    assert_true(peal_clock_ns() - start >= long_ns / 20);
    expect_connected(&good, socket, &shaken);
    end(&silent);
}

/* Where several are silent and much time is left, each gets 2 s at first; the one that has answered
 * is the first to be called from then on. */
static void check_silent_ones(void **state)
{
    peal_address address[PEAL_ADDRESSES] = {{0}};
    peal_handshake shaken;
    host good, silent[2];
    (void)state;
    begin(&good, ANSWERS, SECRET);
    for (int i = 0; i < 2; i++) {
        begin(&silent[i], SAYS_NOTHING, SECRET);
        address[i] = silent[i].address;
    }
    address[2] = good.address;
    int64_t start = peal_clock_ns();
    int socket = call(address, -1, long_ns, &shaken);
    assert_true(peal_clock_ns() - start < long_ns / 2); /* shares would take 13 s */
    assert_memory_equal(&address[0], &good.address, sizeof(peal_address));
    assert_memory_equal(&address[1], &silent[0].address, sizeof(peal_address));
    expect_connected(&good, socket, &shaken);
    for (int i = 0; i < 2; i++)
        end(&silent[i]);
}

/* One that has been called is not given up for the next address: it may have taken the connection.
 * Its share would be 1 s. */
static void check_late_answer(void **state)
{
    peal_address address[PEAL_ADDRESSES] = {{0}};
    peal_handshake shaken;
    host late;
    (void)state;
    begin(&late, ANSWERS_LATE, SECRET);
    address[0] = late.address;
    for (int i = 1; i < PEAL_ADDRESSES; i++)
        nobody(&address[i]);
    expect_connected(&late, call(address, -1, 4 * (long_ns / 20), &shaken), &shaken);
}

static void check_failures(void **state)
{
    static const struct {
        deed does;
        int secret, error;
        peal_handshake_state state;
    } cases[] = {{ANSWERS, OTHER_SECRET, ECONNRESET, PEAL_HANDSHAKE_GOES_ON},
                 {SPEAKS_OTHERWISE, SECRET, EPROTO, PEAL_HANDSHAKE_NO_PEAL},
                 {SAYS_NOTHING, SECRET, ETIMEDOUT, PEAL_HANDSHAKE_GOES_ON}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        peal_address address[PEAL_ADDRESSES] = {{0}};
        peal_handshake shaken;
        host other;
        begin(&other, cases[i].does, cases[i].secret);
        address[0] = other.address;
        int64_t limit = cases[i].error == ETIMEDOUT ? long_ns / 100 : long_ns;
        assert_int_equal(call(address, -1, limit, &shaken), -1);
        assert_int_equal(errno, cases[i].error);
        assert_int_equal(shaken.state, cases[i].state);
        end(&other);
    }
}

static void check_nobody(void **state)
{
    peal_address address[PEAL_ADDRESSES] = {{0}};
    peal_handshake shaken;
    (void)state;
    assert_int_equal(call(address, -1, long_ns, &shaken), -1);
    assert_int_equal(errno, EADDRNOTAVAIL);
    nobody(&address[0]);
    assert_int_equal(call(address, -1, long_ns, &shaken), -1);
    assert_int_equal(errno, ECONNREFUSED);
}

/* The job has ended meanwhile: nobody else is called. */
static void check_stop(void **state)
{
    peal_address address[PEAL_ADDRESSES] = {{0}};
    peal_handshake shaken;
    host silent, second;
    int stop = eventfd(1, EFD_CLOEXEC);
    (void)state;
    begin(&silent, SAYS_NOTHING, SECRET);
    begin(&second, ANSWERS, SECRET);
    address[0] = silent.address;
    address[1] = second.address;
    int64_t start = peal_clock_ns();
    assert_int_equal(call(address, stop, long_ns, &shaken), -1);
    assert_int_equal(errno, ECANCELED);
    assert_true(peal_clock_ns() - start < long_ns / 2);
    end(&silent);
    address[0] = second.address; /* so that it ends */
    close(call(address, -1, long_ns, &shaken));
    end(&second);
    close(stop);
}

/* In the place of the C library's: so many lists have gaps, or cannot be had. */
static int gaps, errors;

int getifaddrs(struct ifaddrs **out)
{
    int (*real)(struct ifaddrs **) = NULL;
    *out = NULL;
    if (gaps > 0) {
        gaps--;
        return 0;
    }
    if (errors > 0) {
        errors--;
        errno = ENOBUFS;
        return -1;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "getifaddrs");
    return real(out);
}

/* Interfaces come or go while the list is read. */
static void check_gaps(void **state)
{
    peal_address address[PEAL_ADDRESSES];
    (void)state;
    int count = peal_wire_addresses(NULL, address);
    for (int lost = 0; lost <= 3; lost++) {
        gaps = lost;
        errors = 3 - lost;
        assert_int_equal(peal_wire_addresses(NULL, address), count);
        assert_int_equal(gaps + errors, 0);
    }
    gaps = 1000; /* it does not ask for ever */
    assert_int_equal(peal_wire_addresses(NULL, address), 0);
    assert_in_range(gaps, 900, 999);
    gaps = 0;
}

static void check_choices(void **state)
{
    static const peal_network_choice good[] = {{NULL, 0, 0},
                                               {"eth0", 1, 65535},
                                               {"10.1.0.0/16", 20000, 20000},
                                               {"0.0.0.0/0", 0, 0},
                                               {"2001:db8::/128", 0, 0}},
                                     bad[] = {{"", 0, 0},
                                              {"a-name-that-is-too-long", 0, 0},
                                              {"10.1.0.0/33", 0, 0},
                                              {"10.1.0/16", 0, 0},
                                              {"10.1.0.0/16x", 0, 0},
                                              {"10.1.0.0/", 0, 0},
                                              {"10.1.0.0/-1", 0, 0},
                                              {"10.1.0.0/ 16", 0, 0},
                                              {"10.1.0.0/+16", 0, 0},
                                              {"2001:db8::/129", 0, 0},
                                              {NULL, 0, 5},
                                              {NULL, 5, 4},
                                              {NULL, 1, 65536},
                                              {NULL, -1, 5}};
    peal_address all[PEAL_ADDRESSES], one[PEAL_ADDRESSES];
    char there[200], name[IF_NAMESIZE];
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(peal_network_choice_makes_sense(&good[i]));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(peal_network_choice_makes_sense(&bad[i]));
    assert_int_equal(peal_wire_addresses(&(peal_network_choice){"nobody0", 0, 0}, one), 0);
    assert_int_equal(peal_wire_addresses(&(peal_network_choice){"192.0.2.1/32", 0, 0}, one), 0);
    peal_wire_list_interfaces(there, sizeof(there));
    if (peal_wire_addresses(NULL, all) == 0 || all[0].version != 4) {
        assert_true(all[0].version || !strcmp(there, "none"));
        return;
    }
    assert_int_equal(sscanf(there, "%15s", name), 1);
    assert_int_equal(peal_wire_addresses(&(peal_network_choice){name, 0, 0}, one), 1);
    assert_int_equal(peal_wire_addresses(&(peal_network_choice){"0.0.0.0/0", 0, 0}, one), 1);
    assert_memory_equal(&one[0], &all[0], sizeof(one[0]));
}

/* Who finds a port taken goes on to the next; where all are there is an error. */
static void check_ports(void **state)
{
    enum { PORTS = 3 };
    static const peal_address loopback = {.version = 4, .bytes = {127, 0, 0, 1}};
    unsigned char port[2];
    int listener[PORTS + 1], count = 0;
    (void)state;
    int probe = peal_wire_listen_tcp(NULL, &loopback, port), first = port[0] << 8 | port[1];
    assert_true(probe >= 0);
    close(probe);
    first = first > 65535 - PORTS ? first - PORTS : first;
    const peal_network_choice choice = {NULL, first, first + PORTS - 1};
    while (count <= PORTS && /* fewer where somebody else has one of them */
           (listener[count] = peal_wire_listen_tcp(&choice, &loopback, port)) >= 0) {
        assert_in_range(port[0] << 8 | port[1], choice.first_port, choice.last_port);
        count++;
    }
    assert_int_equal(errno, EADDRINUSE);
    assert_in_range(count, 1, PORTS);
    for (int i = 0; i < count; i++)
        close(listener[i]);
}

static void check_own_addresses(void **state)
{
    static const unsigned char port[2] = {0x12, 0x67};
    static const peal_address none = {0};
    peal_address address[PEAL_ADDRESSES];
    char text[PEAL_ADDRESS_TEXT_BYTES];
    (void)state;
    int count = peal_wire_addresses(NULL, address);
    assert_in_range(count, 0, PEAL_ADDRESSES);
    for (int i = 0; i < count; i++)
        memcpy(address[i].port, port, sizeof(port));
    for (int i = 0; i < PEAL_ADDRESSES; i++) {
        if (i >= count) {
            assert_memory_equal(&address[i], &none, sizeof(none));
            continue;
        }
        assert_memory_equal(address[i].port, port, 2);
        assert_non_null(strstr(peal_wire_print_address(&address[i], text), ":4711"));
        assert_true(address[i].version == 6 ||
                    (address[i].version == 4 && address[i].bytes[0] != 127));
    }
    assert_string_equal(peal_wire_print_address(&(peal_address){.version = 4,
                                                                .port = {0x12, 0x67},
                                                                .bytes = {10, 0, 0, 2}},
                                                text),
                        "10.0.0.2:4711");
    assert_string_equal(peal_wire_print_address(&(peal_address){.version = 6,
                                                                .port = {0x12, 0x67},
                                                                .bytes = {0x20, 1, 0xd,
                                                                          0xb8, [15] = 1}},
                                                text),
                        "[2001:db8::1]:4711");
}

static int option(int socket, int level, int name)
{
    int value = -1;
    socklen_t bytes = sizeof(value);
    assert_int_equal(getsockopt(socket, level, name, &value, &bytes), 0);
    return value;
}

static void check_options(void **state)
{
    peal_address address[PEAL_ADDRESSES] = {{0}};
    peal_handshake shaken;
    host good;
    (void)state;
    begin(&good, ANSWERS, SECRET);
    address[0] = good.address;
    int socket = call(address, -1, long_ns, &shaken);
    assert_true(socket >= 0);
    assert_int_equal(option(socket, IPPROTO_TCP, TCP_NODELAY), 1);
    assert_int_equal(option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
    assert_int_equal(option(socket, SOL_SOCKET, SO_KEEPALIVE), 1);
    assert_int_equal(option(socket, IPPROTO_TCP, TCP_KEEPIDLE), 30);
    peal_wire_be_watched(socket, PEAL_WATCHED_MS);
    assert_int_equal(option(socket, SOL_SOCKET, SO_KEEPALIVE), 1);
    assert_int_equal(option(socket, IPPROTO_TCP, TCP_KEEPIDLE), 1);
    assert_int_equal(option(socket, IPPROTO_TCP, TCP_KEEPINTVL), 1);
    assert_int_equal(option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT), PEAL_WATCHED_MS);
    close(socket);
    end(&good);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(check_call),
                                       cmocka_unit_test(check_drops),
                                       cmocka_unit_test(check_addresses_in_turn),
                                       cmocka_unit_test(check_silent_first),
                                       cmocka_unit_test(check_silent_ones),
                                       cmocka_unit_test(check_late_answer),
                                       cmocka_unit_test(check_failures),
                                       cmocka_unit_test(check_nobody),
                                       cmocka_unit_test(check_stop),
                                       cmocka_unit_test(check_own_addresses),
                                       cmocka_unit_test(check_gaps),
                                       cmocka_unit_test(check_choices),
                                       cmocka_unit_test(check_ports),
                                       cmocka_unit_test(check_options)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
