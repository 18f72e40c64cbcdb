/* Plans: a stencil with host functions, in every mode, over ranks and processes; states of the API,
 * views after swaps, verification that notices a wrong bit. */
#define _GNU_SOURCE
#include "tests/runtime/job.h"

#include <math.h>
#include <peal/graph.h>
#include <peal/plan.h>
#include <peal/plugin/backend.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NX = 37, NY = 23 };

static const char *const modes[] = {"serial", "sync", "stream", "fused"};
enum { MODES = sizeof(modes) / sizeof(modes[0]) };

static double *at(const peal_view *view, int x, int y)
{
    return (double *)view->base + x + y * view->stride[1];
}

static double first_value(int x, int y)
{
    return (x * 7 + y * 13) % 17 * 0.25;
}

static void fill(const peal_call *call)
{
    for (int y = call->tile.lo[1]; y < call->tile.hi[1]; y++)
        for (int x = call->tile.lo[0]; x < call->tile.hi[0]; x++)
            *at(&call->view[0], x, y) = first_value(x, y);
}

static void relax(const peal_call *call)
{
    const peal_view *a = &call->view[0], *an = &call->view[1];
    for (int y = call->tile.lo[1]; y < call->tile.hi[1]; y++)
        for (int x = call->tile.lo[0]; x < call->tile.hi[0]; x++)
            *at(an, x, y) =
                0.25 * (*at(a, x - 1, y) + *at(a, x + 1, y) + *at(a, x, y - 1) + *at(a, x, y + 1));
}

/* Reads a diagonal neighbour, which `star` doesn't declare. */
static void relax_wrongly(const peal_call *call)
{
    const peal_view *a = &call->view[0], *an = &call->view[1];
    relax(call);
    for (int y = call->tile.lo[1]; y < call->tile.hi[1]; y++)
        for (int x = call->tile.lo[0]; x < call->tile.hi[0]; x++)
            *at(an, x, y) += *at(a, x + 1, y + 1);
}

/* Adds to what it only declares to write. */
static void add_wrongly(const peal_call *call)
{
    double old = *at(&call->view[1], call->tile.lo[0], call->tile.lo[1]);
    relax(call);
    *at(&call->view[1], call->tile.lo[0], call->tile.lo[1]) += old;
}

/* Leaves out a point of what it writes, which is allowed. */
static void leave_out(const peal_call *call)
{
    double old = *at(&call->view[1], call->tile.lo[0], call->tile.lo[1]);
    relax(call);
    *at(&call->view[1], call->tile.lo[0], call->tile.lo[1]) = old;
}

/* Writes the point above its tile's last one. */
static void write_wrongly(const peal_call *call)
{
    relax(call);
    *at(&call->view[1], call->tile.hi[0] - 1, call->tile.hi[1]) = 1;
}

static peal_graph *make_graph(const char *ny, peal_function function, double *lent)
{
    peal_graph *g;
    assert_int_equal(peal_graph_create("relaxation", &g), PEAL_STATUS_OK);
    peal_graph_add_param(g, .name = "nx", .value = "37");
    peal_graph_add_param(g, .name = "ny", .value = ny);
    peal_graph_set_topology(g, .dims = "[1, auto]", .periodic = "true");
    peal_graph_add_field(g, .name = "a", .size = "[nx, ny]", .halo = "1", .data = lent);
    peal_graph_add_field(g, .name = "an", .size = "[nx, ny]", .halo = "1");
    peal_graph_set_loop(g, .repeat = "10");
    peal_graph_begin(g, PEAL_SETUP);
    peal_graph_add_task(g, .name = "fill", .function = fill, .box = {.name = "a"},
                        .write = {{.name = "a"}});
    peal_graph_end(g);
    peal_graph_begin(g, PEAL_STEP);
    peal_graph_add_exchange(g, .exchange = {{.name = "a"}});
    peal_graph_add_task(g, .name = "relax", .function = function, .box = {.name = "a"},
                        .read = {{.name = "a", .star = "1"}}, .write = {{.name = "an"}});
    peal_graph_add_swap(g, .swap = {"a", "an"});
    peal_graph_end(g);
    return g;
}

