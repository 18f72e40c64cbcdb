/* The exchange alone: every halo point is compared with what its owner has, over ranks of one
 * process and over processes, in peal's memory and in the caller's. */
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

enum { UNTOUCHED = 77 };

/* The value that a field has at a global point in an exchange; fits every type. */
static int value_at(const int64_t point[PEAL_AXES], int field, int round)
{
    uint64_t h = (uint64_t)(field * 31 + round * 7);
    for (int k = 0; k < PEAL_AXES; k++)
        h = (h ^ (uint64_t)point[k]) * UINT64_C(0x9E3779B97F4A7C15) >> 7;
    return (int)(h % 70);
}

static void store(void *data, int64_t index, peal_type type, int value)
{
    switch (type) {
    case PEAL_F64:
        ((double *)data)[index] = value;
        break;
    case PEAL_F32:
        ((float *)data)[index] = (float)value;
        break;
    case PEAL_I32:
        ((int32_t *)data)[index] = value;
        break;
    case PEAL_I64:
        ((int64_t *)data)[index] = value;
        break;
    default:
        ((uint8_t *)data)[index] = (uint8_t)value;
    }
}

static int load(const void *data, int64_t index, peal_type type)
{
    switch (type) {
    case PEAL_F64:
        return (int)((const double *)data)[index];
    case PEAL_F32:
        return (int)((const float *)data)[index];
    case PEAL_I32:
        return ((const int32_t *)data)[index];
    case PEAL_I64:
        return (int)((const int64_t *)data)[index];
    default:
        return ((const uint8_t *)data)[index];
    }
}

/* Calls visit for all stored points, with coordinates relative to the first owned one. */
typedef bool (*point_visit)(const peal_halo_desc *desc, const peal_exchange_array *array, int field,
                            int round, const int64_t p[PEAL_AXES], int64_t index);

static bool for_points(const peal_halo_desc *desc, const peal_exchange_array *a, int field,
                       int round, point_visit visit)
{
    int64_t p[PEAL_AXES];
    bool good = true;
    for (p[3] = -a->halo[3]; p[3] < a->extent[3] + a->halo[3]; p[3]++)
        for (p[2] = -a->halo[2]; p[2] < a->extent[2] + a->halo[2]; p[2]++)
            for (p[1] = -a->halo[1]; p[1] < a->extent[1] + a->halo[1]; p[1]++)
                for (p[0] = -a->halo[0]; p[0] < a->extent[0] + a->halo[0]; p[0]++) {
                    int64_t index = 0;
                    for (int k = 0; k < PEAL_AXES; k++)
                        index += (p[k] + a->halo[k]) * a->stride[k];
                    good &= visit(desc, a, field, round, p, index);
                }
    return good;
}

static bool is_owned(const peal_exchange_array *a, const int64_t p[PEAL_AXES])
{
    for (int k = 0; k < PEAL_AXES; k++)
        if (p[k] < 0 || p[k] >= a->extent[k])
            return false;
    return true;
}

static bool fill_point(const peal_halo_desc *desc, const peal_exchange_array *a, int field,
                       int round, const int64_t p[PEAL_AXES], int64_t index)
{
    int64_t global[PEAL_AXES];
    for (int k = 0; k < PEAL_AXES; k++)
        global[k] = a->origin[k] + p[k];
    store(a->data, index, desc->field[field].type,
          is_owned(a, p) ? value_at(global, field, round) : UNTOUCHED);
    return true;
}

/* Points within the width that have an owner are its; all others are untouched. */
static bool check_point(const peal_halo_desc *desc, const peal_exchange_array *a, int field,
                        int round, const int64_t p[PEAL_AXES], int64_t index)
{
    int64_t global[PEAL_AXES];
    bool has_owner = true;
    for (int k = 0; k < PEAL_AXES; k++) {
        int64_t width = k < desc->axis_count ? desc->width[k] : 0;
        int64_t size = k < desc->axis_count ? desc->extent[k] : 1;
        global[k] = a->origin[k] + p[k];
        if (p[k] < -width || p[k] >= a->extent[k] + width)
            has_owner = false;
        if (global[k] >= 0 && global[k] < size)
            continue;
        if (k >= PEAL_RANK_AXES || !desc->periodic[k])
            has_owner = false;
        global[k] = (global[k] % size + size) % size;
    }
    int want = has_owner ? value_at(global, field, round) : UNTOUCHED;
    int got = load(a->data, index, desc->field[field].type);
    if (got != want)
        fprintf(stderr, "field %d round %d at (%lld, %lld, %lld, %lld): %d, not %d\n", field, round,
                (long long)global[0], (long long)global[1], (long long)global[2],
                (long long)global[3], got, want);
    return got == want;
}

