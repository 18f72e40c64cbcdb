/* Recorded steps once more, with nothing between them. In front of each step of the first recording
 * a launch may begin or end, so nothing that emission puts together lies across (moment.c). But
 * where steps begin with an exchange, its messages join the work of the step before, if they may:
 * of two launches a step one is left. So the steps are recorded again, and parts of launches run
 * these, and the first ones only where they begin or end at a step that a launch lies across. */
#include "backends/cuda/lower/emit.h"
#include "backends/cuda/replay/replay.h"

/* At most so many steps lie between two bounds that nothing lies across. */
enum { MOST_WITHIN = 32 };

bool peal_cuda_joined_steps_record(peal_cuda_plan *plan)
{
    peal_cuda_graphs *graphs = plan->graphs;

    if (!graphs->moment || plan->rank_count > 1 || !plan->engine->begin_joined)
        return true;
    /* Rows have their places: they are the same. */
    plan->run->mailbox.recorded_rows = 0;
    peal_cuda_walks_go_to(plan, graphs->begin);
    peal_cuda_recording_begin(plan);
    plan->engine->begin_joined(plan);
    graphs->is_joined = true;
    bool ok = peal_cuda_joined_step_begin(&plan->rank[0]) &&
              peal_cuda_run_steps(plan, graphs->steps) && peal_cuda_flush_all(&plan->rank[0]);
    graphs->is_joined = false;
    bool has_room = plan->engine->end_joined(plan);
    /* So many steps as --lower asks for are recorded, at least once. */
    graphs->is_cramped = ok && !has_room && !graphs->twice && plan->options.steps == 0;
    return ok;
}

/* Whether the recording waits later for the same as the first one does there. */
static bool has_same_waits(const peal_cuda_rank *rank, const peal_cuda_moment *moment)
{
    const peal_cuda_lane *lane = &rank->lane[0];

    if (lane->pending_count != moment->wait_count)
        return false;
    for (int i = 0; i < moment->wait_count; i++)
        if (lane->pending[i].op != moment->wait[i].op ||
            lane->pending[i].value != moment->wait[i].value)
            return false;
    return true;
}

/* Whether nothing may lie across the begin of that step; the end of the run is such a place. */
static bool is_bound(const peal_cuda_plan *plan, int64_t step)
{
    const peal_cuda_graphs *graphs = plan->graphs;
    int64_t end = peal_cuda_steps_of_run(plan) - graphs->begin[0].counter[0];

    return step % MOST_WITHIN == 0 || step == end % graphs->steps;
}

bool peal_cuda_joined_step_begin(peal_cuda_rank *rank)
{
    int64_t step = rank->walk.counter[0] - rank->graph_begin;

    if (is_bound(rank->plan, step) && !peal_cuda_flush_groups(rank))
        return false;
    if (has_same_waits(rank, &rank->plan->graphs->moment[rank->index][step]))
        rank->plan->engine->mark_joined(rank, step);
    return true;
}
