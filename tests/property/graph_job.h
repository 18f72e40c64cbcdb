/* A random graph, scheduled for all its ranks in this process and run on the host backend, without
 * the runtime: so that a test may change the schedules first. */
#ifndef PEAL_TESTS_GRAPH_JOB_H
#define PEAL_TESTS_GRAPH_JOB_H

#include "scheduler/scheduler.h"
#include "tests/property/random_graph.h"

#include <peal/plugin/backend.h>

enum { JOB_RANKS = 8 };

typedef struct graph_job {
    random_graph *random;
    peal_diagnostics *diagnostics;
    const peal_graph_data *graph;
    peal_machine machine;
    peal_compilation *compilation;
    const peal_schedule *schedule[JOB_RANKS]; /* may be replaced by changed copies */
} graph_job;

/* Schedules the graph of a seed; aborts if that fails. */
void graph_job_begin(graph_job *job, uint64_t seed, peal_mode mode);
void graph_job_end(graph_job *job);

/* Runs job->schedule and gives the digest of what is defined afterwards. */
peal_status graph_job_run(graph_job *job, int workers, uint64_t *digest);

#endif
