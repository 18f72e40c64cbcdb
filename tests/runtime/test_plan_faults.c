/* Plans that go wrong: a wrong bit, undeclared accesses, too little memory, processes that differ
 * or die, ranks that cannot be reached. */
#define _GNU_SOURCE
#include "runtime/bind/binding.h"
#include "tests/runtime/job.h"
#include "tests/runtime/stencil.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Reads a diagonal neighbour, which `star` doesn't declare. */
static void relax_wrongly(const peal_call *call)
{
    const peal_view *a = &call->view[0], *an = &call->view[1];
    stencil_relax(call);
    for (int y = call->tile.lo[1]; y < call->tile.hi[1]; y++)
        for (int x = call->tile.lo[0]; x < call->tile.hi[0]; x++)
            *stencil_at(an, x, y) += *stencil_at(a, x + 1, y + 1);
}

/* Adds to what it only declares to write. */
static void add_wrongly(const peal_call *call)
{
    double old = *stencil_at(&call->view[1], call->tile.lo[0], call->tile.lo[1]);
    stencil_relax(call);
    *stencil_at(&call->view[1], call->tile.lo[0], call->tile.lo[1]) += old;
}

/* Leaves out the first point of each tile. */
static void leave_out_first(const peal_call *call)
{
    double old = *stencil_at(&call->view[1], call->tile.lo[0], call->tile.lo[1]);
    stencil_relax(call);
    *stencil_at(&call->view[1], call->tile.lo[0], call->tile.lo[1]) = old;
}

/* Leaves out a point of what it writes, which is allowed. */
static void leave_out(const peal_call *call)
{
    if (call->tile.lo[0] <= 0 && call->tile.lo[1] <= 0)
        leave_out_first(call);
    else
        stencil_relax(call);
}

/* Writes the point above its tile's last one. */
static void write_wrongly(const peal_call *call)
{
    stencil_relax(call);
    *stencil_at(&call->view[1], call->tile.hi[0] - 1, call->tile.hi[1]) = 1;
}

static void wrong_result(void **state)
{
    (void)state;
    peal_session *session = job_open_alone();
    peal_graph *g = stencil_graph("23", stencil_relax, NULL);
    peal_plan *plan = NULL;
    peal_plan_array a;
    const peal_plan_options options = {.size_bytes = sizeof(options),
                                       .ranks = 3,
                                       .threads = 3,
                                       .verify = true};
    JOB_OK(session, peal_graph_compile(g, session, &options, &plan));
    JOB_OK(session, peal_plan_start(plan, 4, NULL));
    JOB_OK(session, peal_plan_wait(plan));
    JOB_OK(session, peal_plan_verify(plan));
    uint64_t before, after;
    JOB_OK(session, peal_plan_digest(plan, NULL, &before));
    JOB_OK(session, peal_plan_view(plan, 1, "a", &a));
    double *value = stencil_at(&a.view, 5, (int)a.part.lo[1] + 2);
    *value = nextafter(*value, 1e9);
    assert_int_equal(peal_plan_verify(plan), PEAL_STATUS_WRONG_RESULT);
    assert_true(job_reported(session, PEAL_E_VERIFICATION_FAILED,
                             "'a' of rank 1 differs from serial at (5, 10)"));
    assert_true(job_reported(session, PEAL_E_VERIFICATION_FAILED, "1 of 296 points differ"));
    JOB_OK(session, peal_plan_digest(plan, NULL, &after));
    assert_true(before != after);
    /* halos are not compared */
    *value = nextafter(*value, -1e9);
    *stencil_at(&a.view, -1, (int)a.part.lo[1]) += 1;
    JOB_OK(session, peal_plan_verify(plan));
    peal_plan_destroy(plan);
    peal_graph_destroy(g);
    peal_session_destroy(session);
}

