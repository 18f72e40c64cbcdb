/* Emits messages: WAIT, WRITE and COPY. */
#include "backends/cuda/lower/doorbell.h"
#include "backends/cuda/lower/emit.h"
#include "backends/cuda/lower/sink.h"

#include <string.h>

/* ---- waits and writes ---- */

static bool emit_self_wait(peal_cuda_rank *rank, peal_cuda_op *op)
{
    peal_cuda_lane *lane = peal_cuda_lane_at(rank, op->lane);
    peal_cuda_rank *peer = op->peer;

    if (op->peer_op < 0)
        return true;
    peal_cuda_op *write = &peer->op[op->peer_op];
    if (!peal_cuda_flush(rank, op->lane))
        return false;
    /* The latest WRITE that was enqueued is this message's or a later one, so waiting for it is
     * enough. It cannot depend on this wait, because it was emitted before. */
    uint64_t latest = peer->walk.passed[op->peer_op];
    if (peer->member[op->peer_op] && !peal_cuda_flush(peer, write->lane))
        return false;
    if (write->epoch[latest % 2] != rank->plan->emission.epoch ||
        peal_cuda_lane_at(peer, write->lane)->stream == lane->stream)
        return true;
    CUresult result = peal_cuda_sink_wait_event(rank, lane, write->event[latest % 2]);
    return !result || peal_cuda_report_driver_error(rank->plan, result, op, op->channel->edge);
}

static bool emit_memory_op(peal_cuda_rank *rank, peal_cuda_op *op, uint64_t value, bool waits)
{
    peal_cuda_plan *plan = rank->plan;
    peal_cuda_lane *lane = peal_cuda_lane_at(rank, op->lane);
    int index = (int)(op - rank->op);

    if (!peal_cuda_flush(rank, op->lane))
        return false;
    CUresult result = waits
                          ? plan->emission.sink->ops->wait_word(rank, lane, index, op->word, value)
                          : plan->emission.sink->ops->write_word(rank, lane, op->word, value);
    if (result)
        return peal_cuda_report_driver_error(plan, result, op, op->channel->edge);
    if (waits)
        peal_cuda_log_enqueued(rank, lane, index, op->word, value);
    else if (!peal_cuda_flags_enqueued(rank, lane))
        return false;
    return peal_cuda_enqueued(rank, lane, index) && peal_cuda_publish(rank, lane, index);
}

/* Whether a wait for a credit may join the group of the task whose messages need it. The credit
 * belongs to an earlier message, so its writer does not need the flags that this group writes. But
 * the wait must not delay flags of another event that the group writes after it. */
static bool can_wait_in_group(const peal_cuda_rank *rank, const peal_cuda_group *group,
                              const peal_cuda_op *op)
{
    const peal_launch *launch = &group->launch;
    /* With folds, only the sending of their results waits, when all other messages are sent. */
    bool delays_sends = launch->fold_bit
                            ? group->fold_writes > 0 && group->fold_event != op->source->event
                            : launch->write_count > 0 && group->write_event != op->source->event;

    return group->kind == PEAL_CUDA_GROUP_TASK && !group->closed && op->source->credit &&
           rank->plan->emission.sink->signal == PEAL_CUDA_SIGNAL_FUSED &&
           launch->wait_count < PEAL_LAUNCH_WAITS && !rank->member[op - rank->op] && !delays_sends;
}

static void wait_in_group(peal_cuda_rank *rank, peal_cuda_group *group, int index, uint64_t value)
{
    peal_launch *launch = &group->launch;

    peal_cuda_group_wait(rank, group, index, value);
    for (int b = 0; b < launch->box_count; b++)
        if (launch->fold_bit == 1u << b)
            launch->box[b].waits |= 1u << (launch->wait_count - 1);
}

