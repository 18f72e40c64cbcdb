/* Jobs on three hosts, which are network namespaces: that they compute what one host does, and what
 * is told when a process, a link or a host is gone. Times are printed, not judged. What
 * strangers do is in test_attacks.c. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "runtime/control/internal.h"
#include "runtime/network/network.h"
#include "tests/runtime/hosts/deeds.h"
#include "tests/runtime/stencil.h"
#include "tests/share/share.h"

#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

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
                                           .mode = deed_modes[m],
                                           .transport = getenv("DEED_TRANSPORT"),
                                           .verify = true};
        stencil_run_in_parts(session, &options);
    }
    peal_graph *g = stencil_graph("23", stencil_relax, NULL);
    peal_plan *plan;
    const peal_plan_options any = {.size_bytes = sizeof(any),
                                   .transport = getenv("DEED_TRANSPORT")};
    JOB_OK(session, peal_graph_compile(g, session, &any, &plan));
    peal_plan_describe(plan, text, sizeof(text));
    TEAM_CHECK(strstr(text, any.transport ? "messages by shm+ucx" : "messages by shm+tcp") != NULL);
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

static void repair_link(void)
{
    assert_true(hosts_run(1, "ip link set eth0 up"));
}

static void pass_packets(void)
{
    assert_true(hosts_run(1, "nft delete table inet cut"));
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
    deed = (test_deed){set_link_down, 0, PEAL_STATUS_PEER_LOST, silence};
    run_fault("a link that is down", PROCESSES, -1, repair_link);
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
    deed = (test_deed){drop_packets, 0, PEAL_STATUS_PEER_LOST, silence};
    run_fault("a host that no packet reaches", PROCESSES, -1, pass_packets);
}

/* ---- networks that carry small packets only, as where a switch knows no jumbo frames ---- */

static const double short_deadline_s = 5;

/* From another host to host 1. */
static void drop_large_packets(const char *from)
{
    char command[300];
    snprintf(command, sizeof(command),
             "nft add table inet small && "
             "nft \"add chain inet small in { type filter hook input priority 0; }\" && "
             "nft add rule inet small in ip saddr %s meta length \"> 1400\" drop",
             from);
    assert_true(hosts_run(1, command));
}

static void pass_all_packets(void)
{
    assert_true(hosts_run(1, "nft delete table inet small"));
}

/* The first collective call takes more than small packets. */
static int member_does_not_join(test_team *team, int process)
{
    peal_session *session = NULL;
    hosts_enter(host_of(team, process));
    return job_open(team, process, short_deadline_s, &session);
}

/* Its neighbour in the tree reaches host 1, and so the job begins; its neighbour in the graph does
 * not. */
static int member_finds_no_path(test_team *team, int process)
{
    peal_session *session = NULL;
    hosts_enter(host_of(team, process));
    TEAM_CHECK(job_open(team, process, short_deadline_s, &session) == PEAL_STATUS_OK);
    const peal_plan_options options = {.size_bytes = sizeof(options),
                                       .transport = getenv("DEED_TRANSPORT")};
    peal_graph *g = stencil_graph("23", stencil_relax, NULL);
    peal_plan *plan = NULL;
    TEAM_CHECK(peal_graph_compile(g, session, &options, &plan) == PEAL_STATUS_ENVIRONMENT);
    if (!is_told(session, "no path from process 2 on h2 to process 1 on h1 for edge exchange "))
        peal_session_print_diagnostics(session, stderr, 0);
    TEAM_CHECK(is_told(session, "no path from process 2 on h2 to process 1 on h1 for edge "));
    TEAM_CHECK(is_told(session, "what was sent has not come by "));
    peal_code code = peal_diagnostics_at(session->diagnostics, 0)->code; /* process 1 found it */
    TEAM_CHECK(code == (process == 1 ? PEAL_E_NO_PATH_TO_HOST : PEAL_E_PEER_CALL_FAILED));
    peal_graph_destroy(g);
    peal_session_destroy(session);
    return 0;
}

static void check_large_packets(void **state)
{
    test_team team;
    (void)state;
    if (!has_packet_filter()) {
        print_message("skipped: there is no nft (package nftables)\n");
        skip();
    }
    drop_large_packets("10.213.0.1");
    team_create(&team, HOSTS);
    team_run(&team, member_does_not_join);
    pass_all_packets();
    for (int p = 0; p < HOSTS; p++)
        assert_int_equal(team.exit_code[p], PEAL_STATUS_ENVIRONMENT);
    team_destroy(&team);
    drop_large_packets("10.213.0.3");
    team_create(&team, HOSTS);
    team_run(&team, member_finds_no_path);
    pass_all_packets();
    for (int p = 0; p < HOSTS; p++)
        assert_int_equal(team.exit_code[p], 0);
    team_destroy(&team);
}

/* ---- what a job bears ---- */

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
    deed = (test_deed){.act = do_nothing, .process = 0};
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
    deed = (test_deed){.act = pause_process_3, .process = 0};
    deed_mode = deed_modes[share_of(3).first % 3];
    job_run_all(PROCESSES, member_goes_on);
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

/* By DEED_TRANSPORT: what tells of a fault is the control plane as before. */
static int run_by_ucx(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_results),
        cmocka_unit_test(check_killed),
        cmocka_unit_test(check_killed_with_copy),
        cmocka_unit_test(check_link_down),
        cmocka_unit_test(check_large_packets),
        cmocka_unit_test(check_loss),
        cmocka_unit_test(check_pause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_results),
        cmocka_unit_test(check_killed),
        cmocka_unit_test(check_killed_with_copy),
        cmocka_unit_test(check_link_down),
        cmocka_unit_test(check_dropped),
        cmocka_unit_test(check_large_packets),
        cmocka_unit_test(check_loss),
        cmocka_unit_test(check_pause),
        cmocka_unit_test(check_no_address),
    };
    const char *why = getenv("DEED_TRANSPORT") ? peal_network_refuses(PEAL_TRANSPORT_UCX) : NULL;
    if (!why)
        why = hosts_create();
    if (why) {
        printf("skipped: %s\n", why);
        return 77;
    }
    cmocka_set_test_filter(getenv("DEED_ONLY")); /* one of them, by name */
    if (getenv("DEED_TRANSPORT"))
        return run_by_ucx();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
