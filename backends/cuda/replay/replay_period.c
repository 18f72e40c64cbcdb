/* Finds K, the number of iterations of a recording: after them everything that its launches hold as
 * constants is as before. If there is no such K, the reason is reported. */
#include "backends/cuda/lower/emit.h"
#include "backends/cuda/lower/predicate.h"
#include "backends/cuda/replay/replay.h"

#include <string.h>

enum { MOST_STEPS = 2048, LEAST_STEPS = 64 };

/* Loops whose end the device decides are recorded in full, and may make many ops of few steps.
 * ENOUGH_OPS ops hide the launch of a replay; more than MOST_OPS are refused. */
enum { ENOUGH_OPS = 1 << 12, MOST_OPS = 1 << 18 };

/* ---- how many steps ---- */

/* Work of the application is replayed as it was captured: no argument may change, and nothing can
 * skip it. */
static bool call_repeats(const peal_cuda_rank *rank, const peal_op *op, const char **reason)
{
    const peal_schedule_task *task = &rank->schedule->task[op->task];

    if (!task->cuda_function && !task->enqueue)
        return true;
    if (rank->schedule->outer.until)
        *reason = "`until`: the application's CUDA functions cannot be skipped";
    for (int i = 0; i < task->argument_count; i++)
        if (!rank->task[op->task].argument[i].is_constant)
            *reason = "an argument of the application's CUDA function that changes";
    return *reason == NULL;
}

static bool ops_repeat(const peal_cuda_rank *rank, const char **reason)
{
    const peal_schedule *schedule = rank->schedule;
    const uint64_t *passed = rank->plan->graphs->begin[rank->index].passed;

    for (int i = schedule->step.first; i < schedule->step.end; i++) {
        const peal_op *op = &schedule->op[i];
        if (op->kind != PEAL_OP_LAUNCH)
            continue;
        if (peal_cuda_moves_file(schedule, op) && rank->walk.passed[i] > passed[i]) {
            *reason = "`load` or `save` in steps that are to be recorded: work of the host";
            return false;
        }
        if (!call_repeats(rank, op, reason))
            return false;
    }
    return peal_cuda_predicates_are_supported(rank, reason);
}

bool peal_cuda_messages_agree(const peal_cuda_rank *rank, const peal_walk *begin,
                              const uint64_t *since, const uint64_t *recorded)
{
    const peal_schedule *schedule = rank->schedule;

    for (int i = 0; i < schedule->op_count; i++) {
        int counter = rank->program->op[i].message_counter;
        if (counter < 0 || (recorded && recorded[counter] == 0))
            continue;
        const peal_channel *channel = &schedule->channel[schedule->op[i].channel];
        uint64_t sent = rank->walk.message[counter] - begin->message[counter];
        sent -= since ? since[counter] : 0;
        if (sent * channel->quantum != 0 || (int64_t)sent % channel->slots != 0)
            return false;
    }
    return true;
}

bool peal_cuda_is_period(const peal_cuda_rank *rank, const peal_walk *begin, int64_t steps,
                         const uint64_t *recorded)
{
    const peal_schedule *schedule = rank->schedule;
    const peal_walk_loop_state *outer = &begin->loop[schedule->loop_count];

    if (memcmp(begin->binding, rank->walk.binding, (size_t)schedule->array_count * sizeof(int)) !=
        0)
        return false;
    if (!peal_cuda_messages_agree(rank, begin, NULL, recorded))
        return false;
    if (schedule->outer.until && outer->every > 1 && steps % outer->every != 0)
        return false;
    if (rank->scratch && steps % PEAL_CUDA_RING_STEPS != 0)
        return false;
    uint64_t evaluations = rank->walk.loop[schedule->loop_count].evaluations - outer->evaluations;
    if (schedule->outer.until && evaluations % ((uint64_t)outer->lag + 1) != 0)
        return false;
    return peal_cuda_step_conditions_repeat(&rank->plan->graphs->conditions, rank, steps);
}

bool peal_cuda_advance_walk_only(peal_cuda_rank *rank)
{
    bool stop;

    rank->walk.position = rank->schedule->step.first;
    return peal_cuda_walk_section_only(rank, &rank->schedule->step) &&
           peal_walk_step_done(&rank->walk, &stop) == PEAL_WALK_OP;
}

