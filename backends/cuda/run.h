/* Running a plan: the walk of all its ranks, and its graphs. */
#ifndef PEAL_CUDA_RUN_H
#define PEAL_CUDA_RUN_H

#include "backends/cuda/plan.h"

#include <time.h>

typedef enum cuda_advance {
    CUDA_ADVANCED,
    CUDA_WAITS_FOR_RANK,
    CUDA_WAITS_FOR_DEVICE,
    CUDA_FINISHED,
    CUDA_FAILED
} cuda_advance;

/* turns.c */
/* Before an op is put onto its lane: CUDA_ADVANCED if that may be now. */
cuda_advance cuda_turn(cuda_rank *rank);
/* All ranks of the process in turn, until each is done with what `next` does: called again, it
 * stays CUDA_FINISHED. */
bool cuda_take_turns(cuda_plan *plan, cuda_advance (*next)(cuda_rank *rank));

/* The thread that a start begins; ends when all that was started has been done, or has failed. */
void *cuda_run_thread(void *plan);
/* `steps` iterations onto the lanes; plan->stopped says whether `until` ended them. */
bool cuda_run_steps(cuda_plan *plan, int64_t steps);
bool cuda_run_drain(cuda_plan *plan);
/* False: a verdict of the device would be needed, or an expression failed. */
bool cuda_run_dry(cuda_rank *rank, const peal_section *section);

/* capture.c: when the plan is created: captures and uploads; in mode fused notes the records, and
 * has their kernel compiled. What fails has been reported. */
peal_status cuda_graphs_create(cuda_plan *plan);
void cuda_graphs_destroy(cuda_plan *plan);
/* graph.c: plan->steps iterations, by replays and what is left over step by step. */
bool cuda_graphs_run(cuda_plan *plan);
/* While capturing: at the end of an iteration. */
bool cuda_graph_step(cuda_rank *rank);
#endif