bool peal_cuda_emit_wait(peal_cuda_rank *rank, int index, const peal_walk_frame *frame)
{
    peal_cuda_plan *plan = rank->plan;
    peal_cuda_op *op = &rank->op[index];
    peal_cuda_lane *lane = peal_cuda_lane_at(rank, op->lane);
    uint64_t slots = op->source->credit ? (uint64_t)op->channel->slots : 0;
    uint64_t value = op->idles ? 0 : peal_flag_value(op->channel, frame->message - slots);

    /* The first messages need no credit. But a wait that is recorded must be right in every replay.
     * There it waits for a value that the word is past from the start. */
    if (frame->message - plan->desc.hooks.first_message <= slots &&
        (peal_cuda_is_by_event(rank, op) || !plan->emission.sink->is_replayed))
        return true;
    if (!peal_cuda_await_lanes(rank, index))
        return false;
    if (peal_cuda_is_by_event(rank, op))
        return emit_self_wait(rank, op) && peal_cuda_publish(rank, lane, index);
    if (plan->options.signal == PEAL_CUDA_SIGNAL_MEMOP)
        return emit_memory_op(rank, op, value, true);
    peal_cuda_group *group = &lane->group;
    if (can_wait_in_group(rank, group, op)) {
        wait_in_group(rank, group, index, value);
        return true;
    }
    if (!op->source->credit && peal_cuda_defer_wait(rank, index, value))
        return true;
    bool same_event = group->kind == PEAL_CUDA_GROUP_COPY && group->event == op->source->event;
    if ((group->kind > PEAL_CUDA_GROUP_WAITS && !same_event) ||
        (group->kind != PEAL_CUDA_GROUP_NONE && group->launch.wait_count == PEAL_LAUNCH_WAITS) ||
        (group->kind == PEAL_CUDA_GROUP_WAITS && group->launch.write_count > 0) ||
        rank->member[index])
        if (!peal_cuda_flush(rank, op->lane))
            return false;
    group = peal_cuda_group_open(rank, lane, op, frame);
    peal_cuda_group_wait(rank, group, index, value);
    if (plan->emission.sink->signal == PEAL_CUDA_SIGNAL_KERNEL)
        return peal_cuda_flush(rank, op->lane);
    return true;
}

/* The boxes of a task's tiles that WRITE `index` must come after, and their waits. The copies of
 * its message are added by channel: the order of the ops of one event is not listed as dependences.
 */
static unsigned boxes_needed_by(const peal_cuda_rank *rank, const peal_cuda_group *group, int index,
                                unsigned *waits)
{
    unsigned boxes;

    peal_cuda_depends_within(rank, group, index, waits, &boxes);
    if (!rank->op[index].source->credit)
        boxes |= peal_cuda_channel_bits(rank, group, index, PEAL_OP_COPY);
    return group->kind == PEAL_CUDA_GROUP_TASK ? peal_cuda_group_boxes(group, boxes) : boxes;
}

/* Whether the sending blocks of the group's task can do WRITE `index`. Tiles that it depends on are
 * made sending ones. */
static bool can_send_after_tiles(const peal_cuda_rank *rank, peal_cuda_group *group, int index)
{
    unsigned waits, boxes;

    if (group->closed)
        return false;
    boxes = boxes_needed_by(rank, group, index, &waits);
    for (int b = 0; b < group->launch.box_count; b++) {
        if (boxes >> b & 1)
            group->launch.box[b].sends = 1;
        if (group->launch.box[b].sends)
            group->launch.box[b].waits |= waits;
    }
    return group->launch.list_count > 0 || boxes;
}

static void add_write(const peal_cuda_rank *rank, peal_cuda_group *group, int index, uint64_t value)
{
    const peal_cuda_op *op = &rank->op[index];
    int at = group->launch.write_count++;
    unsigned waits;

    group->launch.write[at] =
        (peal_launch_write){.word = op->word,
                            .value = value,
                            .boxes = boxes_needed_by(rank, group, index, &waits)};
    group->quantum[at] = op->channel->quantum;
    if (group->launch.fold_bit && group->launch.write[at].boxes == group->launch.fold_bit) {
        group->fold_writes++;
        group->fold_event = op->source->event;
        return;
    }
    group->can_add = group->can_add && op->can_add;
    group->write_event = op->source->event;
}

bool peal_cuda_emit_write(peal_cuda_rank *rank, int index, const peal_walk_frame *frame)
{
    peal_cuda_plan *plan = rank->plan;
    peal_cuda_op *op = &rank->op[index];
    peal_cuda_lane *lane = peal_cuda_lane_at(rank, op->lane);
    peal_cuda_group *group = &lane->group;
    uint64_t value = peal_flag_value(op->channel, frame->message);

    if (!peal_cuda_await_lanes(rank, index))
        return false;
    if (!peal_cuda_has_flag(rank, op))
        return peal_cuda_flush(rank, op->lane) && peal_cuda_publish(rank, lane, index);
    if (op->doorbell)
        return peal_cuda_doorbell_emit(rank, op, frame->message);
    /* A kernel looks at whether a wait was given up, which a memory operation does not. */
    if (plan->options.signal == PEAL_CUDA_SIGNAL_MEMOP && !plan->options.rings)
        return emit_memory_op(rank, op, value, false);
    bool fits = group->kind == PEAL_CUDA_GROUP_WAITS || group->kind == PEAL_CUDA_GROUP_COPY ||
                (group->kind == PEAL_CUDA_GROUP_TASK && can_send_after_tiles(rank, group, index));
    if (group->kind != PEAL_CUDA_GROUP_NONE &&
        (!fits || group->launch.write_count == PEAL_LAUNCH_WRITES || rank->member[index] ||
         (plan->emission.sink->signal == PEAL_CUDA_SIGNAL_KERNEL &&
          group->kind != PEAL_CUDA_GROUP_WAITS)))
        if (!peal_cuda_flush(rank, op->lane))
            return false;
    group = peal_cuda_group_open(rank, lane, op, frame);
    add_write(rank, group, index, value);
    peal_cuda_group_join(rank, group, index, 0);
    return true;
}

