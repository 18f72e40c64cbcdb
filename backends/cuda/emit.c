/* Puts op instances onto lanes, in walk order.
 *
 * A lane has a kernel that is being put together (its group). WAITs open a group; tiles of one
 * task, or pieces of copies, join it; then the pieces and flags of the messages that its tiles
 * produce. What doesn't fit closes the group and begins the next. The rules below keep the lane's
 * order, but for three things that hurt nobody:
 * - tiles of the same task instance join although the task's messages are already in the group:
 * they run beside the sending;
 * - a WAIT of the same event joins a group of unpacking copies, so that they wait for all first:
 * one receive statement's messages cannot depend on each other's credits;
 * - a WAIT is waited for by the blocks that need it only, at the latest by one block of its group.
 */
#include "backends/cuda/plan.h"

#include <string.h>

static cuda_lane *lane_at(cuda_rank *rank, int lane)
{
    return &rank->lane[lane];
}

/* ---- launching ---- */

/* The host stays near: after so many launches there is a mark, and the eighth last has passed. */
static bool place_mark(cuda_rank *rank, cuda_lane *lane)
{
    enum { EVERY = 48 };
    cuda_plan *plan = rank->plan;

    plan->launches++;
    if (plan->capturing || ++lane->since_mark < EVERY)
        return true;
    lane->since_mark = 0;
    CUevent mark = lane->mark[lane->marks % CUDA_MARKS];
    if (lane->marks >= CUDA_MARKS && !cuda_await_event(plan, mark))
        return false;
    lane->marks++;
    CUresult result = plan->driver->cuEventRecord_(mark, lane->stream);
    return !result || cuda_broken(plan, result, NULL, "a mark");
}

/* Other lanes may wait for the ops of a kernel that was just launched. */
static bool publish(cuda_rank *rank, cuda_lane *lane, int index, uint64_t instance)
{
    cuda_plan *plan = rank->plan;
    cuda_op *op = &rank->op[index];

    if (!op->published)
        return true;
    CUresult result = plan->driver->cuEventRecord_(op->event[instance % 2], lane->stream);
    op->epoch[instance % 2] = plan->epoch;
    return !result || cuda_broken(plan, result, op, "an event");
}

/* The instance that the walk has just passed. */
static bool publish_now(cuda_rank *rank, cuda_lane *lane, int index)
{
    return publish(rank, lane, index, rank->walk.passed[index]);
}

/* Waits that no block has asked for are left to the first box. */
static void cover_waits(cuda_group *group)
{
    peal_launch *launch = &group->launch;
    unsigned all = launch->wait_count >= 32 ? ~0u : (1u << launch->wait_count) - 1, asked = 0;

    for (int b = 0; b < launch->box_count; b++)
        asked |= launch->box[b].waits;
    if (launch->box_count == 0) {
        memset(&launch->box[0], 0, sizeof(launch->box[0]));
        launch->box_count = 1;
    }
    launch->box[0].waits |= all & ~asked;
}

static void number_blocks(cuda_group *group)
{
    peal_launch *launch = &group->launch;

    group->blocks = 0;
    launch->senders = 0;
    for (int b = 0; b < launch->box_count; b++) {
        launch->box[b].first = group->blocks;
        group->blocks += launch->box[b].blocks;
        launch->senders += launch->box[b].sends ? launch->box[b].blocks : 0;
    }
}

static void shape_copy(cuda_group *group)
{
    peal_launch *launch = &group->launch;
    int64_t blocks = (launch->units + 4 * CUDA_COPY_THREADS - 1) / (4 * CUDA_COPY_THREADS);

    group->blocks = blocks < 1 ? 1 : blocks > 1024 ? 1024 : (unsigned)blocks;
    group->threads[0] = CUDA_COPY_THREADS;
    group->threads[1] = group->threads[2] = 1;
    launch->senders = group->blocks;
}