/* The same by two loops. */
static void reference(int steps, double out[NY][NX])
{
    static double other[NY][NX];
    for (int y = 0; y < NY; y++)
        for (int x = 0; x < NX; x++)
            out[y][x] = first_value(x, y);
    for (int s = 0; s < steps; s++) {
        memcpy(other, out, sizeof(other));
        for (int y = 0; y < NY; y++)
            for (int x = 0; x < NX; x++)
                out[y][x] = 0.25 * (other[y][(x + NX - 1) % NX] + other[y][(x + 1) % NX] +
                                    other[(y + NY - 1) % NY][x] + other[(y + 1) % NY][x]);
    }
}

/* Whether the ranks here hold what the loops give after `steps`. */
static bool is_right(const peal_plan *plan, int steps)
{
    static double want[NY][NX];
    int first, end;
    reference(steps, want);
    peal_plan_ranks(plan, &first, &end);
    for (int rank = first; rank < end; rank++) {
        peal_plan_array a;
        if (peal_plan_view(plan, rank, "a", &a) != PEAL_STATUS_OK)
            return false;
        for (int y = (int)a.part.lo[1]; y < (int)a.part.hi[1]; y++)
            for (int x = (int)a.part.lo[0]; x < (int)a.part.hi[0]; x++)
                if (*at(&a.view, x, y) != want[y][x])
                    return false;
    }
    return true;
}

static peal_session *open_session(void)
{
    peal_session *session;
    assert_int_equal(peal_session_create(NULL, &session), PEAL_STATUS_OK);
    return session;
}

#define CHECK_OK(session, call)                                                                    \
    do {                                                                                           \
        peal_status check_status = (call);                                                         \
        if (check_status)                                                                          \
            peal_session_print_diagnostics(session, stderr, 0);                                    \
        TEAM_CHECK(check_status == PEAL_STATUS_OK);                                                \
    } while (0)

/* 3 steps, a look, the other 7, finish; the digest must be that of all modes. */
static uint64_t run_in_parts(peal_session *session, const peal_plan_options *options)
{
    peal_plan *plan;
    peal_plan_statistics statistics;
    uint64_t digest, digest_of_a, digest_of_an;
    peal_graph *g = make_graph("23", relax, NULL);
    CHECK_OK(session, peal_graph_compile(g, session, options, &plan));
    CHECK_OK(session, peal_plan_start(plan, 3, NULL));
    CHECK_OK(session, peal_plan_wait(plan));
    TEAM_CHECK(is_right(plan, 3));
    TEAM_CHECK(peal_plan_steps_left(plan) == 7);
    CHECK_OK(session, peal_plan_start(plan, PEAL_STEPS_ALL, NULL));
    CHECK_OK(session, peal_plan_wait(plan));
    TEAM_CHECK(is_right(plan, 10));
    TEAM_CHECK(peal_plan_steps_left(plan) == 0);
    CHECK_OK(session, peal_plan_finish(plan));
    peal_plan_statistics_get(plan, &statistics);
    int first, end;
    peal_plan_ranks(plan, &first, &end);
    if (end > first) {
        TEAM_CHECK(statistics.steps_done == 10);
        TEAM_CHECK(peal_plan_progress(plan) == 10);
        TEAM_CHECK(statistics.memory_bytes > 0);
    }
    TEAM_CHECK(!statistics.stopped);
    if (options->verify)
        CHECK_OK(session, peal_plan_verify(plan));
    CHECK_OK(session, peal_plan_digest(plan, NULL, &digest));
    CHECK_OK(session, peal_plan_digest(plan, "a", &digest_of_a));
    CHECK_OK(session, peal_plan_digest(plan, "an", &digest_of_an));
    TEAM_CHECK(digest == (digest_of_a ^ digest_of_an) && digest_of_a != digest_of_an);
    peal_plan_destroy(plan);
    peal_graph_destroy(g);
    return digest;
}

static void modes_in_one_process(void **state)
{
    (void)state;
    peal_session *session = open_session();
    static const int ranks[] = {1, 2, 5};
    for (int r = 0; r < 3; r++) {
        uint64_t digest = 0;
        for (int m = 0; m < MODES; m++)
            for (int threads = 1; threads <= 2; threads++) {
                const peal_plan_options options = {.size = sizeof(options),
                                                   .mode = modes[m],
                                                   .ranks = ranks[r],
                                                   .threads = threads * ranks[r],
                                                   .verify = true};
                print_message("%s, %d ranks, %d workers each\n", modes[m], ranks[r], threads);
                uint64_t mine = run_in_parts(session, &options);
                if (m == 0 && threads == 1)
                    digest = mine;
                assert_true(digest == mine);
            }
    }
    peal_session_destroy(session);
}

