/* Replays: K iterations were recorded once, and are launched again and again. Nothing is rebuilt,
 * reset or patched between replays. K is a number of steps after which flags, staging slots, swaps
 * and periodic conditions are as before, so the constants in the recorded launches are right again;
 * of a run that is shorter than that, its steps, which are launched where all is as at its begin.
 * Only the outermost counter differs; it lies in a device word, which the recording advances.
 *
 * `until` of the outermost loop: every launch reads a stop word first, and does nothing once it is
 * set. So the loop ends in the same step on all ranks. The host reads the step word between
 * replays. */
#include "backends/cuda/replay/replay.h"
#include "backends/cuda/lower/emit.h"
#include "backends/cuda/lower/predicate.h"
#include "backends/cuda/stream/lanes.h"
#include "base/clock.h"

#include <string.h>

/* ---- replay ---- */

/* Whether a replay may begin at the step where the ranks are now. */
static bool is_aligned(const peal_cuda_plan *plan)
{
    const peal_cuda_graphs *graphs = plan->graphs;

    for (int r = 0; r < plan->rank_count; r++) {
        const peal_cuda_rank *rank = &plan->rank[r];
        int64_t apart = rank->walk.counter[0] - graphs->begin[r].counter[0];
        if ((graphs->stops && apart < 0) ||
            !peal_cuda_is_period(rank, &graphs->begin[r], apart, graphs->change[r].message))
            return false;
    }
    return true;
}

void peal_cuda_change_apply(peal_cuda_rank *rank, const state_change *change)
{
    peal_walk_loop_state *outer = &rank->walk.loop[rank->schedule->loop_count];

    for (int i = 0; i < rank->schedule->op_count; i++)
        rank->walk.passed[i] += change->passed[i];
    for (int i = 0; i < rank->program->message_counter_count; i++)
        rank->walk.message[i] += change->message[i];
    memcpy(rank->walk.binding, change->binding,
           (size_t)rank->schedule->array_count * sizeof(*change->binding));
    outer->iteration += change->iterations;
    outer->evaluations += change->evaluations;
    rank->walk.counter[0] = outer->iteration;
}

static void advance_state(peal_cuda_plan *plan, const state_change *of)
{
    for (int r = 0; r < plan->rank_count; r++) {
        peal_cuda_change_apply(&plan->rank[r], &of[r]);
        plan->graphs->word[r] = plan->rank[r].walk.counter[0];
    }
}

/* The most replays that are under way at a time. */
static uint64_t most_replays_ahead(const peal_cuda_graphs *graphs)
{
    return graphs->rows > 0 || graphs->stops ? 2 : REPLAYS_AHEAD;
}

/* Whether a step of the recording is in a replay that is under way. */
static bool is_in(const peal_cuda_graphs *graphs, uint64_t index, int64_t step)
{
    int64_t from = graphs->from[index];

    return step >= from && step < from + graphs->end_step[index] - graphs->first_step[index];
}

bool peal_cuda_replay_finish_oldest(peal_cuda_plan *plan)
{
    peal_cuda_graphs *graphs = plan->graphs;
    uint64_t index = graphs->finished % REPLAYS_AHEAD;

    /* Sleep until half of the replays under way have ended; the other half keeps the device busy.
     */
    uint64_t next = graphs->finished + 1, halfway = graphs->launched - REPLAYS_AHEAD / 2;
    CUresult state = plan->driver->cuEventQuery_(graphs->done[index]);
    if (state && state != CUDA_ERROR_NOT_READY)
        return peal_cuda_report_driver_error(plan, state, NULL, "a replay");
    bool many = graphs->launched >= REPLAYS_AHEAD / 2 && halfway > next;
    if (state && !peal_cuda_replay_sleep(plan, many ? halfway : next))
        return false;
    /* Rows of the single steps before the replay are printed before its own. */
    if (!peal_cuda_await_event(plan, graphs->done[index]) || !peal_cuda_check_failure(plan) ||
        !peal_cuda_rows_out(plan, peal_cuda_replay_prints(graphs)))
        return false;
    int64_t first = graphs->first_step[index] - graphs->from[index],
            done = peal_cuda_replay_counted(plan);
    const peal_cuda_row *row = graphs->row[graphs->finished % (uint64_t)graphs->slots];
    for (unsigned i = 0; i < graphs->rows; i++)
        if (graphs->stops ? first + row[i].step < done : is_in(graphs, index, row[i].step))
            peal_cuda_row_out(plan, &row[i], first);
    graphs->finished++;
    peal_cuda_rare_steps_rows_out(plan, graphs->finished);
    if (!graphs->stops)
        atomic_store(&plan->run->steps_done, graphs->end_step[index]);
    return true;
}

