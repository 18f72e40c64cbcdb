/* Finds K, the number of iterations of a recording: after them everything that its launches hold as
 * constants is as before. If there is no such K, the reason is reported. */
#include "backends/cuda/lower/emit.h"
#include "backends/cuda/lower/predicate.h"
#include "backends/cuda/replay/replay.h"

#include <string.h>

enum { MOST_STEPS = 1024, LEAST_STEPS = 64 };

/* Loops whose end the device decides are recorded in full, and may make many ops of few steps.
 * ENOUGH_OPS ops hide the launch of a replay; more than MOST_OPS are refused. */
enum { ENOUGH_OPS = 1 << 12, MOST_OPS = 1 << 18 };

/* A condition on the step with a modulus above RARE does not count for the period. Replays cover
 * the steps in which it is not met; a step in which it is met is run singly. */
enum { RARE = 256 };

/* ---- how many steps ---- */

static bool value_repeats(const peal_walk_value *value, int64_t steps, const char **reason)
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

static bool uses_step(const peal_expr *expr)
{
    if (!expr || expr->kind == PEAL_EXPR_COUNTER)
        return expr && expr->index == 0;
    for (int i = 0; i < expr->operand_count; i++)
        if (uses_step(expr->operand[i]))
            return true;
    return false;
}

static bool loop_length_repeats(const peal_walk_loop *loop, const char **reason)
{
    if (uses_step(loop->repeat.expr) || uses_step(loop->every.expr) || uses_step(loop->lag.expr))
        *reason = "a loop whose length depends on the step";
    return *reason == NULL;
}

static bool conditions_repeat(const peal_cuda_rank *rank, int64_t steps, const char **reason)
{
    const peal_schedule *schedule = rank->schedule;

    for (int i = schedule->step.first; i < schedule->step.end; i++) {
        const peal_op *op = &schedule->op[i];
        if (op->kind == PEAL_OP_LOOP &&
            !loop_length_repeats(&rank->program->loop[op->loop], reason))
            return false;
        if (op->kind == PEAL_OP_LAUNCH && (schedule->task[op->task].kind == PEAL_TASK_LOAD ||
                                           schedule->task[op->task].kind == PEAL_TASK_SAVE)) {
            *reason = "`load` or `save` in the loop: work of the host";
            return false;
        }
        if (op->kind == PEAL_OP_IF && op->condition &&
            !value_repeats(&rank->program->op[i].condition, steps, reason))
            return false;
        if (op->kind == PEAL_OP_LAUNCH && !call_repeats(rank, op, reason))
            return false;
        if (op->kind == PEAL_OP_LAUNCH &&
            !value_repeats(&rank->task[op->task].needed, steps, reason))
            return false;
    }
    return peal_cuda_predicates_are_supported(rank, reason);
}

/* How many steps from `step` on do not meet a rare condition. */
static int64_t steps_before(const peal_walk_value *value, int64_t step)
{
    if (!value->expr || !value->is_periodic || value->depth > 0 || value->modulus <= RARE)
        return INT64_MAX;
    int64_t away = (value->remainder - step) % value->modulus;
    return away < 0 ? away + value->modulus : away;
}

int64_t peal_cuda_steps_until_rare_condition(const peal_cuda_rank *rank)
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

bool peal_cuda_is_period(const peal_cuda_rank *rank, const peal_walk *begin, int64_t steps,
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
    if (rank->scratch && steps % PEAL_CUDA_RING_STEPS != 0)
        return false;
    uint64_t evaluations = rank->walk.loop[schedule->loop_count].evaluations - outer->evaluations;
    if (schedule->outer.until && evaluations % ((uint64_t)outer->lag + 1) != 0)
        return false;
    return conditions_repeat(rank, steps, reason);
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
        if (!peal_cuda_is_period(&plan->rank[r], &plan->graphs->begin[r], steps, reason))
            return false;
    return true;
}

/* Walks on until the state repeats, and returns after how many steps. 0: it does not; *reason says
 * why. */
static int64_t find_period(peal_cuda_plan *plan, const char **reason)
{
    for (int64_t steps = 1; steps <= MOST_STEPS; steps++) {
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
    *reason = "no period of at most 1024 steps";
    return 0;
}

/* How many ops a rank's walk has passed since `begin`. */
static uint64_t ops_since(const peal_cuda_rank *rank, const peal_walk *begin)
{
    uint64_t count = 0;

    for (int i = 0; i < rank->schedule->op_count; i++)
        count += rank->walk.passed[i] - begin->passed[i];
    return count;
}

/* The most steps of a recording, so that there is room for the rows that it prints. */
static int64_t most_steps(const peal_cuda_plan *plan, int64_t period)
{
    uint64_t rows = 0;

    for (int r = 0; r < plan->rank_count; r++) {
        const peal_cuda_rank *rank = &plan->rank[r];
        for (int i = rank->schedule->step.first; i < rank->schedule->step.end; i++)
            if (rank->schedule->rank == 0 && rank->op[i].task &&
                rank->op[i].task->kind == PEAL_TASK_PRINT)
                rows += rank->walk.passed[i] - plan->graphs->begin[r].passed[i];
    }
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

bool peal_cuda_launches_fit(const peal_cuda_plan *plan)
{
    int most = plan->engine->most_launches;

    return most == 0 || launches_since(plan) <= (uint64_t)most;
}

/* The most steps whose launches the engine has room for. */
static int64_t most_recorded(const peal_cuda_plan *plan, int64_t period)
{
    if (plan->engine->most_launches == 0)
        return MOST_STEPS;
    int64_t periods = plan->engine->most_launches * 7 / 8 / (int64_t)launches_since(plan);
    return periods > 1 ? periods * period : period;
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

int64_t peal_cuda_choose_steps(peal_cuda_plan *plan, const char **reason)
{
    const peal_cuda_rank *rank = &plan->rank[0];
    const peal_walk_value *repeat = &rank->program->loop[rank->schedule->loop_count].repeat;

    int64_t period = find_period(plan, reason), steps = period;
    if (!period)
        return 0;
    uint64_t ops = rank->predicates->any ? ops_since(rank, &plan->graphs->begin[0]) : 0;
    int64_t least = least_steps(plan, period, ops, reason);
    if (*reason)
        return 0;
    int64_t most = most_steps(plan, period);
    int64_t recorded = most_recorded(plan, period);
    most = recorded < most ? recorded : most;
    while (steps < least && steps + period <= most)
        steps += period;
    for (int64_t more = steps; more <= 4 * steps && more <= most; more += period)
        if (repeat->is_constant && repeat->value.u.integer % more == 0)
            return more;
    return steps;
}