static bool all_repeat(const peal_cuda_plan *plan, int64_t steps, const char **reason)
{
    for (int r = 0; r < plan->rank_count; r++)
        if (!peal_cuda_is_period(&plan->rank[r], &plan->graphs->begin[r], steps, NULL))
            return false;
    /* Whether loops end where their swaps have come round is known now. */
    for (int r = 0; r < plan->rank_count; r++)
        if (!ops_repeat(&plan->rank[r], reason))
            return false;
    return true;
}

/* Walks on until the state repeats, and returns after how many steps. 0: it does not within `most`
 * steps; *reason says why. */
static int64_t find_period(peal_cuda_plan *plan, int64_t most, const char **reason)
{
    for (int64_t steps = 1; steps <= most; steps++) {
        for (int r = 0; r < plan->rank_count; r++)
            if (!peal_cuda_advance_walk_only(&plan->rank[r])) {
                *reason = "a run-time condition";
                return 0;
            }
        if (all_repeat(plan, steps, reason))
            return steps;
        if (*reason)
            return 0;
    }
    *reason = most < MOST_STEPS ? "conditions on the step are met too often: no steps between them "
                                  "come round"
                                : "no period of at most 2048 steps";
    return 0;
}

uint64_t peal_cuda_ops_since(const peal_cuda_rank *rank, const peal_walk *begin)
{
    uint64_t count = 0;

    for (int i = 0; i < rank->schedule->op_count; i++)
        count += rank->walk.passed[i] - begin->passed[i];
    return count;
}

uint64_t peal_cuda_rows_since(const peal_cuda_plan *plan, const peal_walk *begin)
{
    uint64_t rows = 0;

    for (int r = 0; r < plan->rank_count; r++) {
        const peal_cuda_rank *rank = &plan->rank[r];
        for (int i = rank->schedule->step.first; i < rank->schedule->step.end; i++)
            if (rank->schedule->rank == 0 && rank->op[i].task &&
                rank->op[i].task->kind == PEAL_TASK_PRINT)
                rows += rank->walk.passed[i] - begin[r].passed[i];
    }
    return rows;
}

/* The most steps of a recording, so that there is room for the rows that it prints. */
static int64_t most_steps(const peal_cuda_plan *plan, int64_t period)
{
    uint64_t rows = peal_cuda_rows_since(plan, plan->graphs->begin);
    int64_t periods = rows > 0 ? PEAL_CUDA_ROWS / 2 / (int64_t)rows : MOST_STEPS;
    return periods < MOST_STEPS / period ? periods * period : MOST_STEPS;
}

/* Whether what a launch waits for is a launch of its own in the recording. */
static bool receives_apart(const peal_cuda_plan *plan)
{
    return plan->engine->receives_apart && plan->engine->receives_apart(plan);
}

/* The number of launches that a recording of the steps since graphs->begin has, of the rank that
 * has most. */
static uint64_t launches_since(const peal_cuda_plan *plan)
{
    uint64_t most = 1;

    for (int r = 0; r < plan->rank_count; r++) {
        const peal_cuda_rank *rank = &plan->rank[r];
        uint64_t here = 1;
        for (int i = 0; i < rank->schedule->op_count; i++) {
            peal_op_kind kind = rank->schedule->op[i].kind;
            bool receives = kind == PEAL_OP_WAIT && receives_apart(plan);
            if (kind == PEAL_OP_LAUNCH || kind == PEAL_OP_COPY || receives)
                here += rank->walk.passed[i] - plan->graphs->begin[r].passed[i];
        }
        most = here > most ? here : most;
    }
    return most;
}

/* Emission makes one launch of some operations, not of many more. */
enum { MOST_MERGED = 8 };

/* For so many launches there is room in a recording. Where its steps stand there twice, they have
 * half of it; a third, if so few are hoped for as they have the second time. */
static int64_t room(const peal_cuda_plan *plan, bool hoped)
{
    int64_t all = plan->engine->most_launches * 7 / 8;

    return !plan->graphs->twice ? all : hoped ? all / 3 : all / 2;
}

