/* Plans and exchanges for which memory runs out: every allocation of making one fails in turn.
 *
 * Each attempt is a process of its own. It ends with the status of the environment, or does without
 * what it did not get. Mostly PEAL_E_OUT_OF_MEMORY is reported; silent are the list of reports
 * itself and a graph without a session. Nothing ends the process: an arena without a guard would.
 */
#define _GNU_SOURCE
#include "tests/runtime/job.h"
#include "tests/runtime/stencil.h"
#include "tests/starve.h"

#include <peal/exchange.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { DID_WITHOUT, TOLD, SILENT, NEVER_STARVED, WRONG };

/* Starves at this number in what is looked at. */
typedef peal_status (*attempt)(peal_session *session, int number);

static peal_status make_plan(peal_session *session, int number)
{
    peal_plan *plan = NULL;
    peal_graph *g = stencil_graph("23", stencil_relax, NULL);
    const peal_plan_options options = {.size_bytes = sizeof(options),
                                       .ranks = 2,
                                       .mode = "serial",
                                       .verify = true};
    starve_at(STARVE_CALLOC | STARVE_REALLOC, number);
    peal_status status = peal_graph_compile(g, session, &options, &plan);
    starve_at(0, 0);
    if (!status && (!plan || peal_plan_start(plan, 3, NULL) || peal_plan_wait(plan) ||
                    !stencil_is_right(plan, 3)))
        status = PEAL_STATUS_WRONG_RESULT;
    peal_plan_destroy(plan);
    peal_graph_destroy(g);
    return status;
}

static peal_status make_exchange(peal_session *session, int number)
{
    peal_exchange *exchange = NULL;
    starve_at(STARVE_CALLOC | STARVE_REALLOC, number);
    peal_status status = peal_exchange_create(session, &exchange, .axis_count = 2, .hi = {8, 8},
                                              .periodic = {true, true},
                                              .field = {{PEAL_F64, .width = {{1, 1}, {1, 1}}}});
    starve_at(0, 0);
    peal_exchange_destroy(exchange);
    return status;
}

static int starve(attempt try, int number)
{
    peal_session *session = job_open_alone();
    peal_status status = try(session, number);
    bool was_starved = starved();
    bool told = job_reported(session, PEAL_E_OUT_OF_MEMORY, NULL);
    peal_session_destroy(session);
    if (status)
        return status != PEAL_STATUS_ENVIRONMENT ? WRONG : told ? TOLD : SILENT;
    return was_starved ? DID_WITHOUT : NEVER_STARVED;
}

static void all_in_turn(attempt try, const char *what)
{
    int outcomes[WRONG] = {0};
    for (int number = 0; !outcomes[NEVER_STARVED]; number++) {
        int state = 0;
        fflush(NULL);
        pid_t pid = fork();
        if (!pid)
            _exit(starve(try, number));
        assert_int_equal(waitpid(pid, &state, 0), pid);
        if (!WIFEXITED(state) || WEXITSTATUS(state) >= WRONG)
            fail_msg("%s: allocation %d: state %x", what, number, (unsigned)state);
        outcomes[WEXITSTATUS(state)]++;
    }
    print_message("%s: %d told, %d silent, %d did without\n", what, outcomes[TOLD],
                  outcomes[SILENT], outcomes[DID_WITHOUT]);
    assert_true(outcomes[TOLD] > 0);
}

static void plans(void **state)
{
    (void)state;
    all_in_turn(make_plan, "plan");
}

static void exchanges(void **state)
{
    (void)state;
    all_in_turn(make_exchange, "exchange");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(plans), cmocka_unit_test(exchanges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
