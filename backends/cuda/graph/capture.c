/* Captures K iterations as a graph: records what the lanes get, instantiates and uploads.
 * replay_period.c finds K; replay.c says what a graph has to do with the walk. */
#include "backends/cuda/fused/fused.h"
#include "backends/cuda/graph/graph.h"
#include "backends/cuda/lower/predicate.h"

#include <string.h>

/* How often steps are counted. In mode fused all blocks wait for that. */
enum { REPORTS = 8, FUSED_REPORTS = 2 };

/* ---- capture ---- */

CUstream peal_cuda_origin(const peal_cuda_plan *plan)
{
    return plan->rank[0].lane[0].stream;
}

/* Every other lane begins after the origin's work so far, or the origin goes on after theirs. */
bool peal_cuda_join_lanes(peal_cuda_plan *plan, bool fork)
{
    const peal_cuda_driver *driver = plan->driver;
    CUresult result = CUDA_SUCCESS;

    if (fork)
        result = driver->cuEventRecord_(plan->rank[0].lane[0].join, peal_cuda_origin(plan));
    for (int r = 0; r < plan->rank_count; r++)
        for (int l = 0; l < plan->rank[r].lanes && !result; l++) {
            peal_cuda_lane *lane = &plan->rank[r].lane[l];
            if (r == 0 && l == 0)
                continue;
            if (!fork)
                result = driver->cuEventRecord_(lane->join, lane->stream);
            if (!result)
                result =
                    fork ? driver->cuStreamWaitEvent_(lane->stream, plan->rank[0].lane[0].join, 0)
                         : driver->cuStreamWaitEvent_(peal_cuda_origin(plan), lane->join, 0);
        }
    return !result || peal_cuda_report_driver_error(plan, result, NULL, "joining lanes");
}

/* The lanes of one rank meet, and its step word is advanced there. */
bool peal_cuda_graph_count(peal_cuda_rank *rank, int64_t steps)
{
    peal_cuda_plan *plan = rank->plan;
    const peal_cuda_driver *driver = plan->driver;
    peal_cuda_lane *first = &rank->lane[0];
    peal_launch launch;
    CUresult result = CUDA_SUCCESS;

    if (!peal_cuda_flush_all(rank))
        return false;
    for (int l = 1; l < rank->lanes && !result; l++) {
        result = driver->cuEventRecord_(rank->lane[l].join, rank->lane[l].stream);
        if (!result)
            result = driver->cuStreamWaitEvent_(first->stream, rank->lane[l].join, 0);
    }
    memset(&launch, 0, sizeof(launch));
    launch.control = rank->control_device;
    launch.stop = plan->capturing ? rank->stop_word : 0;
    launch.step = rank->words;
    launch.argument[0].integer = steps;
    void *parameter[] = {&launch};
    CUfunction counts = peal_cuda_kernels_builtin(plan->kernels, PEAL_CUDA_BUILTIN_STEP);
    if (peal_cuda_is_recording(plan)) {
        peal_cuda_fused_add(rank, counts, 1, &launch, NULL);
        return true;
    }
    if (!result)
        result =
            driver->cuLaunchKernel_(counts, 1, 1, 1, 1, 1, 1, 0, first->stream, parameter, NULL);
    if (!result && rank->lanes > 1)
        result = driver->cuEventRecord_(first->join, first->stream);
    for (int l = 1; l < rank->lanes && !result; l++)
        result = driver->cuStreamWaitEvent_(rank->lane[l].stream, first->join, 0);
    return !result || peal_cuda_report_driver_error(plan, result, NULL, "counting steps");
}

bool peal_cuda_graph_step(peal_cuda_rank *rank)
{
    peal_cuda_graphs *graphs = rank->plan->graphs;
    int64_t uncounted = rank->walk.counter[0] - rank->graph_step;

    if (uncounted == 0 || (!graphs->stops && uncounted < graphs->report && rank->steps_left > 1))
        return true;
    if (!peal_cuda_graph_count(rank, uncounted))
        return false;
    rank->graph_step = rank->walk.counter[0];
    return true;
}

static bool capture_steps(peal_cuda_plan *plan)
{
    for (int r = 0; r < plan->rank_count; r++)
        plan->rank[r].graph_step = plan->rank[r].graph_begin = plan->rank[r].walk.counter[0];
    for (int r = 0; r < plan->rank_count; r++)
        for (int l = 0; l < plan->rank[r].lanes; l++) {
            peal_cuda_lane *lane = &plan->rank[r].lane[l];
            lane->chained = false;
            lane->sent = lane->followed = 0;
        }
    plan->sends = 0;
    plan->epoch++;
    return peal_cuda_join_lanes(plan, true) && peal_cuda_run_steps(plan, plan->graphs->steps) &&
           peal_cuda_join_lanes(plan, false) &&
           (!plan->graphs->loops || peal_cuda_conditional_round(plan));
}