static bool launch_group(cuda_rank *rank, cuda_lane *lane)
{
    cuda_plan *plan = rank->plan;
    cuda_group *group = &lane->group;
    peal_launch *launch = &group->launch;

    cover_waits(group);
    if (group->kind == CUDA_GROUP_TASK) {
        number_blocks(group);
    } else if (group->kind == CUDA_GROUP_COPY) {
        group->function = cuda_kernels_builtin(plan->kernels, CUDA_BUILTIN_COPY);
        shape_copy(group);
    } else {
        group->function = cuda_kernels_builtin(plan->kernels, CUDA_BUILTIN_SIGNAL);
        group->threads[0] = 32;
        group->threads[1] = group->threads[2] = group->blocks = 1;
    }
    launch->arrived = lane->arrived;
    void *parameter[] = {launch};
    CUresult result =
        plan->driver->cuLaunchKernel_(group->function, group->blocks, 1, 1,
                                      (unsigned)group->threads[0], (unsigned)group->threads[1],
                                      (unsigned)group->threads[2], 0, lane->stream, parameter,
                                      NULL);
    if (result)
        return cuda_broken(plan, result, &rank->op[launch->op],
                           rank->schedule->op[launch->op].label);
    return place_mark(rank, lane);
}

bool cuda_flush(cuda_rank *rank, int number)
{
    cuda_lane *lane = lane_at(rank, number);
    cuda_group *group = &lane->group;

    if (group->kind == CUDA_GROUP_NONE)
        return true;
    bool ok = launch_group(rank, lane);
    for (int i = 0; i < group->op_count; i++) {
        rank->place[group->op[i]] = 0;
        ok = ok && publish(rank, lane, group->op[i], group->op_instance[i]);
    }
    group->kind = CUDA_GROUP_NONE;
    group->op_count = 0;
    return ok;
}

bool cuda_flush_all(cuda_rank *rank)
{
    bool ok = true;
    for (int l = 0; l < rank->lanes && ok; l++)
        ok = cuda_flush(rank, l);
    return ok;
}

/* An empty group, ready for waits. */
static cuda_group *open_group(cuda_rank *rank, cuda_lane *lane, const cuda_op *op,
                              const peal_walk_frame *frame)
{
    cuda_group *group = &lane->group;
    peal_launch *launch = &group->launch;

    if (group->kind != CUDA_GROUP_NONE)
        return group;
    memset(launch, 0, offsetof(peal_launch, argument));
    launch->control = rank->control_device;
    launch->step = rank->plan->capturing ? rank->words : 0;
    launch->budget =
        rank->plan->desc.deadline_ns > 0 ? (unsigned long long)rank->plan->desc.deadline_ns : 0;
    launch->op = (int)(op - rank->op);
    for (int d = 0; d < rank->schedule->loop_depth && d < PEAL_LAUNCH_COUNTERS; d++)
        launch->counter[d] = frame->counter[d];
    if (rank->plan->capturing)
        launch->counter[0] -= rank->graph_step;
    launch->stop = rank->plan->capturing ? rank->stop_word : 0;
    group->kind = CUDA_GROUP_WAITS;
    group->base_count = 0;
    group->copy_bytes = 0;
    group->closed = false;
    group->task = NULL;
    return group;
}

static void join_group(cuda_rank *rank, cuda_group *group, int index, unsigned bits)
{
    group->op[group->op_count] = index;
    group->op_instance[group->op_count] = rank->walk.passed[index];
    group->op_bits[group->op_count++] = bits;
    rank->place[index] = group->op_count;
}

/* ---- dependences ---- */

static bool does_work(const peal_op *op)
{
    return op->kind == PEAL_OP_LAUNCH || op->kind == PEAL_OP_COPY || op->kind == PEAL_OP_WRITE ||
           op->kind == PEAL_OP_WAIT;
}

static bool wait_for_lane(cuda_rank *rank, cuda_lane *lane, int other, uint64_t instance)
{
    cuda_plan *plan = rank->plan;
    cuda_op *op = &rank->op[other];

    if (rank->place[other] && !cuda_flush(rank, op->lane))
        return false;
    /* A graph begins when everything before it is done. */
    if (op->epoch[instance % 2] != plan->epoch)
        return true;
    CUresult result = plan->driver->cuStreamWaitEvent_(lane->stream, op->event[instance % 2], 0);
    return !result || cuda_broken(plan, result, op, "an event");
}

