/* Records K iterations: chooses K (replay_period.c), emits the iterations to the engine's sink, and
 * has the engine build what replay.c launches. */
#include "backends/cuda/lower/emit.h"
#include "backends/cuda/lower/predicate.h"
#include "backends/cuda/replay/replay.h"
#include "backends/cuda/stream/lanes.h"

#include <string.h>

/* ---- one recording ---- */

/* Between two recorded steps. */
static bool go_on(peal_cuda_rank *rank)
{
    const peal_cuda_graphs *graphs = rank->plan->graphs;

    if (graphs->is_joined)
        return peal_cuda_joined_step_begin(rank);
    return !graphs->moment || peal_cuda_moment_note(rank);
}

/* Counts the steps a few times in a recording, and in each step of a loop that may end. */
static bool end_of_step(peal_cuda_rank *rank)
{
    peal_cuda_graphs *graphs = rank->plan->graphs;
    int64_t uncounted = rank->walk.counter[0] - rank->graph_step;

    if (graphs->is_apart)
        return true;
    int64_t step = rank->walk.counter[0] - rank->graph_begin - 1;
    if (uncounted == 0 || (!graphs->stops && !graphs->counts[step]))
        return go_on(rank);
    if (!peal_cuda_count_steps(rank, uncounted))
        return false;
    rank->graph_step = rank->walk.counter[0];
    return go_on(rank);
}

void peal_cuda_recording_begin(peal_cuda_plan *plan)
{
    for (int r = 0; r < plan->rank_count; r++) {
        peal_cuda_rank *rank = &plan->rank[r];
        rank->graph_step = rank->graph_begin = rank->walk.counter[0];
        for (int l = 0; l < rank->lanes; l++) {
            rank->lane[l].chained = false;
            rank->lane[l].sent = rank->lane[l].followed = 0;
        }
    }
    plan->emission.sends = 0;
    plan->emission.epoch++;
}

/* What the sink has put off is captured before the lanes are joined. */
static bool submit(peal_cuda_plan *plan)
{
    CUresult result = peal_cuda_sink_submit(plan);

    return !result || peal_cuda_report_driver_error(plan, result, NULL, "the end of a recording");
}

static bool record_steps(peal_cuda_plan *plan, int64_t steps)
{
    peal_cuda_recording_begin(plan);
    for (int r = 0; r < plan->rank_count && plan->graphs->moment; r++)
        if (!peal_cuda_moment_note(&plan->rank[r]))
            return false;
    if (!peal_cuda_join_lanes(plan, true))
        return false;
    bool ok = peal_cuda_run_steps(plan, steps) && submit(plan);
    /* Behind a failure, too: a capture ends joined. */
    return peal_cuda_join_lanes(plan, false) && ok &&
           (!plan->engine->end_round || plan->engine->end_round(plan));
}

void peal_cuda_walks_go_to(peal_cuda_plan *plan, const peal_walk *begin)
{
    for (int r = 0; r < plan->rank_count; r++) {
        peal_walk_copy(&plan->rank[r].walk, &begin[r]);
        plan->rank[r].walk.position = plan->rank[r].schedule->step.first;
        plan->rank[r].at_end = false;
        peal_cuda_predicates_restart(&plan->rank[r]);
    }
}

static void keep_rows(peal_cuda_plan *plan, int slot)
{
    peal_cuda_graphs *graphs = plan->graphs;

    graphs->rows = plan->run->mailbox.recorded_rows;
    graphs->row[slot] = PEAL_ARENA_ARRAY(plan->arena, peal_cuda_row, graphs->rows + 1);
    if (graphs->rows)
        memcpy(graphs->row[slot], &plan->run->mailbox.row[slot * PEAL_CUDA_ROWS / 2],
               graphs->rows * sizeof(peal_cuda_row));
}

void peal_cuda_change_keep(const peal_cuda_rank *rank, const peal_walk *begin, state_change *change)
{
    peal_cuda_plan *plan = rank->plan;
    int outer = rank->schedule->loop_count;

    change->passed = PEAL_ARENA_ARRAY(plan->arena, uint64_t, rank->schedule->op_count + 1);
    change->message =
        PEAL_ARENA_ARRAY(plan->arena, uint64_t, rank->program->message_counter_count + 1);
    change->binding = PEAL_ARENA_ARRAY(plan->arena, int, rank->schedule->array_count + 1);
    memcpy(change->binding, rank->walk.binding,
           (size_t)rank->schedule->array_count * sizeof(*change->binding));
    for (int i = 0; i < rank->schedule->op_count; i++)
        change->passed[i] = rank->walk.passed[i] - begin->passed[i];
    for (int i = 0; i < rank->program->message_counter_count; i++)
        change->message[i] = rank->walk.message[i] - begin->message[i];
    change->iterations = rank->walk.loop[outer].iteration - begin->loop[outer].iteration;
    change->evaluations = rank->walk.loop[outer].evaluations - begin->loop[outer].evaluations;
}

