/* Plans: a stencil with host functions, in every mode, over ranks and processes; states of the API,
 * what it refuses, views after swaps, memory of the caller. */
#define _GNU_SOURCE
#include "base/backoff.h"
#include "dsl/dsl.h"
#include "tests/runtime/job.h"
#include "tests/runtime/stencil.h"

#include <peal/graph.h>
#include <peal/plan.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const modes[] = {"serial", "sync", "stream", "fused"};
enum { MODES = sizeof(modes) / sizeof(modes[0]) };

static void modes_in_one_process(void **state)
{
    (void)state;
    peal_session *session = job_open_alone();
    static const int ranks[] = {1, 2, 5};
    for (int r = 0; r < 3; r++) {
        uint64_t digest = 0;
        for (int m = 0; m < MODES; m++)
            for (int threads = 1; threads <= 2; threads++) {
                const peal_plan_options options = {.size_bytes = sizeof(options),
                                                   .mode = modes[m],
                                                   .ranks = ranks[r],
                                                   .threads = threads * ranks[r],
                                                   .verify = true,
                                                   .verify_ranks = 3};
                print_message("%s, %d ranks, %d workers each\n", modes[m], ranks[r], threads);
                uint64_t mine = stencil_run_in_parts(session, &options);
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
            const peal_plan_options options = {.size_bytes = sizeof(options),
                                               .mode = modes[m],
                                               .ranks = ranks,
                                               .threads = 1,
                                               .verify = true};
            uint64_t mine = stencil_run_in_parts(session, &options);
            if (m == 0)
                digest = mine;
            TEAM_CHECK(digest == mine);
        }
    }
    peal_session_destroy(session);
    return 0;
}

static void modes_in_processes(void **state)
{
    (void)state;
    job_run_all(2, member_runs_modes);
    job_run_all(3, member_runs_modes);
}

static void states(void **state)
{
    (void)state;
    peal_session *session = job_open_alone();
    peal_graph *g = stencil_graph("23", stencil_relax, NULL);
    peal_plan *plan = NULL;
    peal_plan_array a;
    const peal_plan_options options = {.size_bytes = sizeof(options),
                                       .mode = "fused",
                                       .threads = 1};
    JOB_OK(session, peal_graph_compile(g, session, &options, &plan));
    assert_int_equal(peal_plan_mode(plan), PEAL_MODE_FUSED);
    assert_int_equal(peal_plan_wait(plan), PEAL_STATUS_USAGE);
    assert_int_equal(peal_plan_verify(plan), PEAL_STATUS_USAGE);
    assert_int_equal(peal_plan_start(plan, -2, NULL), PEAL_STATUS_USAGE);
    assert_int_equal(peal_plan_start(plan, 1, &(peal_start){.size_bytes = 1}), PEAL_STATUS_USAGE);
    const peal_start on_stream = {.size_bytes = sizeof(on_stream), .stream = session};
    assert_int_equal(peal_plan_start(plan, 1, &on_stream), PEAL_STATUS_USAGE);
    JOB_OK(session, peal_plan_start(plan, 1, NULL));
    assert_int_equal(peal_plan_start(plan, 1, NULL), PEAL_STATUS_USAGE);
    assert_int_equal(peal_plan_finish(plan), PEAL_STATUS_USAGE);
    assert_int_equal(peal_plan_view(plan, 0, "a", &a), PEAL_STATUS_USAGE);
    JOB_OK(session, peal_plan_wait(plan));
    assert_int_equal(peal_plan_view(plan, 0, "b", &a), PEAL_STATUS_USAGE);
    assert_int_equal(peal_plan_view(plan, 1, "a", &a), PEAL_STATUS_USAGE);
    assert_true(job_reported(session, PEAL_E_CALL_OUT_OF_ORDER, "has no 'b'"));
    assert_true(stencil_is_right(plan, 1));
    JOB_OK(session, peal_plan_finish(plan));
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
    peal_session *session = job_open_alone();
    peal_graph *g = stencil_graph("23", stencil_relax, NULL);
    peal_plan *plan = NULL;
    if (!options.size_bytes)
        options.size_bytes = sizeof(options);
    assert_int_equal(peal_graph_compile(g, session, &options, &plan), status);
    assert_null(plan);
    assert_true(job_reported(session, code, NULL));
    peal_graph_destroy(g);
    peal_session_destroy(session);
}