/* What ops of other lanes have to be waited for. The lane's group must be launched first unless it
 * has nothing but waits. */
static bool await_lanes(cuda_rank *rank, int index)
{
    const peal_op *op = &rank->schedule->op[index];
    int number = rank->op[index].lane;
    cuda_lane *lane = lane_at(rank, number);

    for (int i = 0; i < op->dependence_count; i++) {
        const peal_dependence *d = &op->dependence[i];
        uint64_t passed = rank->walk.passed[d->op];
        if (!does_work(&rank->schedule->op[d->op]) || rank->op[d->op].lane == number ||
            passed <= (uint64_t)d->lag)
            continue;
        if (lane->group.kind > CUDA_GROUP_WAITS && !cuda_flush(rank, number))
            return false;
        if (!wait_for_lane(rank, lane, d->op, passed - (uint64_t)d->lag))
            return false;
    }
    return true;
}

/* Which ops of the lane's own group an op depends on: false if on one of a kind that it cannot
 * follow within the group. bits: waits needed; boxes: tiles that come first. */
static bool depends_within(const cuda_rank *rank, const cuda_group *group, int index,
                           unsigned *waits, unsigned *boxes)
{
    const peal_op *op = &rank->schedule->op[index];
    bool ok = true;

    *waits = *boxes = 0;
    for (int i = 0; i < op->dependence_count; i++) {
        int other = op->dependence[i].op;
        int place = rank->place[other];
        if (!place || rank->op[other].lane != rank->op[index].lane || op->dependence[i].lag > 0)
            continue;
        if (rank->schedule->op[other].kind == PEAL_OP_WAIT)
            *waits |= group->op_bits[place - 1];
        else if (rank->schedule->op[other].kind == PEAL_OP_LAUNCH)
            *boxes |= group->op_bits[place - 1];
        else
            ok = false;
    }
    return ok;
}

/* ---- waits and writes ---- */

static bool emit_self_wait(cuda_rank *rank, cuda_op *op, uint64_t message)
{
    cuda_lane *lane = lane_at(rank, op->lane);
    cuda_rank *peer = op->peer;

    (void)message;
    if (op->twin < 0)
        return true;
    cuda_op *write = &peer->op[op->twin];
    if (!cuda_flush(rank, op->lane))
        return false;
    /* The latest WRITE that was put onto its lane is this message's or a later one: nothing that is
     * put there later depends on what waits here now. */
    uint64_t latest = peer->walk.passed[op->twin];
    if (peer->place[op->twin] && !cuda_flush(peer, write->lane))
        return false;
    if (write->epoch[latest % 2] != rank->plan->epoch)
        return true;
    CUresult result =
        rank->plan->driver->cuStreamWaitEvent_(lane->stream, write->event[latest % 2], 0);
    return !result || cuda_broken(rank->plan, result, op, op->channel->edge);
}

static bool emit_memory_op(cuda_rank *rank, cuda_op *op, uint64_t value, bool waits)
{
    cuda_plan *plan = rank->plan;
    cuda_lane *lane = lane_at(rank, op->lane);
    CUresult result;

    if (!cuda_flush(rank, op->lane))
        return false;
    if (waits)
        result = plan->driver->cuStreamWaitValue64_(lane->stream, op->word, value,
                                                    CU_STREAM_WAIT_VALUE_GEQ);
    else
        result = plan->driver->cuStreamWriteValue64_(lane->stream, op->word, value, 0);
    if (result)
        return cuda_broken(plan, result, op, op->channel->edge);
    if (waits && !plan->capturing)
        cuda_note_wait(plan, op->word, value);
    return place_mark(rank, lane) && publish_now(rank, lane, (int)(op - rank->op));
}