static int member_runs_modes(test_team *team, int process)
{
    peal_session *session;
    TEAM_CHECK(job_open(team, process, 0, &session) == PEAL_STATUS_OK);
    for (int ranks = team->processes; ranks < 2 * team->processes; ranks += 2) {
        uint64_t digest = 0;
        for (int m = 0; m < MODES; m++) {
            const peal_plan_options options = {.size = sizeof(options),
                                               .mode = modes[m],
                                               .ranks = ranks,
                                               .threads = 1,
                                               .verify = true};
            uint64_t mine = run_in_parts(session, &options);
            if (m == 0)
                digest = mine;
            TEAM_CHECK(digest == mine);
        }
    }
    peal_session_destroy(session);
    return 0;
}

static void run_all(int processes, team_member member)
{
    test_team team;
    team_create(&team, processes);
    team_run(&team, member);
    for (int p = 0; p < processes; p++)
        assert_int_equal(team.exit_code[p], 0);
    team_destroy(&team);
}

static void modes_in_processes(void **state)
{
    (void)state;
    run_all(2, member_runs_modes);
    run_all(3, member_runs_modes);
}

static void states(void **state)
{
    (void)state;
    peal_session *session = open_session();
    peal_graph *g = make_graph("23", relax, NULL);
    peal_plan *plan = NULL;
    peal_plan_array a;
    const peal_plan_options options = {.size = sizeof(options), .threads = 1};
    CHECK_OK(session, peal_graph_compile(g, session, &options, &plan));
    assert_int_equal(peal_plan_mode(plan), PEAL_MODE_FUSED);
    assert_int_equal(peal_plan_wait(plan), PEAL_STATUS_USAGE);
    assert_int_equal(peal_plan_verify(plan), PEAL_STATUS_USAGE);
    assert_int_equal(peal_plan_start(plan, -2, NULL), PEAL_STATUS_USAGE);
    assert_int_equal(peal_plan_start(plan, 1, &(peal_start){.size = 1}), PEAL_STATUS_USAGE);
    const peal_start on_stream = {.size = sizeof(on_stream), .stream = session};
    assert_int_equal(peal_plan_start(plan, 1, &on_stream), PEAL_STATUS_USAGE);
    CHECK_OK(session, peal_plan_start(plan, 1, NULL));
    assert_int_equal(peal_plan_start(plan, 1, NULL), PEAL_STATUS_USAGE);
    assert_int_equal(peal_plan_finish(plan), PEAL_STATUS_USAGE);
    assert_int_equal(peal_plan_view(plan, 0, "a", &a), PEAL_STATUS_USAGE);
    CHECK_OK(session, peal_plan_wait(plan));
    assert_int_equal(peal_plan_view(plan, 0, "b", &a), PEAL_STATUS_USAGE);
    assert_int_equal(peal_plan_view(plan, 1, "a", &a), PEAL_STATUS_USAGE);
    assert_true(job_reported(session, PEAL_E351, "has no 'b'"));
    assert_true(is_right(plan, 1));
    CHECK_OK(session, peal_plan_finish(plan));
    assert_int_equal(peal_plan_finish(plan), PEAL_STATUS_USAGE);
    assert_int_equal(peal_plan_start(plan, 1, NULL), PEAL_STATUS_USAGE);
    char text[300];
    peal_plan_describe(plan, text, sizeof(text));
    assert_non_null(strstr(text, "host fused, 1 rank (1 x 1 x 1) in 1 process, 1 worker a rank"));
    peal_plan_destroy(plan);
    peal_plan_destroy(NULL);
    peal_graph_destroy(g);
    peal_session_destroy(session);
}

static void refuse(peal_plan_options options, peal_status status, peal_code code)
{
    peal_session *session = open_session();
    peal_graph *g = make_graph("23", relax, NULL);
    peal_plan *plan = NULL;
    if (!options.size)
        options.size = sizeof(options);
    assert_int_equal(peal_graph_compile(g, session, &options, &plan), status);
    assert_null(plan);
    assert_true(job_reported(session, code, NULL));
    peal_graph_destroy(g);
    peal_session_destroy(session);
}