int64_t peal_cuda_replay_word(const peal_cuda_plan *plan, int r, int64_t at)
{
    bool any = plan->graphs->moment && at >= 0;
    int64_t uncounted = any ? at - plan->graphs->moment[r][at].counted : 0;

    return plan->rank[r].walk.counter[0] - uncounted;
}

bool peal_cuda_replay_set_words(peal_cuda_plan *plan, int64_t from)
{
    peal_cuda_graphs *graphs = plan->graphs;

    for (int r = 0; r < plan->rank_count; r++) {
        int64_t word = peal_cuda_replay_word(plan, r, from), behind = word - graphs->word[r];
        if (behind != 0 && !peal_cuda_count_steps(&plan->rank[r], behind))
            return false;
        graphs->word[r] = word;
    }
    return true;
}

/* A replay of `steps` steps is about to be launched. from: the step of the recording that it begins
 * with. */
static bool begin_replay(peal_cuda_plan *plan, int64_t first_step, int64_t steps, int64_t from)
{
    peal_cuda_graphs *graphs = plan->graphs;
    uint64_t index = graphs->launched % REPLAYS_AHEAD;

    if (graphs->launched - graphs->finished == most_replays_ahead(graphs) &&
        !peal_cuda_replay_finish_oldest(plan))
        return false;
    if (graphs->launched == graphs->finished) {
        graphs->began = peal_clock_s();
        graphs->first = first_step;
        graphs->rate *= 0.98; /* the device may be slower now */
    }
    plan->run->lags = true;
    graphs->first_step[index] = first_step;
    graphs->end_step[index] = first_step + steps;
    graphs->from[index] = from;
    return true;
}

/* result: of its launch. */
static bool mark_replay(peal_cuda_plan *plan, CUresult result)
{
    peal_cuda_graphs *graphs = plan->graphs;

    if (!result)
        result = plan->driver->cuEventRecord_(graphs->done[graphs->launched % REPLAYS_AHEAD],
                                              peal_cuda_origin(plan));
    graphs->launched++;
    return !result || peal_cuda_report_driver_error(plan, result, NULL, "a replay");
}

/* The buffer slot of rows of the next replay. */
static int slot_of_rows(const peal_cuda_graphs *graphs)
{
    return (int)(graphs->launched % (uint64_t)graphs->slots);
}

/* Launches a replay of graphs->span steps. piece: the slot of a short recording; -1: of the whole
 * one. */
static bool replay(peal_cuda_plan *plan, int64_t first_step, int piece)
{
    peal_cuda_graphs *graphs = plan->graphs;

    if (!begin_replay(plan, first_step, graphs->span, 0))
        return false;
    int slot = piece < 0 ? slot_of_rows(graphs) : piece;
    return mark_replay(plan, plan->engine->launch(plan, slot, graphs->rounds));
}

bool peal_cuda_replay_launch(peal_cuda_plan *plan, int64_t first, int64_t steps,
                             const peal_cuda_part *part, int count)
{
    int64_t from = part[0].section < 0 ? part[0].from : 0;

    if (!begin_replay(plan, first, steps, from))
        return false;
    int slot = slot_of_rows(plan->graphs);
    return mark_replay(plan, plan->engine->launch_parts(plan, slot, part, count));
}

bool peal_cuda_replay_finish(peal_cuda_plan *plan)
{
    peal_cuda_graphs *graphs = plan->graphs;

    if (graphs->finished == graphs->launched) {
        plan->run->lags = false;
        return true;
    }
    int64_t steps = peal_cuda_replay_end_of(graphs, graphs->launched) - graphs->first;
    if (!peal_cuda_replay_sleep(plan, graphs->launched))
        return false;
    while (graphs->finished < graphs->launched)
        if (!peal_cuda_replay_finish_oldest(plan))
            return false;
    plan->run->lags = false;
    double rate = (double)steps / (peal_clock_s() - graphs->began);
    graphs->rate = rate > graphs->rate ? rate : graphs->rate;
    return true;
}