static bool emit_wait(cuda_rank *rank, int index, const peal_walk_frame *frame)
{
    cuda_plan *plan = rank->plan;
    cuda_op *op = &rank->op[index];
    cuda_lane *lane = lane_at(rank, op->lane);
    uint64_t slots = op->source->credit ? (uint64_t)op->channel->slots : 0;
    uint64_t value = peal_flag_value(op->channel, frame->message - slots);

    /* The first messages need no credit. What a graph waits for must hold at every replay: there
     * the value is one that the word has passed from the start. */
    if (frame->message - plan->desc.hooks.first_message <= slots && (op->self || !plan->capturing))
        return true;
    if (!await_lanes(rank, index))
        return false;
    if (op->self)
        return emit_self_wait(rank, op, frame->message - slots) && publish_now(rank, lane, index);
    if (plan->lowering.signal == CUDA_SIGNAL_MEMOP)
        return emit_memory_op(rank, op, value, true);
    cuda_group *group = &lane->group;
    bool beside = group->kind == CUDA_GROUP_COPY && group->event == op->source->event;
    if ((group->kind > CUDA_GROUP_WAITS && !beside) ||
        (group->kind != CUDA_GROUP_NONE && group->launch.wait_count == PEAL_LAUNCH_WAITS) ||
        (group->kind == CUDA_GROUP_WAITS && group->launch.write_count > 0) || rank->place[index])
        if (!cuda_flush(rank, op->lane))
            return false;
    group = open_group(rank, lane, op, frame);
    int at = group->launch.wait_count++;
    group->launch.wait[at] = (peal_launch_wait){op->word, value, index, 0};
    join_group(rank, group, index, 1u << at);
    if (plan->lowering.signal == CUDA_SIGNAL_KERNEL)
        return cuda_flush(rank, op->lane);
    return true;
}

/* Whether a word may be written by the last of a task's sending blocks: the tiles that the WRITE
 * depends on are counted among them. */
static bool send_after(const cuda_rank *rank, cuda_group *group, int index)
{
    const peal_op *op = &rank->schedule->op[index];
    bool sends = group->launch.list_count > 0;

    if (group->closed)
        return false;
    for (int i = 0; i < op->dependence_count; i++) {
        int other = op->dependence[i].op, place = rank->place[other];
        if (!place || rank->op[other].lane != rank->op[index].lane || op->dependence[i].lag > 0)
            continue;
        unsigned bits = group->op_bits[place - 1];
        bool tiles = rank->schedule->op[other].kind == PEAL_OP_LAUNCH;
        for (int b = 0; b < group->launch.box_count; b++) {
            if (tiles && bits >> b & 1)
                group->launch.box[b].sends = 1;
            if (!tiles && group->launch.box[b].sends)
                group->launch.box[b].waits |=
                    rank->schedule->op[other].kind == PEAL_OP_WAIT ? bits : 0;
        }
        sends = sends || (tiles && bits);
    }
    return sends;
}

static bool emit_write(cuda_rank *rank, int index, const peal_walk_frame *frame)
{
    cuda_plan *plan = rank->plan;
    cuda_op *op = &rank->op[index];
    cuda_lane *lane = lane_at(rank, op->lane);
    cuda_group *group = &lane->group;
    uint64_t value = peal_flag_value(op->channel, frame->message);

    if (!await_lanes(rank, index))
        return false;
    if (op->self)
        return cuda_flush(rank, op->lane) && publish_now(rank, lane, index);
    if (plan->lowering.signal == CUDA_SIGNAL_MEMOP)
        return emit_memory_op(rank, op, value, false);
    bool fits = group->kind == CUDA_GROUP_WAITS || group->kind == CUDA_GROUP_COPY ||
                (group->kind == CUDA_GROUP_TASK && send_after(rank, group, index));
    if (group->kind != CUDA_GROUP_NONE &&
        (!fits || group->launch.write_count == PEAL_LAUNCH_WRITES || rank->place[index] ||
         (plan->lowering.signal == CUDA_SIGNAL_KERNEL && group->kind != CUDA_GROUP_WAITS)))
        if (!cuda_flush(rank, op->lane))
            return false;
    group = open_group(rank, lane, op, frame);
    group->launch.write[group->launch.write_count++] = (peal_launch_write){op->word, value};
    join_group(rank, group, index, 0);
    return true;
}