static void refusals(void **state)
{
    (void)state;
    refuse((peal_plan_options){.size = 4}, PEAL_STATUS_USAGE, PEAL_E350);
    refuse((peal_plan_options){.threads = -1}, PEAL_STATUS_USAGE, PEAL_E350);
    refuse((peal_plan_options){.mode = "fussed"}, PEAL_STATUS_USAGE, PEAL_E352);
    refuse((peal_plan_options){.mode = "graph"}, PEAL_STATUS_ENVIRONMENT, PEAL_E355);
    refuse((peal_plan_options){.ranks = -1}, PEAL_STATUS_USAGE, PEAL_E356);
    refuse((peal_plan_options){.ranks = 24}, PEAL_STATUS_SPEC, PEAL_E123);
}

static void requirements(void **state)
{
    (void)state;
    static const char *const what[] = {"sync", "shm", "self"};
    static const peal_status want[] = {PEAL_STATUS_OK, PEAL_STATUS_ENVIRONMENT, PEAL_STATUS_OK};
    for (int i = 0; i < 3; i++) {
        peal_session *session = open_session();
        peal_graph *g = make_graph("23", relax, NULL);
        peal_plan *plan = NULL;
        peal_graph_add_require(g, what[i], PEAL_HERE);
        const peal_plan_options options = {.size = sizeof(options), .ranks = 2};
        assert_int_equal(peal_graph_compile(g, session, &options, &plan), want[i]);
        if (i == 0)
            assert_int_equal(peal_plan_mode(plan), PEAL_MODE_SYNC);
        if (want[i])
            assert_true(job_reported(session, PEAL_E357, "shm"));
        peal_plan_destroy(plan);
        peal_graph_destroy(g);
        peal_session_destroy(session);
    }
    peal_session *session = open_session();
    peal_graph *g = make_graph("23", relax, NULL);
    peal_plan *plan = NULL;
    peal_graph_add_require(g, "sync", PEAL_HERE);
    const peal_plan_options options = {.size = sizeof(options), .mode = "fused"};
    assert_int_equal(peal_graph_compile(g, session, &options, &plan), PEAL_STATUS_ENVIRONMENT);
    assert_true(job_reported(session, PEAL_E357, "requires another mode"));
    peal_graph_destroy(g);
    peal_session_destroy(session);
}

/* The caller's memory: results are in it, or in the field that it was swapped with. */
static void lent_memory(void **state)
{
    (void)state;
    peal_session *session = open_session();
    for (int m = 0; m < MODES; m++) {
        static double memory[(NX + 2) * (NY + 2)];
        peal_graph *g = make_graph("23", relax, memory);
        peal_plan *plan = NULL;
        peal_plan_array a, an;
        peal_plan_options options = {.size = sizeof(options),
                                     .mode = modes[m],
                                     .threads = 1,
                                     .verify = true};
        CHECK_OK(session, peal_graph_compile(g, session, &options, &plan));
        for (int steps = 0; steps < 3; steps++) {
            CHECK_OK(session, peal_plan_start(plan, steps > 0, NULL));
            CHECK_OK(session, peal_plan_wait(plan));
            CHECK_OK(session, peal_plan_view(plan, 0, "a", &a));
            CHECK_OK(session, peal_plan_view(plan, 0, "an", &an));
            const peal_plan_array *lent = steps % 2 ? &an : &a;
            assert_ptr_equal(at(&lent->view, -1, -1), memory);
            assert_true(is_right(plan, steps));
        }
        CHECK_OK(session, peal_plan_finish(plan));
        CHECK_OK(session, peal_plan_verify(plan));
        peal_plan_destroy(plan);
        options.ranks = 2;
        plan = NULL;
        assert_int_equal(peal_graph_compile(g, session, &options, &plan), PEAL_STATUS_USAGE);
        assert_true(job_reported(session, PEAL_E365, NULL));
        peal_graph_destroy(g);
    }
    peal_session_destroy(session);
}