static void check_footprints(peal_function function, int ranks, peal_status want, peal_code code,
                             const char *text)
{
    peal_session *session = job_open_alone();
    peal_graph *g = stencil_graph("23", function, NULL);
    peal_plan *plan = NULL;
    const peal_plan_options options = {.size_bytes = sizeof(options),
                                       .ranks = ranks,
                                       .check_footprints = true};
    JOB_OK(session, peal_graph_compile(g, session, &options, &plan));
    assert_int_equal(peal_plan_mode(plan), PEAL_MODE_SERIAL);
    JOB_OK(session, peal_plan_start(plan, 3, NULL));
    JOB_OK(session, peal_plan_wait(plan));
    if (function == stencil_relax)
        assert_true(stencil_is_right(plan, 3));
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
    check_footprints(stencil_relax, 1, PEAL_STATUS_OK, 0, NULL);
    check_footprints(stencil_relax, 3, PEAL_STATUS_OK, 0, NULL);
    check_footprints(relax_wrongly, 1, PEAL_STATUS_SPEC, PEAL_E_UNDECLARED_READ,
                     "task 'relax' reads 'a' at (37, 23), which it doesn't declare (rank 0");
    check_footprints(add_wrongly, 2, PEAL_STATUS_SPEC, PEAL_E_UNDECLARED_READ,
                     "task 'relax' reads 'an' at (0, 0), which it doesn't declare (rank 0");
    check_footprints(leave_out, 2, PEAL_STATUS_OK, 0, NULL);
    check_footprints(leave_out_first, 2, PEAL_STATUS_SPEC, PEAL_E_KERNEL_DEPENDS_ON_TILE,
                     "task 'relax' gives 'an' at (");
    check_footprints(write_wrongly, 2, PEAL_STATUS_SPEC, PEAL_E_UNDECLARED_WRITE,
                     "task 'relax' writes 'an' at (");
}

/* A size of 2^59 bytes is refused before anything is allocated. */
static void too_big_to_verify(void **state)
{
    (void)state;
    peal_session *session = job_open_alone();
    peal_graph *g = stencil_graph("23", stencil_relax, NULL);
    peal_graph_override(g, "ny=2000000000");
    peal_graph_override(g, "nx=20000000");
    peal_plan *plan = NULL;
    const peal_plan_options options = {.size_bytes = sizeof(options), .verify = true};
    assert_int_equal(peal_graph_compile(g, session, &options, &plan), PEAL_STATUS_ENVIRONMENT);
    assert_null(plan);
    if (!job_reported(session, PEAL_E_NO_MEMORY_TO_VERIFY, "the run and its verification need "))
        peal_session_print_diagnostics(session, stderr, 0);
    assert_true(
        job_reported(session, PEAL_E_NO_MEMORY_TO_VERIFY, "the run and its verification need "));
    peal_graph_destroy(g);
    peal_session_destroy(session);
}

static int member_has_another_graph(test_team *team, int process)
{
    peal_session *session;
    peal_plan *plan = NULL;
    TEAM_CHECK(job_open(team, process, 0, &session) == PEAL_STATUS_OK);
    peal_graph *g = stencil_graph(process == 1 ? "24" : "23", stencil_relax, NULL);
    TEAM_CHECK(peal_graph_compile(g, session, NULL, &plan) == PEAL_STATUS_SPEC);
    TEAM_CHECK(!plan);
    /* everybody learns what differs, and the session is still good */
    TEAM_CHECK(job_reported(session, PEAL_E_GRAPHS_DIFFER,
                            "\"param ny = 24\" here, \"param ny = 23\" there") ||
               job_reported(session, PEAL_E_PEER_CALL_FAILED, "param ny = 24"));
    peal_graph_destroy(g);
    const peal_plan_options options = {.size_bytes = sizeof(options),
                                       .threads = 1,
                                       .mode = process == 2 ? "sync" : "fused"};
    g = stencil_graph("23", stencil_relax, NULL);
    TEAM_CHECK(peal_graph_compile(g, session, &options, &plan) == PEAL_STATUS_USAGE);
    TEAM_CHECK(job_reported(session, PEAL_E_CALLS_DIFFER, "process 2 has another mode"));
    peal_graph_destroy(g);
    TEAM_CHECK(stencil_run_in_parts(session, &(peal_plan_options){.size_bytes = sizeof(options)}) !=
               0);
    peal_session_destroy(session);
    return 0;
}

