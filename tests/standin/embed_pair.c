/* Two processes exchange on streams of their own, on the stand-in of the driver. Round 1 is whole;
 * then process 1 does not come any more, and process 0 must not wait for ever: for the deadline
 * ("late"), or until process 1 gives the job up ("abort"). Prints what process 0 is told.
 *
 *   embed_pair late|abort|rounds */
#define _GNU_SOURCE
#include "tests/runtime/job.h"

#include <peal/exchange.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 64, ROUNDS = 8 };
static const char *what;

static peal_status make(peal_session *session, peal_exchange **out)
{
    const int half = POINTS / 2, process = peal_session_process(session);
    return peal_exchange_create(session, out, .axis_count = 1, .lo = {half * process},
                                .hi = {half * (process + 1)}, .periodic = {true},
                                .field = {{PEAL_I64, .width = {{1, 1}}}}, .backend = "cuda");
}

static peal_status round_of(peal_exchange *exchange)
{
    peal_status status = peal_exchange_start(exchange, 0, (void *)(uintptr_t)1);
    return status ? status : peal_exchange_wait(exchange);
}

static int member(test_team *team, int process)
{
    peal_session *session;
    peal_exchange *exchange = NULL;
    bool aborts = !strcmp(what, "abort");
    TEAM_CHECK(!job_open(team, process, aborts ? 60 : 0.5, &session));
    peal_status status = make(session, &exchange);
    int rounds = !strcmp(what, "rounds") ? ROUNDS : process == 0 ? 3 : 1;
    for (int i = 0; i < rounds && !status; i++)
        status = round_of(exchange);
    if (process == 1 && rounds == 1 && !status) {
        if (aborts)
            peal_session_abort(session, PEAL_STATUS_WRONG_RESULT, "enough");
        while (!atomic_load(&team->board->flag[0]))
            sched_yield();
    }
    peal_status ended = peal_exchange_destroy(exchange);
    atomic_store(&team->board->flag[process], 1);
    printf("process %d: %s, %s\n", process, peal_status_name(status), peal_status_name(ended));
    if (process == 0)
        peal_session_print_diagnostics(session, stdout, 0);
    fflush(stdout);
    peal_session_destroy(session);
    return 0;
}

int main(int count, char **words)
{
    test_team team;
    what = count > 1 ? words[1] : "rounds";
    team_create(&team, 2);
    team_run(&team, member);
    int worst = team.exit_code[0] > team.exit_code[1] ? team.exit_code[0] : team.exit_code[1];
    team_destroy(&team);
    return worst;
}