static void refusals(void **state)
{
    (void)state;
    refuse((peal_plan_options){.size_bytes = 4}, PEAL_STATUS_USAGE, PEAL_E_INVALID_DESCRIPTOR);
    refuse((peal_plan_options){.threads = -1}, PEAL_STATUS_USAGE, PEAL_E_INVALID_DESCRIPTOR);
    refuse((peal_plan_options){.mode = "fussed"}, PEAL_STATUS_USAGE, PEAL_E_UNKNOWN_MODE);
    refuse((peal_plan_options){.mode = "graph"}, PEAL_STATUS_ENVIRONMENT, PEAL_E_MODE_CANNOT_RUN);
    refuse((peal_plan_options){.ranks = -1}, PEAL_STATUS_USAGE, PEAL_E_FEWER_RANKS_THAN_PROCESSES);
    refuse((peal_plan_options){.ranks = 24}, PEAL_STATUS_SPEC, PEAL_E_MORE_RANKS_THAN_POINTS);
}

static void requirements(void **state)
{
    (void)state;
    static const char *const what[] = {"sync", "shm", "self"};
    static const peal_status want[] = {PEAL_STATUS_OK, PEAL_STATUS_ENVIRONMENT, PEAL_STATUS_OK};
    for (int i = 0; i < 3; i++) {
        peal_session *session = job_open_alone();
        peal_graph *g = stencil_graph("23", stencil_relax, NULL);
        peal_plan *plan = NULL;
        peal_graph_add_require(g, what[i], PEAL_HERE);
        const peal_plan_options options = {.size_bytes = sizeof(options), .ranks = 2};
        assert_int_equal(peal_graph_compile(g, session, &options, &plan), want[i]);
        if (i == 0)
            assert_int_equal(peal_plan_mode(plan), PEAL_MODE_SYNC);
        if (want[i])
            assert_true(job_reported(session, PEAL_E_REQUIRED_PATH_MISSING, "shm"));
        peal_plan_destroy(plan);
        peal_graph_destroy(g);
        peal_session_destroy(session);
    }
    peal_session *session = job_open_alone();
    peal_graph *g = stencil_graph("23", stencil_relax, NULL);
    peal_plan *plan = NULL;
    peal_graph_add_require(g, "sync", PEAL_HERE);
    const peal_plan_options options = {.size_bytes = sizeof(options), .mode = "fused"};
    assert_int_equal(peal_graph_compile(g, session, &options, &plan), PEAL_STATUS_ENVIRONMENT);
    assert_true(job_reported(session, PEAL_E_REQUIRED_PATH_MISSING, "requires another mode"));
    peal_graph_destroy(g);
    peal_session_destroy(session);
}

/* The caller's memory: results are in it, or in the field that it was swapped with. */
static void lent_memory(void **state)
{
    (void)state;
    peal_session *session = job_open_alone();
    for (int m = 0; m < MODES; m++) {
        static double memory[(NX + 2) * (NY + 2)];
        peal_graph *g = stencil_graph("23", stencil_relax, memory);
        peal_plan *plan = NULL;
        peal_plan_array a, an;
        peal_plan_options options = {.size_bytes = sizeof(options),
                                     .mode = modes[m],
                                     .threads = 1,
                                     .verify = true};
        JOB_OK(session, peal_graph_compile(g, session, &options, &plan));
        for (int steps = 0; steps < 3; steps++) {
            JOB_OK(session, peal_plan_start(plan, steps > 0, NULL));
            JOB_OK(session, peal_plan_wait(plan));
            JOB_OK(session, peal_plan_view(plan, 0, "a", &a));
            JOB_OK(session, peal_plan_view(plan, 0, "an", &an));
            const peal_plan_array *lent = steps % 2 ? &an : &a;
            assert_ptr_equal(stencil_at(&lent->view, -1, -1), memory);
            assert_true(stencil_is_right(plan, steps));
        }
        JOB_OK(session, peal_plan_finish(plan));
        JOB_OK(session, peal_plan_verify(plan));
        peal_plan_destroy(plan);
        options.ranks = 2;
        plan = NULL;
        assert_int_equal(peal_graph_compile(g, session, &options, &plan), PEAL_STATUS_USAGE);
        assert_true(job_reported(session, PEAL_E_LENT_MEMORY_UNUSABLE, NULL));
        peal_graph_destroy(g);
    }
    peal_session_destroy(session);
}

/* Verified on other ranks, which find what is theirs of the lent field; of a lent buffer nobody
 * knows. */
