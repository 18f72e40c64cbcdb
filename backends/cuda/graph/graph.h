/* CUDA graphs: the engine of mode graph. */
#ifndef PEAL_CUDA_GRAPH_H
#define PEAL_CUDA_GRAPH_H

#include "backends/cuda/replay/replay.h"

/* capture.c */
extern const struct peal_cuda_engine peal_cuda_graph_engine;

/* conditional.c */
/* Sets graphs->loops: whether `until` is a WHILE node. If it was asked for and cannot be, that is a
 * warning (PEAL_E_NO_WHILE_NODE). */
peal_status peal_cuda_conditional_create(peal_cuda_plan *plan);
/* Creates the graph and its WHILE node, and begins to capture the origin into the node's body. */
CUresult peal_cuda_conditional_begin(peal_cuda_plan *plan, int slot);
/* The driver has refused the recording: if that has a WHILE node, warns, frees what there is of it,
 * and unrolls from now on. False: it has none. */
bool peal_cuda_conditional_abandon(peal_cuda_plan *plan, int slot, CUresult result);
/* In a WHILE node: captures the last node of the body, which sets the loop's condition. The lanes
 * have been joined. False: failed. */
bool peal_cuda_conditional_end_round(peal_cuda_plan *plan);
/* Before a launch of the graph: enqueues a launch that sets how many rounds it may have. */
CUresult peal_cuda_conditional_set_rounds(peal_cuda_plan *plan, int64_t rounds);

#endif