static void wrong_result(void **state)
{
    (void)state;
    peal_session *session = open_session();
    peal_graph *g = make_graph("23", relax, NULL);
    peal_plan *plan = NULL;
    peal_plan_array a;
    const peal_plan_options options = {.size = sizeof(options),
                                       .ranks = 3,
                                       .threads = 3,
                                       .verify = true};
    CHECK_OK(session, peal_graph_compile(g, session, &options, &plan));
    CHECK_OK(session, peal_plan_start(plan, 4, NULL));
    CHECK_OK(session, peal_plan_wait(plan));
    CHECK_OK(session, peal_plan_verify(plan));
    uint64_t before, after;
    CHECK_OK(session, peal_plan_digest(plan, NULL, &before));
    CHECK_OK(session, peal_plan_view(plan, 1, "a", &a));
    double *value = at(&a.view, 5, (int)a.part.lo[1] + 2);
    *value = nextafter(*value, 1e9);
    assert_int_equal(peal_plan_verify(plan), PEAL_STATUS_WRONG_RESULT);
    assert_true(job_reported(session, PEAL_E360, "'a' of rank 1 differs from serial at (5, 10)"));
    assert_true(job_reported(session, PEAL_E360, "1 of 296 points differ"));
    CHECK_OK(session, peal_plan_digest(plan, NULL, &after));
    assert_true(before != after);
    /* halos are not compared */
    *value = nextafter(*value, -1e9);
    *at(&a.view, -1, (int)a.part.lo[1]) += 1;
    CHECK_OK(session, peal_plan_verify(plan));
    peal_plan_destroy(plan);
    peal_graph_destroy(g);
    peal_session_destroy(session);
}

static void check_footprints(peal_function function, int ranks, peal_status want, peal_code code,
                             const char *text)
{
    peal_session *session = open_session();
    peal_graph *g = make_graph("23", function, NULL);
    peal_plan *plan = NULL;
    const peal_plan_options options = {.size = sizeof(options),
                                       .ranks = ranks,
                                       .check_footprints = true};
    CHECK_OK(session, peal_graph_compile(g, session, &options, &plan));
    assert_int_equal(peal_plan_mode(plan), PEAL_MODE_SERIAL);
    CHECK_OK(session, peal_plan_start(plan, 3, NULL));
    CHECK_OK(session, peal_plan_wait(plan));
    if (function == relax)
        assert_true(is_right(plan, 3));
    assert_int_equal(peal_plan_finish(plan), want);
    if (want && !job_reported(session, code, text))
        peal_session_print_diagnostics(session, stderr, 0);
    if (want)
        assert_true(job_reported(session, code, text));
    assert_int_equal(peal_session_error_count(session), want ? 1 : 0);
    peal_plan_destroy(plan);
    peal_graph_destroy(g);
    peal_session_destroy(session);
}

static void footprints(void **state)
{
    (void)state;
    check_footprints(relax, 1, PEAL_STATUS_OK, 0, NULL);
    check_footprints(relax, 3, PEAL_STATUS_OK, 0, NULL);
    check_footprints(relax_wrongly, 1, PEAL_STATUS_SPEC, PEAL_E363,
                     "task 'relax' reads 'a' at (37, 23), which it doesn't declare (rank 0");
    check_footprints(add_wrongly, 2, PEAL_STATUS_SPEC, PEAL_E363,
                     "task 'relax' reads 'an' at (0, 0), which it doesn't declare (rank 0");
    check_footprints(leave_out, 2, PEAL_STATUS_OK, 0, NULL);
    check_footprints(write_wrongly, 2, PEAL_STATUS_SPEC, PEAL_E364,
                     "task 'relax' writes 'an' at (");
}

/* A size of 2^59 bytes is refused before anything is allocated. */
static void too_big_to_verify(void **state)
{
    (void)state;
    peal_session *session = open_session();
    peal_graph *g = make_graph("23", relax, NULL);
    peal_graph_override(g, "ny=2000000000");
    peal_graph_override(g, "nx=20000000");
    peal_plan *plan = NULL;
    const peal_plan_options options = {.size = sizeof(options), .verify = true};
    assert_int_equal(peal_graph_compile(g, session, &options, &plan), PEAL_STATUS_ENVIRONMENT);
    assert_null(plan);
    if (!job_reported(session, PEAL_E361, "the run and its verification need "))
        peal_session_print_diagnostics(session, stderr, 0);
    assert_true(job_reported(session, PEAL_E361, "the run and its verification need "));
    peal_graph_destroy(g);
    peal_session_destroy(session);
}