static bool hopes_for(const peal_cuda_plan *plan, int64_t steps, int64_t most, int64_t period)
{
    return plan->graphs->hopes && steps <= most &&
           launches_since(plan) <= MOST_MERGED * (uint64_t)period;
}

bool peal_cuda_launches_fit(const peal_cuda_plan *plan)
{
    int most = plan->engine->most_launches;

    return most == 0 || launches_since(plan) <= (uint64_t)most ||
           hopes_for(plan, plan->graphs->period, most * 7 / 8, plan->graphs->period);
}

/* The most steps whose launches the engine is sure to have room for. */
static int64_t most_recorded(const peal_cuda_plan *plan, int64_t period)
{
    if (plan->engine->most_launches == 0)
        return MOST_STEPS;
    return room(plan, false) / (int64_t)launches_since(plan) * period;
}

/* As many, if emission makes one launch of each step. */
static int64_t most_hoped_for(const peal_cuda_plan *plan, int64_t period)
{
    int64_t sure = most_recorded(plan, period), most = room(plan, true);

    return hopes_for(plan, sure, most, period) ? most : sure;
}

/* The least number of steps that hides the launch of a replay, if `period` steps have `ops` ops (0:
 * they are not counted). 0: the period has too many ops; *reason says so. */
static int64_t least_steps(const peal_cuda_plan *plan, int64_t period, uint64_t ops,
                           const char **reason)
{
    if (ops > MOST_OPS)
        *reason = "loops that `until` may end have more than 262144 operations in a period: give "
                  "them a smaller `repeat`";
    if (ops > MOST_OPS)
        return 0;
    if (plan->options.steps || ops < ENOUGH_OPS / LEAST_STEPS * (uint64_t)period)
        return plan->options.steps ? plan->options.steps : LEAST_STEPS;
    return (int64_t)(ENOUGH_OPS * (uint64_t)period / ops);
}

/* ---- what a choice costs ---- */

/* Microseconds: what a launch of a step that is run singly takes more than in a replay; that the
 * persistent kernel begins anew behind single steps, or behind itself; a round of either engine;
 * recording a step. Samples on 2 H100 (bench/results/2026-11-26-gpu-samples-3.txt, what runs as
 * typed took more than long ones): 2 to 10 us a launch of a single step; in fused 74 to 180 us for
 * each single step between two launches of the kernel. Recording costs where the plan is made, not
 * in its steps: that number is a guess. */
static const double cost_of_single = 5, cost_of_break = 60, cost_of_launch = 10, cost_of_round = 3,
                    cost_of_record = 0.5;

/* More launches than the engine is sure to have room for: taken only if there is nothing else. */
static const double cost_of_no_room = 1e12;
/* More steps than need be, where that is asked for, or where it is not known how many there are:
 * starts of an application may be shorter. */
static const double cost_of_long = 1e9;

/* Where the steps of a run are as usual: series of steps in none of which a rare condition is not.
 */
typedef struct gap {
    int64_t from, to; /* steps [from, to) */
} gap;

typedef struct gaps {
    gap *of;
    int count;
    int64_t end;   /* the steps before it are looked at */
    bool is_known; /* the number of steps of the run */
} gaps;

enum { MOST_GAPS = 1 << 12, STEPS_IF_UNKNOWN = 1 << 12, STEPS_LOOKED_AT = 1 << 16 };

static const peal_walk_value *repeat_of(const peal_cuda_plan *plan)
{
    const peal_cuda_rank *rank = &plan->rank[0];

    return &rank->program->loop[rank->schedule->loop_count].repeat;
}

int64_t peal_cuda_steps_of_run(const peal_cuda_plan *plan)
{
    const peal_walk_value *repeat = repeat_of(plan);
    int64_t steps = repeat->is_constant ? repeat->value.u.integer : STEPS_IF_UNKNOWN;

    return steps < 1 ? STEPS_IF_UNKNOWN : steps < STEPS_LOOKED_AT ? steps : STEPS_LOOKED_AT;
}