/* Behind the steps of a whole recording: keeps what they print and change, and records rare steps.
 */
static bool record_behind(peal_cuda_plan *plan, int slot)
{
    peal_cuda_graphs *graphs = plan->graphs;

    keep_rows(plan, slot);
    for (int r = 0; r < plan->rank_count && slot == 0; r++)
        peal_cuda_change_keep(&plan->rank[r], &graphs->begin[r], &graphs->change[r]);
    return peal_cuda_joined_steps_record(plan) && (slot > 0 || peal_cuda_rare_steps_record(plan));
}

/* Records so many steps into one slot. A driver call that fails is *result. False: the walk has
 * failed, plan->emission.status says why. */
static bool record(peal_cuda_plan *plan, int slot, const peal_walk *begin, int64_t steps,
                   CUresult *result)
{
    peal_cuda_counts_choose(plan, begin, steps);
    peal_cuda_walks_go_to(plan, begin);
    /* Rows of rare steps lie one behind the other; pieces print none. */
    bool is_whole = slot < PEAL_CUDA_FIRST_PIECE;
    plan->run->mailbox.recorded_slot = is_whole ? (unsigned)slot : 0;
    plan->run->mailbox.recorded_rows = is_whole ? 0 : plan->graphs->rare.rows;
    *result = plan->engine->begin(plan, slot);
    if (*result)
        return true;
    plan->emission.sink = &plan->graphs->sink;
    bool ok = record_steps(plan, steps);
    if (ok && slot < PEAL_CUDA_FIRST_PIECE)
        ok = record_behind(plan, slot);
    plan->emission.sink = plan->stream_sink;
    plan->emission.epoch++;
    *result = plan->engine->end(plan, slot);
    return ok || !plan->emission.status;
}

static peal_status build(peal_cuda_plan *plan, int slot, const peal_walk *begin, int64_t steps)
{
    char text[160];
    CUresult result;

    if (!record(plan, slot, begin, steps, &result))
        return plan->emission.status;
    if (plan->graphs->is_cramped) /* the caller chooses another K */
        return PEAL_STATUS_OK;
    peal_status status = result ? PEAL_STATUS_OK : plan->engine->build(plan, slot, &result);
    if (status)
        return status;
    if (result && plan->engine->abandon && plan->engine->abandon(plan, slot, result))
        return build(plan, slot, begin, steps);
    return result ? peal_report(plan->desc.diagnostics, PEAL_E_GRAPH_MODE_NOT_APPLICABLE,
                                PEAL_CUDA_NOWHERE, "--mode stream runs the same without a graph",
                                "the driver refuses the graph of %lld steps: %s", (long long)steps,
                                peal_cuda_error(result, text))
                  : PEAL_STATUS_OK;
}

/* ---- creation ---- */

enum { MOST_UNCOUNTED = 128 }; /* steps: whoever watches a run sees how they pass */

static void reset_walks(peal_cuda_plan *plan)
{
    for (int r = 0; r < plan->rank_count; r++) {
        peal_cuda_rank *rank = &plan->rank[r];
        peal_arena *arena = plan->arena;
        peal_walk_hooks hooks = rank->walk.hooks;
        peal_walk_init(&rank->walk, rank->program, arena, plan->desc.hooks.first_message);
        rank->walk.hooks = hooks;
        rank->walk.position = rank->schedule->setup.first;
        rank->dry = false;
        rank->at_end = false;
        rank->stop_word = 0;
        rank->graph_step = 0;
        peal_cuda_predicates_restart(rank);
    }
    plan->run->stopped = false;
}

bool peal_cuda_walk_to(peal_cuda_plan *plan, int64_t step)
{
    reset_walks(plan);
    for (int r = 0; r < plan->rank_count; r++) {
        peal_cuda_rank *rank = &plan->rank[r];
        rank->dry = true;
        if (!peal_cuda_walk_section_only(rank, &rank->schedule->setup) ||
            peal_walk_enter(&rank->walk) != PEAL_WALK_OP)
            return false;
        while (rank->walk.counter[0] < step)
            if (!peal_cuda_advance_walk_only(rank))
                return false;
        peal_walk_copy(&plan->graphs->begin[r], &rank->walk);
    }
    return true;
}