static int member_has_another_graph(test_team *team, int process)
{
    peal_session *session;
    peal_plan *plan = NULL;
    TEAM_CHECK(job_open(team, process, 0, &session) == PEAL_STATUS_OK);
    peal_graph *g = make_graph(process == 1 ? "24" : "23", relax, NULL);
    TEAM_CHECK(peal_graph_compile(g, session, NULL, &plan) == PEAL_STATUS_SPEC);
    TEAM_CHECK(!plan);
    /* everybody learns what differs, and the session is still good */
    TEAM_CHECK(
        job_reported(session, PEAL_E353, "\"param ny = 24\" here, \"param ny = 23\" there") ||
        job_reported(session, PEAL_E359, "param ny = 24"));
    peal_graph_destroy(g);
    const peal_plan_options options = {.size = sizeof(options),
                                       .threads = 1,
                                       .mode = process == 2 ? "sync" : "fused"};
    g = make_graph("23", relax, NULL);
    TEAM_CHECK(peal_graph_compile(g, session, &options, &plan) == PEAL_STATUS_USAGE);
    TEAM_CHECK(job_reported(session, PEAL_E354, "process 2 has another mode"));
    peal_graph_destroy(g);
    TEAM_CHECK(run_in_parts(session, &(peal_plan_options){.size = sizeof(options)}) != 0);
    peal_session_destroy(session);
    return 0;
}

static int member_starts_other_steps(test_team *team, int process)
{
    peal_session *session;
    peal_plan *plan = NULL;
    TEAM_CHECK(job_open(team, process, 0, &session) == PEAL_STATUS_OK);
    peal_graph *g = make_graph("23", relax, NULL);
    CHECK_OK(session, peal_graph_compile(g, session, NULL, &plan));
    TEAM_CHECK(peal_plan_start(plan, 1 + process, NULL) == PEAL_STATUS_USAGE);
    TEAM_CHECK(peal_plan_wait(plan) == PEAL_STATUS_USAGE);
    peal_plan_destroy(plan);
    peal_graph_destroy(g);
    peal_session_destroy(session);
    return 0;
}

/* Process 1 dies; the others' runs end with its loss, wherever they are. */
static int member_dies(test_team *team, int process)
{
    peal_session *session;
    peal_plan *plan = NULL;
    TEAM_CHECK(job_open(team, process, 0, &session) == PEAL_STATUS_OK);
    peal_graph *g = make_graph("23", relax, NULL);
    CHECK_OK(session, peal_graph_compile(g, session, NULL, &plan));
    CHECK_OK(session, peal_plan_start(plan, 1, NULL));
    CHECK_OK(session, peal_plan_wait(plan));
    job_pass_together(team, process);
    if (process == 1)
        raise(SIGKILL);
    peal_status status = peal_plan_start(plan, INT64_C(1) << 40, NULL);
    if (!status)
        status = peal_plan_wait(plan);
    TEAM_CHECK(status == PEAL_STATUS_PEER_LOST);
    TEAM_CHECK(peal_plan_finish(plan) == PEAL_STATUS_PEER_LOST);
    peal_plan_destroy(plan);
    peal_graph_destroy(g);
    peal_session_destroy(session);
    return 0;
}

static void differing_processes(void **state)
{
    (void)state;
    run_all(3, member_has_another_graph);
    run_all(2, member_starts_other_steps);
    test_team team;
    team_create(&team, 3);
    team_run(&team, member_dies);
    assert_int_equal(team.exit_code[0], 0);
    assert_int_equal(team.exit_code[1], 128 + SIGKILL);
    assert_int_equal(team.exit_code[2], 0);
    team_destroy(&team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modes_in_one_process),
        cmocka_unit_test(modes_in_processes),
        cmocka_unit_test(states),
        cmocka_unit_test(refusals),
        cmocka_unit_test(requirements),
        cmocka_unit_test(lent_memory),
        cmocka_unit_test(wrong_result),
        cmocka_unit_test(footprints),
        cmocka_unit_test(too_big_to_verify),
        cmocka_unit_test(differing_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
