/* The control plane when something goes wrong: every process ends with the first cause. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "runtime/control/wire.h"
#include "tests/runtime/control/team.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static const int64_t long_deadline = INT64_C(60000000000), short_deadline = INT64_C(2000000000);

/* Until the abort word is set: the outcome that is tested (a member's alarm ends it otherwise). */
static void await_abort(team_seat *self)
{
    while (!atomic_load(&self->abort_word))
        poll(NULL, 0, 1);
}

static void tell_cause(const team_seat *self, test_team *team, int process)
{
    int finder = -1;
    char message[256];
    peal_control_cause(self->control, &finder, message, sizeof(message));
    /* who has found it has reported it by then */
    const peal_diagnostics *list = self->diagnostics;
    const char *number = finder == process && peal_diagnostics_count(list) > 0
                             ? peal_code_number(peal_diagnostics_at(list, 0)->code)
                             : "";
    snprintf(team->board->text[process], TEAM_TEXT, "%d: %.256s%s", finder, message, number);
}

static void tell_diagnostics(const team_seat *self, test_team *team, int process)
{
    const peal_diagnostics *list = self->diagnostics;
    if (peal_diagnostics_count(list) > 0)
        snprintf(team->board->text[process], TEAM_TEXT, "%s %s",
                 peal_code_number(peal_diagnostics_at(list, 0)->code),
                 peal_diagnostics_at(list, 0)->message);
}

/* Whoever found the cause has reported it under this number. */
static void assert_reported(const test_team *team, const char *number)
{
    for (int p = 0; p < team->processes; p++)
        if (strstr(team->board->text[p], number))
            return;
    for (int p = 0; p < team->processes; p++)
        print_error("process %d: %s\n", p, team->board->text[p]);
    fail_msg("no process has reported %s", number);
}

static const int sizes[] = {2, 3, 5, 8};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static int abort_in_the_middle(test_team *team, int process)
{
    team_seat self;
    char none[8];
    TEAM_CHECK(team_join(&self, team, process, long_deadline) == PEAL_STATUS_OK);
    team_meet(team);
    if (process == team->processes - 1)
        peal_control_abort(self.control, PEAL_STATUS_SPEC, "the reason");
    else /* returns early: the last process never comes */
        TEAM_CHECK(peal_control_broadcast(self.control, team->processes - 1, none, 8) ==
                   PEAL_STATUS_SPEC);
    TEAM_CHECK(peal_control_barrier(self.control) == PEAL_STATUS_SPEC);
    TEAM_CHECK(self.abort_word == PEAL_STATUS_SPEC);
    peal_control_abort(self.control, PEAL_STATUS_DEVICE, "a later reason");
    tell_cause(&self, team, process);
    team_leave(&self);
    return 0;
}

static void check_abort(void **state)
{
    (void)state;
    for (int i = 0; i < SIZES; i++) {
        test_team team;
        char expected[64];
        team_create(&team, sizes[i]);
        team_run(&team, abort_in_the_middle);
        snprintf(expected, sizeof(expected), "%d: the reason", sizes[i] - 1);
        for (int p = 0; p < sizes[i]; p++) {
            assert_int_equal(team.exit_code[p], 0);
            assert_string_equal(team.board->text[p], expected);
        }
        team_destroy(&team);
    }
}

/* flag[0]: who dies. */
/* Processes pretend to be on other hosts: their kernels tell nothing of each other's processes. */
static bool is_over_tcp(void)
{
    return getenv("PEAL_TEST_HOSTS") != NULL;
}

static int one_dies(test_team *team, int process)
{
    team_seat self;
    TEAM_CHECK(team_join(&self, team, process, long_deadline) == PEAL_STATUS_OK);
    team_meet(team);
    if (process == team->board->flag[0])
        raise(SIGKILL);
    await_abort(&self);
    TEAM_CHECK(self.abort_word == PEAL_STATUS_PEER_LOST);
    tell_cause(&self, team, process);
    team_leave(&self);
    return 0;
}

static void check_death(void **state)
{
    (void)state;
    for (int i = 0; i < SIZES; i++)
        for (int victim = 0; victim < sizes[i]; victim++) {
            test_team team;
            char expected[64];
            team_create(&team, sizes[i]);
            team.board->flag[0] = victim;
            team_run(&team, one_dies);
            snprintf(expected, sizeof(expected), ": process %d (pid ", victim);
            for (int p = 0; p < sizes[i]; p++) {
                assert_int_equal(team.exit_code[p], p == victim ? 128 + SIGKILL : 0);
                if (p != victim)
                    assert_non_null(strstr(team.board->text[p], expected));
            }
            team_destroy(&team);
        }
}