static bool for_arrays(const peal_exchange *exchange, const peal_halo_desc *desc, int round,
                       point_visit visit)
{
    int first, end;
    bool good = true;
    peal_exchange_ranks(exchange, &first, &end);
    for (int rank = first; rank < end; rank++)
        for (int f = 0; f < desc->field_count; f++) {
            peal_exchange_array array;
            if (peal_exchange_view(exchange, rank, f, &array) != PEAL_STATUS_OK)
                return false;
            good &= for_points(desc, &array, f, round, visit);
        }
    return good;
}

/* Several exchanges of other values each. */
static bool run_rounds(peal_session *session, const peal_halo_desc *desc, int rounds)
{
    peal_exchange *exchange;
    if (peal_exchange_create(session, desc, &exchange) != PEAL_STATUS_OK) {
        peal_session_print_diagnostics(session, stderr, 0);
        return false;
    }
    bool good = true;
    for (int round = 1; good && round <= rounds; round++) {
        for_arrays(exchange, desc, round, fill_point);
        good = peal_exchange_start(exchange, NULL) == PEAL_STATUS_OK &&
               peal_exchange_wait(exchange) == PEAL_STATUS_OK &&
               for_arrays(exchange, desc, round, check_point);
    }
    return peal_exchange_destroy(exchange) == PEAL_STATUS_OK && good;
}

