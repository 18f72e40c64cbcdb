/* Groups: launches that are being put together; how they are launched, and what orders them. */
#include "backends/cuda/lower/emit.h"
#include "backends/cuda/lower/predicate.h"
#include "backends/cuda/lower/sink.h"

#include <string.h>

/* ---- launching ---- */

void peal_cuda_log_enqueued(peal_cuda_rank *rank, peal_cuda_lane *lane, int op, CUdeviceptr word,
                            uint64_t value)
{
    int64_t step = rank->walk.counter[0];
    peal_cuda_log_entry entry = {.op = op, .step = step, .word = word, .value = value};

    if (rank->plan->emission.sink->is_replayed) {
        entry.step -= rank->graph_begin;
        lane->graph_log[lane->graph_log_count++ % PEAL_CUDA_LOG_ENTRIES] = entry;
    } else {
        lane->log[lane->log_count++ % PEAL_CUDA_LOG_ENTRIES] = entry;
    }
}

bool peal_cuda_enqueued(peal_cuda_rank *rank, peal_cuda_lane *lane, int op)
{
    const struct peal_cuda_sink_ops *ops = rank->plan->emission.sink->ops;

    peal_cuda_log_enqueued(rank, lane, op, 0, 0);
    CUresult result = ops->enqueued ? ops->enqueued(rank, lane, op) : CUDA_SUCCESS;
    return !result || peal_cuda_report_driver_error(rank->plan, result, NULL, "a mark");
}

bool peal_cuda_flags_enqueued(peal_cuda_rank *rank, peal_cuda_lane *lane)
{
    CUresult result = peal_cuda_sink_flags_written(rank, lane);
    return !result || peal_cuda_report_driver_error(rank->plan, result, NULL, "flags");
}

/* Records the event of an op's instance, which was just launched, for lanes that depend on it. */
static bool publish(peal_cuda_rank *rank, peal_cuda_lane *lane, int index, uint64_t instance)
{
    peal_cuda_plan *plan = rank->plan;
    peal_cuda_op *op = &rank->op[index];

    if (!op->published)
        return true;
    CUresult result = peal_cuda_sink_record(rank, lane, op->event[instance % 2]);
    op->epoch[instance % 2] = plan->emission.epoch;
    return !result || peal_cuda_report_driver_error(plan, result, op, "an event");
}

bool peal_cuda_publish(peal_cuda_rank *rank, peal_cuda_lane *lane, int index)
{
    return publish(rank, lane, index, rank->walk.passed[index]);
}

/* The blocks of the first box do the waits that no other box needs. */
static void assign_unclaimed_waits(peal_cuda_group *group)
{
    peal_launch *launch = &group->launch;
    unsigned all = launch->wait_count >= 32 ? ~0u : (1u << launch->wait_count) - 1, claimed = 0;

    for (int b = 0; b < launch->box_count; b++)
        claimed |= launch->box[b].waits;
    if (launch->box_count == 0) {
        memset(&launch->box[0], 0, sizeof(launch->box[0]));
        launch->box_count = 1;
    }
    launch->box[0].waits |= all & ~claimed;
}

/* Numbers the blocks of the boxes. The device starts blocks in the order of their numbers, so the
 * smallest boxes come first: they are borders, which wait for messages and send some. Their
 * messages then travel while the other blocks run. */
static void order_boxes(peal_cuda_group *group)
{
    peal_launch *launch = &group->launch;
    unsigned numbered = 0;

    group->blocks = 0;
    for (int i = 0; i < launch->box_count; i++) {
        int next = 0;
        while (numbered >> next & 1)
            next++;
        for (int b = next + 1; b < launch->box_count; b++)
            if (!(numbered >> b & 1) && launch->box[b].blocks < launch->box[next].blocks)
                next = b;
        launch->box[next].first = group->blocks;
        group->blocks += launch->box[next].blocks;
        numbered |= 1u << next;
    }
}

/* The boxes whose blocks must arrive before flags are written. If the last block has no copies to
 * do, other sending boxes fill only images of the rank's own points. Those need no flag: the end of
 * the kernel orders them. */
