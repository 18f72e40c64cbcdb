/* peal_plan_progress() while a plan runs: never more steps than the tasks have been through, in
 * whatever order a mode enqueues them, and never fewer than it said before. */
#define _GNU_SOURCE
#include "tests/runtime/job.h"

#include <peal/peal.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

enum { STEPS = 200 };

static _Atomic int64_t executed[2]; /* by tile: the second one is slow, and another worker's */

static void half(const peal_call *call)
{
    if (call->tile.index == 1)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    atomic_fetch_add(&executed[call->tile.index], 1);
}

static int64_t finished_steps(void)
{
    int64_t first = atomic_load(&executed[0]), second = atomic_load(&executed[1]);
    return first < second ? first : second;
}

static void check(peal_session *session, const char *mode)
{
    const peal_plan_options options = {.size_bytes = sizeof(options),
                                       .mode = mode,
                                       .ranks = 1,
                                       .threads = 2};
    peal_plan *plan;
    peal_graph *g;
    assert_int_equal(peal_graph_create("progress", &g), PEAL_STATUS_OK);
    peal_graph_add_field(g, .name = "a", .size = "[8]");
    peal_graph_set_loop(g, .repeat = "200");
    peal_graph_begin(g, PEAL_STEP);
    peal_graph_add_task(g, .name = "half", .function = half, .box = {.name = "a"},
                        .update = {{.name = "a"}}, .tile = "4");
    peal_graph_end(g);
    JOB_OK(session, peal_graph_compile(g, session, &options, &plan));
    for (int part = 1; part <= 2; part++) {
        JOB_OK(session, peal_plan_start(plan, STEPS / 2, NULL));
        for (int64_t before = 0; before < part * STEPS / 2;) {
            int64_t done = peal_plan_progress(plan);
            assert_true(done <= finished_steps());
            assert_true(done >= before);
            before = done;
        }
        JOB_OK(session, peal_plan_wait(plan));
        assert_int_equal(peal_plan_progress(plan), part * STEPS / 2);
    }
    JOB_OK(session, peal_plan_finish(plan));
    peal_plan_destroy(plan);
    peal_graph_destroy(g);
}

static void no_step_is_counted_before_it_is_done(void **state)
{
    (void)state;
    static const char *const modes[] = {"serial", "sync", "stream", "fused"};
    peal_session *session = job_open_alone();
    for (int m = 0; m < 4; m++) {
        atomic_store(&executed[0], 0);
        atomic_store(&executed[1], 0);
        print_message("%s\n", modes[m]);
        check(session, modes[m]);
    }
    peal_session_destroy(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_step_is_counted_before_it_is_done)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