/* ---- copies ---- */

static CUdeviceptr base_address(const cuda_rank *rank, const cuda_op *op, cuda_base base,
                                const peal_walk_frame *frame)
{
    const peal_channel *channel = op->channel;

    switch (base.kind) {
    case CUDA_BASE_OWN:
        return rank->first[frame->binding[base.array]];
    case CUDA_BASE_PEER:
        return op->target[frame->binding[base.array]];
    default:
        return op->staging + (channel->slots > 1 ? frame->message % (uint64_t)channel->slots *
                                                       (uint64_t)channel->staging_bytes
                                                 : 0);
    }
}

static void append_list(const cuda_rank *rank, cuda_group *group, const cuda_op *op,
                        const peal_walk_frame *frame)
{
    peal_launch *launch = &group->launch;
    peal_launch_list *list = &launch->list[launch->list_count++];

    *list = (peal_launch_list){.piece = op->pieces.table,
                               .begin = launch->units,
                               .units = op->pieces.units,
                               .count = op->pieces.count,
                               .base = group->base_count};
    launch->units += op->pieces.units;
    for (int i = 0; i < op->pieces.base_count; i++)
        launch->base[group->base_count++] = base_address(rank, op, op->pieces.base[i], frame);
}

static bool list_fits(const cuda_group *group, const cuda_op *op)
{
    return group->launch.list_count < PEAL_LAUNCH_LISTS &&
           group->base_count + op->pieces.base_count <= PEAL_LAUNCH_BASES;
}

/* The tiles that a message's data come from send it themselves: their last block does. */
static bool join_task(cuda_rank *rank, cuda_group *group, int index, const peal_walk_frame *frame)
{
    cuda_op *op = &rank->op[index];
    unsigned waits, boxes;

    if (group->kind != CUDA_GROUP_TASK || group->closed || op->source->copy != PEAL_COPY_SEND ||
        rank->plan->lowering.signal != CUDA_SIGNAL_FUSED || op->self ||
        group->copy_bytes + op->pieces.bytes > rank->plan->lowering.fuse_bytes ||
        !list_fits(group, op) || !depends_within(rank, group, index, &waits, &boxes) || !boxes)
        return false;
    for (int b = 0; b < group->launch.box_count; b++)
        if (boxes >> b & 1 || group->launch.box[b].sends) {
            group->launch.box[b].sends = 1;
            group->launch.box[b].waits |= waits;
        }
    append_list(rank, group, op, frame);
    group->copy_bytes += op->pieces.bytes;
    join_group(rank, group, index, 0);
    return true;
}

static bool copy_by_engine(cuda_rank *rank, cuda_op *op, const peal_walk_frame *frame)
{
    cuda_plan *plan = rank->plan;
    cuda_lane *lane = lane_at(rank, op->lane);

    if (!cuda_flush(rank, op->lane))
        return false;
    for (int i = 0; i < op->pieces.count; i++) {
        const peal_device_piece *piece = &op->pieces.piece[i];
        CUdeviceptr from = base_address(rank, op, op->pieces.base[piece->source], frame) +
                           (uint64_t)piece->source_offset;
        CUdeviceptr to = base_address(rank, op, op->pieces.base[piece->target], frame) +
                         (uint64_t)piece->target_offset;
        CUresult result = cuda_copy_box(plan->driver, lane->stream, piece, to, from);
        if (result)
            return cuda_broken(plan, result, op, op->source->label);
    }
    return place_mark(rank, lane) && publish_now(rank, lane, (int)(op - rank->op));
}

