/* See the header. The deadline is so long that who is told by it fails the test. */
#define _GNU_SOURCE
#include "tests/runtime/hosts/deeds.h"

#include "base/clock.h"
#include "tests/runtime/stencil.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { SHORT = 400, ENDLESS = 100000000, DEED_AT = 200 }; /* steps; calls of a kernel */
static const double deadline_s = 60;

test_deed deed;
const char *deed_mode;
const char *const deed_modes[3] = {"sync", "stream", "fused"};

int host_of(const test_team *team, int process)
{
    return process * HOSTS / team->processes;
}

peal_session *enter_and_open(test_team *team, int process)
{
    peal_session *session = NULL;
    hosts_enter(host_of(team, process));
    TEAM_CHECK(job_open(team, process, deadline_s, &session) == PEAL_STATUS_OK);
    return session;
}

static test_team *own_team;
static peal_session *own_session;
static bool does_deed;
static _Atomic int calls;

static void relax_and_do(const peal_call *call)
{
    stencil_relax(call);
    if (atomic_fetch_add(&calls, 1) != DEED_AT || !does_deed)
        return;
    snprintf(own_team->board->text[0], TEAM_TEXT, "%" PRId64, peal_clock_ns());
    deed.act(own_team, own_session);
}

static peal_status run_steps(test_team *team, int process, peal_session *session, int steps,
                             bool *is_right)
{
    const peal_plan_options options = {.size_bytes = sizeof(options),
                                       .mode = deed_mode,
                                       .transport = getenv("DEED_TRANSPORT")};
    peal_graph *g = stencil_graph("23", relax_and_do, NULL);
    peal_plan *plan = NULL;
    own_team = team;
    own_session = session;
    does_deed = process == deed.process;
    atomic_store(&team->board->flag[process], (int)getpid());
    TEAM_CHECK(peal_graph_set_steps(g, steps) == PEAL_STATUS_OK);
    JOB_OK(session, peal_graph_compile(g, session, &options, &plan));
    JOB_OK(session, peal_plan_start(plan, PEAL_STEPS_ALL, NULL));
    peal_status status = peal_plan_wait(plan);
    *is_right = !status && stencil_is_right(plan, steps);
    peal_plan_destroy(plan);
    peal_graph_destroy(g);
    return status;
}

bool is_told(const peal_session *session, const char *text)
{
    const peal_diagnostics *list = session->diagnostics;
    for (int i = 0; i < peal_diagnostics_count(list); i++)
        if (strstr(peal_diagnostics_at(list, i)->message, text))
            return true;
    return false;
}

int member_is_told(test_team *team, int process)
{
    bool is_right;
    peal_session *session = enter_and_open(team, process);
    TEAM_CHECK(run_steps(team, process, session, ENDLESS, &is_right) == deed.status);
    snprintf(team->board->text[1 + process], TEAM_TEXT, "%" PRId64, peal_clock_ns());
    if (!is_told(session, deed.told))
        peal_session_print_diagnostics(session, stderr, 0);
    TEAM_CHECK(is_told(session, deed.told));
    peal_session_destroy(session);
    return 0;
}

int member_goes_on(test_team *team, int process)
{
    bool is_right = false;
    peal_session *session = enter_and_open(team, process);
    JOB_OK(session, run_steps(team, process, session, SHORT, &is_right));
    TEAM_CHECK(is_right);
    TEAM_CHECK(peal_diagnostics_count(session->diagnostics) == 0);
    peal_session_destroy(session);
    return 0;
}

void run_on(const char *what)
{
    for (int m = 0; m < 3; m++) {
        deed_mode = deed_modes[m];
        job_run_all(PROCESSES, member_goes_on);
    }
    print_message("%s: every mode right\n", what);
}
