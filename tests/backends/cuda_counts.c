/* Where a recording counts its steps: behind steps that do more than others, and often enough. */
#include "backends/cuda/replay/replay.h"
#include "tests/backends/check.h"

enum { STEPS = 200 };

/* Expects counts behind these steps alone. */
static void expect(const uint64_t *operations, int64_t most, const int *wanted, int count)
{
    bool counts[STEPS] = {false};

    peal_cuda_counts_place(operations, STEPS, most, counts);
    for (int s = 0, i = 0; s < STEPS; s++) {
        bool is_wanted = i < count && wanted[i] == s;
        if (counts[s] != is_wanted)
            fail_msg("at most %lld apart: step %d is %sfollowed by a count", (long long)most, s,
                     counts[s] ? "" : "not ");
        i += is_wanted;
    }
}

static void steps_alike_are_counted_evenly(void **state)
{
    uint64_t operations[STEPS];
    (void)state;
    for (int s = 0; s < STEPS; s++)
        operations[s] = 4;
    expect(operations, 50, (const int[]){49, 99, 149, 199}, 4);
    expect(operations, 128, (const int[]){127, 199}, 2);
    expect(operations, 200, (const int[]){199}, 1);
}

static void steps_that_do_more_are_followed_by_counts(void **state)
{
    uint64_t operations[STEPS];
    (void)state;
    for (int s = 0; s < STEPS; s++)
        operations[s] = s % 100 == 0 ? 9 : s % 30 == 7 ? 6 : 4;
    expect(operations, 128, (const int[]){100, 199}, 2);
    /* Step 0 is too early: it would be one count more. */
    expect(operations, 64, (const int[]){37, 100, 157, 199}, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_alike_are_counted_evenly),
                                       cmocka_unit_test(steps_that_do_more_are_followed_by_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
