/* The control plane over several hosts, which blocks of processes pretend to be: which edges are
 * TCP, who is kept out of the port, and what is said where a call fails. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "runtime/control/internal.h"
#include "runtime/control/wire_tcp.h"
#include "tests/runtime/control/strangers.h"
#include "tests/runtime/control/team.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static const int64_t long_deadline = INT64_C(60000000000);

static void run(int processes, const char *hosts, team_member member)
{
    test_team team;
    assert_int_equal(setenv("PEAL_TEST_HOSTS", hosts, 1), 0);
    team_create(&team, processes);
    team_run(&team, member);
    for (int p = 0; p < processes; p++)
        assert_int_equal(team.exit_code[p], 0);
    team_destroy(&team);
}

static int family_of(int socket)
{
    struct sockaddr_storage own;
    socklen_t bytes = sizeof(own);
    TEAM_CHECK(getsockname(socket, (struct sockaddr *)&own, &bytes) == 0);
    return own.ss_family;
}

/* Of a TCP socket: after how long without an answer it ends. */
static int silence_of(int socket)
{
    int value = -1;
    socklen_t bytes = sizeof(value);
    TEAM_CHECK(getsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &bytes) == 0);
    return value;
}

static const peal_control_blob *find(const team_seat *self, int process)
{
    return peal_control_find(self->control, process, peal_clock_ns() + long_deadline);
}

static bool knows_secret(const team_seat *self, int process)
{
    static const unsigned char none[PEAL_SECRET_BYTES];
    return memcmp(self->control->peer[process].endpoint.secret, none, sizeof(none)) != 0;
}

/* Edges between hosts are TCP, and only of those the one that is always read is watched; streams
 * likewise. */
static int look_at_edges(test_team *team, int process)
{
    team_seat self;
    TEAM_CHECK(team_join(&self, team, process, long_deadline) == PEAL_STATUS_OK);
    const int *host = peal_control_hosts(self.control);
    TEAM_CHECK(host != NULL);
    for (int p = 0; p < team->processes; p++)
        TEAM_CHECK(host[p] == p * 3 / team->processes);
    for (int i = 0; i < self.control->link_count; i++) {
        const peal_link *link = &self.control->link[i];
        bool is_far = host[link->process] != host[process];
        TEAM_CHECK((family_of(link->data) != AF_UNIX) == is_far);
        TEAM_CHECK((family_of(link->watch) != AF_UNIX) == is_far);
        TEAM_CHECK(!is_far ||
                   (silence_of(link->watch) == PEAL_WATCHED_MS && silence_of(link->data) == 0));
        TEAM_CHECK(!is_far || link->pidfd < 0);
    }
    for (int other = 0; other < team->processes; other++) {
        int stream = -1;
        if (other == process)
            continue;
        TEAM_CHECK(!knows_secret(&self, other)); /* it has not come over the tree */
        TEAM_CHECK(peal_control_connect(self.control, other, 9, &stream) == PEAL_STATUS_OK);
        TEAM_CHECK((family_of(stream) != AF_UNIX) == (host[other] != host[process]));
        close(stream);
        TEAM_CHECK(knows_secret(&self, other) == (other < process)); /* of whom it has called */
    }
    TEAM_CHECK(peal_control_barrier(self.control) == PEAL_STATUS_OK);
    team_leave(&self);
    return 0;
}

static void check_edges(void **state)
{
    (void)state;
    run(3, "3", look_at_edges);
    run(6, "3", look_at_edges);
    run(11, "3", look_at_edges);
}

static int look_at_one_host(test_team *team, int process)
{
    team_seat self;
    TEAM_CHECK(team_join(&self, team, process, long_deadline) == PEAL_STATUS_OK);
    TEAM_CHECK(!peal_control_hosts(self.control));
    TEAM_CHECK(self.control->far_listener < 0);
    team_leave(&self);
    return 0;
}

static void check_one_host(void **state)
{
    (void)state;
    run(3, "0", look_at_one_host);
}

/* ---- strangers ---- */

/* By who knows another one's secret, or the victim's, but has no business there. */
static void call_wrongly(const peal_endpoint *victim, const unsigned char *other)
{
    static const peal_caller callers[] = {
        {PEAL_HELLO_DATA, 2, 0},   /* that edge is taken */
        {PEAL_HELLO_WATCH, 2, 0},  /* and that */
        {PEAL_HELLO_FETCH, 2, 3},  /* a descriptor stays on its host */
        {PEAL_HELLO_STREAM, 0, 7}, /* only those with higher numbers call */
        {PEAL_HELLO_STREAM, 3, 7}, /* there are three */
        {PEAL_HELLO_STREAM, -1, 7}, {77, 2, 0}};
    peal_handshake state;
    TEAM_CHECK(stranger_calls(victim, other, (peal_caller){PEAL_HELLO_STREAM, 2, 7}, &state) < 0);
    TEAM_CHECK(errno == ECONNRESET);
    for (size_t i = 0; i < sizeof(callers) / sizeof(callers[0]); i++) {
        int socket = stranger_calls(victim, victim->secret, callers[i], &state);
        TEAM_CHECK(socket >= 0 && stranger_is_dropped(socket));
        close(socket);
    }
}

