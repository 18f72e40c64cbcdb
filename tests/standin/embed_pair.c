/* Two processes exchange on streams of their own, on the stand-in of the driver. Round 1 is whole;
 * then process 1 does not come any more, and process 0 must not wait for ever: for the deadline
 * ("late"), or until process 1 gives the job up ("abort"). Prints what process 0 is told.
 *
 *   embed_pair late|abort|rounds [TRANSPORT]
 *
 * With a transport the values that arrive are looked at, too: the stand-in's device memory is the
 * host's, and its kernels must run. */
#define _GNU_SOURCE
#include "base/cuda_driver.h"
#include "tests/runtime/job.h"

#include <peal/exchange.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 64, ROUNDS = 8 };
static const char *what, *transport;

static peal_status make(peal_session *session, peal_exchange **out)
{
    const int half = POINTS / 2, process = peal_session_process(session);
    return peal_exchange_create(session, out, .axis_count = 1, .lo = {half * process},
                                .hi = {half * (process + 1)}, .periodic = {true},
                                .field = {{PEAL_I64, .width = {{1, 1}}}}, .backend = "cuda",
                                .transport = transport);
}

/* A wait is put onto the stream; this is one of the host's. */
static void synchronize(void)
{
    const char *reason;
    const peal_cuda_driver *driver = peal_cuda_open(&reason);
    while (driver && driver->cuStreamQuery_((CUstream)(uintptr_t)1) == CUDA_ERROR_NOT_READY)
        sched_yield();
}

static int64_t value_of(int round, int64_t point)
{
    return 1000 * round + (point + POINTS) % POINTS;
}

static peal_status round_of(peal_exchange *exchange, int round)
{
    peal_exchange_array a;
    peal_status status = peal_exchange_view(exchange, 0, &a);
    int64_t *first = a.data; /* of the halo */
    for (int64_t p = a.lo[0]; transport && p < a.hi[0]; p++)
        first[p - a.lo[0] + 1] = value_of(round, p);
    if (!status)
        status = peal_exchange_start(exchange, 0, (void *)(uintptr_t)1);
    if (!status)
        status = peal_exchange_wait(exchange);
    if (transport && !status)
        synchronize();
    for (int64_t p = a.lo[0] - 1; transport && !status && p <= a.hi[0]; p++)
        if (first[p - a.lo[0] + 1] != value_of(round, p))
            status = PEAL_STATUS_WRONG_RESULT;
    return status;
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
        status = round_of(exchange, i);
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
    transport = count > 2 ? words[2] : NULL;
    team_create(&team, 2);
    team_run(&team, member);
    int worst = team.exit_code[0] > team.exit_code[1] ? team.exit_code[0] : team.exit_code[1];
    team_destroy(&team);
    return worst;
}