/* After replays that `until` may have ended: the walks advance to the step where the device is. */
static bool catch_up(peal_cuda_plan *plan, int64_t first, int64_t expected)
{
    int64_t done = peal_cuda_replay_counted(plan) - first;

    plan->graphs->replayed += done;
    plan->run->stopped = done < expected;
    if (!plan->run->stopped) {
        /* The last iteration of the last replay may be the one that ended the loop. */
        unsigned word = 0;
        CUresult result =
            plan->driver->cuMemcpyDtoH_(&word, plan->rank[0].words + PEAL_CUDA_STOP_WORD,
                                        sizeof(word));
        if (result)
            return peal_cuda_report_driver_error(plan, result, NULL, "the stop word");
        plan->run->stopped = word != 0;
    }
    for (int r = 0; r < plan->rank_count; r++) {
        peal_cuda_rank *rank = &plan->rank[r];
        rank->dry = true;
        for (int64_t i = 0; i < done; i++)
            if (!peal_cuda_advance_walk_only(rank))
                return peal_cuda_fail(plan, PEAL_STATUS_INTERNAL);
        rank->dry = false;
        rank->walk.position = rank->schedule->step.first;
        if (!peal_cuda_begin_word(rank, &plan->rank[0].lane[0], rank->words + PEAL_CUDA_STOP_WORD,
                                  0, 0, 0))
            return false;
        plan->graphs->word[r] = rank->walk.counter[0];
    }
    atomic_store(&plan->run->steps_done, plan->rank[0].walk.counter[0]);
    return true;
}

int64_t peal_cuda_replay_usual(peal_cuda_plan *plan, int64_t most)
{
    int64_t here = plan->rank[0].walk.counter[0];

    return peal_cuda_step_conditions_next(&plan->graphs->conditions, here, here + most) - here;
}

/* Runs as many replays as fit before the end, or before a rare condition is met. */
static bool run_replays(peal_cuda_plan *plan, int64_t *left)
{
    peal_cuda_graphs *graphs = plan->graphs;
    int64_t first = plan->rank[0].walk.counter[0], launched = 0;
    int64_t count = peal_cuda_replay_usual(plan, *left) / graphs->steps;
    bool in_one = plan->engine->most_rounds != NULL;
    int64_t most = in_one ? plan->engine->most_rounds(plan) : count;

    for (int r = 0; r < plan->rank_count; r++)
        if (!peal_cuda_flush_all(&plan->rank[r]))
            return false;
    if (!peal_cuda_replay_set_words(plan, 0) || !peal_cuda_join_lanes(plan, false))
        return false;
    /* Rows of single steps may still lie where the replays will store theirs. */
    if (graphs->rows > 0 && !peal_cuda_rows_out(plan, true))
        return false;
    count = count < most ? count : most; /* the caller comes again for the rest */
    if (graphs->steps % graphs->period != 0 && count > 1)
        count = 1; /* a short run: another replay may not begin where it ends */
    graphs->span = graphs->steps;
    if (graphs->loops || (in_one && graphs->rows == 0 && count > 0)) {
        graphs->rounds = count;
        graphs->span = count * graphs->steps;
        if (!replay(plan, first, -1))
            return false;
        launched = count;
        for (int64_t i = 0; i < count && !graphs->stops; i++)
            advance_state(plan, graphs->change);
    }
    for (; launched < count; launched++) {
        if (graphs->stops && graphs->finished > 0 &&
            launched >= (int64_t)most_replays_ahead(graphs)) {
            int64_t least =
                first + (launched - (int64_t)most_replays_ahead(graphs)) * graphs->steps;
            if (graphs->launched - graphs->finished == most_replays_ahead(graphs) &&
                !peal_cuda_replay_finish_oldest(plan))
                return false;
            if (peal_cuda_replay_counted(plan) < least)
                break;
        }
        if (!replay(plan, first + launched * graphs->steps, -1))
            return false;
        if (!graphs->stops)
            advance_state(plan, graphs->change);
    }
    plan->emission.epoch++;
    *left -= launched * graphs->steps;
    graphs->replayed += graphs->stops ? 0 : launched * graphs->steps;
    /* Record the end now: the application's streams need not wait for the host to see it. */
    if (*left == 0 && !graphs->stops && !plan->run->finish && !peal_cuda_interop_end(plan))
        return false;
    /* What is enqueued next comes behind them; only the rows that replays print are waited for. */
    if (!graphs->stops)
        return (graphs->rows == 0 || peal_cuda_replay_finish(plan)) &&
               peal_cuda_join_lanes(plan, true);
    return peal_cuda_replay_finish(plan) && peal_cuda_join_lanes(plan, true) &&
           catch_up(plan, first, launched * graphs->steps);
}

