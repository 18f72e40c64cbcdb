/* Captures K iterations as a graph: finds K, records what the lanes get, instantiates and uploads.
 * graph.c says what a graph has to do with the walk. */
#include "backends/cuda/graph.h"

#include <string.h>

enum { MOST_STEPS = 1024, REPORTS = 8 };

/* A condition on the step that is rarely met is not part of the graph's period: a replay is a
 * stretch of steps in which it is not met, and the steps in between are run one by one. */
enum { RARE = 256 };

/* ---- how many steps ---- */

static bool period_holds(const peal_walk_value *value, int64_t steps, const char **reason)
{
    if (!value->expr || value->is_constant ||
        !(peal_expr_uses(value->expr) & (PEAL_USES_COUNTER | PEAL_USES_ELEMENT)))
        return true;
    if (peal_expr_uses(value->expr) & PEAL_USES_ELEMENT) {
        *reason = "a run-time condition";
        return false;
    }
    if (value->is_periodic)
        return value->depth > 0 || value->modulus > RARE || steps % value->modulus == 0;
    *reason = "a condition on the step that is not periodic";
    return false;
}

/* What the application puts into a graph is replayed as it is: no argument may change, and nothing
 * can end it early. */
static bool calls_hold(const cuda_rank *rank, const peal_op *op, const char **reason)
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

static bool conditions_hold(const cuda_rank *rank, int64_t steps, const char **reason)
{
    const peal_schedule *schedule = rank->schedule;

    for (int i = schedule->step.first; i < schedule->step.end; i++) {
        const peal_op *op = &schedule->op[i];
        if (op->kind == PEAL_OP_IF && !op->condition) {
            *reason = "a run-time condition (`when`)";
            return false;
        }
        if (op->kind == PEAL_OP_LOOP && rank->program->loop[op->loop].source->until) {
            *reason = "an `until` of an inner loop";
            return false;
        }
        if (op->kind == PEAL_OP_LAUNCH && (schedule->task[op->task].kind == PEAL_TASK_LOAD ||
                                           schedule->task[op->task].kind == PEAL_TASK_SAVE)) {
            *reason = "`load` or `save` in the loop: work of the host";
            return false;
        }
        if (op->kind == PEAL_OP_IF && !period_holds(&rank->program->op[i].condition, steps, reason))
            return false;
        if (op->kind == PEAL_OP_LAUNCH && !calls_hold(rank, op, reason))
            return false;
        if (op->kind == PEAL_OP_LAUNCH &&
            !period_holds(&rank->task[op->task].needed, steps, reason))
            return false;
    }
    return true;
}

/* How many steps from `step` on go by before a rare condition changes. */
static int64_t steps_before(const peal_walk_value *value, int64_t step)
{
    if (!value->expr || !value->is_periodic || value->depth > 0 || value->modulus <= RARE)
        return INT64_MAX;
    int64_t away = (value->remainder - step) % value->modulus;
    return away < 0 ? away + value->modulus : away;
}

/* The same for all conditions of a rank, from where its walk is. */
int64_t cuda_steps_alike(const cuda_rank *rank)
{
    const peal_schedule *schedule = rank->schedule;
    int64_t least = INT64_MAX;

    for (int i = schedule->step.first; i < schedule->step.end; i++) {
        const peal_op *op = &schedule->op[i];
        const peal_walk_value *value = op->kind == PEAL_OP_IF ? &rank->program->op[i].condition
                                       : op->kind == PEAL_OP_LAUNCH ? &rank->task[op->task].needed
                                                                    : NULL;
        int64_t steps = value ? steps_before(value, rank->walk.counter[0]) : INT64_MAX;
        least = steps < least ? steps : least;
    }
    return least;
}

/* After `steps` iterations from `begin`, everything that the nodes hold as constants is as before.
 */
