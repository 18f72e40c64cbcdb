/* What the files of emission share. Functions that emit return false when they have failed:
 * plan->emission.status says why. */
#ifndef PEAL_CUDA_EMIT_H
#define PEAL_CUDA_EMIT_H

#include "backends/cuda/lower/plan.h"

static inline peal_cuda_lane *peal_cuda_lane_at(peal_cuda_rank *rank, int lane)
{
    return &rank->lane[lane];
}

/* group.c */
/* Call it after something was enqueued on a lane: logs it, and lets the sink bound the host's
 * lookahead. */
bool peal_cuda_enqueued(peal_cuda_rank *rank, peal_cuda_lane *lane, int op);
/* Call it after something that writes flags of other processes was enqueued on a lane. */
bool peal_cuda_flags_enqueued(peal_cuda_rank *rank, peal_cuda_lane *lane);
/* Records the event by which other lanes wait for the op's instance that the walk has just passed.
 * The instance has been enqueued. Does nothing for ops that no other lane depends on. */
bool peal_cuda_publish(peal_cuda_rank *rank, peal_cuda_lane *lane, int index);
/* The lane's open group; if there is none, an empty one is opened, which waits can be added to. */
peal_cuda_group *peal_cuda_group_open(peal_cuda_rank *rank, peal_cuda_lane *lane,
                                      const peal_cuda_op *op, const peal_walk_frame *frame);
/* Makes op `index` a member of the group. bits: the launch's boxes (LAUNCH) or waits (WAIT) that
 * the op became. */
void peal_cuda_group_join(peal_cuda_rank *rank, peal_cuda_group *group, int index, unsigned bits);
/* Makes the lane of op `index` wait for the ops of other lanes that it depends on. The lane's group
 * is launched first, unless it has nothing but waits. */
bool peal_cuda_await_lanes(peal_cuda_rank *rank, int index);
/* Adds WAIT `index` for `value` of its word to the group, which must have room for it. */
void peal_cuda_group_wait(peal_cuda_rank *rank, peal_cuda_group *group, int index, uint64_t value);
/* Whether an op is among the first `end` members of the group. */
bool peal_cuda_group_has(const peal_cuda_group *group, int op, int end);
/* What op `index` depends on within its lane's own group: the launch's waits, and its boxes of
 * tiles. False: it depends on a copy, which it cannot follow within one launch. */
bool peal_cuda_depends_within(const peal_cuda_rank *rank, const peal_cuda_group *group, int index,
                              unsigned *waits, unsigned *boxes);
/* The bits of the group's members of a kind that belong to the channel of op `index`. */
unsigned peal_cuda_channel_bits(const peal_cuda_rank *rank, const peal_cuda_group *group, int index,
                                peal_op_kind kind);

/* Boxes that something comes after: folds come after all blocks, and communication-free kernels
 * send with them alone. */
unsigned peal_cuda_group_boxes(const peal_cuda_group *group, unsigned boxes);

/* The number by which the kernel of mode fused, or of a bundle, calls what runs a launch
 * (peal_cuda_fused_number). function: the kernel; group: NULL if it is one of peal's own. */
int peal_cuda_function_number(const peal_cuda_rank *rank, CUfunction function,
                              const peal_launch *launch, const peal_cuda_group *group);

/* Launches a group of the lane, the open or the deferred one, and empties it. */
bool peal_cuda_flush_group(peal_cuda_rank *rank, peal_cuda_lane *lane, peal_cuda_group *group);

/* defer.c */
/* Call it before op `index` is emitted: emits the deferred waits and the deferred group that it
 * depends on. */
bool peal_cuda_emit_prerequisites(peal_cuda_rank *rank, int index);
/* Defers WAIT `index` for `value`. False: it cannot be deferred and must be emitted now. */
bool peal_cuda_defer_wait(peal_cuda_rank *rank, int index, uint64_t value);
/* Defers the lane's open group, or launches it now where that is not sound. */
bool peal_cuda_defer_group(peal_cuda_rank *rank, peal_cuda_lane *lane);

/* remote_store.c */
/* Makes COPY `index` remote stores of the blocks of the group's task. False: it cannot be; nothing
 * has changed. */
bool peal_cuda_remote_store_join(peal_cuda_rank *rank, peal_cuda_group *group, int index,
                                 const peal_walk_frame *frame);
/* Call it once the blocks of the launch are numbered: decides whether they add to flags, and how
 * much each adds. is_partitioned: mode fused, whose kernel's blocks run partitions of the launch.
 */
void peal_cuda_remote_store_flags(peal_cuda_group *group, bool is_partitioned);

/* piggyback.c */
/* Whether LAUNCH `index` is a FOLD of the task in its lane's group, which that launch can do. */
bool peal_cuda_fold_fits(const peal_cuda_rank *rank, int index);
/* Adds that FOLD to the group. */
void peal_cuda_fold_join(peal_cuda_rank *rank, int index, const peal_walk_frame *frame);
/* How a block of a task's launch does the COMBINE of `group`: it reads each contribution where its
 * message was stored, so nothing is unpacked. False: it cannot. */
bool peal_cuda_piggyback_describe(const peal_cuda_rank *rank, const peal_cuda_group *group,
                                  peal_launch_piggyback *piggyback);
/* Makes the lane's deferred group a piggybacked reduction of its open one. False: it cannot be, or
 * nothing is deferred. */
bool peal_cuda_piggyback(peal_cuda_rank *rank, peal_cuda_lane *lane);

/* reduction_ring.c */
enum { PEAL_CUDA_RING_STEPS = 4 }; /* the reduction ring has a copy of an array for each */
/* The bytes of one copy, padded so that the next one is aligned. */
size_t peal_cuda_ring_bytes(const peal_cuda_rank *rank, int storage);
/* The copy in a reduction ring that an address lies in, as a number that follows those of the
 * rank's storages (by storage, then by copy); -1: none. */
int peal_cuda_reduction_ring_at(const peal_cuda_rank *rank, CUdeviceptr address);

/* count_steps.c: joins the lanes of the rank, and advances its step word by `steps` there. */
bool peal_cuda_count_steps(peal_cuda_rank *rank, int64_t steps);

/* emit_message.c, emit_task.c, emit_call.c */
/* The storage of the rank that an address lies in, or the result of peal_cuda_reduction_ring_at;
 * -1: another rank's memory. */
int peal_cuda_storage_at(const peal_cuda_rank *rank, CUdeviceptr address);
/* The address of an array's first element in this step: of its storage, or of its copy in the
 * reduction ring. */
CUdeviceptr peal_cuda_array_at(const peal_cuda_rank *rank, const peal_walk_frame *frame, int array);
/* The address that a base of COPY `op` stands for in this step. */
CUdeviceptr peal_cuda_base_address(const peal_cuda_rank *rank, const peal_cuda_op *op,
                                   peal_cuda_base base, const peal_walk_frame *frame);
/* Each emits the instance of op `index` that the walk has just passed. */
bool peal_cuda_emit_wait(peal_cuda_rank *rank, int index, const peal_walk_frame *frame);
bool peal_cuda_emit_write(peal_cuda_rank *rank, int index, const peal_walk_frame *frame);
bool peal_cuda_emit_copy(peal_cuda_rank *rank, int index, const peal_walk_frame *frame);
bool peal_cuda_emit_call(peal_cuda_rank *rank, int index, const peal_walk_frame *frame);
bool peal_cuda_emit_launch(peal_cuda_rank *rank, int index, const peal_walk_frame *frame);

#endif