static unsigned counted_boxes(const peal_cuda_group *group, bool is_partitioned)
{
    const peal_launch *launch = &group->launch;
    unsigned boxes = 0;

    if (is_partitioned || launch->list_count > 0 || launch->fold_bit || launch->piggyback.bit ||
        group->task->kind != PEAL_TASK_KERNEL)
        return ~0u;
    for (int i = 0; i < launch->write_count; i++)
        boxes |= launch->write[i].boxes;
    return boxes;
}

static void number_blocks(peal_cuda_group *group, bool is_partitioned)
{
    peal_launch *launch = &group->launch;
    unsigned counted = counted_boxes(group, is_partitioned);

    order_boxes(group);
    launch->senders = 0;
    for (int b = 0; b < launch->box_count; b++) {
        peal_launch_box *box = &launch->box[b];
        box->bit = 1u << b;
        if (box->sends)
            box->sends = counted & box->bit ? PEAL_SENDS_COUNTED : PEAL_SENDS_IMAGES;
        launch->senders += box->sends == PEAL_SENDS_COUNTED ? box->blocks : 0;
        if (box->bit == launch->fold_bit)
            launch->fold_waits = box->waits;
    }
    peal_cuda_remote_store_flags(group, is_partitioned);
}

/* Whether the self-sending kernel is launched. It can be if its blocks send everything themselves.
 * It is mostly faster, because an SM holds more of its blocks. But where blocks wait for messages,
 * blocks of the next kernel start early and wait beside tiles of this one; that is slower if one
 * wave of the other kernel is enough (bench/EXPERIMENTS.md). */
static bool should_self_send(const peal_cuda_plan *plan, const peal_cuda_group *group)
{
    const peal_launch *launch = &group->launch;
    bool alone = launch->write_count == 0 && launch->wait_count == 0;

    return group->self_sending && launch->list_count == 0 &&
           (launch->adds || launch->write_count == 0) &&
           (alone || group->blocks > (unsigned)(group->wave * plan->device->sm_count));
}

/* Chooses the grid of a copy: one unit a thread if that fills at most half of the device, else four
 * units a thread. Every block takes part in every flag. */
static void choose_copy_grid(peal_cuda_group *group, int sm_count)
{
    peal_launch *launch = &group->launch;
    int64_t one_each = (launch->units + PEAL_CUDA_COPY_THREADS - 1) / PEAL_CUDA_COPY_THREADS;
    int64_t four_each = (one_each + 3) / 4, half = sm_count / 2;
    int64_t blocks = one_each < half ? one_each : four_each > half ? four_each : half;

    group->blocks = blocks < 1 ? 1 : blocks > 1024 ? 1024 : (unsigned)blocks;
    group->threads[0] = PEAL_CUDA_COPY_THREADS;
    group->threads[1] = group->threads[2] = 1;
    launch->senders = launch->box[0].blocks = group->blocks;
    for (int i = 0; i < launch->write_count; i++)
        launch->write[i].boxes = 1;
    peal_cuda_remote_store_flags(group, false);
}

int peal_cuda_function_number(const peal_cuda_rank *rank, CUfunction function,
                              const peal_launch *launch, const peal_cuda_group *group)
{
    if (!group || group->kind != PEAL_CUDA_GROUP_TASK) {
        int number = 0;
        while (peal_cuda_kernels_builtin(rank->plan->kernels, (peal_cuda_builtin)number) !=
               function)
            number++;
        return number;
    }
    int number = rank->op[launch->op].kernel->number;
    bool folds = group->task->kind == PEAL_TASK_KERNEL && group->task->reduction_count > 0;
    return number +
           (int)(folds && !group->partials ? PEAL_CUDA_FUSED_NO_REDUCTION : PEAL_CUDA_FUSED_FULL);
}