bool peal_cuda_replay_end(peal_cuda_plan *plan)
{
    /* Record the end first: the application's streams need not wait for the host to see it. */
    if (!plan->graphs->stops && !plan->run->finish && !peal_cuda_interop_end(plan))
        return false;
    if (!peal_cuda_replay_finish(plan))
        return false;
    atomic_store(&plan->run->steps_done, plan->rank[0].walk.counter[0]);
    return true;
}

/* Launches a short recording of `steps` steps. */
static bool run_short(peal_cuda_plan *plan, int slot, int64_t steps, const state_change *change)
{
    peal_cuda_graphs *graphs = plan->graphs;

    for (int r = 0; r < plan->rank_count; r++)
        if (!peal_cuda_flush_all(&plan->rank[r]))
            return false;
    if (!peal_cuda_replay_set_words(plan, 0) || !peal_cuda_join_lanes(plan, false))
        return false;
    graphs->span = steps;
    if (!replay(plan, plan->rank[0].walk.counter[0], slot))
        return false;
    advance_state(plan, change);
    graphs->replayed += steps;
    plan->emission.epoch++;
    return peal_cuda_join_lanes(plan, true);
}

static bool run_rare(peal_cuda_plan *plan, peal_cuda_rare_step *step)
{
    peal_cuda_graphs *graphs = plan->graphs;

    while (graphs->finished < step->used)
        if (!peal_cuda_replay_finish_oldest(plan))
            return false;
    /* Rows of single steps may still lie where it will store its own. */
    if (step->rows > 0 && !peal_cuda_rows_out(plan, true))
        return false;
    step->step = plan->rank[0].walk.counter[0];
    step->used = step->rows > 0 ? graphs->launched + 1 : 0;
    return run_short(plan, step->section, 1, step->change);
}

/* Runs some of the next `left` steps by short recordings, or a step by itself, and says how many.
 */
static bool run_between(peal_cuda_plan *plan, int64_t left, int64_t *steps)
{
    peal_cuda_graphs *graphs = plan->graphs;
    int64_t most = left < graphs->steps ? left : graphs->steps;
    int64_t usual = peal_cuda_replay_usual(plan, most);
    int piece = graphs->piece_count ? peal_cuda_piece_find(plan, usual) : -1;
    peal_cuda_rare_step *rare = usual == 0 ? peal_cuda_rare_step_find(plan) : NULL;

    *steps = 1;
    if (piece >= 0) {
        *steps = graphs->piece[piece].steps;
        return run_short(plan, PEAL_CUDA_FIRST_PIECE + piece, *steps, graphs->piece[piece].change);
    }
    if (rare)
        return run_rare(plan, rare);
    /* Rows of single steps come behind those of the replays before. */
    for (int i = 0; i < graphs->rare.count; i++)
        while (graphs->finished < graphs->rare.of[i].used)
            if (!peal_cuda_replay_finish_oldest(plan))
                return false;
    return peal_cuda_run_steps(plan, 1);
}

bool peal_cuda_graphs_run(peal_cuda_plan *plan)
{
    int64_t left = plan->run->steps;

    if (plan->graphs->moment)
        return peal_cuda_parts_run(plan);
    while (left > 0 && !plan->run->stopped) {
        if (left >= plan->graphs->steps && is_aligned(plan) &&
            peal_cuda_replay_usual(plan, plan->graphs->steps) == plan->graphs->steps) {
            if (!run_replays(plan, &left))
                return false;
            continue;
        }
        int64_t steps;
        if (!run_between(plan, left, &steps))
            return false;
        left -= steps;
    }
    return peal_cuda_replay_end(plan);
}
