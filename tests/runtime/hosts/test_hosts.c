/* Jobs on three hosts, which are network namespaces: that they compute what one host does, and what
 * is told when a process, a link or a host is gone. Times are printed, not judged: the deadline is
 * so long that who is told by it fails the test. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "runtime/control/internal.h"
#include "tests/runtime/hosts/namespaces.h"
#include "tests/runtime/job.h"
#include "tests/runtime/stencil.h"
#include "tests/share/share.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { PROCESSES = 6, ALL_KNOW = PROCESSES, SHORT = 400, ENDLESS = 100000000, DEED_AT = 200 };
static const double deadline_s = 60;

static const char *const modes[] = {"sync", "stream", "fused"};
static const char *mode; /* of the members that are about to be forked */

static int host_of(const test_team *team, int process)
{
    return process * HOSTS / team->processes;
}

static peal_session *enter_and_open(test_team *team, int process)
{
    peal_session *session = NULL;
    hosts_enter(host_of(team, process));
    TEAM_CHECK(job_open(team, process, deadline_s, &session) == PEAL_STATUS_OK);
    return session;
}

/* ---- what is computed ---- */

static int member_agrees(test_team *team, int process)
{
    char text[400];
    peal_session *session = enter_and_open(team, process);
    const int *host = peal_control_hosts(session->control);
    for (int p = 0; p < PROCESSES; p++)
        TEAM_CHECK(host && host[p] == host_of(team, p));
    TEAM_CHECK(peal_session_local_processes(session) == PROCESSES / HOSTS);
    TEAM_CHECK(peal_session_local_process(session) == process % (PROCESSES / HOSTS));
    for (int m = 0; m < 3; m++) {
        const peal_plan_options options = {.size_bytes = sizeof(options),
                                           .mode = modes[m],
                                           .verify = true};
        stencil_run_in_parts(session, &options);
    }
    peal_graph *g = stencil_graph("23", stencil_relax, NULL);
    peal_plan *plan;
    const peal_plan_options any = {.size_bytes = sizeof(any)};
    JOB_OK(session, peal_graph_compile(g, session, &any, &plan));
    peal_plan_describe(plan, text, sizeof(text));
    TEAM_CHECK(strstr(text, "messages by shm+tcp") != NULL);
    peal_plan_destroy(plan);
    peal_graph_destroy(g);
    peal_session_destroy(session);
    return 0;
}

static void check_results(void **state)
{
    (void)state;
    job_run_all(PROCESSES, member_agrees);
}

/* ---- deeds in the middle of a run ---- */

typedef void deed_function(test_team *team, const peal_session *session);

typedef struct test_fault {
    deed_function *deed;
    int process; /* which does it, at its call number DEED_AT */
    const char *told;
} test_fault;

static test_fault fault; /* of the members that are about to be forked */

static test_team *own_team;
static peal_session *own_session;
static bool does_deed;
static _Atomic int calls;

static void relax_and_do(const peal_call *call)
{
    stencil_relax(call);
    if (atomic_fetch_add(&calls, 1) != DEED_AT || !does_deed)
        return;
    snprintf(own_team->board->text[0], TEAM_TEXT, "%" PRId64, peal_clock_ns());
    fault.deed(own_team, own_session);
}

static peal_status run_steps(test_team *team, int process, peal_session *session, int steps,
                             bool *is_right)
{
    const peal_plan_options options = {.size_bytes = sizeof(options), .mode = mode};
    peal_graph *g = stencil_graph("23", relax_and_do, NULL);
    peal_plan *plan = NULL;
    own_team = team;
    own_session = session;
    does_deed = process == fault.process;
    atomic_store(&team->board->flag[process], (int)getpid());
    TEAM_CHECK(peal_graph_set_steps(g, steps) == PEAL_STATUS_OK);
    JOB_OK(session, peal_graph_compile(g, session, &options, &plan));
    JOB_OK(session, peal_plan_start(plan, PEAL_STEPS_ALL, NULL));
    peal_status status = peal_plan_wait(plan);
    *is_right = !status && stencil_is_right(plan, steps);
    peal_plan_destroy(plan);
    peal_graph_destroy(g);
    return status;
}

static bool is_told(const peal_session *session, const char *text)
{
    const peal_diagnostics *list = session->diagnostics;
    for (int i = 0; i < peal_diagnostics_count(list); i++)
        if (strstr(peal_diagnostics_at(list, i)->message, text))
            return true;
    return false;
}