static void lent_memory_on_other_ranks(void **state)
{
    (void)state;
    peal_session *session = job_open_alone();
    static double memory[(NX + 2) * (NY + 2)], scale[2];
    for (int i = 0; i < (NX + 2) * (NY + 2); i++)
        memory[i] = i % 23;
    peal_plan_options options = {.size_bytes = sizeof(options), .threads = 1, .verify_ranks = 2};
    for (int buffer = 0; buffer < 2; buffer++) {
        peal_graph *g;
        peal_plan *plan = NULL;
        assert_int_equal(peal_graph_create("lent", &g), PEAL_STATUS_OK);
        peal_graph_set_topology(g, .dims = "[1, auto]", .periodic = "true");
        peal_graph_add_field(g, .name = "a", .size = "[37, 23]", .halo = "1", .data = memory);
        peal_graph_add_field(g, .name = "an", .size = "[37, 23]");
        if (buffer)
            peal_graph_add_buffer(g, .name = "scale", .count = "2", .data = scale);
        peal_graph_begin(g, PEAL_STEP);
        peal_graph_add_exchange(g, .exchange = {{.name = "a"}});
        peal_graph_add_task(g, .name = "relax", .function = stencil_relax, .box = {.name = "a"},
                            .read = {{.name = "a", .star = "1"}}, .write = {{.name = "an"}});
        peal_graph_end(g);
        peal_status status = peal_graph_compile(g, session, &options, &plan);
        if (buffer) {
            assert_int_equal(status, PEAL_STATUS_SPEC);
            assert_true(job_reported(session, PEAL_E_NOT_ON_OTHER_RANKS, "scale"));
        } else {
            JOB_OK(session, status);
            JOB_OK(session, peal_plan_start(plan, PEAL_STEPS_ALL, NULL));
            JOB_OK(session, peal_plan_wait(plan));
            JOB_OK(session, peal_plan_finish(plan));
            JOB_OK(session, peal_plan_verify(plan));
            peal_plan_array an;
            JOB_OK(session, peal_plan_view(plan, 0, "an", &an));
            *stencil_at(&an.view, 5, 7) += 1;
            assert_int_equal(peal_plan_verify(plan), PEAL_STATUS_WRONG_RESULT);
            assert_true(job_reported(session, PEAL_E_RANKS_DIFFER, "(5, 7)"));
        }
        peal_plan_destroy(plan);
        peal_graph_destroy(g);
    }
    options.verify_ranks = -1;
    peal_graph *g = stencil_graph("23", stencil_relax, NULL);
    peal_plan *plan = NULL;
    assert_int_equal(peal_graph_compile(g, session, &options, &plan), PEAL_STATUS_USAGE);
    peal_graph_destroy(g);
    peal_session_destroy(session);
}

/* A NaN that the application puts there is found where it lies; a plan that was not asked to watch
 * says so. */
static void watched_values(void **state)
{
    (void)state;
    peal_session *session = job_open_alone();
    peal_plan_options options = {.size_bytes = sizeof(options),
                                 .mode = "fused",
                                 .ranks = 2,
                                 .watch = "nan"};
    peal_graph *g = stencil_graph("23", stencil_relax, NULL);
    peal_plan *plan = NULL;
    peal_plan_array a;
    JOB_OK(session, peal_graph_compile(g, session, &options, &plan));
    JOB_OK(session, peal_plan_watch(plan));
    JOB_OK(session, peal_plan_start(plan, 3, NULL));
    assert_int_equal(peal_plan_watch(plan), PEAL_STATUS_USAGE);
    JOB_OK(session, peal_plan_wait(plan));
    JOB_OK(session, peal_plan_watch(plan));
    JOB_OK(session, peal_plan_start(plan, 2, NULL));
    JOB_OK(session, peal_plan_wait(plan));
    JOB_OK(session, peal_plan_view(plan, 1, "an", &a));
    *stencil_at(&a.view, 7, 20) = -1.0 / 0.0;
    JOB_OK(session, peal_plan_watch(plan)); /* infinite values were not asked for */
    *stencil_at(&a.view, 7, 20) = 0.0 / 0.0;
    assert_int_equal(peal_plan_watch(plan), PEAL_STATUS_WRONG_RESULT);
    assert_true(job_reported(session, PEAL_E_NOT_A_NUMBER, "`an` is nan at (7, 20), of rank 1"));
    peal_plan_destroy(plan);
    options.watch = NULL;
    JOB_OK(session, peal_graph_compile(g, session, &options, &plan));
    assert_int_equal(peal_plan_watch(plan), PEAL_STATUS_USAGE);
    peal_plan_destroy(plan);
    options.watch = "infinity";
    assert_int_equal(peal_graph_compile(g, session, &options, &plan), PEAL_STATUS_USAGE);
    assert_true(job_reported(session, PEAL_E_INVALID_DESCRIPTOR, "infinity"));
    peal_graph_destroy(g);
    peal_session_destroy(session);
}

