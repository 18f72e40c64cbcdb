/* Program order among walks: a schedule whose walk has sends moved up and receives moved down, a
 * loop with messages and one without. */
#include "base/walk_order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum {
    SETUP_WRITE,
    SETUP_WAIT,
    SEND,
    WORK, /* written after what is received below */
    RECEIVE,
    PLAIN,
    PLAIN_TASK,
    PLAIN_END,
    LOOP,
    LOOP_SEND,
    LOOP_RECEIVE,
    LOOP_TASK,
    LOOP_END,
    CREDIT,
    LAST,
    OPS
};

static const peal_op ops[OPS] = {
    [SETUP_WRITE] = {.kind = PEAL_OP_WRITE, .event = -1},
    [SETUP_WAIT] = {.kind = PEAL_OP_WAIT, .event = -1},
    [SEND] = {.kind = PEAL_OP_WRITE, .event = 10},
    [WORK] = {.kind = PEAL_OP_LAUNCH, .event = 40},
    [RECEIVE] = {.kind = PEAL_OP_WAIT, .event = 11},
    [PLAIN] = {.kind = PEAL_OP_LOOP, .event = 50, .end = PLAIN_END, .loop = 0},
    [PLAIN_TASK] = {.kind = PEAL_OP_LAUNCH, .event = 51},
    [PLAIN_END] = {.kind = PEAL_OP_END, .event = 50, .end = PLAIN},
    [LOOP] = {.kind = PEAL_OP_LOOP, .event = 60, .end = LOOP_END, .loop = 1},
    [LOOP_SEND] = {.kind = PEAL_OP_WRITE, .event = 61},
    [LOOP_RECEIVE] = {.kind = PEAL_OP_WAIT, .event = 62},
    [LOOP_TASK] = {.kind = PEAL_OP_LAUNCH, .event = 63},
    [LOOP_END] = {.kind = PEAL_OP_END, .event = 60, .end = LOOP},
    [CREDIT] = {.kind = PEAL_OP_WRITE, .event = 5, .credit = true},
    [LAST] = {.kind = PEAL_OP_WRITE, .event = 70},
};

static const peal_schedule schedule = {
    .op = ops, .op_count = OPS, .setup = {0, SEND}, .step = {SEND, OPS}, .finish = {OPS, OPS}};

typedef struct stand {
    int64_t step;
    int position;
    int64_t plain, loop; /* iterations */
} stand;

static int compare(bool messages, stand a, stand b)
{
    peal_arena *arena = peal_arena_create();
    peal_walk_loop_state x[2] = {{.iteration = a.plain}, {.iteration = a.loop}};
    peal_walk_loop_state y[2] = {{.iteration = b.plain}, {.iteration = b.loop}};
    peal_walk_order order;

    peal_walk_order_create(&schedule, arena, messages, &order);
    peal_walk_place first = {&order, a.position, a.step, x};
    peal_walk_place second = {&order, b.position, b.step, y};
    int result = peal_walk_compare(&first, &second);
    assert_int_equal(peal_walk_compare(&second, &first), -result);
    peal_arena_destroy(arena);
    return result;
}

static void test_messages(void **state)
{
    (void)state;
    assert_true(compare(true, (stand){1, LAST, 0, 0}, (stand){2, SEND, 0, 0}) < 0);
    assert_true(compare(true, (stand){0, SETUP_WRITE, 0, 0}, (stand){0, SETUP_WAIT, 0, 0}) < 0);
    assert_true(compare(true, (stand){0, SEND, 0, 0}, (stand){0, RECEIVE, 0, 0}) < 0);
    /* what is left is the receive, whatever comes before it */
    assert_int_equal(compare(true, (stand){0, WORK, 0, 0}, (stand){0, RECEIVE, 0, 0}), 0);
    /* a loop without messages is no place */
    assert_int_equal(compare(true, (stand){0, PLAIN_TASK, 3, 0}, (stand){0, PLAIN_TASK, 7, 0}), 0);
    assert_int_equal(compare(true, (stand){0, PLAIN_END, 3, 0}, (stand){0, LOOP, 7, 0}), 0);
    /* credits are none */
    assert_int_equal(compare(true, (stand){0, CREDIT, 0, 0}, (stand){0, LAST, 0, 0}), 0);
}

static void test_iterations(void **state)
{
    (void)state;
    assert_true(compare(true, (stand){0, PLAIN, 0, 0}, (stand){0, LOOP_SEND, 0, 0}) < 0);
    assert_true(compare(true, (stand){0, LOOP_RECEIVE, 0, 2}, (stand){0, LOOP_SEND, 0, 3}) < 0);
    assert_true(compare(true, (stand){0, LOOP_SEND, 0, 3}, (stand){0, LOOP_RECEIVE, 0, 3}) < 0);
    /* at the end of an iteration, before it is known whether there is another one */
    assert_true(compare(true, (stand){0, LOOP_RECEIVE, 0, 2}, (stand){0, LOOP_END, 0, 2}) < 0);
    assert_true(compare(true, (stand){0, LOOP_END, 0, 2}, (stand){0, LOOP_SEND, 0, 3}) < 0);
    assert_true(compare(true, (stand){0, LOOP_END, 0, 9}, (stand){0, CREDIT, 0, 9}) < 0);
}

/* As `serial` asks. */
static void test_events(void **state)
{
    (void)state;
    assert_true(compare(false, (stand){0, WORK, 0, 0}, (stand){0, RECEIVE, 0, 0}) > 0);
    assert_true(compare(false, (stand){0, PLAIN_TASK, 3, 0}, (stand){0, PLAIN_TASK, 7, 0}) < 0);
    assert_true(compare(false, (stand){0, PLAIN_TASK, 3, 0}, (stand){0, LOOP_TASK, 0, 0}) < 0);
    assert_int_equal(compare(false, (stand){4, LOOP_TASK, 0, 1}, (stand){4, LOOP_TASK, 2, 1}), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_messages),
                                       cmocka_unit_test(test_iterations),
                                       cmocka_unit_test(test_events)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