/* Runs until what is done ends it. text[1 + process]: when that was known here. */
static int member_is_told(test_team *team, int process)
{
    bool is_right;
    peal_session *session = enter_and_open(team, process);
    TEAM_CHECK(run_steps(team, process, session, ENDLESS, &is_right) == PEAL_STATUS_PEER_LOST);
    snprintf(team->board->text[1 + process], TEAM_TEXT, "%" PRId64, peal_clock_ns());
    if (!is_told(session, fault.told))
        peal_session_print_diagnostics(session, stderr, 0);
    TEAM_CHECK(is_told(session, fault.told));
    peal_session_destroy(session);
    return 0;
}

static void print_times(const test_team *team, const char *what)
{
    int64_t done = strtoll(team->board->text[0], NULL, 10), last = 0;
    for (int p = 0; p < team->processes; p++) {
        int64_t told = strtoll(team->board->text[1 + p], NULL, 10);
        last = told > last ? told : last;
    }
    print_message("%s, %s: all know after %.0f ms\n", what, mode, (double)(last - done) * 1e-6);
}

/* Once, with --all 20 times, in one mode after the other. victim: who is killed, or -1. */
static void run_fault(const char *what, int processes, int victim, const char *repair)
{
    test_share share = share_of(20);
    for (int i = 0; i < (int)(20 / share.every); i++) {
        test_team team;
        mode = modes[(i + (int)share.first) % 3];
        team_create(&team, processes);
        team_run(&team, member_is_told);
        atomic_store(&team.board->flag[ALL_KNOW], 1);
        print_times(&team, what);
        for (int p = 0; p < processes; p++)
            assert_int_equal(team.exit_code[p], p == victim ? 128 + SIGKILL : 0);
        team_destroy(&team);
        assert_true(!repair || hosts_run(1, repair));
    }
}

static void kill_process_3(test_team *team, const peal_session *session)
{
    (void)session;
    kill((pid_t)atomic_load(&team->board->flag[3]), SIGKILL);
}

static void check_killed(void **state)
{
    (void)state;
    fault = (test_fault){kill_process_3, 0, "process 3 (pid "};
    run_fault("a killed process", PROCESSES, 3, NULL);
}

/* Its sockets live on in the copy, and nobody of its own host sees it otherwise. */
static void fork_and_die(test_team *team, const peal_session *session)
{
    (void)session;
    if (fork() == 0) { /* until all know, or longer than they would wait */
        for (int i = 0; i < 900 && !atomic_load(&team->board->flag[ALL_KNOW]); i++)
            usleep(100000);
        _exit(0);
    }
    raise(SIGKILL);
}

static void check_killed_with_copy(void **state)
{
    (void)state;
    fault = (test_fault){fork_and_die, 1, "process 1 (pid "};
    run_fault("a killed process that has forked", HOSTS, 1, NULL);
}

static const char silence[] = "does not answer any more: its host or the network is gone";

static void set_link_down(test_team *team, const peal_session *session)
{
    (void)team, (void)session;
    TEAM_CHECK(hosts_run(1, "ip link set eth0 down"));
}

static void check_link_down(void **state)
{
    (void)state;
    fault = (test_fault){set_link_down, 0, silence};
    run_fault("a link that is down", PROCESSES, -1, "ip link set eth0 up");
}

/* ---- packet filters ---- */

static bool has_packet_filter(void)
{
    return hosts_run(0, "nft list ruleset");
}

static void drop_packets(test_team *team, const peal_session *session)
{
    (void)team, (void)session;
    TEAM_CHECK(hosts_run(1, "nft add table inet cut && "
                            "nft \"add chain inet cut in { type filter hook input priority 0; "
                            "policy drop; }\" && "
                            "nft \"add chain inet cut out { type filter hook output priority 0; "
                            "policy drop; }\""));
}

static void check_dropped(void **state)
{
    (void)state;
    if (!has_packet_filter()) {
        print_message("skipped: there is no nft (package nftables)\n");
        skip();
    }
    fault = (test_fault){drop_packets, 0, silence};
    run_fault("a host that no packet reaches", PROCESSES, -1, "nft delete table inet cut");
}

/* ---- what a job bears ---- */