static bool emit_copy(cuda_rank *rank, int index, const peal_walk_frame *frame)
{
    cuda_op *op = &rank->op[index];
    cuda_lane *lane = lane_at(rank, op->lane);
    cuda_group *group = &lane->group;
    unsigned waits, boxes;

    if (!await_lanes(rank, index))
        return false;
    if (op->pieces.count == 0)
        return publish_now(rank, lane, index);
    if (rank->plan->lowering.copy == CUDA_COPY_ENGINE)
        return copy_by_engine(rank, op, frame);
    if (join_task(rank, group, index, frame))
        return true;
    bool fits = group->kind == CUDA_GROUP_WAITS || group->kind == CUDA_GROUP_COPY;
    if (group->kind != CUDA_GROUP_NONE &&
        (!fits || !list_fits(group, op) || rank->place[index] ||
         (group->kind == CUDA_GROUP_WAITS && group->launch.write_count > 0) ||
         !depends_within(rank, group, index, &waits, &boxes) || boxes))
        if (!cuda_flush(rank, op->lane))
            return false;
    group = open_group(rank, lane, op, frame);
    group->kind = CUDA_GROUP_COPY;
    group->event = op->source->event;
    append_list(rank, group, op, frame);
    join_group(rank, group, index, 0);
    return true;
}

/* ---- tasks ---- */

static bool fill_arguments(cuda_rank *rank, const cuda_op *op, const peal_walk_frame *frame,
                           peal_launch *launch)
{
    cuda_plan *plan = rank->plan;
    const cuda_task *task = &rank->task[op->source->task];

    launch->evaluate = 0;
    for (int i = 0; i < op->task->argument_count; i++) {
        const peal_walk_value *argument = &task->argument[i];
        peal_value value;
        if (!argument->is_constant && (op->kernel->device_arguments >> i & 1 || plan->capturing)) {
            launch->evaluate |= 1u << i;
            continue;
        }
        if (peal_walk_evaluate(rank->program, argument, frame->counter, plan->late, &value))
            return cuda_fail(plan, PEAL_STATUS_SPEC);
        if (op->task->argument_is_real[i])
            launch->argument[i].real =
                value.kind == PEAL_REAL ? value.u.real : (double)value.u.integer;
        else
            launch->argument[i].integer =
                value.kind == PEAL_BOOLEAN ? value.u.boolean : value.u.integer;
    }
    for (int i = 0; i < op->kernel->element_count; i++)
        launch->element[i] = rank->first[frame->binding[op->kernel->element[i]]];
    return true;
}

static void fill_views(const cuda_rank *rank, const cuda_op *op, const peal_walk_frame *frame,
                       bool partials, peal_launch *launch)
{
    const peal_schedule_task *task = op->task;
    const peal_schedule_array *array = rank->schedule->array;

    launch->tile_count = task->tile_count;
    for (int i = 0; i < task->access_count; i++) {
        int storage = frame->binding[task->access[i].array];
        launch->view[i] = rank->first[storage] + (uint64_t)rank->origin[storage];
        launch->shift[i] = task->access[i].per_tile;
        for (int k = 1; k < PEAL_AXES; k++)
            launch->stride[i][k - 1] = array[storage].layout.stride[k];
    }
    for (int i = 0; i < task->reduction_count; i++)
        launch->partial[i] =
            partials ? rank->first[frame->binding[task->reduction[i].partials]] : 0;
}

static bool start_task(cuda_rank *rank, int index, const peal_walk_frame *frame, bool partials)
{
    cuda_op *op = &rank->op[index];
    cuda_group *group = open_group(rank, lane_at(rank, op->lane), op, frame);

    group->kind = CUDA_GROUP_TASK;
    group->task = op->task;
    group->instance = frame->instance;
    group->partials = partials;
    group->launch.op = index;
    group->function = partials ? op->kernel->full : op->kernel->bare;
    memcpy(group->threads, op->kernel->threads, sizeof(group->threads));
    fill_views(rank, op, frame, partials, &group->launch);
    return fill_arguments(rank, op, frame, &group->launch);
}

