/* Records the launches that emission makes as work items of the persistent kernel. */
#include "backends/cuda/fused/dispatchers/dispatcher.h"
#include "backends/cuda/lower/emit.h"

#include <string.h>

static peal_cuda_fused *recorded(const peal_cuda_rank *rank)
{
    return &rank->plan->fused[rank->plan->fused_slot].rank[rank->index];
}

void peal_cuda_fused_begin(peal_cuda_plan *plan, int slot)
{
    if (!plan->fused)
        plan->fused = PEAL_ARENA_ARRAY(plan->arena, peal_cuda_fused_kernel, 2);
    peal_cuda_fused_kernel *kernel = &plan->fused[slot];
    for (int r = 0; kernel->rank && r < plan->rank_count; r++)
        if (kernel->rank[r].memory) /* of a recording that did not fit */
            plan->driver->cuMemFree_(kernel->rank[r].memory);
    plan->fused_slot = slot;
    kernel->rank = PEAL_ARENA_ARRAY(plan->arena, peal_cuda_fused, plan->rank_count);
    size_t spans = PEAL_FUSED_SPANS * sizeof(peal_fused_span);
    int room = plan->rank_count + (int)(spans / sizeof(peal_fused)) + 1;
    kernel->parameter = PEAL_ARENA_ARRAY(plan->arena, peal_fused, room);
    kernel->more = (peal_fused_span *)(kernel->parameter + plan->rank_count);
    for (int r = 0; r < plan->rank_count; r++) {
        kernel->rank[r].dispatcher = plan->options.dispatcher;
        kernel->rank[r].touch =
            PEAL_ARENA_ARRAY(plan->arena, peal_cuda_touch, PEAL_CUDA_WORK_ITEM_TOUCHES);
        kernel->rank[r].served =
            PEAL_ARENA_ARRAY(plan->arena, bool, plan->rank[r].schedule->op_count + 1);
    }
}

peal_cuda_work_item *peal_cuda_fused_next_item(const peal_cuda_rank *rank)
{
    peal_cuda_fused *fused = recorded(rank);

    /* What there is no room for is counted alone: build refuses it. */
    int most = PEAL_FUSED_WIDE_ITEMS, at = fused->count < most ? fused->count : most;

    if (at == fused->room)
        fused->item =
            peal_arena_grow(rank->plan->arena, fused->item, &fused->room, sizeof(*fused->item));
    peal_cuda_work_item *item = &fused->item[at];
    fused->count++;
    memset(item, 0, sizeof(*item));
    item->serves = -1;
    item->schedule = rank->schedule;
    item->step = rank->walk.counter[0];
    item->touch = fused->touch;
    return item;
}

void peal_cuda_fused_mark_step(peal_cuda_rank *rank, int64_t step)
{
    peal_cuda_fused *fused = recorded(rank);

    while (fused->step_room <= step)
        fused->at_step = peal_arena_grow(rank->plan->arena, fused->at_step, &fused->step_room,
                                         sizeof(*fused->at_step));
    fused->at_step[step] = fused->count;
    rank->plan->fused[rank->plan->fused_slot].steps = step;
}

void peal_cuda_fused_begin_section(peal_cuda_plan *plan)
{
    peal_cuda_fused *fused = recorded(&plan->rank[0]);

    fused->is_behind = true;
    while (fused->section_room <= fused->section_count + 1)
        fused->section = peal_arena_grow(plan->arena, fused->section, &fused->section_room,
                                         sizeof(*fused->section));
    fused->section[fused->section_count] = fused->count;
}

int peal_cuda_fused_end_section(peal_cuda_plan *plan)
{
    peal_cuda_fused *fused = recorded(&plan->rank[0]);
    int begin = fused->section[fused->section_count];
    bool fits = fused->count <= PEAL_FUSED_WIDE_ITEMS && fused->count > begin;

    for (int i = begin; i < fused->count && fits; i++)
        fits = !fused->item[i].overflows;
    if (!fits) {
        fused->count = begin;
        return -1;
    }
    fused->section[fused->section_count + 1] = fused->count;
    return fused->section_count++;
}

