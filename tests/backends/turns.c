/* Who makes turns for messages of other hosts: one wait at a time, for a message before one without
 * work; and what was told is never left to somebody who makes none. */
#define _GNU_SOURCE
#include "backends/host/network.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static int turns, flushes, sleeps;

static void turn_once(void *user)
{
    (void)user;
    turns++;
}

static void flush(void *user)
{
    (void)user;
    flushes++;
}

static void pass_time(void *user, int64_t ns)
{
    (void)user, (void)ns;
    sleeps++;
}

static host_plan plan;

static void begin(void)
{
    static const peal_network_hook hook = {.size = sizeof(hook),
                                           .progress = turn_once,
                                           .flush = flush,
                                           .sleep = pass_time};
    static host_count word;
    memset(&plan, 0, sizeof(plan));
    memset(&word, 0, sizeof(word));
    plan.desc.network = &hook;
    plan.turn = &word;
    turns = flushes = sleeps = 0;
}

/* Rounds of a wait that yields, or that sleeps; returns how many turns it has made. */
static int wait_some(host_turn *turn, int rounds, bool asleep)
{
    int before = turns;
    peal_backoff backoff = {.yields = asleep ? 0 : rounds, .sleep_ns = 1};
    turn->to_a_yield = 1;
    for (int i = 0; i < rounds; i++)
        host_network_pause(&plan, turn, &backoff, 1);
    return turns - before;
}

static void one_makes_turns(void **state)
{
    (void)state;
    host_turn first = {0}, second = {0};
    begin();
    assert_int_equal(wait_some(&first, 5, false), 5);
    assert_int_equal(wait_some(&second, 5, false), 0);
    assert_int_equal(wait_some(&second, 5, true), 0);
    assert_int_equal(sleeps, 0); /* a message would wake it for nothing */
    host_network_leave(&plan, &second);
    assert_int_equal(wait_some(&second, 1, false), 0);
    host_network_leave(&plan, &first);
    assert_int_equal(wait_some(&second, 5, false), 5);
}

static void who_waits_for_a_message_goes_first(void **state)
{
    (void)state;
    host_turn idle = {.idle = true}, other = {.idle = true}, waits = {0};
    begin();
    assert_int_equal(wait_some(&idle, 1000, false), 0); /* not at once */
    assert_int_equal(wait_some(&idle, 5, true), 0);
    assert_true(wait_some(&idle, 20, true) > 0); /* but in the end */
    assert_int_equal(wait_some(&other, 100, true), 0);
    assert_int_equal(wait_some(&waits, 3, false), 3);
    assert_int_equal(wait_some(&idle, 100, true), 0);
    host_network_leave(&plan, &idle); /* it is not its own any more */
    assert_int_equal(wait_some(&other, 100, true), 0);
    host_network_leave(&plan, &waits);
    assert_true(wait_some(&other, 100, true) > 0);
}

static int flushes_of(void (*act)(host_turn *), host_turn *turn)
{
    int before = flushes;
    act(turn);
    return flushes - before;
}

static void tell(host_turn *turn)
{
    (void)turn;
    host_network_send_told(&plan);
}

static void leave(host_turn *turn)
{
    host_network_leave(&plan, turn);
}

static void what_is_told_leaves(void **state)
{
    (void)state;
    host_turn holder = {0}, other = {0};
    begin();
    assert_int_equal(flushes_of(tell, NULL), 1); /* nobody makes turns */
    wait_some(&holder, 1, false);
    assert_int_equal(flushes_of(tell, NULL), 0); /* the next turn sends it, */
    assert_int_equal(flushes_of(leave, &other), 0);
    assert_int_equal(flushes_of(leave, &holder), 1); /* or who leaves without one */
    wait_some(&holder, 1, true);
    assert_int_equal(sleeps, 1);
    assert_int_equal(flushes_of(tell, NULL), 1); /* who sleeps makes no turn */
    assert_int_equal(flushes_of(leave, &holder), 1);
    assert_int_equal(flushes_of(tell, NULL), 1);
}

static void work_begins_when_all_has_left(void **state)
{
    (void)state;
    host_rank rank = {.plan = &plan};
    host_context context = {.rank = &rank, .has_told = true};
    begin();
    host_network_before_work(&context);
    assert_int_equal(flushes, 1);
    host_network_before_work(&context);
    assert_int_equal(flushes, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_makes_turns),
                                       cmocka_unit_test(who_waits_for_a_message_goes_first),
                                       cmocka_unit_test(what_is_told_leaves),
                                       cmocka_unit_test(work_begins_when_all_has_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