static CUresult begin_capture(peal_cuda_plan *plan, int slot)
{
    if (plan->desc.mode == PEAL_MODE_FUSED) {
        peal_cuda_fused_begin(plan, slot);
        return CUDA_SUCCESS;
    }
    return plan->graphs->loops
               ? peal_cuda_conditional_begin(plan, slot)
               : plan->driver->cuStreamBeginCapture_(peal_cuda_origin(plan),
                                                     CU_STREAM_CAPTURE_MODE_RELAXED);
}

/* A body belongs to the graph that it is in. */
static CUresult end_capture(peal_cuda_plan *plan, int slot)
{
    CUgraph captured = NULL;

    if (plan->fused)
        return CUDA_SUCCESS;
    CUresult result = plan->driver->cuStreamEndCapture_(peal_cuda_origin(plan), &captured);

    if (!plan->graphs->loops)
        plan->graphs->graph[slot] = captured;
    return result;
}

/* False: the walk has failed, plan->status says why. */
static bool record(peal_cuda_plan *plan, int slot, CUresult *result)
{
    for (int r = 0; r < plan->rank_count; r++) {
        peal_walk_copy(&plan->rank[r].walk, &plan->graphs->begin[r]);
        plan->rank[r].walk.position = plan->rank[r].schedule->step.first;
        plan->rank[r].at_end = false;
        peal_cuda_predicates_restart(&plan->rank[r]);
    }
    plan->graph_slot = (unsigned)slot;
    plan->graph_rows = 0;
    *result = begin_capture(plan, slot);
    if (*result)
        return true;
    plan->capturing = true;
    bool ok = capture_steps(plan);
    plan->capturing = false;
    plan->epoch++;
    *result = end_capture(plan, slot);
    return ok || !plan->status;
}

static peal_status capture(peal_cuda_plan *plan, int slot)
{
    peal_cuda_graphs *graphs = plan->graphs;
    const peal_cuda_driver *driver = plan->driver;
    CUDA_GRAPH_INSTANTIATE_PARAMS how = {.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD,
                                         .hUploadStream = peal_cuda_origin(plan)};
    char text[160];
    CUresult result;

    if (!record(plan, slot, &result))
        return plan->status;
    if (plan->fused) {
        peal_status status = peal_cuda_fused_build(plan, slot);
        if (status)
            return status;
    }
    if (!result && !plan->fused)
        result =
            driver->cuGraphInstantiateWithParams_(&graphs->exec[slot], graphs->graph[slot], &how);
    if (!result)
        result = driver->cuStreamSynchronize_(peal_cuda_origin(plan));
    if (result && graphs->loops) {
        peal_cuda_conditional_give_up(plan, slot, result);
        return capture(plan, slot);
    }
    if (result)
        return peal_report(plan->desc.diagnostics, PEAL_E_GRAPH_MODE_NOT_APPLICABLE,
                           PEAL_CUDA_NOWHERE, "--mode stream runs the same without a graph",
                           "the driver refuses the graph of %lld steps: %s",
                           (long long)graphs->steps, peal_cuda_error(result, text));
    graphs->rows = plan->graph_rows;
    graphs->row[slot] = PEAL_ARENA_ARRAY(plan->arena, peal_cuda_row, graphs->rows + 1);
    if (graphs->rows)
        memcpy(graphs->row[slot], &plan->row[slot * PEAL_CUDA_ROWS / 2],
               graphs->rows * sizeof(peal_cuda_row));
    return PEAL_STATUS_OK;
}

static void note_change(peal_cuda_plan *plan, int r)
{
    peal_cuda_graphs *graphs = plan->graphs;
    const peal_cuda_rank *rank = &plan->rank[r];
    const peal_walk *begin = &graphs->begin[r];
    int outer = rank->schedule->loop_count;
    state_change *change = &graphs->change[r];

    change->passed = PEAL_ARENA_ARRAY(plan->arena, uint64_t, rank->schedule->op_count + 1);
    change->message =
        PEAL_ARENA_ARRAY(plan->arena, uint64_t, rank->program->message_counter_count + 1);
    for (int i = 0; i < rank->schedule->op_count; i++)
        change->passed[i] = rank->walk.passed[i] - begin->passed[i];
    for (int i = 0; i < rank->program->message_counter_count; i++)
        change->message[i] = rank->walk.message[i] - begin->message[i];
    change->iterations = rank->walk.loop[outer].iteration - begin->loop[outer].iteration;
    change->evaluations = rank->walk.loop[outer].evaluations - begin->loop[outer].evaluations;
}

/* ---- creation ---- */