void peal_cuda_fused_keep_touches(peal_cuda_plan *plan, peal_cuda_work_item *item)
{
    peal_cuda_touch *kept = PEAL_ARENA_ARRAY(plan->arena, peal_cuda_touch, item->touch_count + 1);

    memcpy(kept, item->touch, (size_t)item->touch_count * sizeof(*kept));
    item->touch = kept;
}

/* Up to so many chunks are folded by one block, one after the other, while other blocks go on
 * (16384^2 on 2 H200: 32 chunks take 441 us a step so, and 403 by many blocks). */
enum { MOST_CHUNKS = 4 };

/* A FOLD, COMBINE or PRINT whose result no task waits for may be some steps behind. Returns which
 * of the schedule's tasks it is; -1: another one. */
static int serves_task(const peal_cuda_rank *rank, const peal_schedule_task *task)
{
    bool folds = task->kind == PEAL_TASK_FOLD || task->kind == PEAL_TASK_COMBINE;

    if (folds ? !rank->scratch[task->gather] : task->kind != PEAL_TASK_PRINT)
        return -1;
    return (int)(task - rank->schedule->task);
}

/* A FOLD whose result op `index`, a COPY, sends or keeps, if all that it copies may be behind; -1:
 * it copies something else. */
static int serves_copy(const peal_cuda_rank *rank, int index)
{
    const peal_op *op = &rank->schedule->op[index];
    int task = -1;

    if (op->copy == PEAL_COPY_UNPACK)
        return -1;
    for (int i = 0; i < op->dependence_count; i++) {
        const peal_op *before = &rank->schedule->op[op->dependence[i].op];
        if (before->kind != PEAL_OP_LAUNCH || op->dependence[i].op < rank->schedule->step.first)
            continue;
        const peal_schedule_task *of = &rank->schedule->task[before->task];
        int served = serves_task(rank, of);
        if (served < 0)
            return -1;
        task = of->kind == PEAL_TASK_FOLD ? served : task;
    }
    return task;
}

/* Which of the schedule's tasks a launch serves that may be some steps behind: its own, or one of
 * the folds whose results all its messages are; -1: it is another launch. */
static int serves(const peal_cuda_rank *rank, const peal_cuda_group *group, unsigned blocks)
{
    int task = -1;

    if (!group || !rank->scratch)
        return -1;
    if (group->kind == PEAL_CUDA_GROUP_TASK)
        return serves_task(rank, group->task);
    if (group->kind != PEAL_CUDA_GROUP_COPY || blocks != 1)
        return -1;
    for (int i = 0; i < group->op_count; i++)
        if (rank->schedule->op[group->op[i]].kind == PEAL_OP_COPY) {
            task = serves_copy(rank, group->op[i]);
            if (task < 0)
                return -1;
        }
    return task;
}

/* Whether the dispatcher waits and adds to flags for such a work item, all at the same time. A
 * COMBINE then reads contributions where they have arrived. */
static bool is_alone(const peal_cuda_rank *rank, const peal_cuda_group *group,
                     peal_cuda_work_item *item)
{
    peal_launch *launch = &item->launch;

    if (item->serves < 0 || group->kind != PEAL_CUDA_GROUP_TASK || item->blocks != 1 ||
        launch->stop || launch->skip || launch->box_count != 1 ||
        !rank->plan->options.dispatcher->serves_alone)
        return false;
    memcpy(item->quantum, group->quantum, sizeof(item->quantum));
    if (group->task->kind != PEAL_TASK_COMBINE)
        return group->task->kind == PEAL_TASK_FOLD && launch->list_count == 0;
    peal_launch_piggyback piggyback;
    if (!peal_cuda_piggyback_describe(rank, group, &piggyback))
        return false;
    launch->piggyback = piggyback;
    return true;
}

