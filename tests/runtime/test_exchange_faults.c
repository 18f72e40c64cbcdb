/* Exchanges that are asked for wrongly, that processes ask for differently, and neighbours that do
 * not come, on one host and over several. */
#define _GNU_SOURCE
#include "runtime/network/tcp.h"
#include "tests/runtime/job.h"

#include <peal/exchange.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* A small one, cut along x: n points a process. */
static peal_halo_desc line_of(const peal_session *session, int n)
{
    int process = peal_session_process(session);
    return (peal_halo_desc){.size_bytes = sizeof(peal_halo_desc),
                            .source = PEAL_HERE,
                            .axis_count = 1,
                            .lo = {process * n},
                            .hi = {(process + 1) * n},
                            .field = {{.width = {{1, 1}}}}};
}

static int member_differs(test_team *team, int process)
{
    peal_session *session;
    peal_exchange *exchange = NULL;
    TEAM_CHECK(job_open(team, process, 0, &session) == PEAL_STATUS_OK);
    peal_halo_desc desc = line_of(session, 9);
    desc.field[0].width[0][1] += process;
    TEAM_CHECK(peal_exchange_create_desc(session, &desc, &exchange) == PEAL_STATUS_SPEC);
    TEAM_CHECK(job_reported(session, PEAL_E_GRAPHS_DIFFER,
                            "field 0 of process 1 and that of process 0 differ: width"));
    desc = line_of(session, 9);
    desc.field[process] = desc.field[0];
    TEAM_CHECK(peal_exchange_create_desc(session, &desc, &exchange) == PEAL_STATUS_SPEC);
    TEAM_CHECK(job_reported(session, PEAL_E_GRAPHS_DIFFER,
                            "field 1 of process 1 and that of process 0 differ: presence"));
    desc.field[1] = desc.field[0];
    desc.periodic[0] = process == 0;
    TEAM_CHECK(peal_exchange_create_desc(session, &desc, &exchange) == PEAL_STATUS_SPEC);
    TEAM_CHECK(job_reported(session, PEAL_E_GRAPHS_DIFFER, "differ: periodic axes"));
    TEAM_CHECK(!exchange);
    peal_session_destroy(session);
    return 0;
}

/* Process 1 leaves after one exchange less: process 0 gives up, with the edge that it waited for.
 */
static int member_stops_early(test_team *team, int process)
{
    peal_session *session;
    peal_exchange *exchange;
    TEAM_CHECK(job_open(team, process, process == 0 ? 0.5 : 60, &session) == PEAL_STATUS_OK);
    peal_halo_desc desc = line_of(session, 10);
    TEAM_CHECK(peal_exchange_create_desc(session, &desc, &exchange) == PEAL_STATUS_OK);
    TEAM_CHECK(peal_exchange_start(exchange, 0, NULL) == PEAL_STATUS_OK);
    TEAM_CHECK(peal_exchange_wait(exchange) == PEAL_STATUS_OK);
    if (process == 0) {
        TEAM_CHECK(peal_exchange_start(exchange, 0, NULL) == PEAL_STATUS_OK);
        TEAM_CHECK(peal_exchange_wait(exchange) == PEAL_STATUS_DEADLINE);
        TEAM_CHECK(job_reported(session, PEAL_E_BORDER_LATE, "the border of process 1"));
    }
    TEAM_CHECK(peal_exchange_destroy(exchange) == PEAL_STATUS_DEADLINE);
    peal_session_destroy(session);
    return 0;
}

/* A process that has nothing to say: the others hear of it, and nobody waits. */
static int member_says_nothing(test_team *team, int process)
{
    peal_session *session;
    peal_exchange *exchange = NULL;
    TEAM_CHECK(job_open(team, process, 60, &session) == PEAL_STATUS_OK);
    for (int round = 0; round < 2; round++) {
        peal_halo_desc desc = line_of(session, 9);
        peal_status status = process == 0 ? peal_exchange_create_desc(session, &desc, &exchange)
                                          : peal_exchange_create_desc(session, round ? &desc : NULL,
                                                                      round ? NULL : &exchange);
        TEAM_CHECK(status == PEAL_STATUS_USAGE && !exchange);
        TEAM_CHECK(job_reported(session,
                                process ? PEAL_E_INVALID_DESCRIPTOR : PEAL_E_PEER_CALL_FAILED,
                                round ? "where the exchange goes is NULL" : "desc is NULL"));
    }
    peal_session_destroy(session);
    return 0;
}

static void differing_processes(void **state)
{
    (void)state;
    job_run_all(2, member_differs);
    job_run_all(2, member_says_nothing);
}

