/* Streams that the control plane hands out: each pair of processes gets the ones it asks for, in
 * any order, each key its own; who waits for one that does not come is told so. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "runtime/control/wire.h"
#include "tests/runtime/control/team.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static const int64_t long_deadline = INT64_C(60000000000), short_deadline = INT64_C(300000000);

enum { KEYS = 3 };

/* What is sent from one process to another on a stream. */
static unsigned char word_of(int from, int to, int key)
{
    return (unsigned char)(from * 50 + to * 7 + key + 1);
}

static void wait_readable(int socket)
{
    struct pollfd event = {socket, POLLIN, 0};
    while (poll(&event, 1, -1) < 0)
        ;
}

static int all_pairs(test_team *team, int process)
{
    team_seat self = {0};
    int stream[TEAM_LIMIT][KEYS], processes = team->processes;
    TEAM_CHECK(team_join(&self, team, process, long_deadline) == PEAL_STATUS_OK);
    /* To lower ones without waiting, in an order of their own; then from higher ones, which some
     * have opened by now and some have not. */
    for (int other = 0; other < process; other++)
        for (int k = 0; k < KEYS; k++) {
            int key = (k + process) % KEYS, *at = &stream[other][key];
            unsigned char word = word_of(process, other, key);
            TEAM_CHECK(peal_control_connect(self.control, other, key, at) == PEAL_STATUS_OK);
            TEAM_CHECK(send(*at, &word, 1, 0) == 1);
        }
    for (int other = processes - 1; other > process; other--)
        for (int key = 0; key < KEYS; key++) {
            unsigned char word = word_of(process, other, key);
            TEAM_CHECK(peal_control_connect(self.control, other, key, &stream[other][key]) ==
                       PEAL_STATUS_OK);
            TEAM_CHECK(send(stream[other][key], &word, 1, 0) == 1);
        }
    for (int other = 0; other < processes; other++)
        for (int key = 0; key < KEYS && other != process; key++) {
            int socket = stream[other][key];
            unsigned char word = 0;
            TEAM_CHECK(fcntl(socket, F_GETFD) & FD_CLOEXEC);
            TEAM_CHECK(fcntl(socket, F_GETFL) & O_NONBLOCK);
            wait_readable(socket);
            TEAM_CHECK(recv(socket, &word, 1, 0) == 1 && word == word_of(other, process, key));
            TEAM_CHECK(recv(socket, &word, 1, MSG_DONTWAIT) < 0); /* and no more */
        }
    TEAM_CHECK(peal_control_barrier(self.control) == PEAL_STATUS_OK);
    for (int other = 0; other < processes; other++)
        for (int key = 0; key < KEYS && other != process; key++)
            close(stream[other][key]);
    team_leave(&self);
    return 0;
}

static void check_all_pairs(void **state)
{
    static const int sizes[] = {2, 3, 5, 8};
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        test_team team;
        team_create(&team, sizes[i]);
        team_run(&team, all_pairs);
        for (int p = 0; p < sizes[i]; p++)
            assert_int_equal(team.exit_code[p], 0);
        team_destroy(&team);
    }
}

/* Process 0 asks for a stream that process 1 never opens; process 1 opens one that nobody asks for,
 * and one of a key that was asked for by another process. */
static int one_sided(test_team *team, int process)
{
    team_seat self = {0};
    int stream = -1, wrong = -1;
    TEAM_CHECK(team_join(&self, team, process, short_deadline) == PEAL_STATUS_OK);
    if (process == 0)
        TEAM_CHECK(peal_control_connect(self.control, 1, 5, &stream) == PEAL_STATUS_DEADLINE);
    if (process == 1)
        TEAM_CHECK(peal_control_connect(self.control, 0, 6, &stream) == PEAL_STATUS_OK);
    if (process == 2)
        TEAM_CHECK(peal_control_connect(self.control, 0, 5, &stream) == PEAL_STATUS_OK);
    TEAM_CHECK(peal_control_connect(self.control, process, 1, &wrong) == PEAL_STATUS_INTERNAL);
    TEAM_CHECK(peal_control_connect(self.control, 3, 1, &wrong) == PEAL_STATUS_INTERNAL);
    TEAM_CHECK(wrong == -1);
    team_meet(team);
    if (process == 0) {
        const peal_diagnostics *list = self.diagnostics;
        bool told = false;
        for (int i = 0; i < peal_diagnostics_count(list); i++)
            told |= peal_diagnostics_at(list, i)->code == PEAL_E_MEMORY_NOT_OFFERED &&
                    strstr(peal_diagnostics_at(list, i)->message, "process 1") != NULL;
        TEAM_CHECK(told);
    }
    if (stream >= 0)
        close(stream);
    team_leave(&self);
    return 0;
}

static void check_one_sided(void **state)
{
    test_team team;
    (void)state;
    team_create(&team, 3);
    team_run(&team, one_sided);
    for (int p = 0; p < 3; p++)
        assert_int_equal(team.exit_code[p], 0);
    team_destroy(&team);
}

/* The victim dies while the others wait for a stream from it, or open one to it. */
static int with_a_victim(test_team *team, int process)
{
    team_seat self = {0};
    int victim = team->processes / 2, stream = -1;
    alarm(30);
    TEAM_CHECK(team_join(&self, team, process, long_deadline) == PEAL_STATUS_OK);
    team_meet(team);
    if (process == victim)
        raise(SIGKILL);
    peal_status status = PEAL_STATUS_OK;
    while (status == PEAL_STATUS_OK) { /* its listener may take some before it is closed */
        status = peal_control_connect(self.control, victim, 1, &stream);
        if (status == PEAL_STATUS_OK)
            close(stream);
    }
    TEAM_CHECK(status == PEAL_STATUS_PEER_LOST);
    team_leave(&self);
    return 0;
}

static void check_a_victim(void **state)
{
    static const int sizes[] = {2, 3, 5};
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        test_team team;
        team_create(&team, sizes[i]);
        team_run(&team, with_a_victim);
        for (int p = 0; p < sizes[i]; p++)
            assert_int_equal(team.exit_code[p], p == sizes[i] / 2 ? 128 + SIGKILL : 0);
        team_destroy(&team);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_all_pairs),
        cmocka_unit_test(check_one_sided),
        cmocka_unit_test(check_a_victim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
