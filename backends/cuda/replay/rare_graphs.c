/* Rare steps as recordings of their own, for an engine without sections (a CUDA graph): a step in
 * which a rare condition is not as usual is one launch, like those between. */
#include "backends/cuda/lower/predicate.h"
#include "backends/cuda/replay/replay.h"

/* Rare steps that are looked at before the end of the run; operations that are walked for it, and
 * that all graphs have together. */
enum { MOST_LOOKED_AT = 96, MOST_WALKED = 1 << 20, MOST_RECORDED = 1 << 13 };

/* Steps of more launches take the device so long that the host has enqueued a rare one meanwhile,
 * and the begin of two graphs takes longer than its launches one by one
 * (bench/results/2026-11-29-gpu-rare-graphs.txt: gains at 2 to 4 launches, a loss at 10). */
static const double most_launches = 8;

/* Operations that the walks have passed. */
static uint64_t passed(const peal_cuda_plan *plan)
{
    uint64_t count = 0;

    for (int r = 0; r < plan->rank_count; r++)
        for (int i = 0; i < plan->rank[r].schedule->op_count; i++)
            count += plan->rank[r].walk.passed[i];
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

/* What there is room for still. */
typedef struct room {
    uint64_t operations;
    bool any; /* false: the driver, or the list, takes no more graphs */
} room;

/* Records the step, which has been looked at, if there is room for it. The walks are behind it. */
static peal_status record(peal_cuda_plan *plan, peal_cuda_rare_step *step, room *left)
{
    peal_cuda_rare_steps *rare = &plan->graphs->rare;
    uint64_t operations = operations_of(plan, step);
    unsigned first = rare->rows;

    left->any = rare->count < PEAL_CUDA_RARE_STEPS;
    if (!left->any || first + step->rows > PEAL_CUDA_ROWS / 2 || operations > left->operations)
        return PEAL_STATUS_OK;
    step->section = PEAL_CUDA_FIRST_RARE + rare->count;
    peal_status status = peal_cuda_recording_try(plan, step->section, step->begin, 1, &left->any);
    if (!left->any)
        return status;
    left->operations -= operations;
    peal_cuda_rare_step_keep(plan, step, first);
    return status;
}

/* The walks go on to `step`, which no rare condition is met before, as long as they have not passed
 * `most` operations. False: they have, or they need the device. */
static bool go_on_to(peal_cuda_plan *plan, int64_t step, uint64_t most)
{
    while (plan->rank[0].walk.counter[0] < step) {
        for (int r = 0; r < plan->rank_count; r++)
            if (!peal_cuda_advance_walk_only(&plan->rank[r]))
                return false;
        if (passed(plan) > most)
            return false;
    }
    return true;
}

/* Records each kind once, as they come in the run. */
static peal_status record_kinds(peal_cuda_plan *plan, room *left)
{
    peal_cuda_graphs *graphs = plan->graphs;
    int64_t end = peal_cuda_steps_of_run(plan);
    uint64_t most = passed(plan) + MOST_WALKED;
    peal_status status = PEAL_STATUS_OK;

    for (int looked_at = 0; looked_at < MOST_LOOKED_AT && left->any && !status; looked_at++) {
        int64_t here = plan->rank[0].walk.counter[0];
        int64_t next = peal_cuda_step_conditions_next(&graphs->conditions, here, end);
        peal_cuda_rare_step step;
        if (next >= end || !go_on_to(plan, next, most))
            return PEAL_STATUS_OK;
        if (peal_cuda_rare_step_find(plan) ||
            peal_cuda_step_conditions_moves_file(&graphs->conditions, next)) {
            if (!go_on_to(plan, next + 1, most))
                return PEAL_STATUS_OK;
            continue;
        }
        if (!peal_cuda_rare_step_look_at(plan, &step))
            return PEAL_STATUS_OK;
        status = record(plan, &step, left);
    }
    return status;
}

/* Records those again that print, in turn: their rows have one place each. */
static peal_status record_copies(peal_cuda_plan *plan, room *left)
{
    peal_cuda_rare_steps *rare = &plan->graphs->rare;
    int count = rare->count;
    peal_status status = PEAL_STATUS_OK;

    for (int copy = 1; copy < PEAL_CUDA_RARE_ALIKE; copy++)
        for (int i = 0; i < count && left->any && !status; i++) {
            peal_cuda_rare_step step = rare->of[i];
            if (step.rows > 0)
                status = record(plan, &step, left);
        }
    return status;
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
    peal_cuda_rare_steps_clear(plan);
    if (graphs->rows > 0 || !peal_cuda_rare_graphs_fit(plan, graphs->launches))
        return PEAL_STATUS_OK;
    room left = {.operations = MOST_RECORDED, .any = true};
    peal_cuda_walks_go_to(plan, graphs->begin);
    peal_status status = record_kinds(plan, &left);
    return status ? status : record_copies(plan, &left);
}