bool cuda_is_period(const cuda_rank *rank, const peal_walk *begin, int64_t steps,
                    const char **reason)
{
    const peal_schedule *schedule = rank->schedule;
    const peal_walk_loop_state *outer = &begin->loop[schedule->loop_count];

    if (memcmp(begin->binding, rank->walk.binding, (size_t)schedule->array_count * sizeof(int)) !=
        0)
        return false;
    for (int i = 0; i < schedule->op_count; i++) {
        const peal_op *op = &schedule->op[i];
        int counter = rank->program->op[i].message_counter;
        if (counter < 0)
            continue;
        const peal_channel *channel = &schedule->channel[op->channel];
        uint64_t sent = rank->walk.message[counter] - begin->message[counter];
        if (sent * channel->quantum != 0 || sent % (uint64_t)channel->slots != 0)
            return false;
    }
    if (schedule->outer.until && outer->every > 1 && steps % outer->every != 0)
        return false;
    return conditions_hold(rank, steps, reason);
}

bool cuda_dry_step(cuda_rank *rank)
{
    bool stop;

    rank->walk.position = rank->schedule->step.first;
    return cuda_run_dry(rank, &rank->schedule->step) &&
           peal_walk_step_done(&rank->walk, &stop) == PEAL_WALK_OP;
}

static bool all_period(const cuda_plan *plan, int64_t steps, const char **reason)
{
    for (int r = 0; r < plan->rank_count; r++)
        if (!cuda_is_period(&plan->rank[r], &plan->graphs->begin[r], steps, reason))
            return false;
    return true;
}

/* Walks on until the state repeats. 0: it does not within MOST_STEPS, or the reason says why. */
static int64_t find_period(cuda_plan *plan, const char **reason)
{
    for (int64_t steps = 1; steps <= MOST_STEPS; steps++) {
        for (int r = 0; r < plan->rank_count; r++)
            if (!cuda_dry_step(&plan->rank[r])) {
                *reason = "a run-time condition";
                return 0;
            }
        if (all_period(plan, steps, reason))
            return steps;
        if (*reason)
            return 0;
    }
    *reason = "no period of at most 1024 steps";
    return 0;
}

/* ---- capture ---- */

CUstream cuda_origin(const cuda_plan *plan)
{
    return plan->rank[0].lane[0].stream;
}

/* Every other lane begins after the origin's work so far, or the origin goes on after theirs. */
bool cuda_join_lanes(cuda_plan *plan, bool fork)
{
    const peal_cuda_driver *driver = plan->driver;
    CUresult result = CUDA_SUCCESS;

    if (fork)
        result = driver->cuEventRecord_(plan->rank[0].lane[0].join, cuda_origin(plan));
    for (int r = 0; r < plan->rank_count; r++)
        for (int l = 0; l < plan->rank[r].lanes && !result; l++) {
            cuda_lane *lane = &plan->rank[r].lane[l];
            if (r == 0 && l == 0)
                continue;
            if (!fork)
                result = driver->cuEventRecord_(lane->join, lane->stream);
            if (!result)
                result =
                    fork ? driver->cuStreamWaitEvent_(lane->stream, plan->rank[0].lane[0].join, 0)
                         : driver->cuStreamWaitEvent_(cuda_origin(plan), lane->join, 0);
        }
    return !result || cuda_broken(plan, result, NULL, "joining lanes");
}

/* The lanes of one rank meet, and its step word is advanced there. */
bool cuda_graph_count(cuda_rank *rank, int64_t steps)
{
    cuda_plan *plan = rank->plan;
    const peal_cuda_driver *driver = plan->driver;
    cuda_lane *first = &rank->lane[0];
    peal_launch launch;
    CUresult result = CUDA_SUCCESS;

    if (!cuda_flush_all(rank))
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
    if (!result)
        result = driver->cuLaunchKernel_(cuda_kernels_builtin(plan->kernels, CUDA_BUILTIN_STEP), 1,
                                         1, 1, 1, 1, 1, 0, first->stream, parameter, NULL);
    if (!result && rank->lanes > 1)
        result = driver->cuEventRecord_(first->join, first->stream);
    for (int l = 1; l < rank->lanes && !result; l++)
        result = driver->cuStreamWaitEvent_(rank->lane[l].stream, first->join, 0);
    return !result || cuda_broken(plan, result, NULL, "counting steps");
}