static peal_status report_not_applicable(peal_cuda_plan *plan, const char *reason)
{
    return peal_report(plan->desc.diagnostics, PEAL_E_GRAPH_MODE_NOT_APPLICABLE, PEAL_CUDA_NOWHERE,
                       "--mode stream runs it; --mode auto takes the first mode that can",
                       "mode %s cannot run this: %s", peal_mode_name(plan->desc.mode), reason);
}

void peal_cuda_recording_free(peal_cuda_plan *plan, int slot)
{
    peal_cuda_graphs *graphs = plan->graphs;

    if (graphs->exec[slot])
        plan->driver->cuGraphExecDestroy_(graphs->exec[slot]);
    if (graphs->graph[slot])
        plan->driver->cuGraphDestroy_(graphs->graph[slot]);
    graphs->exec[slot] = NULL;
    graphs->graph[slot] = NULL;
}

peal_status peal_cuda_recording_try(peal_cuda_plan *plan, int slot, const peal_walk *begin,
                                    int64_t steps, bool *made)
{
    int from = peal_diagnostics_count(plan->desc.diagnostics);
    peal_status status = build(plan, slot, begin, steps);

    *made = !status;
    if (!status || plan->emission.status || !plan->graphs->graph[slot])
        return status;
    peal_cuda_recording_free(plan, slot);
    peal_diagnostics_take_back(plan->desc.diagnostics, from);
    return PEAL_STATUS_OK;
}

static peal_status record_piece(peal_cuda_plan *plan, int number, bool *made)
{
    peal_cuda_piece *piece = &plan->graphs->piece[number];

    peal_cuda_walks_go_to(plan, plan->graphs->begin);
    for (int r = 0; r < plan->rank_count; r++) {
        for (int64_t i = 0; i < piece->from; i++)
            if (!peal_cuda_advance_walk_only(&plan->rank[r]))
                return PEAL_STATUS_INTERNAL; /* it has been walked before */
        peal_walk_copy(&piece->begin[r], &plan->rank[r].walk);
    }
    peal_status status = peal_cuda_recording_try(plan, PEAL_CUDA_FIRST_PIECE + number, piece->begin,
                                                 piece->steps, made);
    for (int r = 0; r < plan->rank_count && *made; r++)
        peal_cuda_change_keep(&plan->rank[r], &piece->begin[r], &piece->change[r]);
    return status;
}

static peal_status record_pieces(peal_cuda_plan *plan)
{
    peal_cuda_graphs *graphs = plan->graphs;
    peal_status status = PEAL_STATUS_OK;
    bool made = true;
    int count;

    peal_cuda_pieces_choose(plan);
    for (count = 0; count < graphs->piece_count && made && !status; count += made)
        status = record_piece(plan, count, &made);
    graphs->piece_count = count;
    return status;
}

/* Has the engine look at the steps of a period before they are recorded. */
static peal_status look_at(peal_cuda_plan *plan)
{
    peal_cuda_graphs *graphs = plan->graphs;

    if (!plan->engine->looks || !plan->engine->looks(plan))
        return PEAL_STATUS_OK;
    peal_cuda_counts_choose(plan, graphs->begin, graphs->period);
    peal_cuda_walks_go_to(plan, graphs->begin);
    plan->run->mailbox.recorded_slot = plan->run->mailbox.recorded_rows = 0;
    plan->emission.sink = &graphs->sink;
    peal_cuda_recording_begin(plan);
    bool ok = peal_cuda_run_steps(plan, graphs->period) && submit(plan);
    plan->emission.sink = plan->stream_sink;
    plan->emission.epoch++;
    return ok ? plan->engine->looked(plan) : plan->emission.status;
}

/* Chooses K, and records it into each slot, then the pieces. */
static peal_status choose_and_record(peal_cuda_plan *plan)
{
    const peal_cuda_engine *engine = plan->engine;
    peal_cuda_graphs *graphs = plan->graphs;
    const char *reason = NULL;

    graphs->steps = peal_cuda_choose_steps(plan, &reason);
    if ((!graphs->steps || !peal_cuda_launches_fit(plan)) && engine->shorten_period &&
        engine->shorten_period(plan)) {
        reason = NULL;
        graphs->steps = peal_cuda_choose_steps(plan, &reason);
    }
    reset_walks(plan);
    if (!graphs->steps)
        return report_not_applicable(plan, reason ? reason : "no period");
    peal_status status = engine->settle ? engine->settle(plan) : PEAL_STATUS_OK;
    graphs->report = graphs->steps > engine->reports ? graphs->steps / engine->reports : 1;
    graphs->report = graphs->report < MOST_UNCOUNTED ? graphs->report : MOST_UNCOUNTED;
    if (graphs->is_even && graphs->steps == graphs->period && !graphs->is_sure)
        graphs->report = 1;
    plan->is_short_wanted = graphs->hopes && !graphs->is_sure;
    for (int r = 0; r < plan->rank_count; r++) {
        plan->rank[r].dry = true;
        plan->rank[r].stop_word = graphs->stops ? plan->rank[r].words + PEAL_CUDA_STOP_WORD : 0;
    }
    if (!status)
        status = look_at(plan);
    graphs->slots = 1;
    for (int slot = 0; slot < graphs->slots && !status; slot++) {
        status = build(plan, slot, graphs->begin, graphs->steps);
        if (graphs->is_cramped)
            return status;
        graphs->slots = graphs->rows ? 2 : 1;
    }
    if (!status)
        status = record_pieces(plan);
    if (!status)
        status = peal_cuda_rare_graphs_record(plan);
    if (!status)
        peal_cuda_rare_steps_settle(plan);
    reset_walks(plan);
    return status;
}

