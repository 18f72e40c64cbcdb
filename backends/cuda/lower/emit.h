/* What the files that put ops onto lanes share. false: failed, plan->emission.status says why. */
#ifndef PEAL_CUDA_EMIT_H
#define PEAL_CUDA_EMIT_H

#include "backends/cuda/lower/plan.h"

static inline peal_cuda_lane *peal_cuda_lane_at(peal_cuda_rank *rank, int lane)
{
    return &rank->lane[lane];
}

/* group.c */
/* After something was put onto a lane: the host stays near. */
bool peal_cuda_enqueued(peal_cuda_rank *rank, peal_cuda_lane *lane, int op);
/* After something that writes flags of other processes was put onto a lane. */
bool peal_cuda_flags_enqueued(peal_cuda_rank *rank, peal_cuda_lane *lane);
/* Other lanes may wait for the op's instance that the walk has just passed; it is on its lane. */
bool peal_cuda_publish(peal_cuda_rank *rank, peal_cuda_lane *lane, int index);
/* The lane's group; a new one, ready for waits, if there is none. */
peal_cuda_group *peal_cuda_group_open(peal_cuda_rank *rank, peal_cuda_lane *lane,
                                      const peal_cuda_op *op, const peal_walk_frame *frame);
/* bits: boxes (LAUNCH) or waits (WAIT) of the launch that the op became. */
void peal_cuda_group_join(peal_cuda_rank *rank, peal_cuda_group *group, int index, unsigned bits);
/* The lane waits for ops of other lanes. Its group is launched first unless it has nothing but
 * waits. */
bool peal_cuda_await_lanes(peal_cuda_rank *rank, int index);
/* WAIT `index` for the value of its word; the group has room for it. */
void peal_cuda_group_wait(peal_cuda_rank *rank, peal_cuda_group *group, int index, uint64_t value);
/* Whether an op has joined the group before place `end`. */
bool peal_cuda_group_has(const peal_cuda_group *group, int op, int end);
/* Which ops of the lane's own group an op depends on: false if on one of a kind that it cannot
 * follow within the group. */
bool peal_cuda_depends_within(const peal_cuda_rank *rank, const peal_cuda_group *group, int index,
                              unsigned *waits, unsigned *boxes);
/* Bits of the group's ops of a kind that belong to the channel of op `index`. */
unsigned peal_cuda_channel_bits(const peal_cuda_rank *rank, const peal_cuda_group *group, int index,
                                peal_op_kind kind);

/* Boxes that something comes after: folds come after all blocks, and communication-free kernels
 * send with them alone. */
unsigned peal_cuda_group_boxes(const peal_cuda_group *group, unsigned boxes);

bool peal_cuda_flush_group(peal_cuda_rank *rank, peal_cuda_lane *lane, peal_cuda_group *group);

/* defer.c */
/* Before op `index` is put onto a lane: what was put off and it depends on. */
bool peal_cuda_emit_prerequisites(peal_cuda_rank *rank, int index);
/* False: the wait must be put onto its lane now. */
bool peal_cuda_defer_wait(peal_cuda_rank *rank, int index, uint64_t value);
/* The lane's group is put off, or launched now where that cannot be. */
bool peal_cuda_defer_group(peal_cuda_rank *rank, peal_cuda_lane *lane);

/* remote store.c */
/* The blocks of the group's task send the message of COPY `index` themselves. False: they cannot.
 */
bool peal_cuda_remote_store_join(peal_cuda_rank *rank, peal_cuda_group *group, int index,
                                 const peal_walk_frame *frame);
/* Blocks are numbered: decides whether they add to flags, and what. in_shares: mode fused. */
void peal_cuda_remote_store_flags(peal_cuda_group *group, bool in_shares);

/* piggyback.c */
/* Whether LAUNCH `index` is a FOLD that the lane's group, the launch of its task, can do itself. */
bool peal_cuda_fold_fits(const peal_cuda_rank *rank, int index);
void peal_cuda_fold_join(peal_cuda_rank *rank, int index, const peal_walk_frame *frame);
/* How a rider does a COMBINE: what it reads are the contributions where they have come in. False:
 * it cannot. */
bool peal_cuda_piggyback_describe(const peal_cuda_rank *rank, const peal_cuda_group *group,
                                  peal_launch_piggyback *piggyback);
/* What was put off joins the lane's group. False: it cannot. */
bool peal_cuda_piggyback(peal_cuda_rank *rank, peal_cuda_lane *lane);

/* reduction_ring.c */
enum { PEAL_CUDA_RING_STEPS = 4 };
/* Of one step of an array's ring, with what keeps the next one aligned. */
size_t peal_cuda_ring_bytes(const peal_cuda_rank *rank, int storage);
/* By storage and step, which memory an address lies in, counted behind the storages; -1: none. */
int peal_cuda_reduction_ring_at(const peal_cuda_rank *rank, CUdeviceptr address);

/* count_steps.c: the lanes of one rank meet, and its step word is advanced there. */
bool peal_cuda_count_steps(peal_cuda_rank *rank, int64_t steps);

/* emit_message.c, emit_task.c, emit_call.c */
/* The storage of the rank that an address lies in, or what peal_cuda_reduction_ring_at says; -1:
 * another's memory. */
int peal_cuda_storage_at(const peal_cuda_rank *rank, CUdeviceptr address);
/* Where an array's elements are in this step. */
CUdeviceptr peal_cuda_array_at(const peal_cuda_rank *rank, const peal_walk_frame *frame, int array);
CUdeviceptr peal_cuda_base_address(const peal_cuda_rank *rank, const peal_cuda_op *op,
                                   peal_cuda_base base, const peal_walk_frame *frame);
bool peal_cuda_emit_wait(peal_cuda_rank *rank, int index, const peal_walk_frame *frame);
bool peal_cuda_emit_write(peal_cuda_rank *rank, int index, const peal_walk_frame *frame);
bool peal_cuda_emit_copy(peal_cuda_rank *rank, int index, const peal_walk_frame *frame);
bool peal_cuda_emit_call(peal_cuda_rank *rank, int index, const peal_walk_frame *frame);
bool peal_cuda_emit_launch(peal_cuda_rank *rank, int index, const peal_walk_frame *frame);

#endif
