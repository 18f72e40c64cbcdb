/* Footprints: what the blocks of a work item read and write. It is what the schedule says, or more
 * where that is simpler. A block that waits for a message counts as the writer of that message. */
#include "backends/cuda/fused/fused.h"
#include "backends/cuda/lower/emit.h"

#include <string.h>

/* Spaces behind the storages and the reduction ring. From FLAG_SPACES on: the flags that this rank
 * writes, two for each channel. */
enum { STOP_SPACE, STEP_SPACE, FLAG_SPACES };

static int special(const peal_cuda_rank *rank, int which)
{
    return rank->schedule->array_count * (1 + PEAL_CUDA_RING_STEPS) + which;
}

int peal_cuda_footprint_spaces(const peal_cuda_rank *rank)
{
    return special(rank, FLAG_SPACES + 2 * rank->schedule->channel_count);
}

static peal_cuda_touch *add(peal_cuda_work_item *item, int space, bool write, unsigned boxes)
{
    if (item->touch_count == PEAL_CUDA_WORK_ITEM_TOUCHES) {
        item->overflows = true;
        item->touch_count--;
    }
    peal_cuda_touch *touch = &item->touch[item->touch_count++];
    *touch = (peal_cuda_touch){.space = space,
                               .write = write,
                               .boxes = boxes,
                               .kind = PEAL_CUDA_TOUCH_ALL};
    return touch;
}

static void add_address(const peal_cuda_rank *rank, peal_cuda_work_item *item, CUdeviceptr address,
                        bool write, unsigned boxes)
{
    int storage = address ? peal_cuda_storage_at(rank, address) : -1;
    if (storage >= 0)
        add(item, storage, write, boxes);
}

/* ---- tasks ---- */

static bool is_kernel(const peal_cuda_group *group)
{
    return group->kind == PEAL_CUDA_GROUP_TASK && group->task->kind == PEAL_TASK_KERNEL;
}

static void touch_kernel(const peal_cuda_rank *rank, peal_cuda_work_item *item,
                         const peal_cuda_group *group)
{
    const peal_schedule_task *task = group->task;

    for (int i = 0; i < task->access_count; i++) {
        const peal_task_access *access = &task->access[i];
        bool write = access->mode != PEAL_READ_ACCESS;
        if (access->per_tile > 0 || access->reach_count == 0) {
            add(item, group->storage[i], write, ~0u);
            continue;
        }
        for (int k = 0; k < access->reach_count; k++) {
            peal_cuda_touch *touch = add(item, group->storage[i], write, ~0u);
            touch->kind = PEAL_CUDA_TOUCH_REACH;
            touch->reach = &access->reach[k];
        }
    }
    for (int i = 0; i < task->reduction_count; i++) {
        int storage =
            item->launch.partial[i] ? peal_cuda_storage_at(rank, item->launch.partial[i]) : -1;
        if (storage >= 0)
            add(item, storage, true, ~0u)->kind = PEAL_CUDA_TOUCH_INDEX;
    }
}

static void touch_builtin(const peal_cuda_rank *rank, peal_cuda_work_item *item,
                          const peal_schedule_task *task)
{
    const peal_launch *launch = &item->launch;

    switch (task->kind) {
    case PEAL_TASK_FOLD: /* results of chunks stay among the elements */
        add_address(rank, item, launch->view[0], true, ~0u);
        add_address(rank, item, launch->view[1], true, ~0u);
        break;
    case PEAL_TASK_COMBINE:
        add_address(rank, item, launch->view[0], true, ~0u);
        add_address(rank, item, launch->view[1], false, ~0u);
        break;
    case PEAL_TASK_SET:
        add_address(rank, item, launch->view[0], true, ~0u);
        break;
    case PEAL_TASK_DECIDE:
        add(item, special(rank, STOP_SPACE), true, ~0u);
        break;
    default:
        break;
    }
}

static void touch_elements(const peal_cuda_rank *rank, peal_cuda_work_item *item,
                           const peal_cuda_group *group)
{
    const peal_cuda_op *op = &rank->op[item->launch.op];

    for (int i = 0; op->kernel && i < op->kernel->element_count; i++)
        add_address(rank, item, item->launch.element[i], false, ~0u);
    if (item->launch.evaluate || group->task->kind != PEAL_TASK_KERNEL)
        add(item, special(rank, STEP_SPACE), false, ~0u);
}

/* ---- messages ---- */

static unsigned senders_of(const peal_launch *launch)
{
    unsigned boxes = 0;

    for (int b = 0; b < launch->box_count; b++)
        if (launch->box[b].sends)
            boxes |= 1u << b;
    return boxes;
}

/* What blocks read and write when they store parts of messages: points beside the tiles, which
 * nothing in the launch writes, and where they are stored, if that is memory of this rank. */
