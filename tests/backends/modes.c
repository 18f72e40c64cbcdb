/* Every mode computes what the plain loop computes, on hand-made schedules. */
#include "tests/backends/check.h"
#include "tests/backends/ring.h"

#include <stdlib.h>

static void check_field(const ring_job *job, int64_t steps)
{
    int64_t n = (int64_t)job->options.points * job->options.ranks;
    double *expected = calloc((size_t)n, sizeof(*expected));

    ring_expected(job, steps, expected);
    for (int64_t x = 0; x < n; x++) {
        double value = ring_point(job, x);
        if (memcmp(&value, &expected[x], sizeof(value)) != 0)
            fail_msg("%s, %d ranks, %d workers, %d lanes, %s: point %lld is %.17g, not %.17g",
                     peal_mode_name(job->options.mode), job->options.ranks, job->options.workers,
                     job->options.lanes, job->options.direct ? "direct" : "staged", (long long)x,
                     value, expected[x]);
    }
    free(expected);
}

static void run_ring(const ring_options *options)
{
    ring_job job;
    int64_t half = options->steps / 2;

    ring_init(&job, options);
    assert_int_equal(ring_create(&job), PEAL_STATUS_OK);
    assert_int_equal(ring_run(&job, true, half, false), PEAL_STATUS_OK);
    assert_int_equal(job.result.steps_done, half);
    check_field(&job, half);
    assert_int_equal(ring_run(&job, false, options->steps - half, true), PEAL_STATUS_OK);
    assert_int_equal(job.result.steps_done, options->steps - half);
    check_field(&job, options->steps);
    assert_int_equal(peal_backend_host.progress(job.plan), options->steps);
    ring_close(&job);
}

static const peal_mode modes[] = {PEAL_MODE_SERIAL, PEAL_MODE_SYNC, PEAL_MODE_STREAM,
                                  PEAL_MODE_FUSED};

/* Ranks, workers, lanes, direct and staged, in order and shuffled, with and without jitter. */
static void agree(void **state)
{
    (void)state;
    for (int m = 0; m < 4; m++)
        for (int ranks = 1; ranks <= 3; ranks++)
            for (int workers = 1; workers <= 3; workers++)
                for (int variant = 0; variant < 4; variant++) {
                    ring_options options = {.ranks = ranks,
                                            .points = 37,
                                            .tiles = 7,
                                            .mode = modes[m],
                                            .workers = workers,
                                            .lanes = workers,
                                            .direct = variant % 2 == 0,
                                            .slots = 1,
                                            .norm = variant == 1,
                                            .steps = 12};
                    if (variant >= 2) {
                        options.hooks.shuffle_seed = (uint64_t)(17 + workers);
                        options.hooks.jitter_seed = (uint64_t)(3 + ranks);
                    }
                    run_ring(&options);
                }
}

static void flags_wrap(void **state)
{
    (void)state;
    for (int m = 1; m < 4; m++)
        for (int direct = 0; direct < 2; direct++) {
            ring_options options = {.ranks = 2,
                                    .points = 8,
                                    .tiles = 2,
                                    .mode = modes[m],
                                    .workers = 2,
                                    .lanes = 2,
                                    .direct = direct == 1,
                                    .slots = 2,
                                    .steps = 40};
            options.hooks.first_message = 11; /* 16 messages wrap the word */
            run_ring(&options);
            options.hooks.first_message = UINT64_MAX - 9; /* and the count itself */
            run_ring(&options);
        }
}

static void norms_agree(void **state)
{
    double expected = 0;
    (void)state;
    for (int m = 0; m < 4; m++)
        for (int workers = 1; workers <= 3; workers++) {
            ring_options options = {.ranks = 2,
                                    .points = 40,
                                    .tiles = 11,
                                    .mode = modes[m],
                                    .workers = workers,
                                    .lanes = 2,
                                    .direct = true,
                                    .norm = true,
                                    .steps = 5};
            ring_job job;
            ring_init(&job, &options);
            assert_int_equal(ring_create(&job), PEAL_STATUS_OK);
            assert_int_equal(ring_run(&job, true, 5, true), PEAL_STATUS_OK);
            double norm = ring_buffer(&job, 1, RING_NORM);
            if (m == 0 && workers == 1)
                expected = norm;
            assert_memory_equal(&norm, &expected, sizeof(norm));
            assert_true(norm > 0);
            ring_close(&job);
        }
}

