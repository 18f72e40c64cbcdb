/* Forked processes that find each other by a board of shared memory. */
#define _GNU_SOURCE
#include "tests/runtime/control/team.h"
#include "base/clock.h"

#include "runtime/control/wire.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

void team_create(test_team *team, int processes)
{
    pthread_barrierattr_t attributes;
    memset(team, 0, sizeof(*team));
    team->processes = processes;
    team->absent = -1;
    team->board =
        mmap(NULL, sizeof(*team->board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (team->board == MAP_FAILED)
        abort();
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&team->board->barrier, &attributes, (unsigned)processes);
}

void team_destroy(test_team *team)
{
    munmap(team->board, sizeof(*team->board));
}

void team_run(test_team *team, team_member member)
{
    pid_t pid[TEAM_LIMIT];
    fflush(NULL);
    for (int p = 0; p < team->processes; p++) {
        pid[p] = p == team->absent ? -1 : fork();
        if (pid[p])
            continue;
        alarm(100); /* a member that hangs must not outlive the test */
        exit(member(team, p));
    }
    for (int p = 0; p < team->processes; p++) {
        int status = 0;
        if (pid[p] < 0 || waitpid(pid[p], &status, 0) < 0)
            continue;
        team->exit_code[p] = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
}

typedef struct board_bootstrap {
    peal_bootstrap base;
    test_team *team;
    int process;
} board_bootstrap;

static peal_status identity(peal_bootstrap *bootstrap, peal_bootstrap_identity *out)
{
    const board_bootstrap *self = (board_bootstrap *)bootstrap;
    int processes = self->team->processes;
    *out = (peal_bootstrap_identity){self->process, processes, self->process, processes, "board"};
    return PEAL_STATUS_OK;
}

static peal_status put(peal_bootstrap *bootstrap, int round, const void *blob, size_t bytes)
{
    const board_bootstrap *self = (board_bootstrap *)bootstrap;
    team_board *board = self->team->board;
    peal_control_blob copy;
    (void)round;
    TEAM_CHECK(bytes == sizeof(copy));
    memcpy(&copy, blob, bytes);
    if (self->process == self->team->processes - 1) {
        if (self->team->lie == TEAM_VERSION)
            copy.wire_version++;
        if (self->team->lie == TEAM_HOST)
            snprintf(copy.host, sizeof(copy.host), "elsewhere");
    }
    memcpy(board->blob[self->process], &copy, bytes);
    atomic_store(&board->published[self->process], (int)bytes + 1);
    return PEAL_STATUS_OK;
}

/* True: the lie is told. */
static bool lie(const board_bootstrap *self, void *blob, size_t capacity, size_t *bytes)
{
    team_board *board = self->team->board;
    int call = atomic_fetch_add(&board->gets[self->process], 1);
    switch (self->team->lie) {
    case TEAM_EARLY:
        memset(blob, 0, capacity);
        *bytes = call % 2 ? capacity : 0;
        return call < 6;
    case TEAM_GARBAGE:
        memset(blob, 0x5a, capacity);
        *bytes = capacity;
        return true;
    case TEAM_PEER:
        memcpy(blob, board->blob[self->process], capacity);
        *bytes = capacity;
        return call < 3;
    default:
        return false;
    }
}

static peal_status get(peal_bootstrap *bootstrap, int round, int process, int64_t deadline_ns,
                       void *blob, size_t capacity, size_t *bytes)
{
    const board_bootstrap *self = (board_bootstrap *)bootstrap;
    team_board *board = self->team->board;
    int64_t until = peal_clock_ns() + deadline_ns;
    int there;
    (void)round;
    if (lie(self, blob, capacity, bytes))
        return PEAL_STATUS_OK;
    while (!(there = atomic_load(&board->published[process]))) {
        if (peal_clock_ns() > until)
            return PEAL_STATUS_DEADLINE;
        sched_yield();
    }
    TEAM_CHECK((size_t)there - 1 <= capacity);
    memcpy(blob, board->blob[process], (size_t)there - 1);
    *bytes = (size_t)there - 1;
    if (self->team->lie == TEAM_VERSION && self->process == self->team->processes - 1)
        ((peal_control_blob *)blob)->wire_version--;
    return PEAL_STATUS_OK;
}

static void end_job(peal_bootstrap *bootstrap, int code, const char *message)
{
    (void)bootstrap, (void)code, (void)message;
}

static void close_board(peal_bootstrap *bootstrap)
{
    free(bootstrap);
}

peal_bootstrap *team_bootstrap(test_team *team, int process)
{
    static const peal_bootstrap_ops ops = {sizeof(ops), identity, put, get, end_job, close_board};
    board_bootstrap *self = calloc(1, sizeof(*self));
    TEAM_CHECK(self);
    *self = (board_bootstrap){{&ops}, team, process};
    return &self->base;
}

static int allgather(void *user, const void *mine, size_t bytes, void *all)
{
    const board_bootstrap *self = user;
    team_board *board = self->team->board;
    TEAM_CHECK(bytes <= TEAM_BLOB);
    memcpy(board->gathered + bytes * (size_t)self->process, mine, bytes);
    pthread_barrier_wait(&board->barrier);
    memcpy(all, board->gathered, bytes * (size_t)self->team->processes);
    pthread_barrier_wait(&board->barrier);
    return 0;
}

peal_bootstrap *team_caller_bootstrap(test_team *team, int process)
{
    static board_bootstrap member; /* of this forked process */
    peal_bootstrap *out = NULL;
    member = (board_bootstrap){{NULL}, team, process};
    peal_bootstrap_callbacks callbacks = {.size_bytes = sizeof(callbacks),
                                          .process = process,
                                          .processes = team->processes,
                                          .allgather = allgather,
                                          .user = &member};
    TEAM_CHECK(peal_bootstrap_caller(&callbacks, NULL, &out) == PEAL_STATUS_OK);
    return out;
}

peal_status team_join(team_seat *seat, test_team *team, int process, int64_t deadline_ns)
{
    memset(seat, 0, sizeof(*seat));
    seat->diagnostics = peal_diagnostics_create();
    seat->bootstrap = team_bootstrap(team, process);
    return peal_control_open(seat->bootstrap, NULL, &seat->abort_word, deadline_ns,
                             seat->diagnostics, &seat->control);
}

void team_leave(team_seat *seat)
{
    peal_control_close(seat->control);
    seat->bootstrap->ops->close(seat->bootstrap);
    peal_diagnostics_destroy(seat->diagnostics);
}

void team_meet(test_team *team)
{
    atomic_fetch_add(&team->board->flag[1], 1);
    while (atomic_load(&team->board->flag[1]) < team->processes)
        sched_yield();
}