bool cuda_graph_step(cuda_rank *rank)
{
    cuda_graphs *graphs = rank->plan->graphs;
    int64_t uncounted = rank->walk.counter[0] - rank->graph_step;

    if (uncounted == 0 || (!graphs->stops && uncounted < graphs->report && rank->steps_left > 1))
        return true;
    if (!cuda_graph_count(rank, uncounted))
        return false;
    rank->graph_step = rank->walk.counter[0];
    return true;
}

static bool capture_steps(cuda_plan *plan)
{
    for (int r = 0; r < plan->rank_count; r++)
        plan->rank[r].graph_step = plan->rank[r].graph_begin = plan->rank[r].walk.counter[0];
    for (int r = 0; r < plan->rank_count; r++)
        for (int l = 0; l < plan->rank[r].lanes; l++)
            plan->rank[r].lane[l].chained = false;
    plan->epoch++;
    return cuda_join_lanes(plan, true) && cuda_run_steps(plan, plan->graphs->steps) &&
           cuda_join_lanes(plan, false);
}

static peal_status capture(cuda_plan *plan, int half)
{
    cuda_graphs *graphs = plan->graphs;
    const peal_cuda_driver *driver = plan->driver;
    char text[160];

    for (int r = 0; r < plan->rank_count; r++) {
        peal_walk_copy(&plan->rank[r].walk, &graphs->begin[r]);
        plan->rank[r].walk.position = plan->rank[r].schedule->step.first;
        plan->rank[r].at_end = false;
    }
    plan->graph_half = (unsigned)half;
    plan->graph_rows = 0;
    CUresult result =
        driver->cuStreamBeginCapture_(cuda_origin(plan), CU_STREAM_CAPTURE_MODE_RELAXED);
    plan->capturing = true;
    bool ok = !result && capture_steps(plan);
    plan->capturing = false;
    plan->epoch++;
    CUresult ended = driver->cuStreamEndCapture_(cuda_origin(plan), &graphs->graph[half]);
    result = result ? result : ended;
    if (!ok && plan->status)
        return plan->status;
    CUDA_GRAPH_INSTANTIATE_PARAMS how = {.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD,
                                         .hUploadStream = cuda_origin(plan)};
    if (!result)
        result =
            driver->cuGraphInstantiateWithParams_(&graphs->exec[half], graphs->graph[half], &how);
    if (!result)
        result = driver->cuStreamSynchronize_(cuda_origin(plan));
    if (result)
        return peal_report(plan->desc.diagnostics, PEAL_E664, CUDA_NOWHERE,
                           "--mode stream runs the same without a graph",
                           "the driver refuses the graph of %lld steps: %s",
                           (long long)graphs->steps, peal_cuda_error(result, text));
    graphs->rows = plan->graph_rows;
    graphs->row[half] = PEAL_ARENA_ARRAY(plan->arena, cuda_row, graphs->rows + 1);
    if (graphs->rows)
        memcpy(graphs->row[half], &plan->row[half * CUDA_ROWS / 2],
               graphs->rows * sizeof(cuda_row));
    return PEAL_STATUS_OK;
}