/* A graph without `repeat`, whose inner loop depends on the step: nothing bounds what a program
 * starts. */
static void steps_without_an_end(void **state)
{
    (void)state;
    peal_session *session = job_open_alone();
    const peal_plan_options options = {.size_bytes = sizeof(options),
                                       .mode = "serial",
                                       .ranks = 3,
                                       .threads = 1};
    peal_graph *g;
    peal_plan *plan = NULL;
    assert_int_equal(peal_graph_create("endless", &g), PEAL_STATUS_OK);
    peal_graph_set_topology(g, .dims = "[3]");
    peal_graph_add_buffer(g, .name = "x");
    peal_graph_add_buffer(g, .name = "y", .keep = true);
    peal_graph_begin(g, PEAL_STEP);
    peal_graph_add_recv(g, .recv = {.name = "y"}, .from = "1", .tag = "0", .when = "rank == 0");
    peal_graph_begin_repeat(g, .repeat = "4", .as = "k");
    peal_graph_add_send(g, .send = {.name = "x"}, .to = "2", .tag = "1",
                        .when = "rank == 1 and k == step");
    peal_graph_add_recv(g, .recv = {.name = "y"}, .from = "1", .tag = "1",
                        .when = "rank == 2 and k == step");
    peal_graph_end_repeat(g);
    peal_graph_add_send(g, .send = {.name = "x"}, .to = "0", .tag = "0", .when = "rank == 1");
    peal_graph_end(g);
    JOB_OK(session, peal_graph_compile(g, session, &options, &plan));
    JOB_OK(session, peal_plan_start(plan, 20, NULL));
    JOB_OK(session, peal_plan_wait(plan));
    peal_plan_destroy(plan);
    peal_graph_destroy(g);
    peal_session_destroy(session);
}

static test_team *saving_team;
static char saved_file[] = "/tmp/peal-saved-XXXXXX.npy";

/* The other rank's part waits until the first process has destroyed its plan. */

static void fill(const peal_call *call)
{
    peal_backoff backoff = peal_backoff_of_processes();
    while (call->tile.lo[0] + call->tile.lo[1] > 0 && !atomic_load(&saving_team->board->flag[0]))
        peal_backoff_wait(&backoff);
    for (int y = call->tile.lo[1]; y < call->tile.hi[1]; y++)
        for (int x = call->tile.lo[0]; x < call->tile.hi[0]; x++)
            *stencil_at(&call->view[0], x, y) = x + 100 * y;
}

static int member_saves_and_leaves(test_team *team, int process)
{
    peal_session *session;
    peal_plan *plan = NULL;
    saving_team = team;
    TEAM_CHECK(job_open(team, process, 0, &session) == PEAL_STATUS_OK);
    const peal_plan_options options = {.size_bytes = sizeof(options), .mode = "sync"};
    peal_graph *g = NULL;
    JOB_OK(session, peal_graph_create("saves", &g));
    peal_graph_add_field(g, .name = "a", .size = "[24, 24]");
    peal_graph_set_loop(g, .repeat = "1");
    peal_graph_begin(g, PEAL_STEP);
    peal_graph_add_task(g, .name = "fill", .function = fill, .box = {.name = "a"},
                        .write = {{.name = "a"}});
    peal_graph_add_save(g, .save = "a", .file = saved_file);
    peal_graph_end(g);
    JOB_OK(session, peal_graph_compile(g, session, &options, &plan));
    JOB_OK(session, peal_plan_start(plan, PEAL_STEPS_ALL, NULL));
    JOB_OK(session, peal_plan_wait(plan));
    peal_plan_destroy(plan);
    job_pass_together(team, process); /* the first one's flag lets the other write */
    peal_graph_destroy(g);
    peal_session_destroy(session);
    return 0;
}

/* Who has written its part of a file needn't stay until all have, and needn't call finish. */
static void a_file_outlives_the_first_to_leave(void **state)
{
    struct stat info;
    (void)state;
    if (getenv("PEAL_TEST_HOSTS")) /* refused */
        skip();
    int file = mkstemps(saved_file, 4);
    assert_true(file >= 0 && close(file) == 0 && unlink(saved_file) == 0);
    job_run_all(2, member_saves_and_leaves);
    assert_int_equal(stat(saved_file, &info), 0);
    assert_int_equal(info.st_size, 128 + 24 * 24 * sizeof(double));
    unlink(saved_file);
}

static char loaded_file[] = "/tmp/peal-loaded-XXXXXX.npy";

static void come_late(const peal_call *call)
{
    usleep(200000);
    *(double *)call->view[0].base = -1;
}

