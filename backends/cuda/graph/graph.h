/* Graphs of a plan: what capture.c makes and replay.c replays. */
#ifndef PEAL_CUDA_GRAPH_H
#define PEAL_CUDA_GRAPH_H

#include "backends/cuda/lower/engine.h"
#include "backends/cuda/stream/run.h"

enum { AHEAD = 8 };

typedef struct state_change {
    uint64_t *passed, *message;
    int64_t iterations;
    uint64_t evaluations;
} state_change;

typedef struct peal_cuda_graphs {
    peal_cuda_sink sink; /* while iterations are recorded */
    int64_t steps;       /* of a replay: K */
    int slots;           /* graphs that differ in where their rows lie: 1 or 2 */
    CUgraph graph[2];
    CUgraphExec exec[2];
    peal_cuda_row *row[2];
    unsigned rows;
    bool stops;       /* has an `until` */
    bool loops;       /* by a WHILE node */
    int64_t rounds;   /* that the launch under way may have; unrolled: 1 */
    CUfunction round; /* of which this is the last node of the body */
    CUgraphConditionalHandle condition;
    peal_walk *begin; /* by rank: where a replay may begin */
    state_change *change;
    int64_t *word; /* by rank: what the step word holds */
    CUevent done[AHEAD];
    int64_t first_step[AHEAD]; /* of the replays that are under way */
    uint64_t launched, finished;
    int64_t report; /* steps between two counts */
    double began;   /* when this start's replays began, of which `finished` is then `begun_with` */
    uint64_t begun_with;
    int64_t first; /* step at that time */
    double rate;   /* steps a second; 0: not known yet */
} peal_cuda_graphs;

/* replay_period.c */
/* From where the walks are (graphs->begin): a multiple of the period, not too short to hide the
 * launch of a replay; one that divides the whole run, if there is one. 0: the reason says why. */
int64_t peal_cuda_choose_steps(peal_cuda_plan *plan, const char **reason);
/* Whether the engine has room for the launches of the steps that were walked to find them, one
 * period. */
bool peal_cuda_launches_fit(const peal_cuda_plan *plan);
/* One iteration of the walk alone, verdicts false. */
bool peal_cuda_advance_walk_only(peal_cuda_rank *rank);
/* After `steps` iterations from `begin`, everything that nodes hold as constants is as before. */
bool peal_cuda_is_period(const peal_cuda_rank *rank, const peal_walk *begin, int64_t steps,
                         const char **reason);
/* How many steps from where the walk is go by before a rare condition changes. */
int64_t peal_cuda_steps_alike(const peal_cuda_rank *rank);

/* capture.c */
extern const struct peal_cuda_engine peal_cuda_graph_engine;

/* recording.c: when the plan is created: records iterations and has the engine build what is
 * replayed. What fails has been reported. */
peal_status peal_cuda_graphs_create(peal_cuda_plan *plan);
void peal_cuda_graphs_destroy(peal_cuda_plan *plan);

/* replay.c: plan->run->steps iterations, by replays and what is left over step by step. */
bool peal_cuda_graphs_run(peal_cuda_plan *plan);

/* stall_report.c: false: no replay is under way. */
bool peal_cuda_report_replay(peal_cuda_plan *plan);

/* conditional.c */
/* Sets graphs->loops. */
peal_status peal_cuda_conditional_create(peal_cuda_plan *plan);
/* Makes the graph and its node; the origin's capture goes to the node's body. */
CUresult peal_cuda_conditional_begin(peal_cuda_plan *plan, int slot);
/* The driver has refused it: told, and what there is of it is given back. */
void peal_cuda_conditional_give_up(peal_cuda_plan *plan, int slot, CUresult result);
/* The body's last node; the lanes have met. */
bool peal_cuda_conditional_round(peal_cuda_plan *plan);
/* Before a launch: that so many rounds may follow. */
bool peal_cuda_conditional_allow(peal_cuda_plan *plan, int64_t rounds);

#endif