static bool emit_tiles(cuda_rank *rank, int index, const peal_walk_frame *frame)
{
    cuda_plan *plan = rank->plan;
    cuda_op *op = &rank->op[index];
    cuda_group *group = &lane_at(rank, op->lane)->group;
    bool partials = false;
    unsigned waits = 0, boxes = 0;

    if (op->task->reduction_count > 0 &&
        peal_walk_boolean(rank->program, &rank->task[op->source->task].needed, frame->counter, true,
                          plan->late, &partials))
        return cuda_fail(plan, PEAL_STATUS_SPEC);
    const peal_launch_box *box = partials ? op->exact : op->free;
    int count = partials ? op->exact_count : op->free_count;
    bool within = group->kind == CUDA_GROUP_NONE || rank->place[index] == 0;
    within = within &&
             (group->kind == CUDA_GROUP_NONE || depends_within(rank, group, index, &waits, &boxes));
    bool joins = group->kind == CUDA_GROUP_TASK && !group->closed && group->task == op->task &&
                 group->instance == frame->instance && group->partials == partials &&
                 group->launch.box_count + count <= PEAL_LAUNCH_BOXES && !boxes && within;
    bool opens = group->kind == CUDA_GROUP_NONE ||
                 (group->kind == CUDA_GROUP_WAITS && group->launch.write_count == 0 && within);
    if (!joins && !opens) {
        waits = 0;
        if (!cuda_flush(rank, op->lane))
            return false;
    }
    if (count == 0)
        return publish_now(rank, lane_at(rank, op->lane), index);
    unsigned bits = 0;
    for (int i = 0; i < count; i++) {
        if (i > 0 && group->launch.box_count == PEAL_LAUNCH_BOXES) {
            /* Too many boxes for one launch: the rest follows in another. */
            if (!cuda_flush(rank, op->lane))
                return false;
            waits = 0;
            bits = 0;
        }
        if (group->kind != CUDA_GROUP_TASK && !start_task(rank, index, frame, partials))
            return false;
        bits |= 1u << group->launch.box_count;
        group->launch.box[group->launch.box_count] = box[i];
        group->launch.box[group->launch.box_count++].waits = waits;
    }
    join_group(rank, group, index, bits);
    return true;
}

/* SET, DECIDE, PRINT, FOLD, COMBINE. */
static bool emit_builtin(cuda_rank *rank, int index, const peal_walk_frame *frame)
{
    cuda_op *op = &rank->op[index];
    const peal_schedule_task *task = op->task;
    cuda_lane *lane = lane_at(rank, op->lane);
    cuda_group *group = &lane->group;
    size_t bytes = peal_type_bytes(rank->schedule->array[task->array >= 0 ? task->array : 0].type);
    unsigned waits, boxes;

    if (task->kind == PEAL_TASK_PRINT && rank->schedule->rank != 0)
        return publish_now(rank, lane, index);
    if (task->kind == PEAL_TASK_DECIDE && rank->plan->capturing && rank->stop_word &&
        rank->program->op[index].decision_loop == rank->schedule->loop_count) {
        /* Once the verdict is there, nothing counts any more. */
        if (!cuda_graph_count(rank, frame->counter[0] + 1 - rank->graph_step))
            return false;
        rank->graph_step = frame->counter[0] + 1;
    }
    bool opens = group->kind == CUDA_GROUP_WAITS && group->launch.write_count == 0 &&
                 depends_within(rank, group, index, &waits, &boxes);
    if (group->kind != CUDA_GROUP_NONE && !opens && !cuda_flush(rank, op->lane))
        return false;
    group = open_group(rank, lane, op, frame);
    peal_launch *launch = &group->launch;
    group->kind = CUDA_GROUP_TASK;
    group->closed = true;
    group->task = task;
    group->function = op->kernel->full;
    launch->op = index;
    launch->box_count = 1;
    memset(&launch->box[0], 0, sizeof(launch->box[0]));
    launch->box[0].blocks = 1;
    launch->evaluate = 0;
    memcpy(group->threads, op->kernel->threads, sizeof(group->threads));
    for (int i = 0; i < op->kernel->element_count; i++)
        launch->element[i] = rank->first[frame->binding[op->kernel->element[i]]];
    switch (task->kind) {
    case PEAL_TASK_FOLD:
        launch->view[0] = rank->first[frame->binding[task->array]];
        launch->view[1] = rank->first[frame->binding[task->gather]];
        launch->argument[0].integer = task->contributions;
        launch->box[0].blocks =
            (unsigned)((task->contributions + CUDA_FOLD_CHUNK - 1) / CUDA_FOLD_CHUNK);
        if (launch->box[0].blocks == 0)
            launch->box[0].blocks = 1;
        break;
    case PEAL_TASK_COMBINE:
        launch->view[0] =
            rank->first[frame->binding[task->array]] + (uint64_t)task->lo * (uint64_t)bytes;
        launch->view[1] = rank->first[frame->binding[task->gather]];
        launch->argument[0].integer = task->contributions;
        launch->argument[1].integer = task->hi - task->lo;
        launch->box[0].blocks = (unsigned)((task->hi - task->lo + 255) / 256);
        break;
    case PEAL_TASK_SET:
        launch->view[0] = rank->first[frame->binding[task->array]];
        break;
    case PEAL_TASK_DECIDE:
        launch->view[0] = cuda_verdict_address(rank, task->decision, frame->instance);
        break;
    default:
        if (!cuda_row_begin(rank, task, frame, &launch->view[0]))
            return false;
    }
    join_group(rank, group, index, 0);
    if (!cuda_flush(rank, op->lane))
        return false;
    return task->kind != PEAL_TASK_PRINT || cuda_row_launched(rank, lane->stream);
}