/* Only process 1 lends memory: layouts would differ. */
static int member_lends(test_team *team, int process)
{
    static double memory[(NX + 2) * (NY + 2)];
    peal_session *session;
    peal_plan *plan = NULL;
    TEAM_CHECK(job_open(team, process, 0, &session) == PEAL_STATUS_OK);
    peal_graph *g = stencil_graph("23", stencil_relax, process == 1 ? memory : NULL);
    TEAM_CHECK(peal_graph_compile(g, session, NULL, &plan) == PEAL_STATUS_SPEC);
    TEAM_CHECK(!plan);
    TEAM_CHECK(process == 1
                   ? job_reported(session, PEAL_E_GRAPHS_DIFFER,
                                  "\"field a, f64, lent memory\" here, \"field a, f64\" there")
                   : job_reported(session, PEAL_E_PEER_CALL_FAILED, "lent memory"));
    peal_graph_destroy(g);
    peal_session_destroy(session);
    return 0;
}

typedef struct member {
    peal_session *session;
    peal_graph *graph;
    peal_plan *plan;
} member;

static member join(test_team *team, int process)
{
    member m = {.plan = NULL};
    TEAM_CHECK(job_open(team, process, 0, &m.session) == PEAL_STATUS_OK);
    m.graph = stencil_graph("23", stencil_relax, NULL);
    JOB_OK(m.session, peal_graph_compile(m.graph, m.session, NULL, &m.plan));
    return m;
}

static int leave(const member *m)
{
    peal_plan_destroy(m->plan);
    peal_graph_destroy(m->graph);
    peal_session_destroy(m->session);
    return 0;
}

static int member_starts_other_steps(test_team *team, int process)
{
    member m = join(team, process);
    TEAM_CHECK(peal_plan_start(m.plan, 1 + process, NULL) == PEAL_STATUS_USAGE);
    TEAM_CHECK(peal_plan_wait(m.plan) == PEAL_STATUS_USAGE);
    return leave(&m);
}

/* Process 1 dies; the others' runs end with its loss, wherever they are. */
static int member_dies(test_team *team, int process)
{
    member m = join(team, process);
    JOB_OK(m.session, peal_plan_start(m.plan, 1, NULL));
    JOB_OK(m.session, peal_plan_wait(m.plan));
    job_pass_together(team, process);
    if (process == 1)
        raise(SIGKILL);
    peal_status status = peal_plan_start(m.plan, INT64_C(1) << 40, NULL);
    if (!status)
        status = peal_plan_wait(m.plan);
    TEAM_CHECK(status == PEAL_STATUS_PEER_LOST);
    TEAM_CHECK(peal_plan_finish(m.plan) == PEAL_STATUS_PEER_LOST);
    return leave(&m);
}

static void differing_processes(void **state)
{
    (void)state;
    job_run_all(3, member_has_another_graph);
    job_run_all(2, member_lends);
    job_run_all(2, member_starts_other_steps);
    job_run_all_but(3, 1, member_dies);
}

/* A schedule whose channel goes to another process by way of `self`. */
static void unreachable_rank(void **state)
{
    (void)state;
    peal_session *session = job_open_alone();
    peal_peer peer = {.rank = 1, .process = 1};
    peal_channel channel = {.peer_index = 0, .transport = PEAL_TRANSPORT_SELF};
    const peal_schedule schedule = {
        .rank = 0, .peer = &peer, .peer_count = 1, .channel = &channel, .channel_count = 1};
    unsigned char *segment = NULL;
    peal_bound_rank rank = {.schedule = &schedule, .peer_segment = &segment};
    peal_binding binding = {.session = session, .processes = 2, .count = 1, .rank = &rank};
    assert_int_equal(peal_binding_attach(&binding), PEAL_STATUS_ENVIRONMENT);
    assert_true(job_reported(session, PEAL_E_NO_PATH_TO_NEIGHBOUR,
                             "rank 0 (process 0) cannot reach rank 1 (process 1) by self: "));
    assert_null(segment);
    peal_session_destroy(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_result),      cmocka_unit_test(footprints),
        cmocka_unit_test(too_big_to_verify), cmocka_unit_test(differing_processes),
        cmocka_unit_test(unreachable_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
