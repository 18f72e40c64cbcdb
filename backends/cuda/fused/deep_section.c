/* The section of the list of work items that has deep rounds (deep.c) in the place of the plain
 * steps that they stand for, and what these touch. */
#include "backends/cuda/fused/deep.h"

#include <string.h>

static peal_cuda_work_item *append(const peal_cuda_plan *plan, peal_cuda_fused *fused,
                                   const peal_cuda_work_item *from)
{
    peal_cuda_work_item copy = *from; /* the list may move */

    if (fused->count >= fused->room)
        fused->item = peal_arena_grow(plan->arena, fused->item, &fused->room, sizeof(copy));
    fused->item[fused->count] = copy;
    return &fused->item[fused->count++];
}

/* What a block reads of access `view` around its tile in a round: as much further as its steps are,
 * and the same of what lies beyond a periodic end at the other one. */
static void touch_around(const peal_cuda_plan *plan, peal_cuda_work_item *item, int view, int space)
{
    const peal_cuda_deep *deep = item->deep;
    const peal_task_access *access = &item->task->access[view];
    int further = item->launch.box[0].steps - 1, turn[3], most[3];

    for (int k = 0; k < 3; k++)
        most[k] = deep->wraps[k] ? 1 : 0;
    for (turn[2] = -most[2]; turn[2] <= most[2]; turn[2]++)
        for (turn[1] = -most[1]; turn[1] <= most[1]; turn[1]++)
            for (turn[0] = -most[0]; turn[0] <= most[0]; turn[0]++) {
                peal_reach *reach = PEAL_ARENA_NEW(plan->arena, peal_reach);
                *reach = access->reach[0];
                for (int k = 0; k < 3; k++) {
                    peal_reach_axis *axis = &reach->axis[k];
                    int64_t away = (int64_t)turn[k] * deep->wraps[k];
                    for (int i = 1; i < access->reach_count; i++) { /* the hull */
                        const peal_reach_axis *other = &access->reach[i].axis[k];
                        axis->low = other->low < axis->low ? other->low : axis->low;
                        axis->high = other->high > axis->high ? other->high : axis->high;
                    }
                    if (axis->fixed)
                        continue;
                    axis->low += further * deep->chain.low[k] + away;
                    axis->high += further * deep->chain.high[k] + away;
                }
                if (item->touch_count == PEAL_CUDA_WORK_ITEM_TOUCHES) {
                    item->overflows = true;
                    return;
                }
                item->touch[item->touch_count++] = (peal_cuda_touch){.space = space,
                                                                     .boxes = ~0u,
                                                                     .kind = PEAL_CUDA_TOUCH_REACH,
                                                                     .reach = reach};
            }
}

/* A round touches what its first step does, only more around the tile. Of the field that it writes
 * it reads what no step writes. */
static void touch_round(const peal_cuda_plan *plan, const peal_cuda_work_item *step,
                        peal_cuda_work_item *item)
{
    const peal_cuda_chain *chain = &item->deep->chain;
    const peal_cuda_touch *first = peal_cuda_deep_touch(step, 0),
                          *end = peal_cuda_deep_touch(step, item->task->access_count);

    item->touch = PEAL_ARENA_ARRAY(plan->arena, peal_cuda_touch, PEAL_CUDA_WORK_ITEM_TOUCHES);
    item->touch_count = 0;
    for (int v = 0; v < item->task->access_count; v++)
        if (v != chain->written)
            touch_around(plan, item, v, peal_cuda_deep_touch(step, v)->space);
    touch_around(plan, item, chain->read, peal_cuda_deep_touch(step, chain->written)->space);
    for (int i = 0; i < step->touch_count; i++) {
        const peal_cuda_touch *touch = &step->touch[i];
        if (touch >= first && touch < end && !touch->write)
            continue;
        if (item->touch_count == PEAL_CUDA_WORK_ITEM_TOUCHES) {
            item->overflows = true;
            return;
        }
        item->touch[item->touch_count++] = *touch;
    }
}

/* An earlier round of as many steps that begins with a step alike, which has the same footprint,
 * and so the same kind; -1: there is none. */
