/* See the header. The deadline is so long that who is told by it fails the test. */
#define _GNU_SOURCE
#include "tests/runtime/hosts/deeds.h"

#include "base/clock.h"
#include "tests/runtime/stencil.h"
#include "tests/share/share.h"

#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { ALL_KNOW = PROCESSES };                            /* a flag of the board */
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
    snprintf(team->board->text[1 + process], TEAM_TEXT, "%" PRId64, peal_clock_ns());
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

/* ---- faults ---- */

static void print_times(const test_team *team, const char *what)
{
    int64_t done = strtoll(team->board->text[0], NULL, 10), last = 0;
    for (int p = 0; p < team->processes; p++) {
        int64_t told = strtoll(team->board->text[1 + p], NULL, 10);
        last = told > last ? told : last;
    }
    print_message("%s, %s: all know after %.0f ms\n", what, deed_mode,
                  (double)(last - done) * 1e-6);
}

void run_fault(const char *what, int processes, int victim, void (*repair)(void))
{
    test_share share = share_of(20);
    for (int i = 0; i < (int)(20 / share.every); i++) {
        test_team team;
        deed_mode = deed_modes[(i + (int)share.first) % 3];
        team_create(&team, processes);
        team_run(&team, member_is_told);
        atomic_store(&team.board->flag[ALL_KNOW], 1);
        print_times(&team, what);
        for (int p = 0; p < processes; p++)
            assert_int_equal(team.exit_code[p], p == victim ? 128 + SIGKILL : 0);
        team_destroy(&team);
        if (repair)
            repair();
    }
}

static void kill_process_3(test_team *team, const peal_session *session)
{
    (void)session;
    kill((pid_t)atomic_load(&team->board->flag[3]), SIGKILL);
}

void check_killed(void **state)
{
    (void)state;
    deed = (test_deed){kill_process_3, 0, PEAL_STATUS_PEER_LOST, "process 3 (pid "};
    run_fault("a killed process", PROCESSES, 3, NULL);
}

/* Its sockets live on in the copy, and nobody of its own host sees it otherwise. */
static void fork_and_die(test_team *team, const peal_session *session)
{
    (void)session;
    if (fork() == 0) { /* until all know, or longer than they would wait */
        for (int i = 0; i < 900 && !atomic_load(&team->board->flag[ALL_KNOW]); i++)
            usleep(100000);
        _exit(0);
    }
    raise(SIGKILL);
}

void check_killed_with_copy(void **state)
{
    (void)state;
    deed = (test_deed){fork_and_die, 1, PEAL_STATUS_PEER_LOST, "process 1 (pid "};
    run_fault("a killed process that has forked", HOSTS, 1, NULL);
}
