/* Sessions over forked processes: the caller's bootstrap on the team's board. */
#ifndef PEAL_TESTS_RUNTIME_JOB_H
#define PEAL_TESTS_RUNTIME_JOB_H

#include "runtime/session/session.h"
#include "tests/runtime/control/team.h"

#include <peal/bootstrap.h>
#include <peal/session.h>

/* A session of this member. deadline_s 0: the default. */
peal_status job_open(test_team *team, int process, double deadline_s, peal_session **out);

/* A session of this process alone. */
peal_session *job_open_alone(void);

/* Ends the member or the test, with the diagnostics, unless the call returns OK. */
#define JOB_OK(session, call)                                                                      \
    do {                                                                                           \
        peal_status check_status = (call);                                                         \
        if (check_status)                                                                          \
            peal_session_print_diagnostics(session, stderr, 0);                                    \
        TEAM_CHECK(check_status == PEAL_STATUS_OK);                                                \
    } while (0)

/* A run of a team in which all members return 0. */
void job_run_all(int processes, team_member member);
/* The same, but `victim` is killed by SIGKILL. */
void job_run_all_but(int processes, int victim, team_member member);

/* Whether an error or warning with this code and (text not NULL) this part of its message was
 * reported. */
bool job_reported(peal_session *session, peal_code code, const char *text);

/* Waits until all members have come to this point, by means of the board alone; once a run. */
void job_pass_together(test_team *team, int process);

#endif