static const peal_halo_desc shapes[] = {
    {.axis_count = 1, .extent = {23}, .width = {2}, .field_count = 1, .field = {{PEAL_F64}}},
    {.axis_count = 1,
     .extent = {40},
     .width = {1},
     .periodic = {true},
     .field_count = 2,
     .field = {{PEAL_F32}, {PEAL_U8}}},
    {.axis_count = 2,
     .extent = {17, 19},
     .width = {1, 2},
     .periodic = {true, false},
     .field_count = 2,
     .field = {{PEAL_F64}, {.type = PEAL_I32, .halo = {2, 3}}}},
    {.axis_count = 2,
     .extent = {64, 15},
     .width = {0, 1},
     .periodic = {true, true},
     .field_count = 1,
     .field = {{PEAL_I64}}},
    {.axis_count = 3,
     .extent = {14, 15, 16},
     .width = {1, 1, 1},
     .periodic = {true, true, true},
     .field_count = 3,
     .field = {{PEAL_F64}, {PEAL_F32}, {.type = PEAL_U8, .halo = {1, 2, 1}}}},
    {.axis_count = 3,
     .extent = {14, 8, 9},
     .width = {2, 1, 0},
     .periodic = {false, true, false},
     .field_count = 1,
     .field = {{PEAL_F64}}},
    {.axis_count = 4,
     .extent = {14, 8, 9, 3},
     .width = {1, 1, 1, 0},
     .periodic = {true, true, false},
     .field_count = 1,
     .field = {{PEAL_F32}}},
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static void ranks_of_one_process(void **state)
{
    (void)state;
    static const int ranks[] = {1, 2, 4, 7};
    peal_session *session;
    assert_int_equal(peal_session_create(NULL, &session), PEAL_STATUS_OK);
    for (int s = 0; s < SHAPES; s++)
        for (size_t r = 0; r < sizeof(ranks) / sizeof(ranks[0]); r++) {
            peal_halo_desc desc = shapes[s];
            desc.size_bytes = sizeof(desc);
            desc.ranks = ranks[r];
            print_message("shape %d, %d ranks\n", s, ranks[r]);
            assert_true(run_rounds(session, &desc, 5));
        }
    peal_session_destroy(session);
}

/* What this process's rank has of the grid, as an exchange of peal's own memory tells it. */
static bool find_own(peal_session *session, peal_halo_desc *desc)
{
    peal_exchange *exchange;
    peal_exchange_array array;
    if (peal_exchange_create(session, desc, &exchange) ||
        peal_exchange_view(exchange, -1, 0, &array))
        return false;
    for (int k = 0; k < desc->axis_count; k++) {
        desc->own_origin[k] = array.origin[k];
        desc->own_extent[k] = array.extent[k];
    }
    return peal_exchange_destroy(exchange) == PEAL_STATUS_OK;
}

/* The caller's memory, with rows and planes longer than needed. */
static bool run_lent(peal_session *session, peal_halo_desc desc, bool padded)
{
    void *memory[PEAL_EXCHANGE_FIELDS] = {NULL};
    if (!find_own(session, &desc))
        return false;
    for (int f = 0; f < desc.field_count; f++) {
        int64_t stride = 1;
        for (int k = 0; k < desc.axis_count; k++) {
            int64_t halo = desc.field[f].halo[0] ? desc.field[f].halo[k] : desc.width[k];
            desc.field[f].stride[k] = padded || k == 0 ? stride : 0;
            stride *= desc.extent[k] + 2 * halo + (padded ? k + 3 : 0);
        }
        memory[f] = desc.field[f].data = calloc((size_t)stride, 8);
    }
    bool good = run_rounds(session, &desc, 5);
    for (int f = 0; f < desc.field_count; f++)
        free(memory[f]);
    return good;
}

static int member_exchanges(test_team *team, int process)
{
    peal_session *session;
    TEAM_CHECK(job_open(team, process, 0, &session) == PEAL_STATUS_OK);
    for (int s = 0; s < SHAPES; s++) {
        peal_halo_desc desc = shapes[s];
        desc.size_bytes = sizeof(desc);
        TEAM_CHECK(run_rounds(session, &desc, 20));
        TEAM_CHECK(run_lent(session, desc, false));
        TEAM_CHECK(run_lent(session, desc, true));
        desc.ranks = 2 * team->processes - 1; /* some processes host two ranks, some one */
        TEAM_CHECK(run_rounds(session, &desc, 20));
    }
    peal_session_destroy(session);
    return 0;
}

static void processes(void **state)
{
    (void)state;
    job_run_all(2, member_exchanges);
    job_run_all(3, member_exchanges);
    job_run_all(4, member_exchanges);
}

static int member_differs(test_team *team, int process)
{
    peal_session *session;
    peal_exchange *exchange = NULL;
    TEAM_CHECK(job_open(team, process, 0, &session) == PEAL_STATUS_OK);
    peal_halo_desc desc = shapes[4];
    desc.size_bytes = sizeof(desc);
    desc.extent[1] += process;
    TEAM_CHECK(peal_exchange_create(session, &desc, &exchange) == PEAL_STATUS_SPEC);
    TEAM_CHECK(job_reported(session, PEAL_E_GRAPHS_DIFFER, NULL));
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
    peal_halo_desc desc = {.size_bytes = sizeof(desc),
                           .axis_count = 1,
                           .extent = {20},
                           .width = {1},
                           .field_count = 1};
    TEAM_CHECK(peal_exchange_create(session, &desc, &exchange) == PEAL_STATUS_OK);
    TEAM_CHECK(peal_exchange_start(exchange, NULL) == PEAL_STATUS_OK);
    TEAM_CHECK(peal_exchange_wait(exchange) == PEAL_STATUS_OK);
    if (process == 0) {
        TEAM_CHECK(peal_exchange_start(exchange, NULL) == PEAL_STATUS_OK);
        TEAM_CHECK(peal_exchange_wait(exchange) == PEAL_STATUS_DEADLINE);
        TEAM_CHECK(job_reported(session, PEAL_E_BORDER_LATE, "the border of rank 1"));
    }
    TEAM_CHECK(peal_exchange_destroy(exchange) == PEAL_STATUS_DEADLINE);
    peal_session_destroy(session);
    return 0;
}

static void differing_processes(void **state)
{
    (void)state;
    job_run_all(2, member_differs);
}

static int member_lost(test_team *team, int process)
{
    peal_session *session;
    peal_exchange *exchange;
    TEAM_CHECK(job_open(team, process, 0, &session) == PEAL_STATUS_OK);
    peal_halo_desc desc = shapes[4];
    desc.size_bytes = sizeof(desc);
    TEAM_CHECK(peal_exchange_create(session, &desc, &exchange) == PEAL_STATUS_OK);
    TEAM_CHECK(peal_exchange_start(exchange, NULL) == PEAL_STATUS_OK);
    TEAM_CHECK(peal_exchange_wait(exchange) == PEAL_STATUS_OK);
    job_pass_together(team, process);
    if (process == 1)
        raise(SIGKILL);
    peal_status status = PEAL_STATUS_OK;
    for (int round = 0; !status && round < 10; round++) {
        status = peal_exchange_start(exchange, NULL);
        if (!status)
            status = peal_exchange_wait(exchange);
    }
    TEAM_CHECK(status == PEAL_STATUS_PEER_LOST);
    TEAM_CHECK(peal_exchange_start(exchange, NULL) == PEAL_STATUS_PEER_LOST);
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

static void refuse(peal_session *session, peal_halo_desc desc, peal_status status, peal_code code)
{
    peal_exchange *exchange = NULL;
    assert_int_equal(peal_exchange_create(session, &desc, &exchange), status);
    assert_null(exchange);
    assert_true(job_reported(session, code, NULL));
}

static void misuse(void **state)
{
    (void)state;
    peal_session *session;
    peal_exchange *exchange;
    static double memory[100];
    assert_int_equal(peal_session_create(NULL, &session), PEAL_STATUS_OK);
    const peal_halo_desc good = {.size_bytes = sizeof(good),
                                 .axis_count = 1,
                                 .extent = {20},
                                 .width = {1},
                                 .periodic = {true},
                                 .field_count = 1};
    peal_halo_desc bad = good;
    bad.size_bytes = 12;
    refuse(session, bad, PEAL_STATUS_USAGE, PEAL_E_INVALID_DESCRIPTOR);
    bad = good;
    bad.axis_count = 5;
    refuse(session, bad, PEAL_STATUS_USAGE, PEAL_E_INVALID_EXCHANGE);
    bad = good;
    bad.field[0].halo[0] = 1;
    bad.width[0] = 2;
    refuse(session, bad, PEAL_STATUS_USAGE, PEAL_E_INVALID_EXCHANGE);
    bad = good;
    bad.dims[1] = 2;
    refuse(session, bad, PEAL_STATUS_USAGE, PEAL_E_INVALID_EXCHANGE);
    bad = good;
    bad.field[0].data = memory;
    bad.ranks = 2;
    refuse(session, bad, PEAL_STATUS_USAGE, PEAL_E_LENT_MEMORY_UNUSABLE);
    bad = good;
    bad.ranks = 21;
    peal_exchange *none = NULL;
    assert_int_equal(peal_exchange_create(session, &bad, &none), PEAL_STATUS_SPEC);

    assert_int_equal(peal_exchange_create(session, &good, &exchange), PEAL_STATUS_OK);
    assert_int_equal(peal_exchange_wait(exchange), PEAL_STATUS_USAGE);
    assert_int_equal(peal_exchange_start(exchange, NULL), PEAL_STATUS_OK);
    assert_int_equal(peal_exchange_start(exchange, NULL), PEAL_STATUS_USAGE);
    assert_int_equal(peal_exchange_wait(exchange), PEAL_STATUS_OK);
    peal_exchange_array array;
    assert_int_equal(peal_exchange_view(exchange, 0, 1, &array), PEAL_STATUS_USAGE);
    assert_int_equal(peal_exchange_view(exchange, 1, 0, &array), PEAL_STATUS_USAGE);
    char text[200];
    peal_exchange_describe(exchange, text, sizeof(text));
    assert_non_null(strstr(text, "1 rank"));
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
    const peal_halo_desc desc = {.size_bytes = sizeof(desc),
                                 .axis_count = 2,
                                 .dims = {1, 2},
                                 .extent = {LARGE, 4},
                                 .width = {0, 1},
                                 .field_count = 1};
    TEAM_CHECK(peal_exchange_create(session, &desc, &exchange) == PEAL_STATUS_OK);
    limit_buffer(session, !process, process == 0 ? SO_SNDBUF : SO_RCVBUF, 4096);
    limit_buffer(session, !process, process == 0 ? SO_RCVBUF : SO_SNDBUF, 16 * LARGE);
    job_pass_together(team, process);
    TEAM_CHECK(peal_exchange_start(exchange, NULL) == PEAL_STATUS_OK);
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

/* Messages between blocks of processes go over sockets. */
static void over_hosts(void **state)
{
    static const char *const hosts[] = {"2", "3"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(setenv("PEAL_TEST_HOSTS", hosts[i], 1), 0);
        processes(state);
        faults(state);
        job_run_all(2, member_does_not_take);
    }
    unsetenv("PEAL_TEST_HOSTS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(over_hosts), cmocka_unit_test(ranks_of_one_process),
        cmocka_unit_test(processes),  cmocka_unit_test(differing_processes),
        cmocka_unit_test(faults),     cmocka_unit_test(misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
