/* How long the host sleeps while nobody knows how long a step takes. */
#include "backends/cuda/replay/replay.h"
#include "tests/backends/check.h"

static const double us = 1e-6;

/* The longest nap until the host looks on, during `steps` steps that take `step_s` each behind
 * `start_s` and are counted each `report`, if each nap is late by what is usual. *end: when that
 * is. */
static double longest_nap(int64_t steps, double step_s, double start_s, int64_t report, double *end)
{
    const double late_s = 60 * us;
    double past = 0, before = 0, longest = 0, counted_at = 0, nap;
    int64_t counted = 0;

    do {
        int64_t done = past > start_s ? (int64_t)((past - start_s) / step_s) / report * report : 0;
        if (done > counted) {
            counted = done < steps ? done : steps;
            counted_at = before;
        }
        before = past;
        nap = peal_cuda_replay_nap(past, steps, counted, counted_at);
        longest = nap > longest ? nap : longest;
        past += nap > 0 ? nap + late_s : 0;
    } while (nap > 0 && past < start_s + (double)steps * step_s);
    *end = past;
    return longest;
}

static void the_end_of_a_run_is_not_slept_through(void **state)
{
    static const struct {
        int64_t steps, report;
        double step_us, start_us;
    } runs[] = {{1000, 100, 3.5, 80}, {1000, 100, 18, 80}, {200, 40, 10, 300},
                {200, 40, 11, 150},   {100, 20, 10, 80},   {100, 80, 30, 100}};

    (void)state;
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        double took = us * (runs[i].start_us + (double)runs[i].steps * runs[i].step_us), end;
        longest_nap(runs[i].steps, us * runs[i].step_us, us * runs[i].start_us, runs[i].report,
                    &end);
        if (end < 0.8 * took || end >= took)
            fail_msg("run %zu: the host looks on from %g of %g us", i, end / us, took / us);
    }
}

static void no_nap_is_long(void **state)
{
    double end;

    (void)state;
    /* The first count of many steps comes late; nothing is counted; a start has waited for long. */
    assert_true(peal_cuda_replay_nap(200 * us, 800, 1, 200 * us) < 30 * us);
    assert_true(longest_nap(1000, 1000 * us, 0, 1000, &end) < 201 * us);
    assert_true(longest_nap(1000, 3.5 * us, 0.5, 100, &end) < 201 * us);
    assert_true(peal_cuda_replay_nap(0, 100, 0, 0) > 0);
    assert_true(peal_cuda_replay_nap(1000 * us, 100, 98, 990 * us) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_end_of_a_run_is_not_slept_through),
                                       cmocka_unit_test(no_nap_is_long)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