static int member_goes_on(test_team *team, int process)
{
    bool is_right = false;
    peal_session *session = enter_and_open(team, process);
    JOB_OK(session, run_steps(team, process, session, SHORT, &is_right));
    TEAM_CHECK(is_right);
    TEAM_CHECK(peal_diagnostics_count(session->diagnostics) == 0);
    peal_session_destroy(session);
    return 0;
}

static void run_on(const char *what)
{
    for (int m = 0; m < 3; m++) {
        mode = modes[m];
        job_run_all(PROCESSES, member_goes_on);
    }
    print_message("%s: every mode right\n", what);
}

static void do_nothing(test_team *team, const peal_session *session)
{
    (void)team, (void)session;
}

static void check_loss(void **state)
{
    (void)state;
    if (!has_packet_filter()) {
        print_message("skipped: there is no nft (package nftables)\n");
        skip();
    }
    for (int host = 0; host < HOSTS; host++)
        assert_true(hosts_run(host, "nft add table inet loss && "
                                    "nft \"add chain inet loss in { type filter hook input "
                                    "priority 0; }\" && "
                                    "nft add rule inet loss in numgen random mod 50 0 drop"));
    fault = (test_fault){do_nothing, 0, NULL};
    run_on("2 % of all packets lost");
    for (int host = 0; host < HOSTS; host++)
        assert_true(hosts_run(host, "nft delete table inet loss"));
}

/* Longer than a connection may be silent: the host still answers for it. */
static void pause_process_3(test_team *team, const peal_session *session)
{
    pid_t pid = (pid_t)atomic_load(&team->board->flag[3]);
    (void)session;
    kill(pid, SIGSTOP);
    usleep(4500000);
    kill(pid, SIGCONT);
}

static void check_pause(void **state)
{
    (void)state;
    fault = (test_fault){pause_process_3, 0, NULL};
    mode = modes[share_of(3).first % 3];
    job_run_all(PROCESSES, member_goes_on);
}

static int knock(const peal_address *at)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    memcpy(&to.sin_port, at->port, 2);
    memcpy(&to.sin_addr, at->bytes, 4);
    int caller = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    TEAM_CHECK(caller >= 0 && connect(caller, (struct sockaddr *)&to, sizeof(to)) == 0);
    return caller;
}

/* Of host 2 at the ports of all others: they talk nonsense, or say a little and wait. What a
 * handshake hears that is almost right is in test_control_hosts.c. */
static void play_strangers(test_team *team, const peal_session *session)
{
    enum { EACH = 90 };
    unsigned seed = 20261127;
    for (int p = 0; p < PROCESSES; p++) {
        const peal_address *at = &session->control->peer[p].endpoint.address[0];
        for (int i = 0; host_of(team, p) != host_of(team, fault.process) && i < EACH; i++) {
            char said[200];
            int caller = knock(at);
            size_t bytes = (size_t)(i % 3 == 0 ? 200 : i % 3);
            for (size_t b = 0; b < bytes; b++)
                said[b] = (char)rand_r(&seed);
            send(caller, said, bytes, MSG_NOSIGNAL);
            if (i % 3 == 0)
                close(caller); /* the others stay until the process ends */
        }
    }
}

static void check_strangers(void **state)
{
    (void)state;
    fault = (test_fault){play_strangers, PROCESSES - 1, NULL};
    run_on("strangers at every port");
}

/* ---- hosts that do not reach each other ---- */

static int member_is_refused(test_team *team, int process)
{
    peal_session *session = NULL;
    hosts_enter(host_of(team, process));
    return job_open(team, process, 20, &session);
}

static void check_no_address(void **state)
{
    test_team team;
    (void)state;
    assert_true(hosts_run(2, "ip addr flush dev eth0"));
    team_create(&team, PROCESSES);
    team_run(&team, member_is_refused);
    for (int p = 0; p < PROCESSES; p++)
        assert_int_equal(team.exit_code[p], PEAL_STATUS_ENVIRONMENT);
    team_destroy(&team);
    assert_true(hosts_run(2, "ip addr add 10.213.0.3/24 dev eth0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_results),
        cmocka_unit_test(check_killed),
        cmocka_unit_test(check_killed_with_copy),
        cmocka_unit_test(check_link_down),
        cmocka_unit_test(check_dropped),
        cmocka_unit_test(check_loss),
        cmocka_unit_test(check_pause),
        cmocka_unit_test(check_strangers),
        cmocka_unit_test(check_no_address),
    };
    const char *why = hosts_create();
    if (why) {
        printf("skipped: %s\n", why);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