enum { KEY = 3, FIRST = 6, SECOND = 7 };

static void open_stream(const team_seat *self, int process, int key)
{
    int stream = -1;
    TEAM_CHECK(peal_control_connect(self->control, process, key, &stream) == PEAL_STATUS_OK);
    close(stream);
}

static void play_strangers(const team_seat *self)
{
    enum { SILENT = 800 }; /* turns of 5 s would be too many */
    const peal_endpoint *victim = &find(self, 0)->endpoint;
    int silent[SILENT];
    strangers_say_nonsense(victim, 100);
    call_wrongly(victim, find(self, 2)->endpoint.secret);
    strangers_replay(victim, (peal_caller){PEAL_HELLO_STREAM, 2, 8});
    for (int i = 0; i < SILENT; i++)
        silent[i] = stranger_knocks(victim);
    TEAM_CHECK(peal_control_barrier(self->control) == PEAL_STATUS_OK);
    open_stream(self, 0, FIRST);
    for (int i = 0; i < SILENT; i++)
        close(silent[i]);
}

/* Process 2 is on another host and plays the strangers; the job goes on, and those who say nothing
 * keep nobody waiting: not at all who is on this host, and not for long who is on another. */
static int strangers(test_team *team, int process)
{
    team_seat self;
    int descriptor = -1;
    TEAM_CHECK(team_join(&self, team, process, long_deadline) == PEAL_STATUS_OK);
    if (process == 2)
        play_strangers(&self);
    else
        TEAM_CHECK(peal_control_barrier(self.control) == PEAL_STATUS_OK);
    if (process == 0) {
        TEAM_CHECK(peal_control_publish(self.control, KEY, STDERR_FILENO, 4096) == PEAL_STATUS_OK);
        open_stream(&self, 2, FIRST);
    }
    if (process == 1) {
        TEAM_CHECK(peal_control_fetch(self.control, 0, KEY, &descriptor, NULL) == PEAL_STATUS_OK);
        close(descriptor);
    } else
        open_stream(&self, 2 - process, SECOND);
    TEAM_CHECK(self.abort_word == 0);
    TEAM_CHECK(peal_diagnostics_count(self.diagnostics) == 0);
    TEAM_CHECK(peal_control_barrier(self.control) == PEAL_STATUS_OK);
    team_leave(&self);
    return 0;
}

static void check_strangers(void **state)
{
    (void)state;
    run(3, "2", strangers);
}

/* ---- who is busy ---- */

static const int64_t short_deadline = INT64_C(1000000000);

/* The last process comes to the barrier after several deadlines. */
static int come_late(test_team *team, int process)
{
    team_seat self;
    TEAM_CHECK(team_join(&self, team, process, short_deadline) == PEAL_STATUS_OK);
    if (process == team->processes - 1) {
        peal_control_busy(self.control, true);
        poll(NULL, 0, 2500);
        peal_control_busy(self.control, false);
    }
    TEAM_CHECK(peal_control_barrier(self.control) == PEAL_STATUS_OK);
    team_leave(&self);
    return 0;
}

/* Two say that they are busy while they wait for the last one, which never comes. */
static int wait_in_vain(test_team *team, int process)
{
    team_seat self;
    TEAM_CHECK(team_join(&self, team, process, short_deadline) == PEAL_STATUS_OK);
    if (process == team->processes - 1)
        poll(&(struct pollfd){self.control->aborted, POLLIN, 0}, 1, -1);
    else {
        peal_control_busy(self.control, true);
        TEAM_CHECK(peal_control_barrier(self.control) == PEAL_STATUS_DEADLINE);
    }
    TEAM_CHECK(self.abort_word == PEAL_STATUS_DEADLINE);
    team_leave(&self);
    return 0;
}

static void check_busy(void **state)
{
    (void)state;
    run(2, "2", come_late);
    run(8, "3", come_late); /* process 7 is three hops from 0 */
    run(3, "3", wait_in_vain);
}

/* ---- beats ---- */

static unsigned since_data_ms(int socket)
{
    struct tcp_info info;
    socklen_t bytes = sizeof(info);
    TEAM_CHECK(getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0);
    return info.tcpi_last_data_recv;
}

static void wait_for_silence(int socket, int expected_ms)
{
    for (int i = 0; silence_of(socket) != expected_ms; i++) {
        TEAM_CHECK(i < 3000);
        poll(NULL, 0, 10);
    }
}

