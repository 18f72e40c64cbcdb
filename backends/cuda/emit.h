/* What the files that put ops onto lanes share. false: failed, plan->status says why. */
#ifndef PEAL_CUDA_EMIT_H
#define PEAL_CUDA_EMIT_H

#include "backends/cuda/plan.h"

static inline cuda_lane *cuda_lane_at(cuda_rank *rank, int lane)
{
    return &rank->lane[lane];
}

/* group.c */
/* After something was put onto a lane: the host stays near. */
bool cuda_mark(cuda_rank *rank, cuda_lane *lane, int op);
/* Other lanes may wait for the op's instance that the walk has just passed; it is on its lane. */
bool cuda_publish(cuda_rank *rank, cuda_lane *lane, int index);
/* The lane's group; a new one, ready for waits, if there is none. */
cuda_group *cuda_group_open(cuda_rank *rank, cuda_lane *lane, const cuda_op *op,
                            const peal_walk_frame *frame);
/* bits: boxes (LAUNCH) or waits (WAIT) of the launch that the op became. */
void cuda_group_join(cuda_rank *rank, cuda_group *group, int index, unsigned bits);
/* The lane waits for ops of other lanes. Its group is launched first unless it has nothing but
 * waits. */
bool cuda_await_lanes(cuda_rank *rank, int index);
/* WAIT `index` for the value of its word; the group has room for it. */
void cuda_group_wait(cuda_rank *rank, cuda_group *group, int index, uint64_t value);
/* Whether an op has joined the group before place `end`. */
bool cuda_group_has(const cuda_group *group, int op, int end);
/* Which ops of the lane's own group an op depends on: false if on one of a kind that it cannot
 * follow within the group. */
bool cuda_depends_within(const cuda_rank *rank, const cuda_group *group, int index, unsigned *waits,
                         unsigned *boxes);
/* Bits of the group's ops of a kind that belong to the channel of op `index`. */
unsigned cuda_channel_bits(const cuda_rank *rank, const cuda_group *group, int index,
                           peal_op_kind kind);

/* Boxes that something comes after: folds come after all blocks, and plain kernels send with them
 * alone. */
unsigned cuda_group_boxes(const cuda_group *group, unsigned boxes);

bool cuda_flush_group(cuda_rank *rank, cuda_lane *lane, cuda_group *group);

/* turns.c */
/* Something that writes flags of other processes was put onto a lane. */
bool cuda_flags_put(cuda_plan *plan, cuda_lane *lane);

/* later.c */
/* Before op `index` is put onto a lane: what was put off and it depends on. */
bool cuda_before(cuda_rank *rank, int index);
/* False: the wait must be put onto its lane now. */
bool cuda_wait_later(cuda_rank *rank, int index, uint64_t value);
/* The lane's group is put off, or launched now where that cannot be. */
bool cuda_hold(cuda_rank *rank, cuda_lane *lane);

/* mirror.c */
/* The blocks of the group's task send the message of COPY `index` themselves. False: they cannot.
 */
bool cuda_mirror_join(cuda_rank *rank, cuda_group *group, int index, const peal_walk_frame *frame);
/* Blocks are numbered: decides whether they add to flags, and what. in_shares: mode fused. */
void cuda_mirror_flags(cuda_group *group, bool in_shares);

/* ride.c */
/* Whether LAUNCH `index` is a FOLD that the lane's group, the launch of its task, can do itself. */
bool cuda_fold_fits(const cuda_rank *rank, int index);
void cuda_fold_join(cuda_rank *rank, int index, const peal_walk_frame *frame);
/* How a rider does a COMBINE: what it reads are the contributions where they have come in. False:
 * it cannot. */
bool cuda_ride_describe(const cuda_rank *rank, const cuda_group *group, peal_launch_ride *ride);
/* What was put off joins the lane's group. False: it cannot. */
bool cuda_ride(cuda_rank *rank, cuda_lane *lane);

/* emit_message.c, emit_task.c, emit_call.c */
/* The storage of the rank that an address lies in, or what cuda_scratch_at says; -1: another's
 * memory. */
int cuda_storage_at(const cuda_rank *rank, CUdeviceptr address);
/* Where an array's elements are in this step. */
CUdeviceptr cuda_array_at(const cuda_rank *rank, const peal_walk_frame *frame, int array);
CUdeviceptr cuda_base_address(const cuda_rank *rank, const cuda_op *op, cuda_base base,
                              const peal_walk_frame *frame);
bool cuda_emit_wait(cuda_rank *rank, int index, const peal_walk_frame *frame);
bool cuda_emit_write(cuda_rank *rank, int index, const peal_walk_frame *frame);
bool cuda_emit_copy(cuda_rank *rank, int index, const peal_walk_frame *frame);
bool cuda_emit_call(cuda_rank *rank, int index, const peal_walk_frame *frame);
bool cuda_emit_launch(cuda_rank *rank, int index, const peal_walk_frame *frame);

#endif