/* Its sockets stay open in a child that it had forked: the end of the process still counts. */
static int one_dies_after_fork(test_team *team, int process)
{
    team_seat self;
    TEAM_CHECK(team_join(&self, team, process, long_deadline) == PEAL_STATUS_OK);
    team_meet(team);
    if (process == 1) {
        pid_t holder = fork();
        TEAM_CHECK(holder >= 0);
        if (holder)
            raise(SIGKILL);
        int64_t limit = peal_clock_ns() + long_deadline / 3;
        while (atomic_load(&team->board->flag[2]) < team->processes - 1)
            if (poll(NULL, 0, 1) == 0 && peal_clock_ns() > limit) {
                atomic_store(&team->board->flag[3], 1); /* nobody noticed */
                break;
            }
        _exit(0);
    }
    await_abort(&self);
    atomic_fetch_add(&team->board->flag[2], 1);
    TEAM_CHECK(self.abort_word == PEAL_STATUS_PEER_LOST);
    team_leave(&self);
    return 0;
}

static void check_death_after_fork(void **state)
{
    test_team team;
    (void)state;
    if (is_over_tcp())
        skip();
    team_create(&team, 3);
    team_run(&team, one_dies_after_fork);
    assert_int_equal(team.board->flag[3], 0);
    assert_int_equal(team.exit_code[0], 0);
    assert_int_equal(team.exit_code[2], 0);
    team_destroy(&team);
}

/* A process that exits without a word is as lost as one that was killed, also in a collective. */
static int one_leaves(test_team *team, int process)
{
    team_seat self;
    peal_status status = team_join(&self, team, process, long_deadline);
    if (process == 1)
        _exit(status);
    if (status == PEAL_STATUS_OK) /* else it was gone before all had joined */
        status = peal_control_barrier(self.control);
    TEAM_CHECK(status == PEAL_STATUS_PEER_LOST);
    team_leave(&self);
    return 0;
}

static void check_leaving(void **state)
{
    (void)state;
    for (int i = 0; i < SIZES; i++) {
        test_team team;
        team_create(&team, sizes[i]);
        team_run(&team, one_leaves);
        for (int p = 0; p < sizes[i]; p++)
            assert_int_equal(team.exit_code[p], 0);
        team_destroy(&team);
    }
}

static int one_stays_away(test_team *team, int process)
{
    team_seat self;
    TEAM_CHECK(team_join(&self, team, process, 2 * short_deadline) == PEAL_STATUS_OK);
    if (process == 1)
        await_abort(&self);
    TEAM_CHECK(peal_control_barrier(self.control) == PEAL_STATUS_DEADLINE);
    tell_cause(&self, team, process);
    team_leave(&self);
    return 0;
}

static void check_no_progress(void **state)
{
    test_team team;
    (void)state;
    team_create(&team, 3);
    team_run(&team, one_stays_away);
    for (int p = 0; p < 3; p++) {
        assert_int_equal(team.exit_code[p], 0);
        assert_non_null(strstr(team.board->text[p], "process 1 took no part in a barrier"));
    }
    assert_reported(&team, "E321");
    team_destroy(&team);
}

/* Opens and tells how that ended. */
static int only_join(test_team *team, int process)
{
    team_seat self;
    peal_status status = team_join(&self, team, process, team->deadline_ns);
    tell_diagnostics(&self, team, process);
    team_leave(&self);
    return (int)status;
}

static void check_missing(void **state)
{
    const struct {
        int processes, absent;
    } cases[] = {{2, 0}, {2, 1}, {3, 2}, {8, 0}, {8, 4}, {8, 7}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        test_team team;
        char expected[64];
        team_create(&team, cases[i].processes);
        team.absent = cases[i].absent;
        team.deadline_ns = short_deadline;
        team_run(&team, only_join);
        snprintf(expected, sizeof(expected), "process %d has not joined", team.absent);
        for (int p = 0; p < team.processes; p++) {
            if (p == team.absent)
                continue;
            assert_int_equal(team.exit_code[p], PEAL_STATUS_DEADLINE);
            assert_non_null(strstr(team.board->text[p], expected));
        }
        assert_reported(&team, "E311");
        team_destroy(&team);
    }
}

