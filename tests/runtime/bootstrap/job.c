/* One process of a job for the tests of launchers: job ACTION [PROCESS [CODE]].
 *
 * Exit code 99: something was not as it should be. */
#define _GNU_SOURCE
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/control/control.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            exit(99);                                                                              \
        }                                                                                          \
    } while (0)

static const int64_t deadline = INT64_C(30000000000);

/* Every process gets the blobs of all others, of different sizes, in two rounds. */
static void exchange_blobs(peal_bootstrap *bootstrap, const peal_bootstrap_identity *me)
{
    for (int round = 10; round < 12; round++) {
        unsigned char mine[2048], theirs[2048];
        size_t bytes = (size_t)(100 + 300 * me->process % 1500);
        memset(mine, me->process + round, sizeof(mine));
        CHECK(bootstrap->ops->put(bootstrap, round, mine, bytes) == PEAL_STATUS_OK);
        for (int p = 0; p < me->processes; p++) {
            size_t got = 0;
            CHECK(bootstrap->ops->get(bootstrap, round, p, deadline, theirs, sizeof(theirs),
                                      &got) == PEAL_STATUS_OK);
            CHECK(got == (size_t)(100 + 300 * p % 1500));
            CHECK(theirs[0] == (unsigned char)(p + round) && theirs[got - 1] == theirs[0]);
        }
    }
}

static int act(const char *action, int victim, int code, peal_bootstrap *bootstrap,
               peal_control *control, _Atomic int *abort_word)
{
    int me = peal_control_identity(control)->process;
    if (!strcmp(action, "ok"))
        return 0;
    if (me == victim && !strcmp(action, "exit")) {
        peal_control_abort(control, (peal_status)code, "told to");
        return code;
    }
    if (me == victim && !strcmp(action, "kill"))
        raise(code);
    if (me == victim && !strcmp(action, "abort")) {
        bootstrap->ops->abort(bootstrap, code, "told to abort");
        exit(0);
    }
    if (!strcmp(action, "silent") && (me == victim || victim < 0))
        _exit(0);
    if (!strcmp(action, "orphan") &&
        me == victim) { /* leaves a process behind that ignores signals */
        if (!fork()) {
            signal(SIGTERM, SIG_IGN);
            for (;;)
                pause();
        }
        raise(SIGKILL);
    }
    if (!strcmp(action, "stubborn")) { /* one dies, one wants to stay */
        if (me == victim)
            raise(SIGKILL);
        signal(SIGTERM, SIG_IGN);
        for (;;)
            pause();
    }
    if (!strcmp(action, "signal")) { /* tells the launcher that it is ready to be interrupted */
        if (me == 0)
            kill(getppid(), code);
        for (;;)
            pause();
    }
    while (!atomic_load(abort_word))
        poll(NULL, 0, 1);
    return atomic_load(abort_word);
}

int main(int argc, char **argv)
{
    peal_bootstrap *bootstrap = NULL;
    peal_bootstrap_identity me;
    peal_control *control = NULL;
    _Atomic int abort_word = 0;
    alarm(60); /* a job that hangs must not outlive the test */
    CHECK(argc >= 2);
    if (!strcmp(argv[1], "plain")) /* not a job of peal: only exits */
        return argc > 2 ? atoi(argv[2]) : 0;
    peal_diagnostics *diagnostics = peal_diagnostics_create();
    CHECK(peal_bootstrap_open(deadline, diagnostics, &bootstrap) == PEAL_STATUS_OK);
    CHECK(bootstrap->ops->identity(bootstrap, &me) == PEAL_STATUS_OK);
    int victim = argc > 2 ? atoi(argv[2]) : -1;
    bool absent = !strcmp(argv[1], "absent");
    if (absent && me.process == victim)
        pause(); /* until it is killed: it never joins */
    const char *expected = getenv("TEST_PROCESSES");
    CHECK(!expected || me.processes == atoi(expected));
    CHECK(me.local_process >= 0 && me.local_process < me.local_processes);
    if (!absent)
        exchange_blobs(bootstrap, &me);
    peal_status status =
        peal_control_open(bootstrap, NULL, &abort_word, absent ? deadline / 10 : deadline,
                          diagnostics, &control);
    if (status != PEAL_STATUS_OK) {
        peal_diagnostics_print(diagnostics, stderr, 0);
        bootstrap->ops->close(bootstrap);
        peal_diagnostics_destroy(diagnostics);
        return (int)status;
    }
    int code = (int)peal_control_barrier(control); /* others may be further, and have failed */
    if (code == PEAL_STATUS_OK)
        code = act(argv[1], victim, argc > 3 ? atoi(argv[3]) : 1, bootstrap, control, &abort_word);
    peal_control_close(control);
    bootstrap->ops->close(bootstrap);
    peal_diagnostics_destroy(diagnostics);
    return code;
}
