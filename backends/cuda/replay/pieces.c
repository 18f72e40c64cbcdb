/* Short recordings for the steps between replays of the whole one: an engine that begins and ends
 * with a recording (a CUDA graph) has some of few steps. From any step of a period one leads to its
 * end, from there powers of two of periods go on, and one ends amid the next period. Of the
 * steps between two rare conditions, if these are as many as a period, at most the first and the
 * last are run singly. */
#include "backends/cuda/lower/predicate.h"
#include "backends/cuda/replay/replay.h"

/* A piece of one step is not worth the launch of a graph. Longer periods would need too many
 * pieces. Nor is a run worth it that has few launches. */
enum { LEAST_STEPS = 2, LEAST_LAUNCHES = 32, LONGEST_PERIOD = 16, MOST_LAUNCHES = 1 << 13 };

/* What the application enqueues is captured in the whole recording alone, as it may count calls. */
static bool calls_application(const peal_schedule *schedule)
{
    for (int i = 0; i < schedule->task_count; i++)
        if (schedule->task[i].cuda_function || schedule->task[i].enqueue)
            return true;
    return false;
}

bool peal_cuda_pieces_can_be(const peal_cuda_plan *plan)
{
    /* The log of waits by memory operations, for reports, is of the whole recording. */
    if (!plan->engine->has_pieces || plan->graphs->stops ||
        plan->options.signal == PEAL_CUDA_SIGNAL_MEMOP)
        return false;
    for (int r = 0; r < plan->rank_count; r++)
        if (plan->rank[r].predicates->any || calls_application(plan->rank[r].schedule))
            return false;
    return true;
}

bool peal_cuda_pieces_fit(const peal_cuda_plan *plan, int64_t period, double launches)
{
    double steps = (double)(period * period) + 2 * (double)PEAL_CUDA_PIECES_UP_TO;

    return period <= LONGEST_PERIOD && steps * launches <= MOST_LAUNCHES &&
           peal_cuda_pieces_can_be(plan);
}

int64_t peal_cuda_pieces_of_run(peal_cuda_plan *plan, int64_t steps)
{
    peal_cuda_graphs *graphs = plan->graphs;
    int64_t run = peal_cuda_steps_of_run(plan);

    if (!plan->engine->has_pieces || graphs->stops || run >= steps ||
        graphs->launches * (double)run < LEAST_LAUNCHES || graphs->begin[0].counter[0] > 0 ||
        peal_cuda_step_conditions_next(&graphs->conditions, 0, run) < run)
        return steps;
    return run;
}

static void add(peal_cuda_plan *plan, int64_t from, int64_t steps)
{
    peal_cuda_graphs *graphs = plan->graphs;
    peal_cuda_piece *piece = &graphs->piece[graphs->piece_count];

    if (steps < LEAST_STEPS || steps >= graphs->steps || graphs->piece_count == PEAL_CUDA_PIECES)
        return;
    *piece = (peal_cuda_piece){.from = from, .steps = steps};
    piece->begin = PEAL_ARENA_ARRAY(plan->arena, peal_walk, plan->rank_count);
    piece->change = PEAL_ARENA_ARRAY(plan->arena, state_change, plan->rank_count);
    for (int r = 0; r < plan->rank_count; r++)
        peal_walk_init(&piece->begin[r], plan->rank[r].program, plan->arena, 0);
    graphs->piece_count++;
}

void peal_cuda_pieces_choose(peal_cuda_plan *plan)
{
    peal_cuda_graphs *graphs = plan->graphs;
    int64_t period = graphs->period;

    graphs->piece_count = 0;
    if (graphs->rows > 0 || graphs->steps < period ||
        !peal_cuda_pieces_fit(plan, period, graphs->launches))
        return;
    graphs->piece = PEAL_ARENA_ARRAY(plan->arena, peal_cuda_piece, PEAL_CUDA_PIECES);
    int64_t most = period;
    while (2 * most < graphs->steps && 2 * most <= PEAL_CUDA_PIECES_UP_TO)
        most *= 2;
    for (int64_t steps = most; steps >= period; steps /= 2)
        add(plan, 0, steps);
    for (int64_t steps = period - 1; steps > 0; steps--)
        add(plan, period - steps, steps);
    for (int64_t steps = period - 1; steps > 0; steps--)
        add(plan, 0, steps);
}

static bool is_here(const peal_cuda_plan *plan, const peal_cuda_piece *piece)
{
    for (int r = 0; r < plan->rank_count; r++) {
        const peal_cuda_rank *rank = &plan->rank[r];
        int64_t apart = rank->walk.counter[0] - piece->begin[r].counter[0];
        if (!peal_cuda_is_period(rank, &piece->begin[r], apart, piece->change[r].message))
            return false;
    }
    return true;
}

int peal_cuda_piece_find(const peal_cuda_plan *plan, int64_t most)
{
    for (int i = 0; i < plan->graphs->piece_count; i++)
        if (plan->graphs->piece[i].steps <= most && is_here(plan, &plan->graphs->piece[i]))
            return i;
    return -1;
}
