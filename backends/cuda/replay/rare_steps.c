/* Rare steps, in which a rare condition is not as usual: those of a run that come again and again
 * are recorded behind the steps as usual, each as a section of its own, so that a launch goes on
 * beyond them. What a section holds as constants must be right in each step that it is run for: the
 * storages that fields are in, which messages come next (but for whole rounds of flags and slots),
 * which conditions hold. Where the engine has no sections, rare_graphs.c records them.
 *
 * A section begins where the step word is exact, and counts nothing. Steps as usual count
 * themselves now and then, so sections that count some steps go between. */
#include "backends/cuda/lower/emit.h"
#include "backends/cuda/lower/predicate.h"
#include "backends/cuda/replay/replay.h"

#include <string.h>

/* ---- what a step changes ---- */

/* One of the step that the walks are at. */
static void create(peal_cuda_plan *plan, peal_cuda_rare_step *step)
{
    int64_t here = plan->rank[0].walk.counter[0];

    *step = (peal_cuda_rare_step){.section = -1};
    step->begin = PEAL_ARENA_ARRAY(plan->arena, peal_walk, plan->rank_count);
    step->moment = PEAL_ARENA_ARRAY(plan->arena, peal_cuda_moment, plan->rank_count);
    step->change = PEAL_ARENA_ARRAY(plan->arena, state_change, plan->rank_count);
    step->compared = PEAL_ARENA_ARRAY(plan->arena, uint64_t *, plan->rank_count);
    step->truth = PEAL_ARENA_ARRAY(plan->arena, bool, plan->graphs->conditions.count + 1);
    for (int r = 0; r < plan->rank_count; r++) {
        const peal_walk_program *program = plan->rank[r].program;
        peal_walk_init(&step->begin[r], program, plan->arena, 0);
        step->compared[r] =
            PEAL_ARENA_ARRAY(plan->arena, uint64_t, program->message_counter_count + 1);
    }
    peal_cuda_step_conditions_truth(&plan->graphs->conditions, here, step->truth);
}

bool peal_cuda_rare_step_look_at(peal_cuda_plan *plan, peal_cuda_rare_step *step)
{
    create(plan, step);
    for (int r = 0; r < plan->rank_count; r++) {
        const peal_cuda_rank *rank = &plan->rank[r];
        peal_walk_copy(&step->begin[r], &rank->walk);
        if (!peal_cuda_advance_walk_only(&plan->rank[r]))
            return false;
        peal_cuda_change_keep(rank, &step->begin[r], &step->change[r]);
        memcpy(step->compared[r], step->change[r].message,
               (size_t)rank->program->message_counter_count * sizeof(*step->compared[r]));
    }
    step->rows = (unsigned)peal_cuda_rows_since(plan, step->begin);
    return true;
}

void peal_cuda_rare_step_keep(peal_cuda_plan *plan, peal_cuda_rare_step *step, unsigned first)
{
    peal_cuda_rare_steps *rare = &plan->graphs->rare;

    step->rows = plan->run->mailbox.recorded_rows - first;
    step->row = PEAL_ARENA_ARRAY(plan->arena, peal_cuda_row, step->rows + 1);
    memcpy(step->row, &plan->run->mailbox.row[first], step->rows * sizeof(*step->row));
    rare->rows += step->rows;
    rare->of[rare->count++] = *step;
}

void peal_cuda_rare_step_advance(peal_cuda_plan *plan, const peal_cuda_rare_step *step)
{
    for (int r = 0; r < plan->rank_count; r++)
        peal_cuda_change_apply(&plan->rank[r], &step->change[r]);
}

/* Its messages are those of the step, and as well those that are still waited for. */
static void keep_waits(const peal_cuda_rank *rank, peal_cuda_rare_step *step)
{
    peal_cuda_moment *moment = &step->moment[rank->index];
    uint64_t *compared = step->compared[rank->index];

    peal_cuda_moment_keep_waits(rank, moment);
    for (int i = 0; i < moment->wait_count; i++) {
        int counter = rank->program->op[moment->wait[i].op].message_counter;
        if (counter >= 0)
            compared[counter] = 1;
    }
}

void peal_cuda_rare_steps_clear(peal_cuda_plan *plan)
{
    peal_cuda_rare_steps *rare = &plan->graphs->rare;

    rare->count = 0;
    rare->rows = 0;
    rare->counts = NULL;
    rare->truth = PEAL_ARENA_ARRAY(plan->arena, bool, plan->graphs->conditions.count + 1);
}

/* ---- which one it is ---- */