static int member_lost(test_team *team, int process)
{
    peal_session *session;
    peal_exchange *exchange;
    TEAM_CHECK(job_open(team, process, 0, &session) == PEAL_STATUS_OK);
    peal_halo_desc desc = line_of(session, 1000);
    desc.periodic[0] = true;
    TEAM_CHECK(peal_exchange_create_desc(session, &desc, &exchange) == PEAL_STATUS_OK);
    TEAM_CHECK(peal_exchange_start(exchange, 0, NULL) == PEAL_STATUS_OK);
    TEAM_CHECK(peal_exchange_wait(exchange) == PEAL_STATUS_OK);
    job_pass_together(team, process);
    if (process == 1)
        raise(SIGKILL);
    peal_status status = PEAL_STATUS_OK;
    for (int round = 0; !status && round < 10; round++) {
        status = peal_exchange_start(exchange, 0, NULL);
        if (!status)
            status = peal_exchange_wait(exchange);
    }
    TEAM_CHECK(status == PEAL_STATUS_PEER_LOST);
    TEAM_CHECK(peal_exchange_start(exchange, 0, NULL) == PEAL_STATUS_PEER_LOST);
    TEAM_CHECK(peal_exchange_destroy(exchange) == PEAL_STATUS_PEER_LOST);
    peal_session_destroy(session);
    return 0;
}

static void faults(void **state)
{
    (void)state;
    job_run_all_but(2, 1, member_lost);
    job_run_all(2, member_stops_early);
}

static void refuse(peal_session *session, peal_halo_desc desc, const char *text)
{
    peal_exchange *exchange = NULL;
    assert_int_equal(peal_exchange_create_desc(session, &desc, &exchange), PEAL_STATUS_USAGE);
    assert_null(exchange);
    assert_true(job_reported(session, PEAL_E_INVALID_EXCHANGE, text));
}

static void refused_descriptors(peal_session *session)
{
    static double memory[100];
    const peal_halo_desc good = line_of(session, 20);
    peal_exchange *none = NULL;
    peal_halo_desc bad = good;
    bad.size_bytes = 12;
    assert_int_equal(peal_exchange_create_desc(session, &bad, &none), PEAL_STATUS_USAGE);
    assert_true(job_reported(session, PEAL_E_INVALID_DESCRIPTOR, NULL));
#define REFUSED(text, ...)                                                                         \
    do {                                                                                           \
        bad = good;                                                                                \
        __VA_ARGS__;                                                                               \
        refuse(session, bad, text);                                                                \
    } while (0)
    REFUSED("5 axes", bad.axis_count = 5);
    REFUSED("axis 1 of 1 is periodic", bad.periodic[1] = true);
    REFUSED("neither memory nor a width", bad.field[0].width[0][0] = bad.field[0].width[0][1] = 0);
    REFUSED("memory, but no width", bad.field[1].data[0] = memory);
    REFUSED("width -1", bad.field[0].width[0][0] = -1);
    REFUSED("width 1 along axis 1 of 1", bad.field[0].width[1][0] = 1);
    REFUSED("axis 3, which is not cut", bad.axis_count = 4; bad.hi[1] = bad.hi[2] = bad.hi[3] = 4;
            bad.field[0].width[3][1] = 1);
    REFUSED("stores 1 points above", bad.field[0].data[0] = memory; bad.field[0].width[0][1] = 2;
            bad.field[0].halo[0][0] = bad.field[0].halo[0][1] = 1);
    REFUSED("peal allocates it", bad.field[0].halo[0][0] = 2);
    REFUSED("has strides", bad.field[0].stride[0] = 1);
    REFUSED("stride[0] = 2", bad.field[0].data[0] = memory; bad.field[0].stride[0] = 2);
    REFUSED("-3 components", bad.field[0].components = -3);
    REFUSED("has type 9", bad.field[0].type = (peal_type)9);
    REFUSED("stagger -1", bad.field[0].stagger[0] = -1);
    REFUSED("it is the first one", bad.field[0].data[0] = bad.field[0].data[1] = memory);
    REFUSED("owns no points along x: lo 0, hi 0", bad.hi[0] = 0);
    REFUSED("make up 20 points along x, process 0 expects 21", bad.extent[0] = 21);
    REFUSED("owns 20 points along x, of which its neighbour receives 21", bad.periodic[0] = true;
            bad.field[0].width[0][0] = 21);
    REFUSED("of 1073741824 components", bad.field[0].components = 1 << 30);
    REFUSED("as often as all components divide", bad.field[1] = bad.field[0];
            bad.field[0].components = 99991; bad.field[1].components = 99989);
    REFUSED("and 2147483649 beyond", bad.field[0].stagger[0] = INT32_MAX);
    REFUSED("field 2 comes behind", bad.field[2] = bad.field[0]);
    REFUSED("but no first one", bad.field[1] = bad.field[0]; bad.field[1].data[1] = memory);
    REFUSED("but no first one", bad.field[1].data[1] = memory);
    REFUSED("a halo along axis 3 of 1", bad.field[0].data[0] = memory; bad.field[0].halo[3][0] = 5;
            bad.field[0].halo[0][0] = bad.field[0].halo[0][1] = 1);
    REFUSED("stride -5 along axis 2", bad.field[0].data[0] = memory; bad.field[0].stride[2] = -5);
    assert_int_equal(peal_exchange_create_desc(session, NULL, &none), PEAL_STATUS_USAGE);
    assert_true(job_reported(session, PEAL_E_INVALID_DESCRIPTOR, "desc is NULL"));
#undef REFUSED
}

