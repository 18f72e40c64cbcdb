/* What peal's own benchmark programs share: a session, plans in every mode, batches.
 *
 * Two processes, one rank each, under a launcher; every process prints its lines and run.py takes
 * the slower one. Processes cannot agree on a number of repetitions without another channel, so the
 * number follows from the case. */
#ifndef PEAL_BENCH_PEAL_BENCH_H
#define PEAL_BENCH_PEAL_BENCH_H

#include "measure.h"

#include <peal/peal.h>

static const char *const bench_modes[] = {"sync", "stream", "fused"};

/* A task with a function of ours that runs as one tile. */
#define BENCH_TASK(task_name, task_function, task_user)                                            \
    {                                                                                              \
        .size_bytes = sizeof(peal_task_desc), .source = PEAL_HERE, .name = (task_name),            \
        .function = (task_function), .user = (task_user), .tile = "whole"                          \
    }

enum { BENCH_MODES = sizeof(bench_modes) / sizeof(bench_modes[0]) };

/* For some 100 ms after the start of a job the launcher and the kernel are still busy with it on
 * these cores, and what runs first was seen to be 2 to 4 times slower. The peers spread each of
 * their batches over all variants, so they don't notice. */
static inline void bench_settle(void)
{
    enum { SETTLE_MS = 400 };
    double start = bench_now_ns();
    while (bench_now_ns() - start < SETTLE_MS * 1e6) {
    }
}

/* Joins the job and binds this process to its core. Ends the program if it cannot. */
static inline peal_session *bench_open(void)
{
    const peal_session_desc desc = {.size_bytes = sizeof(desc),
                                    .log_level = PEAL_LOG_ERROR,
                                    .log = stderr};
    peal_session *session;
    peal_status status = peal_session_create(&desc, &session);
    if (status != PEAL_STATUS_OK) {
        fprintf(stderr, "no session: %s\n", peal_status_name(status));
        exit(status);
    }
    bench_pin(peal_session_local_process(session));
    bench_settle();
    return session;
}

/* Ends the program with what the session has to say unless status is fine. */
static inline void bench_require(peal_session *session, peal_status status, const char *what)
{
    if (status != PEAL_STATUS_OK) {
        peal_session_print_diagnostics(session, stderr, 5);
        fprintf(stderr, "%s: %s\n", what, peal_status_name(status));
        exit(status);
    }
}

/* A plan with one rank a process, or NULL if this mode refuses the graph. */
static inline peal_plan *bench_plan(peal_session *session, peal_graph *graph, const char *mode,
                                    int threads)
{
    const peal_plan_options options = {.size_bytes = sizeof(options),
                                       .mode = mode,
                                       .threads = threads};
    peal_plan *plan;
    peal_status status = peal_graph_compile(graph, session, &options, &plan);
    if (status == PEAL_STATUS_ENVIRONMENT) {
        fprintf(stderr, "%s: left out: %s\n", mode, peal_status_name(status));
        return NULL;
    }
    bench_require(session, status, "compile");
    return plan;
}

/* Nanoseconds a step of a run of so many steps, start and wait included. */
static inline double bench_steps(peal_session *session, peal_plan *plan, long steps)
{
    double start = bench_now_ns();
    bench_require(session, peal_plan_start(plan, steps, NULL), "start");
    bench_require(session, peal_plan_wait(plan), "wait");
    return (bench_now_ns() - start) / (double)steps;
}

static inline void bench_close_plan(peal_session *session, peal_plan *plan)
{
    bench_require(session, peal_plan_finish(plan), "finish");
    peal_plan_destroy(plan);
}

#endif