static gaps find_gaps(peal_cuda_plan *plan, int64_t end)
{
    peal_cuda_step_conditions *conditions = &plan->graphs->conditions;
    gaps g = {.of = PEAL_ARENA_ARRAY(plan->arena, gap, MOST_GAPS),
              .end = end,
              .is_known = repeat_of(plan)->is_constant && repeat_of(plan)->value.u.integer > 0};
    int64_t step = 0;

    while (step < end && g.count < MOST_GAPS) {
        int64_t next = peal_cuda_step_conditions_next(conditions, step, end);
        if (next > step)
            g.of[g.count++] = (gap){step, next};
        step = next > step ? next : step + 1;
    }
    g.end = step;
    return g;
}

/* The length of the longest gap, or of the first that is long enough for any recording; *begin: its
 * first step. Where no condition is met, runs may go on for longer than is looked at. */
static int64_t longest_gap(peal_cuda_plan *plan, const gaps *g, int64_t *begin)
{
    int64_t longest = 0;

    for (int i = 0; i < g->count && longest < MOST_STEPS; i++)
        if (g->of[i].to - g->of[i].from > longest) {
            longest = g->of[i].to - g->of[i].from;
            *begin = g->of[i].from;
        }
    if (g->count == 1 && longest == g->end)
        return peal_cuda_step_conditions_next(&plan->graphs->conditions, 0, MOST_STEPS);
    return longest;
}

/* A recording: its first step, its period, and K. */
typedef struct choice {
    int64_t most_kept; /* conditions of a longer period are rare */
    int64_t begin, period, steps;
    double launches; /* of a step */
    double cost;
} choice;

/* How an engine replays a choice: in parts, which begin and end amid the recording, or with pieces
 * before and behind it, and with rare steps as recordings of their own. */
typedef struct replay_kind {
    bool is_kernel, prints, in_parts, in_pieces, has_rare;
} replay_kind;

/* What the steps of a run cost beside the same number of steps in one replay. */
static double cost_of(const gaps *g, const choice *c, const replay_kind *kind)
{
    int64_t replayed = 0, usual = 0, breaks = 0, launches = 0, rounds = 0;

    for (int i = 0; i < g->count; i++) {
        int64_t step = g->of[i].from, length = g->of[i].to - step;
        int64_t away = step < c->begin ? c->begin - step
                                       : (c->period - (step - c->begin) % c->period) % c->period;
        away = kind->in_parts ? 0 : away;
        int64_t count = length > away ? (length - away) / c->steps : 0;
        int64_t rest = length - away - count * c->steps;
        if (kind->in_parts) {
            count += rest > 0;
        } else if (kind->in_pieces && rest > 0) {
            rounds += away > 0;
            for (; rest > 0; rest = rest < c->period ? 0 : rest / 2)
                rounds++;
        }
        rounds += count;
        breaks += count > 0;
        launches += kind->prints ? count : count > 0; /* a launch is of one recording at most */
        replayed += kind->in_parts || kind->in_pieces ? length : count * c->steps;
        usual += length;
    }
    if (kind->has_rare) {
        rounds += g->end - usual;
        replayed += g->end - usual;
    }
    double of_kernel =
        cost_of_break * (double)breaks + cost_of_launch * (double)(launches - breaks);
    return cost_of_single * c->launches * (double)(g->end - replayed) +
           (kind->is_kernel ? of_kernel : 0) + cost_of_round * (double)rounds +
           cost_of_record * (double)c->steps;
}