/* Whether a copy within the rank is to an image of what it copies, at the other end of periodic
 * axes. */
static bool is_image(const peal_schedule *schedule, const peal_piece *piece)
{
    const peal_box *part = &schedule->array[piece->array].layout.part;
    bool moved = false;

    if (piece->array != piece->target_array)
        return false;
    for (int k = 0; k < PEAL_AXES; k++) {
        int64_t away = piece->target[k] - piece->source.lo[k];
        bool wraps = k < PEAL_RANK_AXES && schedule->graph->topology.periodic[k] &&
                     (away == part->hi[k] - part->lo[k] || away == part->lo[k] - part->hi[k]);
        if ((away != 0 && !wraps) ||
            piece->target_extent[k] != piece->source.hi[k] - piece->source.lo[k])
            return false;
        moved |= away != 0;
    }
    return moved;
}

static void note_copies(const peal_cuda_rank *rank, const peal_cuda_group *group,
                        peal_cuda_work_item *item)
{
    item->images = true;
    for (int i = 0; group && i < group->op_count; i++) {
        const peal_op *op = &rank->schedule->op[group->op[i]];
        item->copies |= op->kind == PEAL_OP_COPY;
        item->images &=
            op->kind == PEAL_OP_LAUNCH || (op->kind == PEAL_OP_COPY && op->copy == PEAL_COPY_LOCAL);
        for (int p = 0; op->kind == PEAL_OP_COPY && p < op->piece_count; p++)
            item->images &= is_image(rank->schedule, &op->piece[p]);
    }
}

void peal_cuda_fused_add(peal_cuda_rank *rank, CUfunction function, unsigned blocks,
                         const peal_launch *launch, const peal_cuda_group *group)
{
    const peal_cuda_dispatcher *dispatcher = rank->plan->options.dispatcher;

    if (dispatcher->record_receive && launch->wait_count > 0)
        dispatcher->record_receive(rank, launch);
    peal_cuda_work_item *item = peal_cuda_fused_next_item(rank);
    peal_cuda_fused_note_joined(recorded(rank), group, recorded(rank)->count - 1);
    item->launch = *launch;
    item->number = peal_cuda_function_number(rank, function, launch, group);
    item->blocks = blocks;
    item->serves = serves(rank, group, blocks);
    note_copies(rank, group, item);
    if (group && group->kind == PEAL_CUDA_GROUP_TASK && peal_cuda_fused_sends_fold(rank, group))
        item->launch.view[0] = item->launch.view[1]; /* messages take it from among the partials */
    if (group && group->kind == PEAL_CUDA_GROUP_TASK && group->task->kind == PEAL_TASK_KERNEL &&
        group->task->mergeable && rank->op[launch->op].kernel->shapes) {
        item->task = group->task;
        item->deepens = rank->op[launch->op].kernel->deepens;
        item->first_blocks = peal_cuda_partition_first_blocks(launch, blocks);
        item->partials = group->partials;
    }
    if (launch->box_count == 1 && launch->box[0].blocks == 0)
        item->launch.box[0].blocks = blocks;
    if (item->serves >= 0 && group->kind == PEAL_CUDA_GROUP_TASK &&
        group->task->kind == PEAL_TASK_FOLD && blocks <= MOST_CHUNKS)
        item->blocks = item->launch.box[0].blocks = 1;
    item->alone = is_alone(rank, group, item);
    peal_cuda_footprint_note(rank, item, group, recorded(rank)->served);
    for (int i = 0; group && i < group->op_count; i++)
        recorded(rank)->served[group->op[i]] = item->serves >= 0;
    item->after_all |= dispatcher->has_barrier;
    item->spares &= dispatcher->has_services && !dispatcher->has_barrier;
    if (recorded(rank)->count <= PEAL_FUSED_WIDE_ITEMS)
        peal_cuda_fused_keep_touches(rank->plan, item);
    else
        peal_cuda_fused_keep_later(rank->plan, recorded(rank));
}
