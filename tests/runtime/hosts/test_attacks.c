/* Who talks to the ports of a job on three hosts without being of it, and who is of it and sends
 * nonsense. What a handshake hears that is almost right is in test_control_hosts.c. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "runtime/control/internal.h"
#include "runtime/network/tcp.h"
#include "tests/runtime/control/strangers.h"
#include "tests/runtime/hosts/deeds.h"
#include "tests/share/share.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const peal_endpoint *endpoint_of(const peal_session *session, int process)
{
    const peal_control_blob *blob =
        peal_control_find(session->control, process, peal_clock_ns() + INT64_C(10000000000));
    static const unsigned char none[PEAL_SECRET_BYTES];
    TEAM_CHECK(blob && memcmp(blob->endpoint.secret, none, sizeof(none)) != 0);
    return &blob->endpoint;
}

/* Of host 2 at the ports of all others: they talk nonsense, repeat what a process has said to prove
 * itself, or say a little and wait until the process ends. */
static void play_strangers(test_team *team, const peal_session *session)
{
    enum { NONSENSE = 30, SILENT = 60, UNUSED_KEY = 1000000 };
    for (int p = 0; host_of(team, p) != host_of(team, deed.process); p++) {
        const peal_endpoint *victim = endpoint_of(session, p);
        strangers_say_nonsense(victim, NONSENSE);
        strangers_replay(victim, (peal_caller){PEAL_HELLO_STREAM, deed.process, UNUSED_KEY});
        for (int i = 0; i < SILENT; i++)
            send(stranger_knocks(victim), "peal", (size_t)(i % 3), MSG_NOSIGNAL);
    }
}

static void check_strangers(void **state)
{
    (void)state;
    deed = (test_deed){.act = play_strangers, .process = PROCESSES - 1};
    run_on("strangers at every port");
}

/* ---- two jobs at a time ---- */

enum { JOBS = 2 };

/* Where they meet: shared by both. */
typedef struct test_meeting {
    _Atomic int came[2];
    peal_endpoint endpoint[JOBS][PROCESSES];
} test_meeting;

static test_meeting *meeting;
static int own_job;

static void meet(int point)
{
    atomic_fetch_add(&meeting->came[point], 1);
    for (int i = 0; i < 3000 && atomic_load(&meeting->came[point]) < JOBS; i++)
        usleep(10000);
    TEAM_CHECK(atomic_load(&meeting->came[point]) == JOBS);
}

/* While both run, with every secret of the own job at every port of the other one. */
static void call_other_job(test_team *team, const peal_session *session)
{
    (void)team;
    for (int p = 0; p < PROCESSES; p++)
        meeting->endpoint[own_job][p] = *endpoint_of(session, p);
    meet(0);
    for (int victim = 0; victim < PROCESSES; victim++)
        for (int p = 0; p < PROCESSES; p++)
            for (int kind = PEAL_HELLO_DATA; kind <= PEAL_HELLO_ASK; kind++)
                strangers_call_by(&meeting->endpoint[!own_job][victim],
                                  meeting->endpoint[own_job][p].secret,
                                  (peal_caller){(uint32_t)kind, PROCESSES - 1, 0});
    meet(1);
}

static int failures_of_job(void)
{
    int failed = 0;
    test_team team;
    team_create(&team, PROCESSES);
    team_run(&team, member_goes_on);
    for (int p = 0; p < PROCESSES; p++)
        failed += team.exit_code[p] != 0;
    team_destroy(&team);
    return failed;
}

static void check_two_jobs(void **state)
{
    (void)state;
    int status = -1;
    meeting =
        mmap(NULL, sizeof(*meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(meeting, MAP_FAILED);
    deed = (test_deed){.act = call_other_job, .process = PROCESSES - 1};
    deed_mode = deed_modes[share_of(3).first % 3];
    pid_t other = fork();
    if (other == 0) {
        own_job = 1;
        _exit(failures_of_job());
    }
    int failures = failures_of_job();
    assert_int_equal(waitpid(other, &status, 0), other);
    assert_int_equal(failures, 0);
    assert_int_equal(status, 0);
    munmap(meeting, sizeof(*meeting));
}

/* ---- frames ---- */

enum { FORGER = 1, RECEIVER = 2 }; /* neighbours on two hosts */

static void send_all(int socket, const void *data, size_t bytes)
{
    struct pollfd event = {socket, POLLOUT, 0};
    for (size_t done = 0; done < bytes;) {
        ssize_t sent = send(socket, (const char *)data + done, bytes - done, MSG_NOSIGNAL);
        TEAM_CHECK(sent > 0 || errno == EAGAIN || errno == EINTR);
        done += sent > 0 ? (size_t)sent : 0;
        if (sent <= 0)
            poll(&event, 1, 1000);
    }
}

/* Behind what is sent already: whole frames stay whole. */
static void send_frame(const peal_session *session, const peal_put_frame *head)
{
    static const char zeros[4096];
    TEAM_CHECK(head->bytes <= sizeof(zeros));
    tcp_link *link = session->network->opened->link[RECEIVER];
    bool is_sent = false;
    while (!is_sent) {
        pthread_mutex_lock(&link->sending);
        tcp_flush(session->network->opened, link);
        if (link->queue.count == 0) {
            send_all(link->socket, head, sizeof(*head));
            send_all(link->socket, zeros, head->bytes);
            is_sent = true;
        }
        pthread_mutex_unlock(&link->sending);
    }
}

/* What a plan that has ended left on its way. */
static void send_late_frames(test_team *team, const peal_session *session)
{
    (void)team;
    for (uint32_t i = 0; i < 20; i++)
        send_frame(session, &(peal_put_frame){session->network->opened->plan->number + 1 + i, i, i,
                                              8 * (i % 4)});
}

static void check_late_frames(void **state)
{
    (void)state;
    deed = (test_deed){.act = send_late_frames, .process = FORGER};
    run_on("frames of other plans");
}

static peal_put_frame forged; /* of the plan that runs; bytes UINT64_MAX: what the put has */

static void send_forged(test_team *team, const peal_session *session)
{
    (void)team;
    const peal_network_plan *plan = session->network->opened->plan;
    const peal_pair *pair = plan->pair;
    while (pair->process != RECEIVER)
        pair++;
    peal_put_frame head = forged;
    head.plan = plan->number;
    if (head.bytes == UINT64_MAX)
        head.bytes = (uint64_t)pair->out[head.put].bytes;
    send_frame(session, &head);
}

static void check_forged_frames(void **state)
{
    static const struct {
        peal_put_frame head;
        const char *told;
    } cases[] = {{{0, 4096, 8, 0}, " has the number 4096, expected "},
                 {{0, 0, 8, 40}, " has a size of 40, expected "},
                 {{0, 0, 1 << 20, UINT64_MAX}, " has the value 1048576, expected "}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        deed_mode = deed_modes[i];
        forged = cases[i].head;
        deed = (test_deed){send_forged, FORGER, PEAL_STATUS_INTERNAL, cases[i].told};
        job_run_all(PROCESSES, member_is_told);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_strangers),
        cmocka_unit_test(check_two_jobs),
        cmocka_unit_test(check_late_frames),
        cmocka_unit_test(check_forged_frames),
    };
    const char *why = hosts_create();
    if (why) {
        printf("skipped: %s\n", why);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