static void touch_remote_stores(peal_cuda_work_item *item, const peal_cuda_group *group)
{
    for (int i = 0; i < item->launch.remote_store_count; i++) {
        const peal_launch_remote_store *remote_store = &item->launch.remote_store[i];
        if (group->image_storage[i] >= 0) {
            peal_cuda_touch *touch = add(item, group->image_storage[i], true, remote_store->boxes);
            touch->kind = PEAL_CUDA_TOUCH_BOX;
            memcpy(touch->lo, group->image[i]->to_lo, sizeof(touch->lo));
            memcpy(touch->hi, group->image[i]->to_hi, sizeof(touch->hi));
        }
        if (!memcmp(remote_store->lo, remote_store->inner_lo, sizeof(remote_store->lo)) &&
            !memcmp(remote_store->hi, remote_store->inner_hi, sizeof(remote_store->hi)))
            continue;
        if (group->task->kind != PEAL_TASK_KERNEL)
            continue;
        peal_cuda_touch *touch =
            add(item, group->storage[remote_store->view], false, remote_store->boxes);
        touch->kind = PEAL_CUDA_TOUCH_BOX;
        for (int k = 0; k < PEAL_AXES; k++) {
            touch->lo[k] = k < 3 ? remote_store->lo[k] : 0;
            touch->hi[k] = k < 3 ? remote_store->hi[k] : 1;
        }
    }
}

/* What is copied in pieces. The last of a task's senders copies, and that may be any of them; each
 * block of a copy has a part; the block of a COMBINE unpacks. */
static void touch_pieces(const peal_cuda_rank *rank, peal_cuda_work_item *item,
                         const peal_cuda_group *group)
{
    unsigned boxes = is_kernel(group) ? senders_of(&item->launch) : ~0u;

    for (int i = 0; i < group->base_count; i++)
        add_address(rank, item, item->launch.base[i], true, boxes);
}

/* The memory that a message has arrived in, for those who read it later. A message that is staged
 * is unpacked by the work item that waits for it. */
static void touch_message(const peal_cuda_rank *rank, peal_cuda_work_item *item,
                          const peal_cuda_op *op, CUdeviceptr word, unsigned boxes)
{
    const peal_schedule *schedule = rank->schedule;

    for (int p = 0; p < op->channel->piece_count; p++) {
        const peal_piece *piece = &op->channel->piece[p];
        int group = schedule->array[piece->target_array].swap_group;
        for (int s = 0; piece->direct && s < schedule->array_count; s++) {
            if (s != piece->target_array && (group < 0 || schedule->array[s].swap_group != group))
                continue;
            peal_cuda_touch *touch = add(item, s, true, boxes);
            touch->kind = PEAL_CUDA_TOUCH_BOX;
            touch->word = word;
            for (int k = 0; k < PEAL_AXES; k++) {
                touch->lo[k] = (int)piece->target[k];
                touch->hi[k] = (int)(piece->target[k] + piece->target_extent[k]);
            }
        }
    }
}

/* A flag is a sum, so blocks that add for a message wait for all blocks that add for the one
 * before, as if each launch were a kernel. The same holds for flags that are stored. */
static void touch_flags(const peal_cuda_rank *rank, peal_cuda_work_item *item,
                        const peal_cuda_group *group)
{
    const peal_launch *launch = &item->launch;
    unsigned all = is_kernel(group) ? senders_of(launch) : ~0u;
    int write = 0;

    for (int i = 0; i < group->op_count; i++) {
        const peal_op *op = rank->op[group->op[i]].source;
        if (op->kind != PEAL_OP_WRITE)
            continue;
        int flag = FLAG_SPACES + 2 * op->channel + op->credit;
        bool some =
            group->kind == PEAL_CUDA_GROUP_TASK && launch->adds && write < launch->write_count;
        add(item, special(rank, flag), true, some ? launch->write[write].boxes : all);
        write++;
    }
}

static void touch_waits(const peal_cuda_rank *rank, peal_cuda_work_item *item)
{
    const peal_launch *launch = &item->launch;

    for (int i = 0; i < launch->wait_count; i++) {
        const peal_cuda_op *op = &rank->op[launch->wait[i].op];
        unsigned boxes = 0;
        for (int b = 0; b < launch->box_count; b++)
            if (launch->box[b].waits >> i & 1)
                boxes |= 1u << b;
        if (!op->source->credit)
            touch_message(rank, item, op, launch->wait[i].word, boxes);
    }
}

/* Whether the footprints already put op `index` of a work item behind the op that it depends on.
 * They do for a task of an older step. For the block that folds they also do for a fold, or a copy
 * within the rank, of an older step. But what is sent may tell a peer that a message was unpacked,
 * or a halo read, and a fold does not touch that memory: so copies do not count then. */
static bool is_known(const peal_cuda_rank *rank, const peal_cuda_group *group, int index,
                     const peal_dependence *d)
{
    const peal_op *op = rank->op[index].source, *other = &rank->schedule->op[d->op];
    bool sends = op->kind != PEAL_OP_COPY || op->copy == PEAL_COPY_SEND;

    if (other->kind == PEAL_OP_LAUNCH && d->lag > 0)
        return true;
    if (is_kernel(group) || group->kind != PEAL_CUDA_GROUP_TASK || (d->lag == 0 && d->op < index))
        return false;
    if (other->kind == PEAL_OP_LAUNCH)
        return rank->schedule->task[other->task].kind != PEAL_TASK_KERNEL;
    return other->kind == PEAL_OP_COPY && other->copy != PEAL_COPY_SEND && !sends;
}