static bool is_rank_at(const peal_cuda_rank *rank, const peal_cuda_rare_step *step)
{
    const peal_cuda_graphs *graphs = rank->plan->graphs;
    const peal_walk *begin = &step->begin[rank->index];
    size_t bytes = (size_t)rank->schedule->array_count * sizeof(int);
    int64_t apart = rank->walk.counter[0] - begin->counter[0];

    return (!rank->scratch || apart % PEAL_CUDA_RING_STEPS == 0) &&
           memcmp(begin->binding, rank->walk.binding, bytes) == 0 &&
           peal_cuda_step_conditions_repeat(&graphs->conditions, rank, apart) &&
           peal_cuda_messages_agree(rank, begin, NULL, step->compared[rank->index]);
}

static bool is_at(const peal_cuda_plan *plan, const peal_cuda_rare_step *step, const bool *truth)
{
    size_t bytes = (size_t)plan->graphs->conditions.count * sizeof(bool);

    if (memcmp(step->truth, truth, bytes) != 0)
        return false;
    for (int r = 0; r < plan->rank_count; r++)
        if (!is_rank_at(&plan->rank[r], step))
            return false;
    return true;
}

peal_cuda_rare_step *peal_cuda_rare_step_find(peal_cuda_plan *plan)
{
    peal_cuda_rare_steps *rare = &plan->graphs->rare;
    peal_cuda_rare_step *found = NULL;

    if (rare->count == 0)
        return NULL;
    peal_cuda_step_conditions_truth(&plan->graphs->conditions, plan->rank[0].walk.counter[0],
                                    rare->truth);
    for (int i = 0; i < rare->count; i++)
        if ((!found || rare->of[i].used < found->used) && is_at(plan, &rare->of[i], rare->truth))
            found = &rare->of[i];
    return found;
}

int peal_cuda_rare_steps_count(const peal_cuda_plan *plan, int64_t steps)
{
    const peal_cuda_rare_steps *rare = &plan->graphs->rare;

    if (steps < -rare->uncounted || steps > rare->uncounted || !rare->counts)
        return -1;
    return rare->counts[steps + rare->uncounted];
}

/* ---- rows ---- */

void peal_cuda_rare_steps_rows_out(peal_cuda_plan *plan, uint64_t replay)
{
    peal_cuda_rare_steps *rare = &plan->graphs->rare;
    peal_cuda_rare_step *next;

    if (rare->rows == 0)
        return;
    int64_t behind = -1; /* they are printed in the order of their steps */
    do {
        next = NULL;
        for (int i = 0; i < rare->count; i++)
            if (rare->of[i].used == replay && rare->of[i].step > behind &&
                (!next || rare->of[i].step < next->step))
                next = &rare->of[i];
        for (unsigned i = 0; next && i < next->rows; i++)
            peal_cuda_row_out(plan, &next->row[i], next->step);
        behind = next ? next->step : behind;
    } while (next);
}

/* ---- recording ---- */

/* While rare steps are looked for: nothing waits for what ranks have deferred. */
static void forget_waits(peal_cuda_plan *plan)
{
    for (int r = 0; r < plan->rank_count; r++) {
        peal_cuda_lane *lane = &plan->rank[r].lane[0];
        for (int i = 0; i < lane->pending_count; i++)
            plan->rank[r].member[lane->pending[i].op] = 0;
        lane->pending_count = 0;
    }
}

/* Records the step that the walks are at, whose `change` is known, if there is room for it. Leaves
 * the ranks behind it. False: failed. */
static bool record(peal_cuda_plan *plan, peal_cuda_rare_step *step)
{
    peal_cuda_rare_steps *rare = &plan->graphs->rare;
    unsigned first = plan->run->mailbox.recorded_rows;

    if (rare->count == PEAL_CUDA_RARE_STEPS || first + step->rows > PEAL_CUDA_ROWS / 2)
        return true;
    peal_cuda_recording_begin(plan);
    plan->engine->begin_section(plan);
    plan->graphs->is_apart = true;
    bool ok = peal_cuda_run_steps(plan, 1);
    for (int r = 0; r < plan->rank_count && ok; r++)
        ok = peal_cuda_flush_all(&plan->rank[r]);
    plan->graphs->is_apart = false;
    step->section = plan->engine->end_section(plan);
    if (step->section < 0) {
        plan->run->mailbox.recorded_rows = first;
        return ok;
    }
    peal_cuda_rare_step_keep(plan, step, first);
    return ok;
}

static void wait_again(peal_cuda_plan *plan, const peal_cuda_rare_step *step)
{
    for (int r = 0; r < plan->rank_count; r++) {
        peal_cuda_rank *rank = &plan->rank[r];
        const peal_cuda_moment *moment = &step->moment[r];
        rank->lane[0].pending_count = moment->wait_count;
        for (int i = 0; i < moment->wait_count; i++) {
            rank->lane[0].pending[i] = moment->wait[i];
            rank->member[moment->wait[i].op] = PEAL_CUDA_PENDING;
        }
    }
}

