/* What goes wrong while a plan runs: messages that never come, aborts, deadlocks, errors of
 * expressions; and that the tests notice a dropped op. */
#include "tests/backends/check.h"
#include "tests/backends/ring.h"

#include <stdio.h>
#include <stdlib.h>

static const peal_mode threaded[] = {PEAL_MODE_SYNC, PEAL_MODE_STREAM, PEAL_MODE_FUSED};

static ring_options two_ranks(peal_mode mode)
{
    return (ring_options){.ranks = 2,
                          .points = 12,
                          .tiles = 4,
                          .mode = mode,
                          .workers = 2,
                          .lanes = 2,
                          .direct = false,
                          .slots = 1,
                          .deadline_ns = 200000000};
}

/* The first error of the job, or NULL. */
static const peal_diagnostic *first_error(const ring_job *job)
{
    return peal_diagnostics_count(job->diagnostics) > 0 ? peal_diagnostics_at(job->diagnostics, 0)
                                                        : NULL;
}

static void check_dropped(peal_mode mode, const char *label, const char *const *words)
{
    ring_options options = two_ranks(mode);
    ring_job job;

    ring_init(&job, &options);
    job.options.hooks.drop_op = ring_op(&job, 1, label) + 1;
    job.options.hooks.drop_rank = 1;
    assert_true(job.options.hooks.drop_op > 0);
    assert_int_equal(ring_create(&job), PEAL_STATUS_OK);
    assert_int_equal(ring_run(&job, true, 10, true), PEAL_STATUS_DEADLINE);
    bool told = false; /* ranks that wait for the one that waits are reported too */
    for (int i = 0; i < peal_diagnostics_count(job.diagnostics); i++) {
        const peal_diagnostic *d = peal_diagnostics_at(job.diagnostics, i);
        bool has_all = d->code == PEAL_E_RANK_STALLED;
        for (int w = 0; words[w]; w++)
            has_all = has_all && strstr(d->message, words[w]);
        told = told || has_all;
    }
    if (!told) {
        peal_diagnostics_print(job.diagnostics, stderr, 0);
        fail_msg("%s: a dropped `%s` was not told", peal_mode_name(mode), label);
    }
    assert_int_equal(atomic_load(&job.abort_word), PEAL_STATUS_DEADLINE);
    ring_close(&job);
}

static void flag_that_never_comes(void **state)
{
    static const char *const words[] = {"`receive`", "exchange an@7 [",  "1->0",      "rank 0 ",
                                        "step 0",    "for message 1 of", "1 to come", NULL};
    (void)state;
    for (int m = 0; m < 3; m++)
        check_dropped(threaded[m], "ring", words);
}

static void credit_that_never_comes(void **state)
{
    static const char *const words[] = {"`await credit`", "the credit of message 1 of", "0->1",
                                        "rank 0 ",        "step 1: 1 to be given back", NULL};
    (void)state;
    for (int m = 0; m < 3; m++)
        check_dropped(threaded[m], "give credit", words);
}

/* A dropped copy or receive changes the result; so the agreement tests see it. */
static void dropped_copies_are_seen(void **state)
{
    static const char *const labels[] = {"send", "unpack"};
    (void)state;
    for (int m = 0; m < 3; m++)
        for (int i = 0; i < 2; i++) {
            ring_options options = two_ranks(threaded[m]);
            ring_job job;
            double field[24];
            bool differs = false;
            ring_init(&job, &options);
            job.options.hooks.drop_op = ring_op(&job, 1, labels[i]) + 1;
            job.options.hooks.drop_rank = 1;
            assert_int_equal(ring_create(&job), PEAL_STATUS_OK);
            assert_int_equal(ring_run(&job, true, 10, true), PEAL_STATUS_OK);
            ring_expected(&job, 10, field);
            for (int x = 0; x < 24; x++)
                differs = differs || ring_point(&job, x) != field[x];
            assert_true(differs);
            ring_close(&job);
        }
}

/* A step without messages waits for nobody, and computes something else. */
static void emptied_messages_are_neither_sent_nor_awaited(void **state)
{
    (void)state;
    for (int m = 0; m < 3; m++) {
        ring_options options = two_ranks(threaded[m]);
        ring_job job;
        double field[24];
        bool differs = false;
        ring_init(&job, &options);
        job.options.hooks.empty_messages = true;
        job.options.hooks.drop_op = ring_op(&job, 1, "ring") + 1; /* else a deadline */
        job.options.hooks.drop_rank = 1;
        assert_int_equal(ring_create(&job), PEAL_STATUS_OK);
        assert_int_equal(ring_run(&job, true, 10, true), PEAL_STATUS_OK);
        assert_int_equal(job.result.steps_done, 10);
        ring_expected(&job, 10, field);
        for (int x = 0; x < 24; x++)
            differs = differs || ring_point(&job, x) != field[x];
        assert_true(differs);
        ring_close(&job);
    }
}

/* Wrong, but with all that is done in a step, or in its first ops. What nobody waits for races with
 * who reads it: that is the point, and nothing for the thread sanitizer. */