static bool launch_group(peal_cuda_rank *rank, peal_cuda_lane *lane, peal_cuda_group *group)
{
    peal_cuda_plan *plan = rank->plan;
    peal_launch *launch = &group->launch;

    assign_unclaimed_waits(group);
    if (group->kind == PEAL_CUDA_GROUP_TASK) {
        number_blocks(group, plan->emission.sink->is_one_kernel);
        if (should_self_send(plan, group))
            group->function = group->self_sending;
    } else if (group->kind == PEAL_CUDA_GROUP_COPY) {
        group->function = peal_cuda_kernels_builtin(plan->kernels, PEAL_CUDA_BUILTIN_COPY);
        choose_copy_grid(group, plan->device->sm_count);
    } else {
        group->function = peal_cuda_kernels_builtin(plan->kernels, PEAL_CUDA_BUILTIN_SIGNAL);
        group->threads[0] = 32;
        group->threads[1] = group->threads[2] = group->blocks = 1;
    }
    launch->arrived = lane->arrived;
    const peal_cuda_kernel_launch what = {.function = group->function,
                                          .blocks = group->blocks,
                                          .threads = {group->threads[0], group->threads[1],
                                                      group->threads[2]},
                                          .launch = launch,
                                          .group = group};
    CUresult result = peal_cuda_sink_launch(rank, lane, &what);
    if (result)
        return peal_cuda_report_driver_error(plan, result, &rank->op[launch->op],
                                             rank->schedule->op[launch->op].label);
    if (launch->write_count > 0 && !peal_cuda_flags_enqueued(rank, lane))
        return false;
    return peal_cuda_enqueued(rank, lane, launch->op);
}

bool peal_cuda_flush_group(peal_cuda_rank *rank, peal_cuda_lane *lane, peal_cuda_group *group)
{
    if (group->kind == PEAL_CUDA_GROUP_NONE)
        return true;
    if (group == &lane->group)
        peal_cuda_piggyback(rank, lane);
    bool ok = launch_group(rank, lane, group);
    for (int i = 0; i < group->op_count; i++) {
        /* `member` may be that of a later instance by now: of a WAIT that was deferred meanwhile,
         * or is in the other group. */
        if (rank->member[group->op[i]] ==
            (group == &lane->deferred ? PEAL_CUDA_IN_DEFERRED_GROUP : i + 1))
            rank->member[group->op[i]] = 0;
        ok = ok && publish(rank, lane, group->op[i], group->op_instance[i]);
    }
    group->kind = PEAL_CUDA_GROUP_NONE;
    group->op_count = 0;
    return ok;
}

bool peal_cuda_flush(peal_cuda_rank *rank, int number)
{
    peal_cuda_lane *lane = peal_cuda_lane_at(rank, number);
    return peal_cuda_flush_group(rank, lane, &lane->group);
}

peal_cuda_group *peal_cuda_group_open(peal_cuda_rank *rank, peal_cuda_lane *lane,
                                      const peal_cuda_op *op, const peal_walk_frame *frame)
{
    peal_cuda_group *group = &lane->group;
    peal_launch *launch = &group->launch;

    if (group->kind != PEAL_CUDA_GROUP_NONE)
        return group;
    /* What a recording has is compared, with what is not used of it (fused/turns.c). */
    bool is_replayed = rank->plan->emission.sink->is_replayed;
    memset(launch, 0, is_replayed ? offsetof(peal_launch, list) : offsetof(peal_launch, argument));
    launch->control = rank->control_device;
    launch->step = is_replayed ? rank->words : 0;
    launch->budget =
        rank->plan->desc.deadline_ns > 0 ? (unsigned long long)rank->plan->desc.deadline_ns : 0;
    launch->op = (int)(op - rank->op);
    for (int d = 0; d < rank->schedule->loop_depth && d < PEAL_LAUNCH_COUNTERS; d++)
        launch->counter[d] = frame->counter[d];
    if (is_replayed)
        launch->counter[0] -= rank->graph_step;
    launch->stop = is_replayed ? rank->stop_word : 0;
    launch->skip = peal_cuda_skip_word(rank, launch->op);
    group->region = op->region;
    group->kind = PEAL_CUDA_GROUP_WAITS;
    group->base_count = 0;
    group->copy_bytes = 0;
    group->closed = false;
    group->communication_free = false;
    group->self_sending = NULL;
    group->task = NULL;
    group->written_count = 0;
    group->can_add = true;
    return group;
}

void peal_cuda_group_join(peal_cuda_rank *rank, peal_cuda_group *group, int index, unsigned bits)
{
    group->op[group->op_count] = index;
    group->op_instance[group->op_count] = rank->walk.passed[index];
    group->op_bits[group->op_count++] = bits;
    rank->member[index] = group->op_count;
}