/* b is 0 in the file that this writes, then what setup loads; the file is to be 77. */
static void load_then_save(peal_session *session, const char *mode, bool loads)
{
    const peal_plan_options options = {.size_bytes = sizeof(options), .ranks = 2, .mode = mode};
    peal_graph *g = NULL;
    peal_plan *plan = NULL;
    JOB_OK(session, peal_graph_create("again", &g));
    peal_graph_add_field(g, .name = "u", .size = "[8]", .halo = "1");
    peal_graph_add_buffer(g, .name = "b", .keep = true);
    peal_graph_add_buffer(g, .name = "c", .keep = true);
    peal_graph_begin(g, PEAL_SETUP);
    peal_graph_add_task(g, .name = "late", .function = come_late, .write = {{.name = "b"}},
                        .when = "rank == 1");
    if (loads)
        peal_graph_add_load(g, .load = "b", .file = loaded_file);
    peal_graph_end(g);
    peal_graph_begin(g, PEAL_FINISH);
    peal_graph_add_set(g, .set = "c", .value = loads ? "77" : "7");
    peal_graph_add_save(g, .save = "c", .file = loaded_file, .when = "rank == 0");
    peal_graph_end(g);
    JOB_OK(session, peal_graph_compile(g, session, &options, &plan));
    JOB_OK(session, peal_plan_finish(plan));
    for (int rank = 0; rank < 2 && loads; rank++) {
        peal_plan_array a;
        JOB_OK(session, peal_plan_view(plan, rank, "b", &a));
        assert_true(*(double *)a.view.base == 7);
    }
    peal_plan_destroy(plan);
    peal_graph_destroy(g);
}

/* What setup loads is loaded before finish saves, also where no step was started. */
static void finish_alone_saves_after_loads(void **state)
{
    (void)state;
    int file = mkstemps(loaded_file, 4);
    assert_true(file >= 0 && close(file) == 0);
    for (int m = 0; m < MODES; m++) {
        peal_session *session = job_open_alone();
        load_then_save(session, modes[m], false);
        load_then_save(session, modes[m], true);
        peal_session_destroy(session);
    }
    unlink(loaded_file);
}

/* A finish whose messages happen behind as many steps as `repeat` says, or as the graph was given.
 */
static void finish_after_fewer_steps(void **state)
{
    (void)state;
    static const char text[] = "peal: 1\ntopology: {dims: [auto], periodic: true}\n"
                               "fields: {u: {size: 8, halo: 1}}\nbuffers: {x: {}, y: {}}\n"
                               "repeat: 4\nstep: [{set: x, value: step}, "
                               "{send: x, to: 0, when: step < 4}, {recv: y, from: 0}]\n"
                               "finish: [{exchange: u, when: step == 4}]\n";
    peal_session *session = job_open_alone();
    const peal_plan_options options = {.size_bytes = sizeof(options), .mode = "sync"};
    for (int steps = 3; steps <= 4; steps++)
        for (int given = 0; given < 2; given++) {
            peal_graph *g;
            peal_plan *plan;
            peal_diagnostics *list = peal_session_diagnostics(session);
            JOB_OK(session,
                   peal_graph_read_memory("t.yaml", text, strlen(text), NULL, 0, list, &g));
            assert_int_equal(peal_graph_set_steps(g, -1), -1);
            if (given)
                assert_int_equal(peal_graph_set_steps(g, steps), 0);
            JOB_OK(session, peal_graph_compile(g, session, &options, &plan));
            if (given) /* the messages match in the first four steps */
                assert_int_equal(peal_plan_start(plan, 5, NULL), PEAL_STATUS_SPEC);
            JOB_OK(session, peal_plan_start(plan, steps, NULL));
            JOB_OK(session, peal_plan_wait(plan));
            if (given || steps == 4) {
                JOB_OK(session, peal_plan_finish(plan));
            } else {
                assert_int_equal(peal_plan_finish(plan), PEAL_STATUS_SPEC);
                assert_true(job_reported(session, PEAL_E_MESSAGE_CONDITION_MISMATCH,
                                         "`finish` after 3 steps"));
                peal_session_destroy(session); /* the job has failed */
                session = job_open_alone();
            }
            if (given || steps == 4)
                peal_plan_destroy(plan);
            peal_graph_destroy(g);
        }
    peal_session_destroy(session);
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
        cmocka_unit_test(lent_memory_on_other_ranks),
        cmocka_unit_test(watched_values),
        cmocka_unit_test(steps_without_an_end),
        cmocka_unit_test(finish_after_fewer_steps),
        cmocka_unit_test(finish_alone_saves_after_loads),
        cmocka_unit_test(a_file_outlives_the_first_to_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
