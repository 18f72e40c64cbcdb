/* Replays that begin and end amid a recording. In front of each recorded step nothing is being put
 * together, so that a launch may begin or end there; where the walks of ranks are then was noted
 * when they were recorded. */
#include "backends/cuda/lower/emit.h"
#include "backends/cuda/lower/predicate.h"
#include "backends/cuda/replay/replay.h"

#include <string.h>

enum { MOST_WORDS = 1 << 21 }; /* of all moments of a rank */

bool peal_cuda_moments_fit(const peal_cuda_plan *plan, int64_t steps)
{
    if (!plan->engine->launches_parts || !plan->engine->launches_parts(plan) || plan->graphs->stops)
        return false;
    for (int r = 0; r < plan->rank_count; r++) {
        const peal_cuda_rank *rank = &plan->rank[r];
        int64_t words = rank->schedule->op_count + rank->schedule->array_count +
                        rank->program->message_counter_count;
        if (rank->predicates->any || rank->lanes > 1 || steps > MOST_WORDS / (words + 1))
            return false;
    }
    return true;
}

void peal_cuda_moments_create(peal_cuda_plan *plan)
{
    peal_cuda_graphs *graphs = plan->graphs;

    graphs->moment = NULL;
    if (!peal_cuda_moments_fit(plan, graphs->steps))
        return;
    graphs->moment = PEAL_ARENA_ARRAY(plan->arena, peal_cuda_moment *, plan->rank_count);
    for (int r = 0; r < plan->rank_count; r++)
        graphs->moment[r] = PEAL_ARENA_ARRAY(plan->arena, peal_cuda_moment, graphs->steps + 1);
}

void peal_cuda_moment_keep_waits(const peal_cuda_rank *rank, peal_cuda_moment *moment)
{
    const peal_cuda_lane *lane = &rank->lane[0];

    moment->wait_count = lane->pending_count;
    moment->wait =
        PEAL_ARENA_ARRAY(rank->plan->arena, peal_cuda_pending_wait, lane->pending_count + 1);
    memcpy(moment->wait, lane->pending, (size_t)lane->pending_count * sizeof(*moment->wait));
}

bool peal_cuda_moment_note(peal_cuda_rank *rank)
{
    peal_cuda_plan *plan = rank->plan;
    const peal_walk *begin = &plan->graphs->begin[rank->index];
    int ops = rank->schedule->op_count, arrays = rank->schedule->array_count;
    int counters = rank->program->message_counter_count;
    int64_t step = rank->walk.counter[0] - rank->graph_begin;
    peal_cuda_moment *moment = &plan->graphs->moment[rank->index][step];

    if (!peal_cuda_flush_groups(rank))
        return false;
    moment->passed = PEAL_ARENA_ARRAY(plan->arena, uint64_t, ops + 1);
    moment->message = PEAL_ARENA_ARRAY(plan->arena, uint64_t, counters + 1);
    moment->binding = PEAL_ARENA_ARRAY(plan->arena, int, arrays + 1);
    for (int i = 0; i < ops; i++)
        moment->passed[i] = rank->walk.passed[i] - begin->passed[i];
    for (int i = 0; i < counters; i++)
        moment->message[i] = rank->walk.message[i] - begin->message[i];
    memcpy(moment->binding, rank->walk.binding, (size_t)arrays * sizeof(int));
    moment->counted = rank->graph_step - rank->graph_begin;
    peal_cuda_moment_keep_waits(rank, moment);
    plan->engine->mark_step(rank, step);
    return true;
}

/* Whether what the recording holds as constants from a moment on is right for the walk. */
static bool is_at(const peal_cuda_rank *rank, int64_t step)
{
    const peal_cuda_graphs *graphs = rank->plan->graphs;
    const peal_walk *begin = &graphs->begin[rank->index];
    const peal_cuda_moment *moment = &graphs->moment[rank->index][step];
    size_t bytes = (size_t)rank->schedule->array_count * sizeof(int);
    int64_t apart = rank->walk.counter[0] - begin->counter[0] - step;

    return (!rank->scratch || apart % PEAL_CUDA_RING_STEPS == 0) &&
           memcmp(moment->binding, rank->walk.binding, bytes) == 0 &&
           peal_cuda_step_conditions_repeat(&graphs->conditions, rank, apart) &&
           peal_cuda_messages_agree(rank, begin, moment->message,
                                    graphs->change[rank->index].message);
}