/* ---- copies ---- */

int peal_cuda_storage_at(const peal_cuda_rank *rank, CUdeviceptr address)
{
    for (int i = 0; i < rank->schedule->array_count; i++) {
        uint64_t bytes = (uint64_t)rank->schedule->array[i].layout.bytes;
        if (rank->first[i] && address >= rank->first[i] && address < rank->first[i] + bytes)
            return i;
    }
    return peal_cuda_reduction_ring_at(rank, address);
}

CUdeviceptr peal_cuda_base_address(const peal_cuda_rank *rank, const peal_cuda_op *op,
                                   peal_cuda_base base, const peal_walk_frame *frame)
{
    const peal_channel *channel = op->channel;

    switch (base.kind) {
    case PEAL_CUDA_BASE_OWN:
        return peal_cuda_array_at(rank, frame, base.array);
    case PEAL_CUDA_BASE_PEER:
        return op->target[frame->binding[base.array]];
    default:
        return op->staging + (channel->slots > 1 ? frame->message % (uint64_t)channel->slots *
                                                       (uint64_t)channel->staging_bytes
                                                 : 0);
    }
}

static void append_list(const peal_cuda_rank *rank, peal_cuda_group *group, const peal_cuda_op *op,
                        const peal_walk_frame *frame)
{
    peal_launch *launch = &group->launch;
    peal_launch_list *list = &launch->list[launch->list_count++];

    *list = (peal_launch_list){.piece = op->pieces.table,
                               .end = launch->units + op->pieces.units,
                               .count = op->pieces.count,
                               .base = group->base_count};
    launch->units += op->pieces.units;
    for (int i = 0; i < op->pieces.base_count; i++)
        launch->base[group->base_count++] =
            peal_cuda_base_address(rank, op, op->pieces.base[i], frame);
}

static bool has_room_for_list(const peal_cuda_group *group, const peal_cuda_op *op)
{
    return group->launch.list_count < PEAL_LAUNCH_LISTS &&
           group->base_count + op->pieces.base_count <= PEAL_LAUNCH_BASES;
}

/* Whether the group's task may do COPY `op`: its tiles wrote the message's data. What the stream
 * rings for leaves behind the launch, whose blocks wait for nothing. */
static bool can_join_task(const peal_cuda_rank *rank, const peal_cuda_group *group,
                          const peal_cuda_op *op)
{
    const peal_cuda_plan *plan = rank->plan;
    bool joins = plan->emission.sink->signal == PEAL_CUDA_SIGNAL_FUSED || plan->options.rings;

    return joins && group->kind == PEAL_CUDA_GROUP_TASK && !group->closed &&
           (op->source->copy != PEAL_COPY_UNPACK || group->task->kind == PEAL_TASK_FOLD ||
            group->launch.fold_bit) &&
           !peal_cuda_is_by_event(rank, op);
}

/* How many blocks of the group's task would send, if those of some boxes more did. */
static unsigned sending_blocks(const peal_cuda_group *group, unsigned boxes)
{
    unsigned blocks = 0;

    for (int b = 0; b < group->launch.box_count; b++)
        if (boxes >> b & 1 || group->launch.box[b].sends)
            blocks += group->launch.box[b].blocks;
    return blocks;
}

/* Whether the group has the border of its task, whose rest stands behind op `index`. */
static bool rest_follows(const peal_cuda_rank *rank, const peal_cuda_group *group, int index)
{
    const peal_schedule *schedule = rank->schedule;
    bool has_border = false, has_rest = false;

    for (int i = 0; i < group->op_count; i++) {
        has_border |= rank->op[group->op[i]].source->border;
        has_rest |= rank->op[group->op[i]].source->rest;
    }
    for (int i = index + 1; has_border && !has_rest && i < schedule->op_count; i++) {
        const peal_op *op = &schedule->op[i];
        if (op->kind == PEAL_OP_LOOP || op->kind == PEAL_OP_IF || op->kind == PEAL_OP_END)
            break;
        if (op->rest && &schedule->task[op->task] == group->task)
            return true;
    }
    return false;
}

/* Whether more is to join the launch of the group's task. */
static bool more_follows(const peal_cuda_rank *rank, const peal_cuda_group *group, int index)
{
    return group->partials /* folds */ || rest_follows(rank, group, index);
}

/* Leaves COPY `index` to the last block of the group's task that sends. Of several, it has to wait
 * for the others and then copies alone: a launch for the copy is faster, unless the task would be
 * cut into two by it (bench/EXPERIMENTS.md, "Updates in place"). False: that, or the copy is too
 * large, or its pieces do not fit the launch. */