static bool emit_launch(cuda_rank *rank, int index, const peal_walk_frame *frame)
{
    cuda_op *op = &rank->op[index];

    if (!await_lanes(rank, index))
        return false;
    switch (op->task->kind) {
    case PEAL_TASK_LOAD:
    case PEAL_TASK_SAVE:
        return cuda_flush_all(rank) && cuda_file_run(rank, op, frame) &&
               publish_now(rank, lane_at(rank, op->lane), index);
    case PEAL_TASK_KERNEL:
        return emit_tiles(rank, index, frame);
    default:
        return emit_builtin(rank, index, frame);
    }
}

/* ---- an op ---- */

/* False: the rank's next op waits for a message of this process that has not been put onto a lane
 * yet. */
bool cuda_emit_is_ready(const cuda_rank *rank)
{
    const cuda_op *op = &rank->op[rank->walk.position];

    if (op->source->kind != PEAL_OP_WAIT || !op->self || op->twin < 0 || op->skipped)
        return true;
    int mine = rank->program->op[rank->walk.position].message_counter;
    int theirs = op->peer->program->op[op->twin].message_counter;
    uint64_t slots = op->source->credit ? (uint64_t)op->channel->slots : 0;
    uint64_t message = rank->walk.message[mine] + 1;
    if (message - rank->plan->desc.hooks.first_message <= slots)
        return true;
    return op->peer->walk.message[theirs] >= message - slots;
}

bool cuda_emit(cuda_rank *rank)
{
    int index = rank->walk.position;
    peal_walk_frame frame = peal_walk_pass(&rank->walk);
    bool ok = true;

    if (rank->op[index].skipped)
        return true;
    switch (rank->schedule->op[index].kind) {
    case PEAL_OP_LAUNCH:
        ok = emit_launch(rank, index, &frame);
        break;
    case PEAL_OP_COPY:
        ok = emit_copy(rank, index, &frame);
        break;
    case PEAL_OP_WRITE:
        ok = emit_write(rank, index, &frame);
        break;
    case PEAL_OP_WAIT:
        ok = emit_wait(rank, index, &frame);
        break;
    default: /* FENCE: every WRITE of this backend is preceded by a fence of the system's scope */
        break;
    }
    return ok && (!rank->plan->synchronous || cuda_synchronise(rank, index));
}