/* The last process publishes and dies before it connects. */
static int one_dies_early(test_team *team, int process)
{
    if (process == team->processes - 1) {
        peal_bootstrap *bootstrap = team_bootstrap(team, process);
        peal_control_blob blob = {.magic = PEAL_BLOB_MAGIC,
                                  .wire_version = PEAL_WIRE_VERSION,
                                  .process = process,
                                  .processes = team->processes};
        memcpy(blob.endpoint.name, "nobody", 6);
        peal_host_identity(blob.host, sizeof(blob.host));
        bootstrap->ops->put(bootstrap, 0, &blob, sizeof(blob));
        bootstrap->ops->close(bootstrap);
        return PEAL_STATUS_PEER_LOST;
    }
    return only_join(team, process);
}

static void check_early_death(void **state)
{
    (void)state;
    if (is_over_tcp())
        skip();
    for (int i = 0; i < SIZES; i++) {
        test_team team;
        char expected[64];
        team_create(&team, sizes[i]);
        team.deadline_ns = long_deadline;
        team_run(&team, one_dies_early);
        snprintf(expected, sizeof(expected), "process %d ended before it had joined", sizes[i] - 1);
        for (int p = 0; p < sizes[i]; p++) {
            assert_int_equal(team.exit_code[p], PEAL_STATUS_PEER_LOST);
            if (p < sizes[i] - 1)
                assert_non_null(strstr(team.board->text[p], expected));
        }
        team_destroy(&team);
    }
}

/* Process 1 may open no more files. */
static int one_without_descriptors(test_team *team, int process)
{
    struct rlimit before, none;
    TEAM_CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    none = before;
    none.rlim_cur = 3;
    if (process == 1)
        TEAM_CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    int status = only_join(team, process);
    TEAM_CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0); /* tools that run at exit need some */
    return status;
}

static void check_no_descriptors(void **state)
{
    test_team team;
    (void)state;
    team_create(&team, 2);
    team.deadline_ns = short_deadline;
    team_run(&team, one_without_descriptors);
    assert_int_equal(team.exit_code[1], PEAL_STATUS_ENVIRONMENT);
    assert_non_null(strstr(team.board->text[1], "E302 the control plane cannot have "));
    assert_int_equal(team.exit_code[0], PEAL_STATUS_DEADLINE);
    team_destroy(&team);
}

/* number NULL: nothing is reported. */
static void run_lie(team_lie lie, int processes, int expected_status, const char *number,
                    const char *expected_text)
{
    test_team team;
    team_create(&team, processes);
    team.lie = lie;
    team.deadline_ns = lie == TEAM_GARBAGE ? short_deadline : long_deadline;
    team_run(&team, only_join);
    for (int p = 0; p < processes; p++) {
        if (team.exit_code[p] != expected_status)
            print_error("process %d of %d: %s\n", p, processes, team.board->text[p]);
        assert_int_equal(team.exit_code[p], expected_status);
        assert_non_null(strstr(team.board->text[p], expected_text));
    }
    if (number)
        assert_reported(&team, number);
    team_destroy(&team);
}

static void check_lies(void **state)
{
    (void)state;
    for (int i = 0; i < SIZES; i++) {
        run_lie(TEAM_EARLY, sizes[i], PEAL_STATUS_OK, NULL, "");
        run_lie(TEAM_PEER, sizes[i], PEAL_STATUS_OK, NULL, "");
    }
    run_lie(TEAM_GARBAGE, 5, PEAL_STATUS_ENVIRONMENT, "E310", "gave nothing of peal's");
}

static void check_version(void **state)
{
    (void)state;
    for (int i = 0; i < SIZES; i++)
        run_lie(TEAM_VERSION, sizes[i], PEAL_STATUS_ENVIRONMENT, "E312", "of peal's control plane");
}

static void check_hosts(void **state)
{
    (void)state;
    if (is_over_tcp())
        skip();
    for (int i = 0; i < SIZES; i++)
        run_lie(TEAM_HOST, sizes[i], PEAL_STATUS_ENVIRONMENT, "E313", "run on different hosts");
}

static int different_calls(test_team *team, int process)
{
    team_seat self;
    char data[16] = "";
    TEAM_CHECK(team_join(&self, team, process, long_deadline) == PEAL_STATUS_OK);
    team_meet(team);
    peal_status status = process == 1 ? peal_control_broadcast(self.control, 1, data, 16)
                                      : peal_control_barrier(self.control);
    TEAM_CHECK(status == PEAL_STATUS_INTERNAL);
    tell_diagnostics(&self, team, process);
    team_leave(&self);
    return 0;
}