static bool all_are_at(const peal_cuda_plan *plan, int64_t step)
{
    for (int r = 0; r < plan->rank_count; r++)
        if (!is_at(&plan->rank[r], step))
            return false;
    return true;
}

int64_t peal_cuda_moment_find(const peal_cuda_plan *plan)
{
    const peal_cuda_graphs *graphs = plan->graphs;
    int64_t apart = plan->rank[0].walk.counter[0] - graphs->begin[0].counter[0];
    int64_t usual = (apart % graphs->steps + graphs->steps) % graphs->steps;

    if (all_are_at(plan, usual))
        return usual;
    /* Rare messages of a channel that has others, too, have changed which one it is. */
    for (int64_t step = 0; step < graphs->period; step++)
        if (all_are_at(plan, step))
            return step;
    return -1;
}

static bool waits_for(const peal_cuda_moment *moment, const peal_cuda_pending_wait *wait)
{
    for (int i = 0; i < moment->wait_count; i++)
        if (moment->wait[i].op == wait->op && moment->wait[i].value == wait->value)
            return true;
    return false;
}

bool peal_cuda_moment_has_waits(const peal_cuda_rank *rank, const peal_cuda_moment *moment)
{
    const peal_cuda_lane *lane = &rank->lane[0];

    for (int i = 0; i < lane->pending_count; i++)
        if (!waits_for(moment, &lane->pending[i]))
            return false;
    return true;
}

void peal_cuda_moment_take_waits(peal_cuda_rank *rank, const peal_cuda_moment *moment)
{
    peal_cuda_lane *lane = &rank->lane[0];
    int kept = 0;

    for (int i = 0; i < lane->pending_count; i++)
        if (waits_for(moment, &lane->pending[i]))
            rank->member[lane->pending[i].op] = 0;
        else
            lane->pending[kept++] = lane->pending[i];
    lane->pending_count = kept;
}

bool peal_cuda_moment_enter(peal_cuda_rank *rank, const peal_cuda_moment *moment)
{
    if (!peal_cuda_flush_groups(rank))
        return false;
    peal_cuda_moment_take_waits(rank, moment);
    return peal_cuda_flush_all(rank);
}

static void advance(peal_cuda_rank *rank, int64_t from, int64_t steps)
{
    const peal_cuda_graphs *graphs = rank->plan->graphs;
    const peal_cuda_moment *first = &graphs->moment[rank->index][from];
    const peal_cuda_moment *last = &graphs->moment[rank->index][(from + steps) % graphs->steps];
    const state_change *change = &graphs->change[rank->index];
    uint64_t rounds = (uint64_t)((from + steps) / graphs->steps);
    peal_walk_loop_state *outer = &rank->walk.loop[rank->schedule->loop_count];
    peal_cuda_lane *lane = &rank->lane[0];

    for (int i = 0; i < rank->schedule->op_count; i++)
        rank->walk.passed[i] += rounds * change->passed[i] + last->passed[i] - first->passed[i];
    for (int i = 0; i < rank->program->message_counter_count; i++)
        rank->walk.message[i] += rounds * change->message[i] + last->message[i] - first->message[i];
    memcpy(rank->walk.binding, last->binding, (size_t)rank->schedule->array_count * sizeof(int));
    outer->iteration += steps;
    rank->walk.counter[0] = outer->iteration;
    /* What the recording would have waited for later is to be waited for still. */
    lane->pending_count = last->wait_count;
    for (int i = 0; i < last->wait_count; i++) {
        lane->pending[i] = last->wait[i];
        lane->pending[i].instance = rank->walk.passed[last->wait[i].op];
        rank->member[last->wait[i].op] = PEAL_CUDA_PENDING;
    }
}

void peal_cuda_moment_advance(peal_cuda_plan *plan, int64_t from, int64_t steps)
{
    for (int r = 0; r < plan->rank_count; r++)
        advance(&plan->rank[r], from, steps);
}