/* Whether what a work item sends or unpacks depends on other work items of the loop in a way that
 * footprints do not tell: then its blocks wait for all. */
static bool follows_others(const peal_cuda_rank *rank, const peal_cuda_group *group)
{
    for (int i = 0; i < group->op_count; i++) {
        const peal_op *op = rank->op[group->op[i]].source;
        if (op->kind != PEAL_OP_WRITE && op->kind != PEAL_OP_COPY)
            continue;
        for (int k = 0; k < op->dependence_count; k++) {
            const peal_dependence *d = &op->dependence[k];
            peal_op_kind before = rank->schedule->op[d->op].kind;
            bool works =
                before == PEAL_OP_LAUNCH || before == PEAL_OP_COPY || before == PEAL_OP_WAIT;
            if (works && d->op >= rank->schedule->step.first &&
                (d->lag > 0 || !peal_cuda_group_has(group, d->op, i)) &&
                !is_known(rank, group, group->op[i], d))
                return true;
        }
    }
    return false;
}

/* Whether a block may run an op aside, while others go on: built-in tasks, and messages with what
 * these fold, which lies in hidden arrays. */
static bool is_aside(const peal_cuda_rank *rank, const peal_op *op)
{
    const peal_schedule *schedule = rank->schedule;

    if (op->kind == PEAL_OP_LAUNCH)
        return schedule->task[op->task].kind != PEAL_TASK_KERNEL;
    const peal_piece *piece = op->channel < 0 ? op->piece : schedule->channel[op->channel].piece;
    int count = op->channel < 0 ? op->piece_count : schedule->channel[op->channel].piece_count;
    for (int i = 0; i < count; i++)
        if (schedule->array[piece[i].target_array].hidden)
            return true;
    return false;
}

/* Whether an op was recorded as a part of a work item that is done aside: a FOLD may wait for the
 * credit of a message that comes behind it. */
static bool was_served(const peal_cuda_rank *rank, const bool *served, int op)
{
    return served[op] || is_aside(rank, &rank->schedule->op[op]);
}

/* Whether a work item that is done aside waits for a channel's message or credit. */
static bool waits_aside(const peal_cuda_rank *rank, const bool *served, int channel)
{
    const peal_schedule *schedule = rank->schedule;

    for (int i = schedule->step.first; i < schedule->step.end && channel >= 0; i++)
        if (served[i] && schedule->op[i].kind == PEAL_OP_WAIT && schedule->op[i].channel == channel)
            return true;
    return false;
}

/* Whether only memory, of which the footprints tell, orders a group and what is done aside. */
static bool spares_others(const peal_cuda_rank *rank, const bool *served,
                          const peal_cuda_group *group)
{
    for (int i = 0; i < group->op_count; i++) {
        const peal_op *op = rank->op[group->op[i]].source;
        if (is_aside(rank, op))
            return false;
        if (op->kind != PEAL_OP_WRITE && op->kind != PEAL_OP_COPY)
            continue;
        if (waits_aside(rank, served, op->channel))
            return false;
        for (int k = 0; k < op->dependence_count; k++)
            if (was_served(rank, served, op->dependence[k].op))
                return false;
    }
    return true;
}

static void touch_conditions(const peal_cuda_rank *rank, peal_cuda_work_item *item)
{
    if (item->launch.stop || item->launch.skip)
        add(item, special(rank, STOP_SPACE), false, ~0u);
}

void peal_cuda_footprint_note_waits(const peal_cuda_rank *rank, peal_cuda_work_item *item)
{
    touch_conditions(rank, item);
    touch_waits(rank, item);
}

void peal_cuda_footprint_note(peal_cuda_rank *rank, peal_cuda_work_item *item,
                              const peal_cuda_group *group, const bool *served)
{
    touch_conditions(rank, item);
    if (!group) { /* counts steps, or begins a loop: all blocks have to be through before */
        item->after_all = true;
        add(item, special(rank, STEP_SPACE), true, ~0u);
        add(item, special(rank, STOP_SPACE), true, ~0u);
        return;
    }
    if (is_kernel(group))
        touch_kernel(rank, item, group);
    else if (group->kind == PEAL_CUDA_GROUP_TASK)
        touch_builtin(rank, item, group->task);
    if (group->kind == PEAL_CUDA_GROUP_TASK) {
        touch_elements(rank, item, group);
        touch_remote_stores(item, group);
    }
    touch_pieces(rank, item, group);
    touch_waits(rank, item);
    touch_flags(rank, item, group);
    if (group->kind != PEAL_CUDA_GROUP_TASK || follows_others(rank, group))
        item->after_all = true;
    item->spares = item->after_all && spares_others(rank, served, group);
}