static void nobody_waits_where_told_so(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip();
#endif
    for (int m = 0; m < 6; m++) {
        ring_options options = two_ranks(threaded[m % 3]);
        ring_job job;
        ring_init(&job, &options);
        job.options.hooks.unawaited = true;
        job.options.hooks.end_of_step = m < 3 ? 0 : ring_op(&job, 1, "ring");
        job.options.hooks.drop_op = ring_op(&job, 1, "ring") + 1;
        job.options.hooks.drop_rank = 1;
        assert_int_equal(ring_create(&job), PEAL_STATUS_OK);
        assert_int_equal(ring_run(&job, true, 10, true), PEAL_STATUS_OK);
        assert_int_equal(job.result.steps_done, 10);
        ring_close(&job);
    }
}

/* What a step that ends early leaves out is not done: here all of it. */
static void a_step_can_end_before_its_first_op(void **state)
{
    (void)state;
    for (int m = 0; m < 3; m++) {
        ring_options options = two_ranks(threaded[m]);
        ring_job job, none;
        ring_init(&job, &options);
        ring_init(&none, &options);
        job.options.hooks.unawaited = true;
        job.options.hooks.end_of_step = job.schedule[0].step.first;
        assert_int_equal(ring_create(&job), PEAL_STATUS_OK);
        assert_int_equal(ring_create(&none), PEAL_STATUS_OK);
        assert_int_equal(ring_run(&job, true, 10, false), PEAL_STATUS_OK);
        assert_int_equal(ring_run(&none, true, 0, false), PEAL_STATUS_OK);
        for (int x = 0; x < 24; x++)
            assert_true(ring_point(&job, x) == ring_point(&none, x));
        ring_close(&job);
        ring_close(&none);
    }
}

static void abort_ends_every_wait(void **state)
{
    (void)state;
    for (int m = 0; m < 3; m++) {
        ring_options options = two_ranks(threaded[m]);
        ring_job job;
        options.deadline_ns = 0;
        ring_init(&job, &options);
        job.options.hooks.drop_op = ring_op(&job, 1, "ring") + 1; /* nobody would ever end */
        job.options.hooks.drop_rank = 1;
        assert_int_equal(ring_create(&job), PEAL_STATUS_OK);
        assert_int_equal(peal_backend_host.start(job.plan, true, 1000, true), PEAL_STATUS_OK);
        atomic_store(&job.abort_word, PEAL_STATUS_PEER_LOST);
        assert_int_equal(peal_backend_host.wait(job.plan, &job.result), PEAL_STATUS_PEER_LOST);
        assert_int_equal(peal_diagnostics_count(job.diagnostics), 0);
        ring_close(&job);
    }
}

static void a_plan_can_be_destroyed_before_it_is_started(void **state)
{
    (void)state;
    for (int m = 0; m < 3; m++) {
        ring_options options = two_ranks(threaded[m]);
        ring_job job;
        ring_init(&job, &options);
        assert_int_equal(ring_create(&job), PEAL_STATUS_OK);
        ring_close(&job);
    }
}

/* Receives moved before the sends: a cycle. */
static void deadlock_is_printed_as_its_cycle(void **state)
{
    ring_options options = two_ranks(PEAL_MODE_SERIAL);
    ring_job job;
    (void)state;
    options.direct = true;
    ring_init(&job, &options);
    ring_receive_first(&job);
    assert_int_equal(ring_create(&job), PEAL_STATUS_OK);
    assert_int_equal(ring_run(&job, true, 3, true), PEAL_STATUS_SPEC);
    const peal_diagnostic *d = first_error(&job);
    assert_int_equal(d->code, PEAL_E_DEADLOCK_IN_RUN);
    assert_non_null(strstr(d->message, "rank 0 waits in `receive`"));
    assert_non_null(strstr(d->message, "rank 1 waits in `receive`"));
    ring_close(&job);
}

/* An expression that fails while running: hits + 1 overflows an integer. */
static void errors_of_expressions_end_the_run(void **state)
{
    (void)state;
    for (int m = 0; m < 3; m++) {
        ring_options options = two_ranks(threaded[m]);
        ring_job job;
        options.limit = 100;
        options.ranks = 1;
        ring_init(&job, &options);
        for (int t = 0; t < job.schedule[0].task_count; t++) {
            peal_schedule_task *task = (peal_schedule_task *)&job.schedule[0].task[t];
            if (task->kind == PEAL_TASK_SET && task->array == RING_HITS) {
                peal_expr *sum = (peal_expr *)task->value;
                peal_expr *counter = (peal_expr *)sum->operand[0];
                peal_expr *one = (peal_expr *)sum->operand[1];
                *counter = (peal_expr){.kind = PEAL_EXPR_COUNTER};
                one->value.u.integer = INT64_MAX - 1;
            }
        }
        assert_int_equal(ring_create(&job), PEAL_STATUS_OK);
        assert_int_equal(ring_run(&job, true, 10, true), PEAL_STATUS_SPEC);
        assert_non_null(first_error(&job));
        ring_close(&job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flag_that_never_comes),
        cmocka_unit_test(credit_that_never_comes),
        cmocka_unit_test(dropped_copies_are_seen),
        cmocka_unit_test(emptied_messages_are_neither_sent_nor_awaited),
        cmocka_unit_test(nobody_waits_where_told_so),
        cmocka_unit_test(a_step_can_end_before_its_first_op),
        cmocka_unit_test(abort_ends_every_wait),
        cmocka_unit_test(a_plan_can_be_destroyed_before_it_is_started),
        cmocka_unit_test(deadlock_is_printed_as_its_cycle),
        cmocka_unit_test(errors_of_expressions_end_the_run),
    };
    return cmocka_run_group_tests_name("host failures", tests, NULL, NULL);
}