static void misuse(void **state)
{
    (void)state;
    peal_session *session;
    peal_exchange *exchange;
    assert_int_equal(peal_session_create(NULL, &session), PEAL_STATUS_OK);
    refused_descriptors(session);
    assert_int_equal(peal_exchange_create(session, &exchange, .axis_count = 1, .lo = {-3},
                                          .hi = {17}, .periodic = {true},
                                          .field = {{.width = {{1, 1}}}}),
                     PEAL_STATUS_OK);
    assert_int_equal(peal_exchange_wait(exchange), PEAL_STATUS_USAGE);
    assert_int_equal(peal_exchange_start(exchange, 1, NULL), PEAL_STATUS_USAGE);
    assert_int_equal(peal_exchange_start(exchange, 0, NULL), PEAL_STATUS_OK);
    assert_int_equal(peal_exchange_start(exchange, 0, NULL), PEAL_STATUS_USAGE);
    assert_int_equal(peal_exchange_wait(exchange), PEAL_STATUS_OK);
    peal_exchange_array array;
    assert_int_equal(peal_exchange_view(exchange, 1, &array), PEAL_STATUS_USAGE);
    assert_int_equal(peal_exchange_view(exchange, 0, &array), PEAL_STATUS_OK);
    assert_int_equal(array.lo[0], -3);
    assert_int_equal(array.hi[0], 17);
    char text[200];
    peal_exchange_describe(exchange, text, sizeof(text));
    assert_non_null(strstr(text, "1 process (1 x 1 x 1)"));
    assert_int_equal(peal_exchange_destroy(exchange), PEAL_STATUS_OK);
    assert_int_equal(peal_exchange_destroy(NULL), PEAL_STATUS_OK);
    peal_session_destroy(session);
}

static void limit_buffer(const peal_session *session, int other, int which, int bytes)
{
    int socket = session->network->opened->link[other]->socket;
    TEAM_CHECK(setsockopt(socket, SOL_SOCKET, which, &bytes, sizeof(bytes)) == 0);
}

/* Process 1 sends its border and stays away; that of process 0 does not fit into the sockets. */
static int member_does_not_take(test_team *team, int process)
{
    enum { LARGE = 20000 };
    peal_session *session;
    peal_exchange *exchange;
    TEAM_CHECK(job_open(team, process, process == 0 ? 0.5 : 60, &session) == PEAL_STATUS_OK);
    TEAM_CHECK(peal_exchange_create(session, &exchange, .axis_count = 2, .lo = {0, 2 * process},
                                    .hi = {LARGE, 2 * process + 2},
                                    .field = {{.width = {{0}, {1, 1}}}}) == PEAL_STATUS_OK);
    limit_buffer(session, !process, process == 0 ? SO_SNDBUF : SO_RCVBUF, 4096);
    limit_buffer(session, !process, process == 0 ? SO_RCVBUF : SO_SNDBUF, 16 * LARGE);
    job_pass_together(team, process);
    TEAM_CHECK(peal_exchange_start(exchange, 0, NULL) == PEAL_STATUS_OK);
    if (process == 0) {
        TEAM_CHECK(peal_exchange_wait(exchange) == PEAL_STATUS_DEADLINE);
        TEAM_CHECK(
            job_reported(session, PEAL_E_BORDER_LATE, "has not taken what exchange 1 sends"));
    } else {
        while (!peal_session_status(session))
            usleep(1000);
    }
    TEAM_CHECK(peal_exchange_destroy(exchange) != PEAL_STATUS_OK);
    peal_session_destroy(session);
    return 0;
}

static void over_hosts(void **state)
{
    static const char *const hosts[] = {"2", "3"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(setenv("PEAL_TEST_HOSTS", hosts[i], 1), 0);
        faults(state);
        job_run_all(2, member_does_not_take);
    }
    unsetenv("PEAL_TEST_HOSTS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(over_hosts),
        cmocka_unit_test(differing_processes),
        cmocka_unit_test(faults),
        cmocka_unit_test(misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
