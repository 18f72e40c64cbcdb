/* Rare steps as recordings of their own, for an engine without sections (a CUDA graph): a step in
 * which a rare condition is not as usual is one launch, like those between. */
#include "backends/cuda/lower/predicate.h"
#include "backends/cuda/replay/replay.h"

/* Operations that are walked for it, and that all graphs have together. */
enum { MOST_WALKED = 1 << 20, MOST_RECORDED = 1 << 13 };

/* Steps of more launches take the device so long that the host has enqueued a rare one meanwhile,
 * and the begin of two graphs takes longer than its launches one by one
 * (bench/results/2026-11-29-gpu-rare-graphs.txt: gains at 2 to 4 launches, a loss at 10). */
static const double most_launches = 8;

/* Operations that all walks have passed since the first recorded step. */
static uint64_t passed(const peal_cuda_plan *plan)
{
    uint64_t count = 0;

    for (int r = 0; r < plan->rank_count; r++)
        count += peal_cuda_ops_since(&plan->rank[r], &plan->graphs->begin[r]);
    return count;
}

/* Operations that the step has. */
static uint64_t operations_of(const peal_cuda_plan *plan, const peal_cuda_rare_step *step)
{
    uint64_t count = 0;

    for (int r = 0; r < plan->rank_count; r++)
        for (int i = 0; i < plan->rank[r].schedule->op_count; i++)
            count += step->change[r].passed[i];
    return count;
}

/* What there is room for still, and what failed. */
typedef struct room {
    uint64_t operations;
    bool any; /* false: the driver, or the list, takes no more graphs */
    peal_status status;
} room;

/* Records the step, which has been looked at, if there is room for it. The walks are behind it.
 * user: the room. False: no other will be. */
static bool record(peal_cuda_plan *plan, peal_cuda_rare_step *step, void *user)
{
    peal_cuda_rare_steps *rare = &plan->graphs->rare;
    room *left = user;
    uint64_t operations = operations_of(plan, step);
    unsigned first = rare->rows;

    left->any = rare->count < PEAL_CUDA_RARE_STEPS;
    if (!left->any || first + step->rows > PEAL_CUDA_ROWS / 2 || operations > left->operations)
        return left->any;
    step->section = PEAL_CUDA_FIRST_RARE + rare->count;
    left->status = peal_cuda_recording_try(plan, step->section, step->begin, 1, &left->any);
    if (!left->any)
        return false;
    left->operations -= operations;
    peal_cuda_rare_step_keep(plan, step, first);
    return true;
}

/* The walks go on to `step`, which no rare condition is met before, unless that takes them too far.
 * False: it does, or they need the device. */
static bool go_on_to(peal_cuda_plan *plan, int64_t step)
{
    while (plan->rank[0].walk.counter[0] < step) {
        for (int r = 0; r < plan->rank_count; r++)
            if (!peal_cuda_advance_walk_only(&plan->rank[r]))
                return false;
        if (passed(plan) > MOST_WALKED)
            return false;
    }
    return true;
}

/* Records each kind once, as they come in the run. */
static void record_kinds(peal_cuda_plan *plan, room *left)
{
    peal_cuda_graphs *graphs = plan->graphs;
    int64_t end = peal_cuda_steps_of_run(plan);

    for (int looked_at = 0; looked_at < PEAL_CUDA_RARE_LOOKED_AT && left->any; looked_at++) {
        int64_t here = plan->rank[0].walk.counter[0];
        int64_t next = peal_cuda_step_conditions_next(&graphs->conditions, here, end);
        peal_cuda_rare_step step;
        if (next >= end || !go_on_to(plan, next))
            return;
        if (peal_cuda_rare_step_find(plan) ||
            peal_cuda_step_conditions_moves_file(&graphs->conditions, next)) {
            if (!go_on_to(plan, next + 1))
                return;
        } else if (!peal_cuda_rare_step_look_at(plan, &step) || !record(plan, &step, left)) {
            return;
        }
    }
}

bool peal_cuda_rare_graphs_fit(const peal_cuda_plan *plan, double launches)
{
    return launches <= most_launches && peal_cuda_pieces_can_be(plan);
}

peal_status peal_cuda_rare_graphs_record(peal_cuda_plan *plan)
{
    peal_cuda_graphs *graphs = plan->graphs;

    if (plan->engine->begin_section)
        return PEAL_STATUS_OK;
    if (graphs->rows > 0 || !peal_cuda_rare_graphs_fit(plan, graphs->launches))
        return PEAL_STATUS_OK;
    room left = {.operations = MOST_RECORDED, .any = true};
    peal_cuda_walks_go_to(plan, graphs->begin);
    record_kinds(plan, &left);
    if (left.any)
        peal_cuda_rare_steps_copy(plan, record, &left);
    return left.status;
}