/* Where the first iteration begins. */
static bool walk_to_begin(peal_cuda_plan *plan)
{
    for (int r = 0; r < plan->rank_count; r++) {
        peal_cuda_rank *rank = &plan->rank[r];
        rank->dry = true;
        rank->walk.position = rank->schedule->setup.first;
        if (!peal_cuda_walk_section_only(rank, &rank->schedule->setup) ||
            peal_walk_enter(&rank->walk) != PEAL_WALK_OP)
            return false;
        while (peal_cuda_steps_alike(rank) == 0)
            if (!peal_cuda_advance_walk_only(rank))
                return false;
        peal_walk_copy(&plan->graphs->begin[r], &rank->walk);
    }
    return true;
}

static void go_back(peal_cuda_plan *plan)
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
    plan->stopped = false;
}

static peal_status refuse(peal_cuda_plan *plan, const char *reason)
{
    return peal_report(plan->desc.diagnostics, PEAL_E_GRAPH_MODE_NOT_APPLICABLE, PEAL_CUDA_NOWHERE,
                       "--mode stream runs it; --mode auto takes the first mode that can",
                       "mode %s cannot run this: %s", peal_mode_name(plan->desc.mode), reason);
}

static void choose_steps(peal_cuda_plan *plan, const char **reason)
{
    go_back(plan);
    if (walk_to_begin(plan))
        plan->graphs->steps = peal_cuda_choose_steps(plan, reason);
    else
        *reason = "a run-time condition in setup";
}

peal_status peal_cuda_graphs_create(peal_cuda_plan *plan)
{
    peal_cuda_graphs *graphs = PEAL_ARENA_NEW(plan->arena, peal_cuda_graphs);
    const char *reason = NULL;
    peal_status status = PEAL_STATUS_OK;
    CUresult result = CUDA_SUCCESS;

    plan->graphs = graphs;
    graphs->rounds = 1;
    graphs->begin = PEAL_ARENA_ARRAY(plan->arena, peal_walk, plan->rank_count);
    graphs->change = PEAL_ARENA_ARRAY(plan->arena, state_change, plan->rank_count);
    graphs->word = PEAL_ARENA_ARRAY(plan->arena, int64_t, plan->rank_count);
    graphs->stops = plan->rank[0].schedule->outer.until;
    for (int r = 0; r < plan->rank_count; r++)
        peal_walk_init(&graphs->begin[r], plan->rank[r].program, plan->arena, 0);
    if (graphs->stops && plan->options.signal == PEAL_CUDA_SIGNAL_MEMOP)
        return refuse(plan, "`until` needs kernel signals: memory operations cannot be skipped");
    if (graphs->stops && plan->options.copy == PEAL_CUDA_COPY_ENGINE)
        return refuse(plan, "`until` needs copy kernels: the copy engine cannot be skipped");
    if (plan->desc.mode == PEAL_MODE_FUSED)
        status = peal_cuda_reduction_ring_create(plan);
    if (status)
        return status;
    choose_steps(plan, &reason);
    if (plan->desc.mode == PEAL_MODE_FUSED && (!graphs->steps || !peal_cuda_has_records(plan)) &&
        peal_cuda_reduction_ring_free(plan)) { /* it makes periods longer */
        reason = NULL;
        choose_steps(plan, &reason);
    }
    go_back(plan);
    if (!graphs->steps)
        return refuse(plan, reason ? reason : "no period");
    status =
        plan->desc.mode == PEAL_MODE_GRAPH ? peal_cuda_conditional_create(plan) : PEAL_STATUS_OK;
    int64_t reports = plan->desc.mode == PEAL_MODE_FUSED ? FUSED_REPORTS : REPORTS;
    graphs->report = graphs->steps > reports ? graphs->steps / reports : 1;
    for (int i = 0; i < AHEAD && !result; i++)
        result = plan->driver->cuEventCreate_(&graphs->done[i], CU_EVENT_DISABLE_TIMING);
    if (result)
        return refuse(plan, "events cannot be created");
    for (int r = 0; r < plan->rank_count; r++) {
        plan->rank[r].dry = true;
        plan->rank[r].stop_word = graphs->stops ? plan->rank[r].words + PEAL_CUDA_STOP_WORD : 0;
    }
    graphs->slots = 1;
    for (int slot = 0; slot < graphs->slots && !status; slot++) {
        status = capture(plan, slot);
        for (int r = 0; r < plan->rank_count && slot == 0 && !status; r++)
            note_change(plan, r);
        if (!status && graphs->rows)
            graphs->slots = 2;
    }
    go_back(plan);
    return status;
}

void peal_cuda_graphs_destroy(peal_cuda_plan *plan)
{
    peal_cuda_graphs *graphs = plan->graphs;

    for (int i = 0; graphs && i < 2; i++) {
        if (graphs->exec[i])
            plan->driver->cuGraphExecDestroy_(graphs->exec[i]);
        if (graphs->graph[i])
            plan->driver->cuGraphDestroy_(graphs->graph[i]);
    }
    for (int i = 0; graphs && i < AHEAD; i++)
        if (graphs->done[i])
            plan->driver->cuEventDestroy_(graphs->done[i]);
}