void peal_cuda_group_wait(peal_cuda_rank *rank, peal_cuda_group *group, int index, uint64_t value)
{
    int at = group->launch.wait_count++;

    group->launch.wait[at] = (peal_launch_wait){rank->op[index].word, value, index, 0};
    peal_cuda_group_join(rank, group, index, 1u << at);
}

/* ---- dependences ---- */

bool peal_cuda_group_has(const peal_cuda_group *group, int op, int end)
{
    for (int i = 0; i < end; i++)
        if (group->op[i] == op)
            return true;
    return false;
}

static bool does_work(const peal_op *op)
{
    return op->kind == PEAL_OP_LAUNCH || op->kind == PEAL_OP_COPY || op->kind == PEAL_OP_WRITE ||
           op->kind == PEAL_OP_WAIT;
}

static bool wait_for_other_lane(peal_cuda_rank *rank, peal_cuda_lane *lane, int other,
                                uint64_t instance)
{
    peal_cuda_plan *plan = rank->plan;
    peal_cuda_op *op = &rank->op[other];

    if (rank->member[other] && !peal_cuda_flush(rank, op->lane))
        return false;
    /* A graph starts when everything before it is done, so an event of an earlier epoch has passed.
     */
    if (op->epoch[instance % 2] != plan->emission.epoch)
        return true;
    CUresult result = peal_cuda_sink_wait_event(rank, lane, op->event[instance % 2]);
    return !result || peal_cuda_report_driver_error(plan, result, op, "an event");
}

bool peal_cuda_await_lanes(peal_cuda_rank *rank, int index)
{
    const peal_op *op = &rank->schedule->op[index];
    int number = rank->op[index].lane;
    peal_cuda_lane *lane = peal_cuda_lane_at(rank, number);

    for (int i = 0; i < op->dependence_count; i++) {
        const peal_dependence *d = &op->dependence[i];
        uint64_t passed = rank->walk.passed[d->op];
        if (!does_work(&rank->schedule->op[d->op]) || rank->op[d->op].lane == number ||
            passed <= (uint64_t)d->lag)
            continue;
        /* A flag that the group writes must not come after the wait: work of the other lane may
         * wait for a peer that waits for this flag. */
        if ((lane->group.kind > PEAL_CUDA_GROUP_WAITS ||
             (lane->group.kind == PEAL_CUDA_GROUP_WAITS && lane->group.launch.write_count > 0)) &&
            !peal_cuda_flush(rank, number))
            return false;
        if (!wait_for_other_lane(rank, lane, d->op, passed - (uint64_t)d->lag))
            return false;
    }
    return true;
}

bool peal_cuda_depends_within(const peal_cuda_rank *rank, const peal_cuda_group *group, int index,
                              unsigned *waits, unsigned *boxes)
{
    const peal_op *op = &rank->schedule->op[index];
    bool ok = true;

    *waits = *boxes = 0;
    for (int i = 0; i < op->dependence_count; i++) {
        int other = op->dependence[i].op;
        int member = rank->member[other];
        if (member <= 0 || rank->op[other].lane != rank->op[index].lane ||
            op->dependence[i].lag > 0)
            continue;
        if (rank->schedule->op[other].kind == PEAL_OP_WAIT)
            *waits |= group->op_bits[member - 1];
        else if (rank->schedule->op[other].kind == PEAL_OP_LAUNCH)
            *boxes |= group->op_bits[member - 1];
        else {
            *boxes |= group->op_bits[member - 1]; /* the boxes that do the copy */
            ok = ok && group->launch.piggyback.bit &&
                 group->op_bits[member - 1] == group->launch.piggyback.bit;
        }
    }
    return ok;
}

unsigned peal_cuda_group_boxes(const peal_cuda_group *group, unsigned boxes)
{
    unsigned folds = group->launch.fold_bit;

    return boxes && folds && (boxes & folds || group->communication_free) ? folds : boxes;
}

unsigned peal_cuda_channel_bits(const peal_cuda_rank *rank, const peal_cuda_group *group, int index,
                                peal_op_kind kind)
{
    unsigned bits = 0;

    for (int i = 0; i < group->op_count; i++) {
        const peal_op *op = rank->op[group->op[i]].source;
        if (op->kind == kind && op->channel == rank->op[index].source->channel && op->channel >= 0)
            bits |= group->op_bits[i];
    }
    return bits;
}