void peal_cuda_rare_steps_copy(peal_cuda_plan *plan,
                               bool (*again)(peal_cuda_plan *plan, peal_cuda_rare_step *step,
                                             void *user),
                               void *user)
{
    peal_cuda_rare_steps *rare = &plan->graphs->rare;
    int count = rare->count;

    for (int copy = 1; copy < PEAL_CUDA_RARE_ALIKE; copy++)
        for (int i = 0; i < count; i++) {
            peal_cuda_rare_step step = rare->of[i];
            if (step.rows > 0 && !again(plan, &step, user))
                return;
        }
}

/* user: a bool, false if it has failed. */
static bool record_again(peal_cuda_plan *plan, peal_cuda_rare_step *step, void *user)
{
    bool *ok = user;

    peal_cuda_walks_go_to(plan, step->begin);
    wait_again(plan, step);
    *ok = record(plan, step);
    forget_waits(plan);
    return *ok;
}

/* Goes on by the rare step that the run is at, and records it if it is a new one. False: failed. */
static bool pass_rare(peal_cuda_plan *plan, bool *goes_on)
{
    peal_cuda_graphs *graphs = plan->graphs;
    int64_t here = plan->rank[0].walk.counter[0];
    const peal_cuda_rare_step *known = peal_cuda_rare_step_find(plan);
    peal_cuda_rare_step step;

    *goes_on = true;
    if (known) {
        forget_waits(plan);
        peal_cuda_rare_step_advance(plan, known);
        return true;
    }
    if (!peal_cuda_rare_step_look_at(plan, &step)) {
        *goes_on = false;
        return true;
    }
    peal_cuda_walks_go_to(plan, step.begin);
    for (int r = 0; r < plan->rank_count; r++)
        keep_waits(&plan->rank[r], &step);
    bool ok =
        peal_cuda_step_conditions_moves_file(&graphs->conditions, here) || record(plan, &step);
    forget_waits(plan);
    peal_cuda_walks_go_to(plan, step.begin);
    peal_cuda_rare_step_advance(plan, &step);
    return ok;
}

static bool record_steps(peal_cuda_plan *plan)
{
    peal_cuda_graphs *graphs = plan->graphs;
    int64_t end = peal_cuda_steps_of_run(plan);
    bool goes_on = true;

    for (int looked_at = 0; looked_at < PEAL_CUDA_RARE_LOOKED_AT && goes_on;) {
        int64_t here = plan->rank[0].walk.counter[0];
        int64_t next = peal_cuda_step_conditions_next(&graphs->conditions, here, end);
        if (next >= end || graphs->rare.count == PEAL_CUDA_RARE_STEPS)
            return true;
        if (next == here) {
            if (!pass_rare(plan, &goes_on))
                return false;
            looked_at++;
            continue;
        }
        int64_t from = peal_cuda_moment_find(plan);
        if (from < 0)
            return true;
        forget_waits(plan);
        peal_cuda_moment_advance(plan, from, next - here);
    }
    return true;
}

/* Steps as usual leave up to so many uncounted. */
static bool record_counts(peal_cuda_plan *plan)
{
    peal_cuda_graphs *graphs = plan->graphs;
    peal_cuda_rare_steps *rare = &graphs->rare;

    rare->uncounted = graphs->report;
    rare->counts = PEAL_ARENA_ARRAY(plan->arena, int, 2 * rare->uncounted + 1);
    for (int64_t i = 0; i <= 2 * rare->uncounted; i++) {
        rare->counts[i] = -1;
        if (i == rare->uncounted)
            continue;
        plan->engine->begin_section(plan);
        if (!peal_cuda_count_steps(&plan->rank[0], i - rare->uncounted))
            return false;
        rare->counts[i] = plan->engine->end_section(plan);
    }
    return true;
}

bool peal_cuda_rare_steps_record(peal_cuda_plan *plan)
{
    peal_cuda_graphs *graphs = plan->graphs;

    peal_cuda_rare_steps_clear(plan);
    if (!graphs->moment || plan->rank_count > 1 || plan->run->mailbox.recorded_rows > 0 ||
        !plan->engine->begin_section)
        return true;
    peal_cuda_walks_go_to(plan, graphs->begin);
    bool ok = record_steps(plan);
    if (ok)
        peal_cuda_rare_steps_copy(plan, record_again, &ok);
    return ok && (graphs->rare.count == 0 || record_counts(plan));
}

void peal_cuda_rare_steps_settle(peal_cuda_plan *plan)
{
    peal_cuda_graphs *graphs = plan->graphs;

    if (graphs->rare.count == 0 || !plan->engine->sections || plan->engine->sections(plan, 0) > 0)
        return;
    peal_cuda_rare_steps_clear(plan);
}
