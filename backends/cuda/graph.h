/* Graphs of a plan: what capture.c makes and graph.c replays. */
#ifndef PEAL_CUDA_GRAPH_H
#define PEAL_CUDA_GRAPH_H

#include "backends/cuda/run.h"

enum { AHEAD = 8 };

typedef struct state_change {
    uint64_t *passed, *message;
    int64_t iterations;
    uint64_t evaluations;
} state_change;

struct cuda_graphs {
    int64_t steps; /* of a replay: K */
    int halves;    /* graphs that differ in where their rows lie: 1 or 2 */
    CUgraph graph[2];
    CUgraphExec exec[2];
    cuda_row *row[2];
    unsigned rows;
    bool stops;       /* has an `until` */
    peal_walk *begin; /* by rank: where a replay may begin */
    state_change *change;
    int64_t *word; /* by rank: what the step word holds */
    CUevent done[AHEAD];
    int64_t first_step[AHEAD]; /* of the replays that are under way */
    uint64_t launched, finished;
    int64_t report; /* steps between two counts */
    double began;   /* when this start's replays began, of which `finished` is then `begun_with` */
    uint64_t begun_with;
    double pace; /* seconds that a replay was seen to take; 0: none has been */
};

/* capture.c */
CUstream cuda_origin(const cuda_plan *plan);
/* Every other lane begins after the origin's work so far (fork), or the origin goes on after
 * theirs. */
bool cuda_join_lanes(cuda_plan *plan, bool fork);
/* One iteration of the walk alone, verdicts false. */
bool cuda_dry_step(cuda_rank *rank);
/* After `steps` iterations from `begin`, everything that nodes hold as constants is as before. */
bool cuda_is_period(const cuda_rank *rank, const peal_walk *begin, int64_t steps,
                    const char **reason);
/* How many steps from where the walk is go by before a rare condition changes. */
int64_t cuda_steps_alike(const cuda_rank *rank);

#endif