static void note_change(cuda_plan *plan, int r)
{
    cuda_graphs *graphs = plan->graphs;
    const cuda_rank *rank = &plan->rank[r];
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
static bool walk_to_begin(cuda_plan *plan)
{
    for (int r = 0; r < plan->rank_count; r++) {
        cuda_rank *rank = &plan->rank[r];
        rank->dry = true;
        rank->walk.position = rank->schedule->setup.first;
        if (!cuda_run_dry(rank, &rank->schedule->setup) ||
            peal_walk_enter(&rank->walk) != PEAL_WALK_OP)
            return false;
        while (cuda_steps_alike(rank) == 0)
            if (!cuda_dry_step(rank))
                return false;
        peal_walk_copy(&plan->graphs->begin[r], &rank->walk);
    }
    return true;
}

static void go_back(cuda_plan *plan)
{
    for (int r = 0; r < plan->rank_count; r++) {
        cuda_rank *rank = &plan->rank[r];
        peal_arena *arena = plan->arena;
        peal_walk_hooks hooks = rank->walk.hooks;
        peal_walk_init(&rank->walk, rank->program, arena, plan->desc.hooks.first_message);
        rank->walk.hooks = hooks;
        rank->walk.position = rank->schedule->setup.first;
        rank->dry = false;
        rank->at_end = false;
        rank->stop_word = 0;
        rank->graph_step = 0;
    }
    plan->stopped = false;
}

/* A multiple of the period, not too short to hide the launch of a replay; one that divides the
 * whole run, if there is one. */
static int64_t choose_steps(cuda_plan *plan, const char **reason)
{
    const cuda_rank *rank = &plan->rank[0];
    const peal_walk_value *repeat = &rank->program->loop[rank->schedule->loop_count].repeat;

    go_back(plan);
    if (!walk_to_begin(plan)) {
        *reason = "a run-time condition in setup";
        return 0;
    }
    int64_t period = find_period(plan, reason), steps = period;
    if (!period)
        return 0;
    while (steps < plan->lowering.steps && steps + period <= MOST_STEPS)
        steps += period;
    for (int64_t more = steps; more <= 4 * steps && more <= MOST_STEPS; more += period)
        if (repeat->is_constant && repeat->value.u.integer % more == 0)
            return more;
    return steps;
}

static peal_status refuse(cuda_plan *plan, const char *reason)
{
    return peal_report(plan->desc.diagnostics, PEAL_E664, CUDA_NOWHERE,
                       "--mode stream runs it; --mode auto takes the first mode that can",
                       "mode graph cannot run this: %s", reason);
}

peal_status cuda_graphs_create(cuda_plan *plan)
{
    cuda_graphs *graphs = PEAL_ARENA_NEW(plan->arena, cuda_graphs);
    const char *reason = NULL;
    peal_status status = PEAL_STATUS_OK;
    CUresult result = CUDA_SUCCESS;

    plan->graphs = graphs;
    graphs->begin = PEAL_ARENA_ARRAY(plan->arena, peal_walk, plan->rank_count);
    graphs->change = PEAL_ARENA_ARRAY(plan->arena, state_change, plan->rank_count);
    graphs->word = PEAL_ARENA_ARRAY(plan->arena, int64_t, plan->rank_count);
    graphs->stops = plan->rank[0].schedule->outer.until;
    for (int r = 0; r < plan->rank_count; r++) {
        peal_walk_init(&graphs->begin[r], plan->rank[r].program, plan->arena, 0);
        const peal_walk_loop *outer =
            &plan->rank[r].program->loop[plan->rank[r].schedule->loop_count];
        if (graphs->stops && outer->lag.expr)
            return refuse(plan, "`until` with `lag`: the host looks at old verdicts");
    }
    if (graphs->stops && plan->lowering.signal == CUDA_SIGNAL_MEMOP)
        return refuse(plan, "`until` needs kernel signals: memory operations cannot be skipped");
    if (graphs->stops && plan->lowering.copy == CUDA_COPY_ENGINE)
        return refuse(plan, "`until` needs copy kernels: the copy engine cannot be skipped");
    graphs->steps = choose_steps(plan, &reason);
    go_back(plan);
    if (!graphs->steps)
        return refuse(plan, reason ? reason : "no period");
    graphs->report = graphs->steps > REPORTS ? graphs->steps / REPORTS : 1;
    for (int i = 0; i < AHEAD && !result; i++)
        result = plan->driver->cuEventCreate_(&graphs->done[i], CU_EVENT_DISABLE_TIMING);
    if (result)
        return refuse(plan, "events cannot be created");
    for (int r = 0; r < plan->rank_count; r++) {
        plan->rank[r].dry = true;
        plan->rank[r].stop_word = graphs->stops ? plan->rank[r].words + 8 : 0;
    }
    graphs->halves = 1;
    for (int half = 0; half < graphs->halves && !status; half++) {
        status = capture(plan, half);
        for (int r = 0; r < plan->rank_count && half == 0 && !status; r++)
            note_change(plan, r);
        if (!status && graphs->rows)
            graphs->halves = 2;
    }
    go_back(plan);
    return status;
}

void cuda_graphs_destroy(cuda_plan *plan)
{
    cuda_graphs *graphs = plan->graphs;

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
