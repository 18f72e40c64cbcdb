/* Running a plan: the walk of all its ranks, and its graphs. */
#ifndef PEAL_CUDA_RUN_H
#define PEAL_CUDA_RUN_H

#include "backends/cuda/lower/plan.h"

#include <time.h>

typedef enum peal_cuda_advance {
    PEAL_CUDA_ADVANCED,
    PEAL_CUDA_WAITS_FOR_RANK,
    PEAL_CUDA_WAITS_FOR_DEVICE,
    PEAL_CUDA_FINISHED,
    PEAL_CUDA_FAILED
} peal_cuda_advance;

/* rank_turns.c */
/* Before an op is put onto its lane: PEAL_CUDA_ADVANCED if that may be now. */
peal_cuda_advance peal_cuda_may_emit(peal_cuda_rank *rank);
/* All ranks of the process in turn, until each is done with what `next` does: called again, it
 * stays PEAL_CUDA_FINISHED. */
bool peal_cuda_take_turns(peal_cuda_plan *plan, peal_cuda_advance (*next)(peal_cuda_rank *rank));

/* The thread that a start begins; ends when all that was started has been done, or has failed. */
void *peal_cuda_run_thread(void *plan);
/* `steps` iterations onto the lanes; plan->stopped says whether `until` ended them. */
bool peal_cuda_run_steps(peal_cuda_plan *plan, int64_t steps);
bool peal_cuda_run_drain(peal_cuda_plan *plan);
/* False: a verdict of the device would be needed, or an expression failed. */
bool peal_cuda_walk_section_only(peal_cuda_rank *rank, const peal_section *section);

/* capture.c: when the plan is created: captures and uploads; in mode fused notes the records, and
 * has their kernel compiled. What fails has been reported. */
peal_status peal_cuda_graphs_create(peal_cuda_plan *plan);
void peal_cuda_graphs_destroy(peal_cuda_plan *plan);
/* replay.c: plan->steps iterations, by replays and what is left over step by step. */
bool peal_cuda_graphs_run(peal_cuda_plan *plan);
/* While capturing: at the end of an iteration. */
bool peal_cuda_graph_step(peal_cuda_rank *rank);
#endif
