/* The end of a plan with messages to other hosts: it waits until they are sent, and no longer than
 * the deadline. */
#define _GNU_SOURCE
#include "backends/host/network.h"
#include "base/diagnostic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static int turns_left; /* until all is sent */

static bool settle(void *user)
{
    (void)user;
    return --turns_left < 0;
}

static int rounds_of_others; /* how often another process still runs when it is looked at */

static bool others_run(void *user)
{
    (void)user;
    return --rounds_of_others >= 0;
}

static void pass_time(void *user, int64_t ns)
{
    (void)user, (void)ns;
}

static peal_status end(host_plan *plan, int turns, _Atomic int *abort_word,
                       peal_diagnostics *diagnostics)
{
    static const peal_network_hook hook = {.size = sizeof(hook),
                                           .sleep = pass_time,
                                           .settle = settle,
                                           .others_run = others_run};
    memset(plan, 0, sizeof(*plan));
    turns_left = turns;
    plan->desc.network = &hook;
    plan->desc.abort_word = abort_word;
    plan->desc.deadline_ns = 50000000;
    plan->desc.diagnostics = diagnostics;
    return host_network_settle(plan);
}

static void check_settle(void **state)
{
    static host_plan plan;
    _Atomic int word = 0;
    peal_diagnostics *list = peal_diagnostics_create();
    (void)state;
    assert_int_equal(end(&plan, 3, &word, list), PEAL_STATUS_OK);
    assert_int_equal(turns_left, -1);
    rounds_of_others = 3; /* at work until then: nobody takes what is sent */
    assert_int_equal(end(&plan, 2000000000, &word, list), PEAL_STATUS_DEADLINE);
    assert_int_equal(rounds_of_others, -1);
    assert_int_equal(word, PEAL_STATUS_DEADLINE);
    assert_non_null(strstr(peal_diagnostics_at(list, 0)->message, "has not taken their messages"));
    word = PEAL_STATUS_PEER_LOST; /* others have ended the job: nothing is waited for */
    assert_int_equal(end(&plan, 2000000000, &word, list), PEAL_STATUS_OK);
    assert_int_equal(turns_left, 2000000000);
    peal_diagnostics_destroy(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(check_settle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