static int different_sizes(test_team *team, int process)
{
    team_seat self;
    char all[64];
    TEAM_CHECK(team_join(&self, team, process, long_deadline) == PEAL_STATUS_OK);
    team_meet(team);
    TEAM_CHECK(peal_control_allgather(self.control, "12345678", process == 1 ? 8 : 4, all) ==
               PEAL_STATUS_INTERNAL);
    tell_diagnostics(&self, team, process);
    team_leave(&self);
    return 0;
}

static void check_disagreement(void **state)
{
    const team_member members[] = {different_calls, different_sizes};
    (void)state;
    for (int m = 0; m < 2; m++) {
        test_team team;
        team_create(&team, 3);
        team_run(&team, members[m]);
        for (int p = 0; p < 3; p++)
            assert_int_equal(team.exit_code[p], 0);
        assert_reported(&team, "E322");
        team_destroy(&team);
    }
}

static int fetch_never_published(test_team *team, int process)
{
    team_seat self;
    int descriptor = -1;
    TEAM_CHECK(team_join(&self, team, process, short_deadline / 4) == PEAL_STATUS_OK);
    TEAM_CHECK(peal_control_fetch(self.control, 0, 5, &descriptor, NULL) == PEAL_STATUS_DEADLINE);
    TEAM_CHECK(descriptor == -1);
    tell_diagnostics(&self, team, process);
    TEAM_CHECK(self.abort_word == 0);
    team_meet(team); /* nobody leaves before both have looked */
    team_leave(&self);
    return 0;
}

static void check_fetch_deadline(void **state)
{
    test_team team;
    (void)state;
    if (is_over_tcp())
        skip();
    team_create(&team, 2);
    team_run(&team, fetch_never_published);
    for (int p = 0; p < 2; p++) {
        assert_int_equal(team.exit_code[p], 0);
        assert_non_null(strstr(team.board->text[p], "E323 process 0 has not offered"));
    }
    team_destroy(&team);
}

/* flag[0]: who dies while the others wait for its memory. */
static int fetch_from_who_dies(test_team *team, int process)
{
    team_seat self;
    int descriptor = -1, victim = team->board->flag[0];
    TEAM_CHECK(team_join(&self, team, process, long_deadline) == PEAL_STATUS_OK);
    team_meet(team);
    if (process == victim) {
        poll(NULL, 0, 50); /* most of them have asked */
        raise(SIGKILL);
    }
    TEAM_CHECK(peal_control_fetch(self.control, victim, 5, &descriptor, NULL) ==
               PEAL_STATUS_PEER_LOST);
    TEAM_CHECK(descriptor == -1 && self.abort_word == PEAL_STATUS_PEER_LOST);
    tell_cause(&self, team, process);
    team_leave(&self);
    return 0;
}

/* The end of the connection comes at once, its reason from neighbour to neighbour: who waits for
 * memory tells the reason. */
static void check_fetch_from_who_dies(void **state)
{
    static const int victims[] = {0, 3, 7};
    (void)state;
    if (is_over_tcp())
        skip();
    for (int v = 0; v < 3; v++) {
        test_team team;
        char expected[64];
        team_create(&team, 8);
        team.board->flag[0] = victims[v];
        team_run(&team, fetch_from_who_dies);
        snprintf(expected, sizeof(expected), ": process %d (pid ", victims[v]);
        for (int p = 0; p < 8; p++) {
            assert_int_equal(team.exit_code[p], p == victims[v] ? 128 + SIGKILL : 0);
            if (p != victims[v])
                assert_non_null(strstr(team.board->text[p], expected));
        }
        team_destroy(&team);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_abort),
        cmocka_unit_test(check_death),
        cmocka_unit_test(check_death_after_fork),
        cmocka_unit_test(check_leaving),
        cmocka_unit_test(check_no_progress),
        cmocka_unit_test(check_missing),
        cmocka_unit_test(check_no_descriptors),
        cmocka_unit_test(check_early_death),
        cmocka_unit_test(check_lies),
        cmocka_unit_test(check_version),
        cmocka_unit_test(check_hosts),
        cmocka_unit_test(check_disagreement),
        cmocka_unit_test(check_fetch_deadline),
        cmocka_unit_test(check_fetch_from_who_dies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
