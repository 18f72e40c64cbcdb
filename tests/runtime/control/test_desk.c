/* Questions that a process answers while it does something else: every one is answered once, in any
 * order of asking and serving; who asks one that has gone, or that nobody will serve, is told so.
 */
#define _GNU_SOURCE
#include "runtime/control/control.h"
#include "tests/runtime/control/team.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const int64_t long_deadline = INT64_C(60000000000), short_deadline = INT64_C(300000000);

enum { PROCESSES = 6, THREADS = 3, TIMES = 200, KEY = 7, OTHER_KEY = 9 };

/* Adds up what it is told; the answer has the sum before. */
typedef struct counter {
    _Atomic uint64_t sum;
    _Atomic int released;
} counter;

static void add(void *user, const uint64_t question[], uint64_t answer[])
{
    counter *c = user;
    answer[0] = atomic_fetch_add(&c->sum, question[1]);
    answer[1] = question[0] + 1;
    answer[2] = question[2];
}

static void release(void *user)
{
    atomic_fetch_add(&((counter *)user)->released, 1);
}

static void *ask_often(void *control)
{
    for (uint64_t i = 0; i < TIMES; i++) {
        const uint64_t question[PEAL_QUESTION_WORDS] = {i, 1, UINT64_MAX - i};
        uint64_t answer[PEAL_QUESTION_WORDS];
        TEAM_CHECK(peal_control_ask(control, 0, KEY, question, answer) == PEAL_STATUS_OK);
        TEAM_CHECK(answer[0] < (uint64_t)PROCESSES * THREADS * TIMES && answer[1] == i + 1 &&
                   answer[2] == UINT64_MAX - i);
    }
    return NULL;
}

static void ask_from_threads(peal_control *control)
{
    pthread_t thread[THREADS];
    for (int t = 0; t < THREADS; t++)
        TEAM_CHECK(pthread_create(&thread[t], NULL, ask_often, control) == 0);
    for (int t = 0; t < THREADS; t++)
        pthread_join(thread[t], NULL);
}

/* Process 0 begins to serve when others ask already, and says at once that it asks no more. */
static int ask_process_0(test_team *team, int process)
{
    team_seat self;
    counter c = {0};
    TEAM_CHECK(team_join(&self, team, process, long_deadline) == PEAL_STATUS_OK);
    if (process == 0) {
        usleep(50000);
        TEAM_CHECK(peal_control_serve(self.control, KEY, PROCESSES, add, release, &c) ==
                   PEAL_STATUS_OK);
    }
    ask_from_threads(self.control);
    peal_control_ask_no_more(self.control, 0, KEY);
    TEAM_CHECK(peal_control_barrier(self.control) == PEAL_STATUS_OK);
    TEAM_CHECK(process || atomic_load(&c.sum) == (uint64_t)PROCESSES * THREADS * TIMES);
    TEAM_CHECK(process || atomic_load(&c.released) == 1);
    TEAM_CHECK(peal_diagnostics_count(self.diagnostics) == 0);
    team_leave(&self);
    return 0;
}

static void run(team_member member, int victim)
{
    test_team team;
    team_create(&team, PROCESSES);
    team_run(&team, member);
    for (int p = 0; p < PROCESSES; p++)
        assert_int_equal(team.exit_code[p], p == victim ? 128 + SIGKILL : 0);
    team_destroy(&team);
}

static void all_are_answered(void **state)
{
    (void)state;
    run(ask_process_0, -1);
}

/* What has not been asked for the last time is released with the control. */
static int leave_early(test_team *team, int process)
{
    team_seat self;
    counter c = {0};
    TEAM_CHECK(team_join(&self, team, process, long_deadline) == PEAL_STATUS_OK);
    TEAM_CHECK(process || peal_control_serve(self.control, KEY, PROCESSES, add, release, &c) ==
                              PEAL_STATUS_OK);
    ask_often(self.control);
    if (process % 2)
        peal_control_ask_no_more(self.control, 0, KEY);
    TEAM_CHECK(peal_control_barrier(self.control) == PEAL_STATUS_OK);
    TEAM_CHECK(atomic_load(&c.released) == 0);
    team_leave(&self);
    TEAM_CHECK(process || atomic_load(&c.released) == 1);
    return 0;
}

static void the_rest_is_released(void **state)
{
    (void)state;
    run(leave_early, -1);
}

static int ask_in_vain(test_team *team, int process)
{
    team_seat self;
    const uint64_t question[PEAL_QUESTION_WORDS] = {0};
    uint64_t answer[PEAL_QUESTION_WORDS];
    TEAM_CHECK(team_join(&self, team, process, short_deadline) == PEAL_STATUS_OK);
    if (process == 0) {
        TEAM_CHECK(peal_control_ask(self.control, 0, KEY, question, answer) ==
                   PEAL_STATUS_INTERNAL);
    } else if (process == 1) {
        TEAM_CHECK(peal_control_ask(self.control, 0, OTHER_KEY, question, answer) ==
                   PEAL_STATUS_DEADLINE);
        TEAM_CHECK(strstr(peal_diagnostics_at(self.diagnostics, 0)->message,
                          "process 0 has not answered within 0.3 s"));
    }
    team_meet(team);
    team_leave(&self);
    return 0;
}

static void nobody_serves(void **state)
{
    (void)state;
    run(ask_in_vain, -1);
}

/* Process 0 dies while it is asked. */
static int ask_the_dead(test_team *team, int process)
{
    team_seat self;
    const uint64_t question[PEAL_QUESTION_WORDS] = {0, 1, 0};
    uint64_t answer[PEAL_QUESTION_WORDS];
    counter c = {0};
    peal_status status = PEAL_STATUS_OK;
    TEAM_CHECK(team_join(&self, team, process, long_deadline) == PEAL_STATUS_OK);
    team_meet(team);
    if (process == 0) {
        TEAM_CHECK(peal_control_serve(self.control, KEY, PROCESSES, add, release, &c) ==
                   PEAL_STATUS_OK);
        while (atomic_load(&c.sum) == 0)
            usleep(1000);
        raise(SIGKILL);
    }
    while (status == PEAL_STATUS_OK)
        status = peal_control_ask(self.control, 0, KEY, question, answer);
    TEAM_CHECK(status == PEAL_STATUS_PEER_LOST);
    team_leave(&self);
    return 0;
}

static void the_dead_do_not_answer(void **state)
{
    (void)state;
    run(ask_the_dead, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_answered),
        cmocka_unit_test(the_rest_is_released),
        cmocka_unit_test(nobody_serves),
        cmocka_unit_test(the_dead_do_not_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
