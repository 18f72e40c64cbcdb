/* Forked processes that find each other without a launcher, for tests.
 *
 * The board is shared memory: blobs of the bootstrap, and what the members want the test to see. */
#ifndef PEAL_TESTS_RUNTIME_TEAM_H
#define PEAL_TESTS_RUNTIME_TEAM_H

#include "runtime/bootstrap/bootstrap.h"
#include "runtime/control/control.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

enum { TEAM_LIMIT = 16, TEAM_BLOB = 1024, TEAM_TEXT = 512 };

typedef struct team_board {
    pthread_barrier_t barrier; /* of the allgather */
    unsigned char gathered[TEAM_LIMIT * TEAM_BLOB];
    _Atomic int published[TEAM_LIMIT]; /* bytes + 1; 0: not yet */
    unsigned char blob[TEAM_LIMIT][TEAM_BLOB];
    _Atomic int flag[TEAM_LIMIT];     /* for the test */
    _Atomic int gets[TEAM_LIMIT];     /* calls of get so far */
    char text[TEAM_LIMIT][TEAM_TEXT]; /* what a member wants to be read by the test */
} team_board;

/* How the bootstrap of team_bootstrap() misbehaves. */
typedef enum team_lie {
    TEAM_HONEST,
    TEAM_EARLY,   /* the first gets succeed with nothing, then with zeros */
    TEAM_GARBAGE, /* every get succeeds with bytes that are not a blob */
    TEAM_VERSION, /* the blob of the last process has another wire version */
    TEAM_HOST,    /* the blob of the last process names another host */
    TEAM_PEER     /* get of one process gives the blob of another, at first */
} team_lie;

typedef struct test_team {
    team_board *board;
    int processes;
    int absent; /* this one is not started; -1: none */
    team_lie lie;
    int64_t deadline_ns;       /* for the member's use */
    int exit_code[TEAM_LIMIT]; /* 128 + signal if killed */
} test_team;

/* A member's main function; its value is the exit code. */
typedef int (*team_member)(test_team *team, int process);

void team_create(test_team *team, int processes);
/* Forks the members and waits for all of them. */
void team_run(test_team *team, team_member member);
void team_destroy(test_team *team);

/* A bootstrap over the board that obeys its deadline and lies if told so. */
peal_bootstrap *team_bootstrap(test_team *team, int process);
/* peal's caller bootstrap over an allgather on the board. */
peal_bootstrap *team_caller_bootstrap(test_team *team, int process);

/* A member's end of the control plane. */
typedef struct team_seat {
    _Atomic int abort_word;
    peal_control *control;
    peal_bootstrap *bootstrap;
    peal_diagnostics *diagnostics;
} team_seat;

/* Opens the control plane over team_bootstrap(). */
peal_status team_join(team_seat *seat, test_team *team, int process, int64_t deadline_ns);
void team_leave(team_seat *seat);
/* Returns once all members have called it, without the control plane: so nobody is in an earlier
 * call any more. Once a team. */
void team_meet(test_team *team);

#define TEAM_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            exit(99);                                                                              \
        }                                                                                          \
    } while (0)

#endif