/* Neighbours on different hosts hear of each other where nothing else is said; of one that is
 * stopped more is borne, until it goes on. */
static int only_beat(test_team *team, int process)
{
    team_seat self;
    TEAM_CHECK(team_join(&self, team, process, long_deadline) == PEAL_STATUS_OK);
    int watch = self.control->link[0].watch;
    atomic_store(&team->board->flag[process], (int)getpid());
    poll(NULL, 0, 3000);
    TEAM_CHECK(since_data_ms(watch) < 2000);
    TEAM_CHECK(peal_control_barrier(self.control) == PEAL_STATUS_OK);
    if (process == 0) {
        pid_t other = (pid_t)atomic_load(&team->board->flag[1]);
        TEAM_CHECK(kill(other, SIGSTOP) == 0);
        wait_for_silence(watch, PEAL_PATIENT_MS);
        TEAM_CHECK(kill(other, SIGCONT) == 0);
        wait_for_silence(watch, PEAL_WATCHED_MS);
    }
    TEAM_CHECK(peal_control_barrier(self.control) == PEAL_STATUS_OK);
    TEAM_CHECK(self.abort_word == 0);
    team_leave(&self);
    return 0;
}

static void check_beats(void **state)
{
    (void)state;
    run(2, "2", only_beat);
}

/* ---- what is said ---- */

/* The last process has made the first of its two connections when it ends. */
static int end_halfway(test_team *team, int process)
{
    team_seat self;
    if (process == team->processes - 1) {
        peal_control_blob parent, own = {.magic = PEAL_BLOB_MAGIC,
                                         .wire_version = PEAL_WIRE_VERSION,
                                         .process = process,
                                         .processes = team->processes,
                                         .host = "elsewhere"};
        peal_handshake state;
        size_t bytes;
        peal_bootstrap *bootstrap = team_bootstrap(team, process);
        int listener = peal_wire_listen_on_loopback(&own.endpoint.address[0]);
        bootstrap->ops->put(bootstrap, 0, &own, sizeof(own));
        TEAM_CHECK(bootstrap->ops->get(bootstrap, 0, 0, long_deadline, &parent, sizeof(parent),
                                       &bytes) == PEAL_STATUS_OK);
        TEAM_CHECK(listener >= 0 &&
                   stranger_calls(&parent.endpoint, parent.endpoint.secret,
                                  (peal_caller){PEAL_HELLO_DATA, process, 0}, &state) >= 0);
        bootstrap->ops->close(bootstrap);
        return 0;
    }
    TEAM_CHECK(team_join(&self, team, process, long_deadline) == PEAL_STATUS_PEER_LOST);
    TEAM_CHECK(strstr(peal_diagnostics_at(self.diagnostics, 0)->message,
                      "process 1 ended before it had joined"));
    self.bootstrap->ops->close(self.bootstrap);
    peal_diagnostics_destroy(self.diagnostics);
    return 0;
}

static void check_halfway(void **state)
{
    (void)state;
    run(2, "2", end_halfway);
}

static int fail_to_call(test_team *team, int process)
{
    team_seat self;
    peal_dial_failure why = {0};
    unsigned char port[2];
    TEAM_CHECK(team_join(&self, team, process, long_deadline) == PEAL_STATUS_OK);
    peal_control_blob blob = *find(&self, !process);
    int listener = peal_wire_listen_tcp(NULL, NULL, port);
    int64_t until = peal_clock_ns() + long_deadline / 60;
    TEAM_CHECK(listener >= 0);
    memcpy(blob.endpoint.address[0].port, port, 2);
    blob.endpoint.address[1] = blob.endpoint.address[0];
    TEAM_CHECK(peal_control_dial(self.control, &blob, PEAL_HELLO_STREAM, 1, until, &why) < 0);
    TEAM_CHECK(why.error == ETIMEDOUT);
    close(listener);
    TEAM_CHECK(peal_control_dial(self.control, &blob, PEAL_HELLO_STREAM, 1, until, &why) < 0);
    TEAM_CHECK(why.error == ECONNREFUSED);
    char expected[128];
    int number = port[0] << 8 | port[1];
    snprintf(expected, sizeof(expected), "Connection refused at 127.0.0.1:%d, 127.0.0.1:%d", number,
             number);
    TEAM_CHECK(!strcmp(why.text, expected));
    TEAM_CHECK(peal_control_barrier(self.control) == PEAL_STATUS_OK);
    team_leave(&self);
    return 0;
}

static void check_failures(void **state)
{
    (void)state;
    run(2, "2", fail_to_call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(check_edges),
                                       cmocka_unit_test(check_one_host),
                                       cmocka_unit_test(check_strangers),
                                       cmocka_unit_test(check_busy),
                                       cmocka_unit_test(check_beats),
                                       cmocka_unit_test(check_halfway),
                                       cmocka_unit_test(check_failures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
