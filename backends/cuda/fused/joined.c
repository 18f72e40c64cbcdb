/* The recorded steps once more, as the fast section of the list (fused.h): where the recorder does
 * not ask for it, a work item may be of the end of one step and the begin of the next, so there are
 * fewer. Parts of launches begin and end in the section where no work item lies across. */
#include "backends/cuda/fused/fused.h"
#include "backends/cuda/lower/lane.h"

/* The section is kept if it has at least one work item in so many less. Behind it there has to be
 * room for others, as much as is left behind the plain steps. */
enum { LEAST_SAVED = 16, MOST_ITEMS = PEAL_FUSED_ITEMS * 7 / 8 };

/* The share of a step's time that is saved by the share of work items: samples on 2 H200, with 32
 * to 46 % fewer work items, took 6 to 39 % less (bench/results/2026-11-29-gpu-joined-steps.txt). */
static const double saved_by_items = 0.4;

static peal_cuda_fused *recorded(const peal_cuda_plan *plan)
{
    return &plan->fused[plan->fused_slot].rank[0];
}

void peal_cuda_fused_begin_joined(peal_cuda_plan *plan)
{
    int64_t steps = plan->fused[plan->fused_slot].steps;
    peal_cuda_fused *fused = recorded(plan);
    peal_cuda_joined *joined = PEAL_ARENA_NEW(plan->arena, peal_cuda_joined);

    fused->is_behind = true;
    joined->first = fused->count;
    joined->at = PEAL_ARENA_ARRAY(plan->arena, int, steps + 1);
    joined->open_step = -1;
    for (int64_t s = 0; s <= steps; s++)
        joined->at[s] = -1;
    fused->joined = joined;
}

/* With an open launch it shows when that is recorded whether it is of the step before alone. */
void peal_cuda_fused_mark_joined(const peal_cuda_rank *rank, int64_t step)
{
    const peal_cuda_lane *lane = &rank->lane[0];
    const peal_cuda_fused *fused = recorded(rank->plan);
    peal_cuda_joined *joined = fused->joined;

    joined->open_step = -1;
    if (lane->deferred.kind != PEAL_CUDA_GROUP_NONE)
        return;
    if (lane->group.kind == PEAL_CUDA_GROUP_NONE) {
        joined->at[step] = fused->count - joined->first;
        return;
    }
    joined->open_step = step;
    joined->open_item = fused->count;
    joined->open_ops = lane->group.op_count;
    joined->open_op = lane->group.op[0];
    joined->open_instance = lane->group.op_instance[0];
}

void peal_cuda_fused_note_joined(const peal_cuda_fused *fused, const peal_cuda_group *group,
                                 int item)
{
    peal_cuda_joined *joined = fused->joined;

    if (!joined || joined->open_step < 0)
        return;
    if (group && item == joined->open_item && group->op_count == joined->open_ops &&
        group->op[0] == joined->open_op && group->op_instance[0] == joined->open_instance)
        joined->at[joined->open_step] = item + 1 - joined->first;
    joined->open_step = -1;
}

bool peal_cuda_fused_end_joined(peal_cuda_plan *plan)
{
    peal_cuda_fused *fused = recorded(plan);
    int plain = fused->joined->first, count = fused->count - plain;
    bool gains = LEAST_SAVED * count <= (LEAST_SAVED - 1) * plain;
    bool fits = fused->count <= MOST_ITEMS;
    bool overflows = false;

    for (int i = plain; i < fused->count && fits; i++)
        overflows |= fused->item[i].overflows;
    if (gains && fits && !overflows)
        return true;
    fused->count = plain;
    fused->joined = NULL;
    return fits || !gains;
}

void peal_cuda_fused_take_joined(const peal_cuda_plan *plan, peal_cuda_fused_kernel *kernel,
                                 int items)
{
    peal_cuda_fused *fused = &kernel->rank[0];

    fused->fast_at = fused->joined->at;
    fused->fast_pending = PEAL_ARENA_ARRAY(plan->arena, int, kernel->steps + 1);
    kernel->saved = saved_by_items * (fused->plain - items) / fused->plain;
    kernel->note =
        peal_arena_print(plan->arena, "joined steps: %d work items of %lld steps, %d one by one",
                         items, (long long)kernel->steps, fused->plain);
}
