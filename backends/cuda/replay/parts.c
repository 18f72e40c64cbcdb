/* Runs by parts of a recording that has moments: steps as usual, and rare steps that are recorded
 * (rare_steps.c) between them, as many as a launch of the engine takes. What is in none of these is
 * run step by step. */
#include "backends/cuda/lower/emit.h"
#include "backends/cuda/replay/replay.h"
#include "backends/cuda/stream/lanes.h"

/* So few steps are run singly, unless they have so many launches: one of the persistent kernel
 * takes longer. */
enum { LEAST_STEPS = 3, LEAST_LAUNCHES = 32 };

/* So long a launch may be that prints rows, which are seen once it is over, in seconds. */
static const double longest_s = 5e-3;

/* A launch that is being put together; the walks are behind its last part. */
typedef struct assembly {
    peal_cuda_part part[PEAL_CUDA_PARTS];
    int count;
    int64_t first, steps; /* of the run */
    int64_t most;         /* steps */
} assembly;

static void add(assembly *a, peal_cuda_part part)
{
    a->part[a->count++] = part;
    a->steps += part.steps;
}

/* In front of the first part: launches what it does not do itself. */
static bool enter(peal_cuda_plan *plan, peal_cuda_moment *const *moment, int64_t from)
{
    for (int r = 0; r < plan->rank_count; r++)
        if (!peal_cuda_moment_enter(&plan->rank[r], &moment[r][from < 0 ? 0 : from]))
            return false;
    /* Rows of single steps may still lie where the launch will store its own. */
    return peal_cuda_replay_set_words(plan, from) &&
           (!peal_cuda_replay_prints(plan->graphs) || peal_cuda_rows_out(plan, true));
}

/* Behind another part: what the rank waits for has to be in the next one, and the step word what
 * that needs, by a part that counts. False: it cannot be. */
static bool go_on(peal_cuda_plan *plan, assembly *a, const peal_cuda_moment *moment, int64_t from)
{
    peal_cuda_rank *rank = &plan->rank[0];
    int64_t word = peal_cuda_replay_word(plan, 0, from), behind = word - plan->graphs->word[0];
    int section = behind != 0 ? peal_cuda_rare_steps_count(plan, behind) : -1;

    if (!peal_cuda_moment_has_waits(rank, moment) || (behind != 0 && section < 0))
        return false;
    peal_cuda_moment_take_waits(rank, moment);
    if (section >= 0)
        add(a, (peal_cuda_part){.section = section});
    plan->graphs->word[0] = word;
    return true;
}

/* Prepares for a part that begins with step `from` of the recording (-1: with a rare step), at
 * these moments, by rank. *fits: false if the launch cannot have it. */
static bool open_part(peal_cuda_plan *plan, assembly *a, peal_cuda_moment *const *moment,
                      int64_t from, bool *fits)
{
    if (a->count == 0)
        return enter(plan, moment, from);
    *fits = go_on(plan, a, &moment[0][from < 0 ? 0 : from], from);
    return true;
}

/* Adds steps as usual. *fits: false if the launch cannot have them. */
static bool add_usual(peal_cuda_plan *plan, assembly *a, int64_t steps, bool *fits)
{
    peal_cuda_graphs *graphs = plan->graphs;
    int64_t from = peal_cuda_moment_find(plan);

    *fits = from >= 0;
    if (!*fits)
        return true;
    if (graphs->rows > 0 && steps > graphs->steps - from)
        steps = graphs->steps - from; /* a step's rows have one place */
    else if (graphs->rows == 0)
        from = plan->engine->choose_from(plan, 0, from, graphs->period, steps);
    if (!open_part(plan, a, graphs->moment, from, fits))
        return false;
    if (!*fits)
        return true;
    add(a, (peal_cuda_part){.section = -1, .from = from, .steps = steps});
    peal_cuda_moment_advance(plan, from, steps);
    for (int r = 0; r < plan->rank_count; r++)
        graphs->word[r] = peal_cuda_replay_word(plan, r, (from + steps) % graphs->steps);
    return true;
}