/* hits >= limit is first true after iteration limit - 1; looked at when due, acted on lag looks
 * later. */
static int64_t expected_steps(int64_t limit, int64_t every, int64_t lag)
{
    int64_t look = (limit + every - 1) / every; /* the first look that says yes, from 1 */
    return (look + lag) * every;
}

static void until_ends(void **state)
{
    (void)state;
    for (int m = 0; m < 4; m++)
        for (int64_t every = 1; every <= 3; every++)
            for (int64_t lag = 0; lag <= 2; lag++)
                for (int workers = 1; workers <= 2; workers++) {
                    ring_options options = {.ranks = 2,
                                            .points = 8,
                                            .tiles = 3,
                                            .mode = modes[m],
                                            .workers = workers,
                                            .lanes = 2,
                                            .direct = true,
                                            .limit = 7,
                                            .every = every,
                                            .lag = lag,
                                            .branch = true};
                    ring_job job;
                    int64_t steps = expected_steps(7, every, lag);
                    ring_init(&job, &options);
                    assert_int_equal(ring_create(&job), PEAL_STATUS_OK);
                    assert_int_equal(ring_run(&job, true, 1000, true), PEAL_STATUS_OK);
                    assert_int_equal(job.result.steps_done, steps);
                    assert_true(job.result.stopped);
                    for (int r = 0; r < 2; r++) {
                        assert_true(ring_buffer(&job, r, RING_HITS) == (double)steps);
                        assert_true(ring_buffer(&job, r, RING_LATE) == (double)(steps - 3));
                    }
                    check_field(&job, steps);
                    ring_close(&job);
                }
}

/* Long enough for verdicts to go round their ring. */
static void many_verdicts(void **state)
{
    (void)state;
    for (int m = 0; m < 4; m++) {
        ring_options options = {.ranks = 1,
                                .points = 6,
                                .tiles = 3,
                                .mode = modes[m],
                                .workers = 3,
                                .lanes = 3,
                                .direct = true,
                                .limit = 500,
                                .lag = 3,
                                .branch = true};
        ring_job job;
        ring_init(&job, &options);
        assert_int_equal(ring_create(&job), PEAL_STATUS_OK);
        assert_int_equal(ring_run(&job, true, 100000, true), PEAL_STATUS_OK);
        assert_int_equal(job.result.steps_done, 503);
        assert_true(ring_buffer(&job, 0, RING_LATE) == 500);
        ring_close(&job);
    }
}

static void graph_is_refused(void **state)
{
    ring_options options = {
        .ranks = 1, .points = 4, .tiles = 1, .mode = PEAL_MODE_GRAPH, .workers = 1, .lanes = 1};
    ring_job job;
    (void)state;
    assert_non_null(peal_backend_host.refuses(PEAL_MODE_GRAPH));
    assert_null(peal_backend_host.refuses(PEAL_MODE_FUSED));
    ring_init(&job, &options);
    assert_int_equal(ring_create(&job), PEAL_STATUS_ENVIRONMENT);
    assert_int_equal(peal_diagnostics_at(job.diagnostics, 0)->code, PEAL_E_MODE_NOT_ON_CPU);
    ring_close(&job);
}

/* A mistake of who calls the backend. */
static void nobody_to_run_is_refused(void **state)
{
    ring_options options = {
        .ranks = 1, .points = 4, .tiles = 1, .mode = PEAL_MODE_SYNC, .workers = 0, .lanes = 1};
    ring_job job;
    (void)state;
    ring_init(&job, &options);
    assert_int_equal(ring_create(&job), PEAL_STATUS_INTERNAL);
    assert_int_equal(peal_diagnostics_at(job.diagnostics, 0)->code, PEAL_E_INTERNAL);
    ring_close(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agree),
        cmocka_unit_test(flags_wrap),
        cmocka_unit_test(norms_agree),
        cmocka_unit_test(until_ends),
        cmocka_unit_test(many_verdicts),
        cmocka_unit_test(graph_is_refused),
        cmocka_unit_test(nobody_to_run_is_refused),
    };
    return cmocka_run_group_tests_name("host modes", tests, NULL, NULL);
}