/* Chooses K, of which the walks have made one period. */
static void choose_multiple(peal_cuda_plan *plan, const gaps *g, int64_t longest, int64_t least,
                            choice *c)
{
    int64_t most = most_steps(plan, c->period), recorded = most_hoped_for(plan, c->period);
    bool forced = plan->options.steps > 0;
    /* Starts of an application may be shorter than the run: K is not longer than it need be, but
     * where a longer one fits better between events or into a short run. */
    bool is_short = g->count > 1 || g->end <= 16 * LEAST_STEPS;
    bool prints = most_steps(plan, 1) < MOST_STEPS;
    replay_kind kind = {.is_kernel = plan->engine->most_rounds != NULL,
                        .prints = prints,
                        .in_pieces = !prints && peal_cuda_pieces_fit(plan, c->period, c->launches),
                        .has_rare = !prints && peal_cuda_rare_graphs_fit(plan, c->launches)};
    choice now = *c;

    most = recorded < most ? recorded : most;
    most = longest < most ? longest : most;
    for (now.steps = c->period; now.steps <= most || now.steps == c->period;
         now.steps += c->period) {
        bool enough = now.steps >= least || now.steps + c->period > most;
        if (forced && !enough)
            continue;
        kind.in_parts = peal_cuda_moments_fit(plan, now.steps);
        now.cost = cost_of(g, &now, &kind);
        if (now.steps > recorded)
            now.cost += cost_of_no_room;
        if (now.steps > 4 * least && (forced || !g->is_known))
            now.cost += cost_of_long;
        if (!c->steps || now.cost < c->cost)
            *c = now;
        if (now.steps >= (forced || !is_short ? least : 4 * least))
            break;
    }
}

/* ---- which conditions are kept ---- */

/* The greatest period of a condition below `below`; 0: there is none. */
static int64_t next_period(const peal_cuda_step_conditions *conditions, int64_t below)
{
    int64_t most = 0;

    for (int i = 0; i < conditions->count; i++) {
        int64_t period = conditions->of[i].atom.period;
        if (period < below && period > most)
            most = period;
    }
    return most;
}

/* Tries the choice in which conditions of a period of at most c->most_kept are kept. c->steps 0:
 * there is no period then, *reason says why. */
static void try_choice(peal_cuda_plan *plan, choice *c, const char **reason)
{
    peal_cuda_graphs *graphs = plan->graphs;
    int64_t run = peal_cuda_steps_of_run(plan);

    if (!peal_cuda_step_conditions_keep(&graphs->conditions, c->most_kept, run)) {
        *reason = "a condition that compares the step and an inner counter";
        return;
    }
    gaps g = find_gaps(plan, run);
    int64_t longest = longest_gap(plan, &g, &c->begin);
    if (!peal_cuda_walk_to(plan, c->begin)) {
        *reason = "a run-time condition in setup";
        return;
    }
    c->period = find_period(plan, longest < MOST_STEPS ? longest : MOST_STEPS, reason);
    if (!c->period)
        return;
    c->launches = (double)launches_since(plan) / (double)c->period;
    const peal_cuda_rank *rank = &plan->rank[0];
    uint64_t ops = rank->predicates->any ? peal_cuda_ops_since(rank, &graphs->begin[0]) : 0;
    int64_t least = least_steps(plan, c->period, ops, reason);
    if (most_steps(plan, c->period) < c->period)
        *reason = "steps until all comes round print more than 128 rows: print less often";
    if (!*reason)
        choose_multiple(plan, &g, longest, least, c);
}

int64_t peal_cuda_choose_steps(peal_cuda_plan *plan, const char **reason)
{
    peal_cuda_step_conditions *conditions = &plan->graphs->conditions;
    choice best = {.steps = 0};
    const char *why = NULL;
    int64_t kept = MOST_STEPS + 1;

    if (!peal_cuda_step_conditions_list(plan, conditions, reason))
        return 0;
    do {
        const char *here = NULL;
        choice c = {.most_kept = kept = next_period(conditions, kept)};
        try_choice(plan, &c, &here);
        why = why ? why : here;
        if (c.steps && (!best.steps || c.cost < best.cost))
            best = c;
    } while (kept > 0);
    *reason = best.steps ? NULL : why;
    if (!best.steps)
        return 0;
    peal_cuda_step_conditions_keep(conditions, best.most_kept, peal_cuda_steps_of_run(plan));
    if (!peal_cuda_walk_to(plan, best.begin))
        return 0;
    /* The caller asks how many launches a period has. */
    find_period(plan, best.period, reason);
    plan->graphs->period = best.period;
    plan->graphs->launches = best.launches;
    plan->graphs->steps = best.steps = peal_cuda_pieces_of_run(plan, best.steps);
    plan->graphs->is_sure = best.steps <= most_recorded(plan, best.period);
    peal_cuda_moments_create(plan);
    return best.steps;
}
