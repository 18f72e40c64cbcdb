/* Sessions: creation and misuse, agreement over processes, meetings, aborts, lost peers. */
#define _GNU_SOURCE
#include "base/backoff.h"
#include "base/clock.h"
#include "tests/runtime/job.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <peal/exchange.h>
#include <sys/wait.h>

static void one_process(void **state)
{
    (void)state;
    peal_session *session = NULL;
    assert_int_equal(peal_session_create(NULL, &session), PEAL_STATUS_OK);
    assert_int_equal(peal_session_process(session), 0);
    assert_int_equal(peal_session_processes(session), 1);
    assert_int_equal(peal_session_local_process(session), 0);
    assert_int_equal(peal_session_local_processes(session), 1);
    assert_string_equal(peal_session_bootstrap(session), "single");
    assert_int_equal(peal_session_status(session), PEAL_STATUS_OK);
    assert_int_equal(peal_session_error_count(session), 0);
    assert_int_equal(peal_session_barrier(session, PEAL_BARRIER_START, 1, 1), PEAL_STATUS_OK);
    peal_session_destroy(session);
    peal_session_destroy(NULL);
}

static void refuse_desc(peal_session_desc desc, const char *text)
{
    char *printed = NULL;
    size_t bytes = 0;
    desc.log = open_memstream(&printed, &bytes);
    desc.log_level = PEAL_LOG_ERROR;
    peal_session *session = NULL;
    assert_int_equal(peal_session_create(&desc, &session), PEAL_STATUS_USAGE);
    assert_null(session);
    fclose(desc.log);
    if (text)
        assert_non_null(strstr(printed, text));
    free(printed);
}

/* In a child: a session that cannot be created, or one whose exchange cannot; what it prints, and
 * the status that it exits with. */