static int find_alike(const peal_cuda_fused *fused, const peal_cuda_work_item *step,
                      const peal_cuda_deep *deep, int steps)
{
    for (int i = fused->plain; i < fused->count; i++)
        if (fused->item[i].deep == deep && fused->item[i].launch.box[0].steps == steps &&
            !memcmp(fused->item[i].launch.view, step->launch.view, sizeof(step->launch.view)))
            return i;
    return -1;
}

/* A round of so many steps, at most deep->steps. */
static void append_round(const peal_cuda_plan *plan, peal_cuda_fused *fused, int step, int steps,
                         const peal_cuda_deep *deep)
{
    int kernel = peal_cuda_deep_kernel(fused, step), last = step + steps - 1;
    int alike = find_alike(fused, &fused->item[kernel], deep, steps);
    peal_cuda_work_item *item = append(plan, fused, &fused->item[kernel]);
    peal_launch_box *box = &item->launch.box[0];

    item->deep = deep;
    box->blocks = 1;
    for (int k = 0; k < 3; k++) {
        box->extent[k] = deep->extent[k];
        box->count[k] =
            (unsigned)((box->hi[k] - box->lo[k] + deep->extent[k] - 1) / deep->extent[k]);
        box->blocks *= box->count[k];
        box->tile_step[k] = 0;
    }
    box->lead = 0;
    box->steps = steps;
    item->blocks = box->blocks;
    item->first_blocks = 0;
    if (alike >= 0) {
        item->touch = fused->item[alike].touch;
        item->touch_count = fused->item[alike].touch_count;
        item->overflows = fused->item[alike].overflows;
    } else {
        touch_round(plan, &fused->item[kernel], item);
    }
    for (int i = peal_cuda_deep_kernel(fused, last) + 1; i < fused->at_step[last + 1]; i++)
        append(plan, fused, &fused->item[i]);
}

static void append_steps(const peal_cuda_plan *plan, peal_cuda_fused *fused, int begin, int end)
{
    for (int s = begin; s < end; s++) {
        fused->fast_at[s] = fused->count - fused->plain;
        for (int i = fused->at_step[s]; i < fused->at_step[s + 1]; i++)
            append(plan, fused, &fused->item[i]);
    }
}

/* The run's rounds, then its plain steps. fast_pending says of each step's begin how many plain
 * steps have to follow before a launch may end. */
static void append_run(const peal_cuda_plan *plan, peal_cuda_fused *fused,
                       const peal_cuda_deep_run *r)
{
    int first = r->begin + r->ahead, last = r->end - r->behind, step = first, steps;

    append_steps(plan, fused, r->begin, step);
    for (; (steps = peal_cuda_deep_round(r->deep->steps, last - step)) > 0; step += steps) {
        fused->fast_at[step] = fused->count - fused->plain;
        fused->fast_pending[step] = step > first ? r->behind : 0;
        append_round(plan, fused, step, steps, r->deep);
    }
    append_steps(plan, fused, step, r->end);
    for (int i = 0; i < r->behind && step > first; i++)
        fused->fast_pending[step + i] = r->behind - i;
}

void peal_cuda_deep_add_section(const peal_cuda_plan *plan, peal_cuda_fused *fused,
                                const peal_cuda_deep_run *runs, int count, int steps)
{
    int step = 0;

    fused->fast_at = PEAL_ARENA_ARRAY(plan->arena, int, steps);
    fused->fast_pending = PEAL_ARENA_ARRAY(plan->arena, int, steps);
    for (int s = 0; s < steps; s++)
        fused->fast_at[s] = -1;
    for (int i = 0; i < count; i++) {
        append_steps(plan, fused, step, runs[i].begin);
        append_run(plan, fused, &runs[i]);
        step = runs[i].end;
    }
    append_steps(plan, fused, step, steps);
    for (int i = fused->at_step[steps]; i < fused->plain; i++)
        append(plan, fused, &fused->item[i]);
    bool fits = fused->count <= PEAL_FUSED_ITEMS;
    for (int i = fused->plain; i < fused->count; i++)
        fits &= !fused->item[i].overflows;
    if (!fits)
        peal_cuda_deep_give_up(fused);
}

void peal_cuda_deep_give_up(peal_cuda_fused *fused)
{
    fused->count = fused->plain;
    fused->fast_at = NULL;
}