static bool join_last_block(peal_cuda_rank *rank, peal_cuda_group *group, int index,
                            const peal_walk_frame *frame)
{
    peal_cuda_op *op = &rank->op[index];
    unsigned waits, boxes;

    if (group->task->kind != PEAL_TASK_KERNEL ||
        group->copy_bytes + op->pieces.bytes > PEAL_CUDA_FUSED_COPY_BYTES ||
        !has_room_for_list(group, op) ||
        !peal_cuda_depends_within(rank, group, index, &waits, &boxes) || !boxes ||
        (sending_blocks(group, boxes) > 1 && !more_follows(rank, group, index)))
        return false;
    if (op->source->copy != PEAL_COPY_SEND || boxes & group->launch.piggyback.bit ||
        (group->launch.fold_bit &&
         peal_cuda_group_boxes(group, boxes) ==
             group->launch.fold_bit)) /* results of folds are sent by remote stores only */
        return false;
    waits |= peal_cuda_channel_bits(rank, group, index, PEAL_OP_WAIT);
    for (int b = 0; b < group->launch.box_count; b++)
        if (boxes >> b & 1 || group->launch.box[b].sends) {
            group->launch.box[b].sends = 1;
            group->launch.box[b].waits |= waits;
        }
    append_list(rank, group, op, frame);
    group->copy_bytes += op->pieces.bytes;
    peal_cuda_group_join(rank, group, index, 0);
    return true;
}

static bool copy_by_engine(peal_cuda_rank *rank, peal_cuda_op *op, const peal_walk_frame *frame)
{
    peal_cuda_plan *plan = rank->plan;
    peal_cuda_lane *lane = peal_cuda_lane_at(rank, op->lane);

    if (!peal_cuda_flush(rank, op->lane))
        return false;
    for (int i = 0; i < op->pieces.count; i++) {
        const peal_device_piece *piece = &op->pieces.piece[i];
        CUdeviceptr from = peal_cuda_base_address(rank, op, op->pieces.base[piece->source], frame) +
                           (uint64_t)piece->source_offset;
        CUdeviceptr to = peal_cuda_base_address(rank, op, op->pieces.base[piece->target], frame) +
                         (uint64_t)piece->target_offset;
        CUresult result = plan->emission.sink->ops->copy(rank, lane, piece, to, from);
        if (result)
            return peal_cuda_report_driver_error(plan, result, op, op->source->label);
    }
    return peal_cuda_enqueued(rank, lane, (int)(op - rank->op)) &&
           peal_cuda_publish(rank, lane, (int)(op - rank->op));
}

static bool unpacks_counted(const peal_cuda_op *op)
{
    bool counted = false;

    for (int i = 0; i < op->pieces.count; i++)
        counted |= op->pieces.piece[i].counted != 0;
    return counted && op->source->copy == PEAL_COPY_UNPACK;
}

bool peal_cuda_emit_copy(peal_cuda_rank *rank, int index, const peal_walk_frame *frame)
{
    peal_cuda_op *op = &rank->op[index];
    peal_cuda_lane *lane = peal_cuda_lane_at(rank, op->lane);
    peal_cuda_group *group = &lane->group;
    unsigned waits, boxes;

    if (!peal_cuda_await_lanes(rank, index))
        return false;
    if (op->pieces.count == 0)
        return peal_cuda_publish(rank, lane, index);
    /* The copy engine sends a counted message in full, whatever its count. Unpacking it must stop
     * at the count, so a kernel does that. */
    if (rank->plan->options.copy == PEAL_CUDA_COPY_ENGINE && !unpacks_counted(op))
        return copy_by_engine(rank, op, frame);
    if (can_join_task(rank, group, op) && (peal_cuda_remote_store_join(rank, group, index, frame) ||
                                           join_last_block(rank, group, index, frame)))
        return true;
    bool fits = group->kind == PEAL_CUDA_GROUP_WAITS || group->kind == PEAL_CUDA_GROUP_COPY;
    if (group->kind != PEAL_CUDA_GROUP_NONE &&
        (!fits || !has_room_for_list(group, op) || rank->member[index] ||
         (group->kind == PEAL_CUDA_GROUP_WAITS && group->launch.write_count > 0) ||
         !peal_cuda_depends_within(rank, group, index, &waits, &boxes) || boxes))
        if (!peal_cuda_flush(rank, op->lane))
            return false;
    group = peal_cuda_group_open(rank, lane, op, frame);
    group->kind = PEAL_CUDA_GROUP_COPY;
    group->event = op->source->event;
    append_list(rank, group, op, frame);
    peal_cuda_group_join(rank, group, index, 0);
    return true;
}
