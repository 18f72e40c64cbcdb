/* Sessions over forked processes: the caller's bootstrap on the team's board. */
#ifndef PEAL_TESTS_RUNTIME_JOB_H
#define PEAL_TESTS_RUNTIME_JOB_H

#include "runtime/session.h"
#include "tests/runtime/control/team.h"

#include <peal/bootstrap.h>
#include <peal/session.h>

/* A session of this member. deadline_s 0: the default. */
peal_status job_open(test_team *team, int process, double deadline_s, peal_session **out);

/* Whether an error or warning with this code and (text not NULL) this part of its message was
 * reported. */
bool job_reported(peal_session *session, peal_code code, const char *text);

/* Waits until all members have come to this point, by means of the board alone; once a run. */
void job_pass_together(test_team *team, int process);

#endif
