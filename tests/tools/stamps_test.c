/* Parts of a run, from stamps that a test has made up: nothing is read from a plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/stamps.h"

static stamps made;

static void stamp_at(int64_t steps, double at)
{
    made.of[made.count++] = (stamp){.steps = steps, .at = at};
}

static void test_parts_have_their_own_time(void **state)
{
    double per_step[5];
    (void)state;
    made.count = 0;
    stamp_at(0, 0.0); /* setup: in no part */
    for (int i = 1; i <= 50; i++)
        stamp_at(i, 10.0 + i); /* a second a step */
    for (int i = 51; i <= 101; i++)
        stamp_at(i, 60.0 + 3.0 * (i - 50)); /* three */
    assert_int_equal(stamps_parts(&made, 5, per_step), 5);
    assert_true(per_step[0] == 1 && per_step[1] == 1);
    assert_true(per_step[2] > 1 && per_step[2] < 3);
    assert_true(per_step[3] == 3 && per_step[4] == 3);
}

static void test_few_stamps_make_few_parts(void **state)
{
    double per_step[5];
    (void)state;
    made.count = 0;
    assert_int_equal(stamps_parts(&made, 5, per_step), 0);
    stamp_at(0, 1.0);
    assert_int_equal(stamps_parts(&made, 5, per_step), 0);
    stamp_at(10, 2.0);
    assert_int_equal(stamps_parts(&made, 5, per_step), 0);
    stamp_at(1000, 4.0);
    assert_int_equal(stamps_parts(&made, 5, per_step), 1);
    assert_true(per_step[0] > 0.00202 && per_step[0] < 0.00203);
}

int64_t peal_plan_progress(const peal_plan *plan)
{
    (void)plan;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_have_their_own_time),
        cmocka_unit_test(test_few_stamps_make_few_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