static int exit_of_fatal(bool is_created, char *text, size_t bytes)
{
    int pipes[2], status;
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        close(pipes[0]);
        peal_session_desc desc = {.size_bytes = sizeof(desc),
                                  .deadline_s = is_created ? 0 : -1,
                                  .log = fdopen(pipes[1], "w"),
                                  .fatal = true};
        peal_session *session = NULL;
        peal_exchange *exchange = NULL;
        peal_session_create(&desc, &session);
        peal_exchange_create_desc(session, &(peal_halo_desc){.size_bytes = 1, .source = PEAL_HERE},
                                  &exchange);
        _exit(77); /* a failed call has returned */
    }
    close(pipes[1]);
    ssize_t count = 0, now;
    while ((now = read(pipes[0], text + count, bytes - 1 - (size_t)count)) > 0)
        count += now;
    text[count] = 0;
    close(pipes[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void fatal_failures(void **state)
{
    (void)state;
    char text[1000];
    assert_int_equal(exit_of_fatal(false, text, sizeof(text)), PEAL_STATUS_USAGE);
    assert_non_null(strstr(text, "the deadline of a session is -1 [E350]"));
    assert_int_equal(exit_of_fatal(true, text, sizeof(text)), PEAL_STATUS_USAGE);
    assert_non_null(strstr(text, "test_session.c:"));
    assert_non_null(strstr(text, "peal_halo_desc has"));
}

static void descriptors(void **state)
{
    (void)state;
    refuse_desc((peal_session_desc){.size_bytes = sizeof(peal_session_desc), .deadline_s = -1},
                "E350");
    refuse_desc((peal_session_desc){.size_bytes = sizeof(peal_session_desc),
                                    .network_ports = {5, 4}},
                "E350");
    refuse_desc((peal_session_desc){.size_bytes = sizeof(peal_session_desc),
                                    .network_interface = "10.1.0.0/99"},
                "E350");
    refuse_desc((peal_session_desc){.size_bytes = sizeof(peal_session_desc), .deadline_s = 1e300},
                "E350");
    refuse_desc((peal_session_desc){.size_bytes = 3}, NULL);
    assert_int_equal(peal_session_create(NULL, NULL), PEAL_STATUS_USAGE);
}

static int member_agrees(test_team *team, int process)
{
    peal_session *session;
    TEAM_CHECK(job_open(team, process, 0, &session) == PEAL_STATUS_OK);
    TEAM_CHECK(peal_session_process(session) == process);
    TEAM_CHECK(peal_session_processes(session) == team->processes);
    TEAM_CHECK(!strcmp(peal_session_bootstrap(session), "caller"));
    TEAM_CHECK(peal_session_agree(session, PEAL_STATUS_OK, 0) == PEAL_STATUS_OK);
    peal_status mine = PEAL_STATUS_OK;
    if (process == 1)
        mine = peal_report(peal_session_diagnostics(session), PEAL_E_FEWER_RANKS_THAN_PROCESSES,
                           PEAL_NO_SOURCE, NULL, "something about ranks");
    if (process == 2)
        mine = PEAL_STATUS_DEVICE;
    /* the first by number counts, everywhere; those that were fine say who it was */
    TEAM_CHECK(peal_session_agree(session, mine, 0) == PEAL_STATUS_USAGE);
    TEAM_CHECK(job_reported(session, PEAL_E_PEER_CALL_FAILED, "process 1: something about ranks") ==
               !mine);
    for (int round = 0; round < 100; round++)
        TEAM_CHECK(peal_session_barrier(session, PEAL_BARRIER_START, 7, round) == PEAL_STATUS_OK);
    peal_session_destroy(session);
    return 0;
}

static void agreement(void **state)
{
    (void)state;
    job_run_all(4, member_agrees);
}

static int member_differs(test_team *team, int process, int kind, uint64_t hash, int64_t count,
                          const char *text)
{
    peal_session *session;
    TEAM_CHECK(job_open(team, process, 0, &session) == PEAL_STATUS_OK);
    TEAM_CHECK(peal_session_barrier(session, kind, hash, count) == PEAL_STATUS_USAGE);
    /* Who comes when another one has found it out is told by that one. */
    TEAM_CHECK(job_reported(session, PEAL_E_CALLS_DIFFER, text) ||
               job_reported(session, PEAL_E_JOB_ENDED_BY_PEER, text));
    TEAM_CHECK(peal_session_status(session) == PEAL_STATUS_USAGE);
    peal_session_destroy(session);
    return 0;
}

static int member_other_steps(test_team *team, int process)
{
    return member_differs(team, process, PEAL_BARRIER_START, 5, process == 2 ? 11 : 10,
                          "process 0 has 10 steps, process 2 has 11");
}

static int member_other_plan(test_team *team, int process)
{
    return member_differs(team, process, PEAL_BARRIER_START, process == 1 ? 6 : 5, 10,
                          "process 1 at plan 0000000000000006");
}

static int member_other_call(test_team *team, int process)
{
    return member_differs(team, process, process == 1 ? PEAL_BARRIER_FINISH : PEAL_BARRIER_START, 5,
                          10, "process 1 calls peal_plan_finish");
}

/* As if a kernel had written over the board. */
static int member_says_nonsense(test_team *team, int process)
{
    peal_session *session;
    int kind = process == 1 ? 0x40490fdb : PEAL_BARRIER_START;
    TEAM_CHECK(job_open(team, process, 0, &session) == PEAL_STATUS_OK);
    TEAM_CHECK(peal_session_barrier(session, kind, 5, 10) == PEAL_STATUS_SPEC);
    TEAM_CHECK(job_reported(session, PEAL_E_MEMORY_OVERWRITTEN, "what process 1 says"));
    peal_session_destroy(session);
    return 0;
}

static void differing_barriers(void **state)
{
    (void)state;
    job_run_all(3, member_other_steps);
    job_run_all(3, member_other_plan);
    job_run_all(2, member_other_call);
    job_run_all(3, member_says_nonsense);
}

static int member_aborts(test_team *team, int process)
{
    peal_session *session;
    TEAM_CHECK(job_open(team, process, 0, &session) == PEAL_STATUS_OK);
    job_pass_together(team, process);
    if (process == 1)
        peal_session_abort(session, PEAL_STATUS_DEVICE, "the device is on fire");
    TEAM_CHECK(peal_session_barrier(session, PEAL_BARRIER_START, 5, 10) == PEAL_STATUS_DEVICE);
    TEAM_CHECK(peal_session_status(session) == PEAL_STATUS_DEVICE);
    if (process != 1)
        TEAM_CHECK(job_reported(session, PEAL_E_JOB_ENDED_BY_PEER, "the device is on fire"));
    peal_session_destroy(session);
    return 0;
}

static void aborts(void **state)
{
    (void)state;
    job_run_all(3, member_aborts);
}

static int member_dies(test_team *team, int process)
{
    peal_session *session;
    TEAM_CHECK(job_open(team, process, 0, &session) == PEAL_STATUS_OK);
    job_pass_together(team, process);
    if (process == 1)
        raise(SIGKILL);
    TEAM_CHECK(peal_session_barrier(session, PEAL_BARRIER_START, 5, 10) == PEAL_STATUS_PEER_LOST);
    TEAM_CHECK(job_reported(session, PEAL_E_PROCESS_LOST, "process 1") ||
               job_reported(session, PEAL_E_JOB_ENDED_BY_PEER, "process 1"));
    peal_session_destroy(session);
    return 0;
}

static void lost_peer(void **state)
{
    (void)state;
    job_run_all_but(3, 1, member_dies);
}

/* Process 1 comes only after process 0 has given up. */
static int member_is_late(test_team *team, int process)
{
    peal_session *session;
    TEAM_CHECK(job_open(team, process, process == 0 ? 0.2 : 60, &session) == PEAL_STATUS_OK);
    if (process == 0) {
        TEAM_CHECK(peal_session_barrier(session, PEAL_BARRIER_START, 5, 10) ==
                   PEAL_STATUS_DEADLINE);
        TEAM_CHECK(job_reported(session, PEAL_E_PROCESS_DID_NOT_CALL, "process 1 did not come"));
    } else {
        peal_backoff backoff = peal_backoff_of_processes();
        while (!peal_session_status(session))
            peal_backoff_wait(&backoff);
        TEAM_CHECK(peal_session_barrier(session, PEAL_BARRIER_START, 5, 10) ==
                   PEAL_STATUS_DEADLINE);
    }
    peal_session_destroy(session);
    return 0;
}

static void deadline(void **state)
{
    (void)state;
    job_run_all(2, member_is_late);
}

/* While process 1 says that it runs something, process 0 waits beyond the deadline. */
static int member_runs_long(test_team *team, int process)
{
    peal_session *session;
    TEAM_CHECK(job_open(team, process, process == 0 ? 0.2 : 60, &session) == PEAL_STATUS_OK);
    if (process == 1)
        peal_session_running(session, true);
    TEAM_CHECK(peal_session_barrier(session, PEAL_BARRIER_START, 1, 0) == PEAL_STATUS_OK);
    if (process == 1) {
        int64_t since = peal_clock_ns();
        peal_backoff backoff = peal_backoff_of_processes();
        while (peal_clock_ns() - since < 500000000)
            peal_backoff_wait(&backoff);
    }
    TEAM_CHECK(peal_session_barrier(session, PEAL_BARRIER_FINISH, 1, 0) == PEAL_STATUS_OK);
    peal_session_destroy(session);
    return 0;
}

static void long_run(void **state)
{
    (void)state;
    job_run_all(2, member_runs_long);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_process),        cmocka_unit_test(descriptors),
        cmocka_unit_test(fatal_failures),     cmocka_unit_test(agreement),
        cmocka_unit_test(differing_barriers), cmocka_unit_test(aborts),
        cmocka_unit_test(lost_peer),          cmocka_unit_test(deadline),
        cmocka_unit_test(long_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
