/* Messages to other hosts that a stream rings for itself, instead of raising a word for a thread of
 * the host to post: the entries of a message are written ahead, and two stores make it due. */
#ifndef PEAL_CUDA_LOWER_DOORBELL_H
#define PEAL_CUDA_LOWER_DOORBELL_H

#include "backends/cuda/lower/plan.h"

enum { PEAL_CUDA_REASON_BYTES = 160 };

/* Whether the plan's streams can ring; else *reason is why not. */
bool peal_cuda_doorbells_are_there(const peal_cuda_plan *plan, char reason[PEAL_CUDA_REASON_BYTES]);
/* Gives the WRITEs of a rank whose words are in memory of another host their doorbells. False:
 * *reason says why it cannot. */
bool peal_cuda_doorbells_bind(peal_cuda_rank *rank, char reason[PEAL_CUDA_REASON_BYTES]);
/* What a rank's doorbells have taken of the device goes back. More than once is fine. */
void peal_cuda_doorbells_release(peal_cuda_rank *rank);
/* Call it before the op at the walk's position is emitted. False: it rings, and there is no room
 * for its message before others have arrived. */
bool peal_cuda_doorbell_has_room(const peal_cuda_rank *rank);
/* Rings for a message of WRITE `op`, whose entries there is room for. False: failed, as of all that
 * emits. */
bool peal_cuda_doorbell_emit(peal_cuda_rank *rank, peal_cuda_op *op, uint64_t message);

#endif
