/* Members of jobs on the hosts of namespaces.h: each runs a stencil, and in the middle of it one
 * does a deed. */
#ifndef PEAL_TESTS_RUNTIME_DEEDS_H
#define PEAL_TESTS_RUNTIME_DEEDS_H

#include "tests/runtime/hosts/namespaces.h"
#include "tests/runtime/job.h"

enum { PROCESSES = 6 };

typedef void deed_function(test_team *team, const peal_session *session);

typedef struct test_deed {
    deed_function *act;
    int process;        /* which does it */
    peal_status status; /* what the job ends with; PEAL_STATUS_OK: all goes on */
    const char *told;   /* to all, where it ends */
} test_deed;

/* Of the members that are about to be forked. */
extern test_deed deed;
extern const char *deed_mode;

extern const char *const deed_modes[3];

int host_of(const test_team *team, int process);
peal_session *enter_and_open(test_team *team, int process);
/* Whether some diagnostic says that. */
bool is_told(const peal_session *session, const char *text);

/* Members. Runs until the deed ends it: text[0] of the board says when it was done, text[1 +
 * process] when that was known there. flag[process] is the process's pid. */
int member_is_told(test_team *team, int process);
/* All goes on, computes what it should, and says nothing. */
int member_goes_on(test_team *team, int process);

/* The second one in every mode. */
void run_on(const char *what);

/* The first one: once, with --all 20 times, in one mode after the other; prints how long it took
 * until all knew. victim: who is killed, or -1. repair: of what the deed broke, or NULL. */
void run_fault(const char *what, int processes, int victim, void (*repair)(void));

/* Tests: of a killed process, and of one of which a copy lives on. */
void check_killed(void **state);
void check_killed_with_copy(void **state);

#endif