static peal_status record_with_room(peal_cuda_plan *plan)
{
    peal_cuda_graphs *graphs = plan->graphs;

    graphs->twice = graphs->is_cramped = false;
    peal_status status = choose_and_record(plan);
    if (!graphs->is_cramped)
        return status;
    graphs->is_cramped = false;
    graphs->twice = true;
    return choose_and_record(plan);
}

/* How many launches emission makes of a step is known once they are recorded: it is tried out
 * whether as few as one a step fit, then chosen by as many as there can be. Where one period is too
 * long, its steps are all recorded alike: the engine may have an eye for what repeats. */
static peal_status record_what_fits(peal_cuda_plan *plan)
{
    int from = peal_diagnostics_count(plan->desc.diagnostics);

    plan->graphs->hopes = plan->engine->most_launches > 0;
    peal_status status = record_with_room(plan);
    if (!status || plan->emission.status || !plan->graphs->hopes || plan->graphs->is_sure)
        return status;
    peal_diagnostics_take_back(plan->desc.diagnostics, from);
    plan->graphs->hopes = false;
    plan->graphs->is_even = plan->graphs->steps == plan->graphs->period;
    return record_with_room(plan);
}

peal_status peal_cuda_graphs_create(peal_cuda_plan *plan)
{
    const peal_cuda_engine *engine = plan->engine;
    peal_cuda_graphs *graphs = PEAL_ARENA_NEW(plan->arena, peal_cuda_graphs);
    peal_status status = PEAL_STATUS_OK;
    CUresult result = CUDA_SUCCESS;

    plan->graphs = graphs;
    plan->run->run_iterations = peal_cuda_graphs_run;
    plan->run->report_replay = peal_cuda_report_replay;
    graphs->sink = (peal_cuda_sink){.ops = engine->sink,
                                    .signal = engine->is_one_kernel ? plan->options.signal
                                                                    : plan->stream_sink->signal,
                                    .is_replayed = true,
                                    .is_one_kernel = engine->is_one_kernel,
                                    .end_of_step = end_of_step};
    graphs->rounds = 1;
    graphs->begin = PEAL_ARENA_ARRAY(plan->arena, peal_walk, plan->rank_count);
    graphs->change = PEAL_ARENA_ARRAY(plan->arena, state_change, plan->rank_count);
    graphs->word = PEAL_ARENA_ARRAY(plan->arena, int64_t, plan->rank_count);
    graphs->stops = plan->rank[0].schedule->outer.until;
    for (int r = 0; r < plan->rank_count; r++)
        peal_walk_init(&graphs->begin[r], plan->rank[r].program, plan->arena, 0);
    if (graphs->stops && plan->options.signal == PEAL_CUDA_SIGNAL_MEMOP)
        return report_not_applicable(
            plan, "`until` needs kernel signals: memory operations cannot be skipped");
    if (graphs->stops && plan->options.copy == PEAL_CUDA_COPY_ENGINE)
        return report_not_applicable(
            plan, "`until` needs copy kernels: the copy engine cannot be skipped");
    if (engine->prepare)
        status = engine->prepare(plan);
    for (int i = 0; i < REPLAYS_AHEAD && !result; i++)
        result = plan->driver->cuEventCreate_(&graphs->done[i], CU_EVENT_DISABLE_TIMING);
    if (result && !status)
        return report_not_applicable(plan, "events cannot be created");
    return status ? status : record_what_fits(plan);
}

void peal_cuda_graphs_destroy(peal_cuda_plan *plan)
{
    peal_cuda_graphs *graphs = plan->graphs;

    for (int i = 0; graphs && i < PEAL_CUDA_RECORDINGS; i++)
        peal_cuda_recording_free(plan, i);
    for (int i = 0; graphs && i < REPLAYS_AHEAD; i++)
        if (graphs->done[i])
            plan->driver->cuEventDestroy_(graphs->done[i]);
}