/* Adds the rare step that the run is at. *fits: false if there is none, or the launch cannot have
 * it. */
static bool add_rare(peal_cuda_plan *plan, assembly *a, bool *fits)
{
    peal_cuda_graphs *graphs = plan->graphs;
    peal_cuda_rare_step *step = peal_cuda_rare_step_find(plan);

    *fits = step && step->used <= graphs->launched;
    if (!*fits)
        return true;
    while (graphs->finished < step->used)
        if (!peal_cuda_replay_finish_oldest(plan))
            return false;
    if (!open_part(plan, a, &step->moment, -1, fits))
        return false;
    if (!*fits)
        return true;
    add(a, (peal_cuda_part){.section = step->section, .steps = 1});
    step->step = plan->rank[0].walk.counter[0];
    step->used = step->rows > 0 ? graphs->launched + 1 : 0;
    peal_cuda_rare_step_advance(plan, step);
    return true;
}

/* The most steps of a launch, so that its rows are seen soon. */
static int64_t most_steps(const peal_cuda_graphs *graphs, int64_t left)
{
    int64_t most = (int64_t)(graphs->rate * longest_s);

    return graphs->rare.rows == 0 || most > left ? left : most < 1 ? 1 : most;
}

/* Puts a launch together from here on, of at most `left` steps. */
static bool assemble(peal_cuda_plan *plan, int64_t left, assembly *a)
{
    int64_t longest = plan->engine->most_rounds(plan) / PEAL_CUDA_PARTS * plan->graphs->steps;
    int64_t most = most_steps(plan->graphs, left);
    bool fits = true, prints = false;

    a->first = plan->rank[0].walk.counter[0];
    /* A part may come with a count in front of it. */
    while (fits && left > a->steps && a->count + 2 <= PEAL_CUDA_PARTS) {
        int64_t here = left - a->steps, usual = peal_cuda_replay_usual(plan, here);
        if (usual > 0 && prints && a->steps + usual > most)
            return true;
        usual = usual < longest ? usual : longest;
        if (usual > 0 ? !add_usual(plan, a, usual, &fits) : !add_rare(plan, a, &fits))
            return false;
        prints |= usual == 0;
        fits &= plan->rank_count == 1 && plan->graphs->rows == 0;
    }
    return true;
}

static bool launch(peal_cuda_plan *plan, const assembly *a)
{
    if (!peal_cuda_join_lanes(plan, false) ||
        !peal_cuda_replay_launch(plan, a->first, a->steps, a->part, a->count))
        return false;
    plan->graphs->replayed += a->steps;
    plan->emission.epoch++;
    return peal_cuda_join_lanes(plan, true);
}

/* Whether a launch is worth while here. */
static bool is_worth(peal_cuda_plan *plan, int64_t left)
{
    int64_t steps = left < LEAST_STEPS ? left : LEAST_STEPS;

    if (left < LEAST_STEPS && (double)left * plan->graphs->launches < LEAST_LAUNCHES)
        return false;
    return peal_cuda_replay_usual(plan, steps) == steps || plan->graphs->rare.count > 0;
}

bool peal_cuda_parts_run(peal_cuda_plan *plan)
{
    int64_t left = plan->run->steps;

    while (left > 0 && !plan->run->stopped) {
        assembly a = {.count = 0};
        if (is_worth(plan, left) && !assemble(plan, left, &a))
            return false;
        /* Rows of single steps come behind those of the replays before. */
        if (a.steps == 0 && peal_cuda_replay_prints(plan->graphs) && !peal_cuda_replay_finish(plan))
            return false;
        if (a.steps > 0 ? !launch(plan, &a) : !peal_cuda_run_steps(plan, 1))
            return false;
        left -= a.steps > 0 ? a.steps : 1;
    }
    return peal_cuda_replay_end(plan);
}
