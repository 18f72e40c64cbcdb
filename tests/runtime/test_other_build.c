/* Two hosts whose builds of peal lay out messages differently: one says so in the other's place. */
#define _GNU_SOURCE
#include "runtime/bind/puts.h"
#include "tests/runtime/job.h"
#include "tests/runtime/stencil.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static int differs; /* what this process's build does otherwise: 1: sends, 2: awaits */

void __real_peal_bound_puts_sum(const peal_bound_puts *puts, int process, uint64_t *sent,
                                uint64_t *taken);
void __wrap_peal_bound_puts_sum(const peal_bound_puts *puts, int process, uint64_t *sent,
                                uint64_t *taken);

void __wrap_peal_bound_puts_sum(const peal_bound_puts *puts, int process, uint64_t *sent,
                                uint64_t *taken)
{
    __real_peal_bound_puts_sum(puts, process, sent, taken);
    *sent ^= differs == 1;
    *taken ^= differs == 2;
}

static int compile(test_team *team, int process, int difference, peal_status expected)
{
    peal_session *session;
    peal_plan *plan = NULL;
    const peal_plan_options options = {.size_bytes = sizeof(options), .mode = "sync"};
    TEAM_CHECK(job_open(team, process, 0, &session) == PEAL_STATUS_OK);
    TEAM_CHECK(peal_session_spans_hosts(session));
    differs = process ? difference : 0;
    peal_graph *g = stencil_graph("23", stencil_relax, NULL);
    TEAM_CHECK(peal_graph_compile(g, session, &options, &plan) == expected);
    /* The other process may have found it a moment earlier, and ended the job. */
    bool is_told = job_reported(session, PEAL_E_PEAL_VERSIONS_DIFFER, NULL) ||
                   job_reported(session, PEAL_E_JOB_ENDED_BY_PEER, "[E312]");
    TEAM_CHECK(is_told == (expected != 0));
    peal_plan_destroy(plan);
    peal_graph_destroy(g);
    peal_session_destroy(session);
    return 0;
}

static int same_build(test_team *team, int process)
{
    return compile(team, process, 0, PEAL_STATUS_OK);
}

static int sends_otherwise(test_team *team, int process)
{
    return compile(team, process, 1, PEAL_STATUS_ENVIRONMENT);
}

static int awaits_otherwise(test_team *team, int process)
{
    return compile(team, process, 2, PEAL_STATUS_ENVIRONMENT);
}

static void check_builds(void **state)
{
    (void)state;
    assert_int_equal(setenv("PEAL_TEST_HOSTS", "2", 1), 0);
    job_run_all(2, same_build);
    job_run_all(3, same_build);
    job_run_all(2, sends_otherwise);
    job_run_all(2, awaits_otherwise);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(check_builds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
