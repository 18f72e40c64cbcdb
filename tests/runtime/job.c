/* Sessions over forked processes. */
#define _GNU_SOURCE
#include "tests/runtime/job.h"
#include "base/backoff.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

typedef struct job_member {
    test_team *team;
    int process;
} job_member;

static int allgather(void *user, const void *mine, size_t bytes, void *all)
{
    const job_member *member = user;
    team_board *board = member->team->board;
    if (bytes > TEAM_BLOB)
        return 1;
    memcpy(board->gathered + (size_t)member->process * bytes, mine, bytes);
    pthread_barrier_wait(&board->barrier);
    memcpy(all, board->gathered, (size_t)member->team->processes * bytes);
    pthread_barrier_wait(&board->barrier);
    return 0;
}

peal_status job_open(test_team *team, int process, double deadline_s, peal_session **out)
{
    static job_member member; /* of this forked process */
    member = (job_member){team, process};
    const peal_bootstrap_callbacks callbacks = {.size_bytes = sizeof(callbacks),
                                                .process = process,
                                                .processes = team->processes,
                                                .allgather = allgather,
                                                .user = &member};
    const peal_session_desc desc = {.size_bytes = sizeof(desc),
                                    .bootstrap = &callbacks,
                                    .deadline_s = deadline_s,
                                    .log_level = PEAL_LOG_ERROR,
                                    .log = stderr};
    return peal_session_create(&desc, out);
}

peal_session *job_open_alone(void)
{
    peal_session *session;
    assert_int_equal(peal_session_create(NULL, &session), PEAL_STATUS_OK);
    return session;
}

void job_run_all_but(int processes, int victim, team_member member)
{
    test_team team;
    team_create(&team, processes);
    team_run(&team, member);
    for (int p = 0; p < processes; p++)
        assert_int_equal(team.exit_code[p], p == victim ? 128 + SIGKILL : 0);
    team_destroy(&team);
}

void job_run_all(int processes, team_member member)
{
    job_run_all_but(processes, -1, member);
}

bool job_reported(peal_session *session, peal_code code, const char *text)
{
    const peal_diagnostics *list = peal_session_diagnostics(session);
    for (int i = 0; i < peal_diagnostics_count(list); i++) {
        const peal_diagnostic *d = peal_diagnostics_at(list, i);
        if (d->code == code && (!text || strstr(d->message, text)))
            return true;
    }
    return false;
}

void job_pass_together(test_team *team, int process)
{
    peal_backoff backoff = peal_backoff_of_processes();
    atomic_store(&team->board->flag[process], 1);
    for (int p = 0; p < team->processes; p++)
        while (!atomic_load(&team->board->flag[p]))
            peal_backoff_wait(&backoff);
}
