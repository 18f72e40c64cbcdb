/* The walk over a rank's ops: loops, conditions, swaps, verdicts. */
#include "backends/host/walk.h"

#include "backends/host/execute.h"

#include <string.h>

void host_walk_init(host_walk *walk, host_rank *rank, int worker, bool concurrent)
{
    const peal_schedule *schedule = rank->schedule;
    peal_arena *arena = rank->plan->arena;
    int depth = schedule->loop_depth > 0 ? schedule->loop_depth : 1;

    *walk = (host_walk){.rank = rank, .worker = worker, .concurrent = concurrent};
    walk->counter = PEAL_ARENA_ARRAY(arena, int64_t, depth);
    walk->binding = PEAL_ARENA_ARRAY(arena, int, schedule->array_count + 1);
    walk->passed = PEAL_ARENA_ARRAY(arena, uint64_t, schedule->op_count + 1);
    walk->message = PEAL_ARENA_ARRAY(arena, uint64_t, rank->program->message_counter_count + 1);
    walk->loop = PEAL_ARENA_ARRAY(arena, peal_walk_loop_state, schedule->loop_count + 1);
    for (int i = 0; i < schedule->array_count; i++)
        walk->binding[i] = i;
    for (int i = 0; i < rank->program->message_counter_count; i++)
        walk->message[i] = rank->plan->desc.hooks.first_message;
    if (rank->plan->desc.hooks.jitter_seed)
        walk->jitter =
            rank->plan->desc.hooks.jitter_seed + 977u * (uint64_t)rank->index + (uint64_t)worker;
}

static peal_walk_frame current(const host_walk *walk)
{
    return (peal_walk_frame){.counter = walk->counter, .binding = walk->binding};
}

/* The verdict of instance `instance` of a decision. */
static bool read_verdict(host_walk *walk, int slot, uint64_t instance, bool *out)
{
    const host_decision *decision = &walk->rank->decision[slot];
    if (walk->concurrent) {
        const host_op *op = &walk->rank->op[decision->op];
        const host_count *done = host_done(walk->rank, decision->op, op->owner);
        if (!host_word_reached(&done->value, instance)) {
            host_wait wait = host_walk_wait(walk, HOST_WAIT_VERDICT, decision->op);
            if (!host_wait_slow(&wait, &done->value, instance))
                return false;
        }
    }
    *out = decision->verdict[instance % decision->slots];
    return true;
}

/* Loop conditions. */

static bool enter_loop(host_walk *walk, int index)
{
    const peal_walk_loop *loop = &walk->rank->loop[index];
    peal_walk_loop_state *state = &walk->loop[index];
    peal_walk_frame frame = current(walk);

    *state = (peal_walk_loop_state){0};
    return host_evaluate_integer(walk->rank, &loop->repeat, &frame, 1, &state->repeat) &&
           host_evaluate_integer(walk->rank, &loop->every, &frame, 1, &state->every) &&
           host_evaluate_integer(walk->rank, &loop->lag, &frame, 0, &state->lag) &&
           ((state->every = state->every < 1 ? 1 : state->every), true);
}

static bool is_due(const peal_walk_loop_state *state)
{
    return state->every <= 1 || (state->iteration + 1) % state->every == 0;
}

/* Whether `until` ends the loop after iteration `state->iteration`. */
static bool leave_loop(host_walk *walk, int index, bool *leave)
{
    const peal_schedule_loop *loop = walk->rank->loop[index].source;
    peal_walk_loop_state *state = &walk->loop[index];

    *leave = false;
    if (!loop->until || !is_due(state))
        return true;
    if (++state->evaluations <= (uint64_t)state->lag)
        return true;
    const host_decision *decision = &walk->rank->decision[loop->decision];
    uint64_t instance = walk->passed[decision->op] - (uint64_t)state->lag;
    return read_verdict(walk, loop->decision, instance, leave);
}

/* A walk passes a DECIDE only when its loop evaluates the verdict. Once it has passed instance n,
 * it will not read the verdict of n - 1 - lag or of older ones. */
static bool passes_decide(host_walk *walk, const host_op *op)
{
    int slot = op->task->source->decision;
    int index = walk->rank->program->op[op - walk->rank->op].decision_loop;
    peal_walk_loop_state once = {.every = 1};
    const peal_walk_loop_state *state = index < 0 ? &once : &walk->loop[index];
    host_decision *decision = &walk->rank->decision[slot];

    if (!is_due(state))
        return false;
    uint64_t instance = walk->passed[op - walk->rank->op] + 1;
    if (walk->concurrent && instance > (uint64_t)state->lag + 1)
        /* Pairs with the acquire load in decide() (execute.c). */
        host_word_store(&decision->consumed[walk->worker].value,
                        instance - 1 - (uint64_t)state->lag);
    return true;
}

static bool condition_holds(host_walk *walk, const host_op *op, bool *out)
{
    if (op->source->decision >= 0 && !op->condition.expr) {
        const host_decision *decision = &walk->rank->decision[op->source->decision];
        return read_verdict(walk, op->source->decision, walk->passed[decision->op], out);
    }
    peal_walk_frame frame = current(walk);
    return host_evaluate_boolean(walk->rank, &op->condition, &frame, true, out);
}

/* Runs one control op and moves position. False: failed. */
static bool control(host_walk *walk, const host_op *op)
{
    const peal_op *source = op->source;
    bool flag = false;

    walk->passed[walk->position]++;
    switch (source->kind) {
    case PEAL_OP_LOOP:
        if (!enter_loop(walk, source->loop))
            return false;
        walk->counter[walk->rank->loop[source->loop].source->depth] = 0;
        walk->position = walk->loop[source->loop].repeat > 0 ? walk->position + 1 : source->end + 1;
        return true;
    case PEAL_OP_IF:
        if (!condition_holds(walk, op, &flag))
            return false;
        walk->position = flag ? walk->position + 1 : source->end + 1;
        return true;
    default:
        break;
    }
    if (source->kind == PEAL_OP_END && walk->rank->op[source->end].kind == PEAL_OP_LOOP) {
        int index = walk->rank->op[source->end].source->loop;
        peal_walk_loop_state *state = &walk->loop[index];
        if (host_is_aborted(walk->rank->plan) || !leave_loop(walk, index, &flag))
            return false;
        state->iteration++;
        if (!flag && state->iteration < state->repeat) {
            walk->counter[walk->rank->loop[index].source->depth] = state->iteration;
            walk->position = source->end + 1;
            return true;
        }
    }
    walk->position++;
    return true;
}

host_walk_result host_walk_next(host_walk *walk, const peal_section *section)
{
    const host_op *ops = walk->rank->op;

    while (walk->position < section->end) {
        const host_op *op = &ops[walk->position];
        switch (op->kind) {
        case PEAL_OP_LAUNCH:
            if (!op->decides || passes_decide(walk, op))
                return HOST_WALK_OP;
            walk->position++;
            break;
        case PEAL_OP_COPY:
        case PEAL_OP_WRITE:
        case PEAL_OP_WAIT:
            return HOST_WALK_OP;
        case PEAL_OP_SWAP: {
            int first = op->source->first, second = op->source->second;
            int other = walk->binding[first];
            walk->binding[first] = walk->binding[second];
            walk->binding[second] = other;
            walk->passed[walk->position++]++;
            break;
        }
        case PEAL_OP_FENCE: /* host memory is coherent; the release of WRITE orders all stores */
            walk->passed[walk->position++]++;
            break;
        default:
            if (!control(walk, op))
                return HOST_WALK_FAILED;
        }
    }
    return HOST_WALK_END;
}

static bool run_section(host_walk *walk, const peal_section *section, host_walk_visit visit,
                        void *user)
{
    walk->position = section->first;
    for (;;) {
        switch (host_walk_next(walk, section)) {
        case HOST_WALK_END:
            return true;
        case HOST_WALK_FAILED:
            return false;
        case HOST_WALK_OP:
            if (!visit(walk, user))
                return false;
        }
    }
}

bool host_walk_step_done(host_walk *walk, bool *stop)
{
    int outer = walk->rank->schedule->loop_count;
    peal_walk_loop_state *state = &walk->loop[outer];
    host_plan *plan = walk->rank->plan;

    if (!leave_loop(walk, outer, stop))
        return false;
    walk->counter[0] = ++state->iteration;
    atomic_store_explicit(&walk->steps, state->iteration, memory_order_release);
    if (walk->worker == 0) {
        atomic_store_explicit(&walk->rank->progress.step, state->iteration, memory_order_relaxed);
        if (walk->rank->index == 0) {
            atomic_store_explicit(&plan->steps_done, state->iteration, memory_order_relaxed);
            plan->stopped = *stop;
        }
    }
    return !host_is_aborted(plan);
}

bool host_walk_enter(host_walk *walk)
{
    return enter_loop(walk, walk->rank->schedule->loop_count);
}

bool host_walk_run(host_walk *walk, host_walk_visit visit, void *user)
{
    const host_plan *plan = walk->rank->plan;
    const peal_schedule *schedule = walk->rank->schedule;
    int outer = schedule->loop_count;
    bool stop = false;

    if (plan->setup && !run_section(walk, &schedule->setup, visit, user))
        return false;
    if (walk->loop[outer].every == 0 && !host_walk_enter(walk))
        return false;
    for (int64_t i = 0; i < plan->steps && !stop; i++)
        if (!run_section(walk, &schedule->step, visit, user) || !host_walk_step_done(walk, &stop))
            return false;
    return !plan->finish || run_section(walk, &schedule->finish, visit, user);
}

/* Expressions. */

static peal_value element_value(void *user, int array)
{
    const void *const *pair = user;
    const host_rank *rank = pair[0];
    const peal_walk_frame *frame = pair[1];
    const unsigned char *at = rank->first[frame->binding[array]];
    peal_value value = {.kind = PEAL_INTEGER};

    switch (rank->schedule->array[array].type) {
    case PEAL_F64:
        value = (peal_value){PEAL_REAL, {.real = *(const double *)at}};
        break;
    case PEAL_F32:
        value = (peal_value){PEAL_REAL, {.real = (double)*(const float *)at}};
        break;
    case PEAL_I32:
        value.u.integer = *(const int32_t *)at;
        break;
    case PEAL_I64:
        value.u.integer = *(const int64_t *)at;
        break;
    default:
        value.u.integer = *at;
    }
    return value;
}

bool host_evaluate(host_rank *rank, const peal_walk_value *value, const peal_walk_frame *frame,
                   peal_value *out)
{
    if (value->is_constant) {
        *out = value->value;
        return true;
    }
    peal_scope scope;
    const void *pair[2] = {rank, frame};
    peal_walk_scope(rank->program, frame->counter, &scope);
    scope.element = element_value;
    scope.user = (void *)pair;
    peal_status status = peal_expr_evaluate(value->expr, &scope, out, rank->plan->late);
    return status == PEAL_STATUS_OK || host_fail(rank->plan, status);
}

bool host_evaluate_integer(host_rank *rank, const peal_walk_value *value,
                           const peal_walk_frame *frame, int64_t missing, int64_t *out)
{
    peal_value result = {.kind = PEAL_INTEGER, .u.integer = missing};
    if (value->expr && !host_evaluate(rank, value, frame, &result))
        return false;
    *out = result.kind == PEAL_REAL ? (int64_t)result.u.real : result.u.integer;
    return true;
}

bool host_evaluate_boolean(host_rank *rank, const peal_walk_value *value,
                           const peal_walk_frame *frame, bool missing, bool *out)
{
    if (value->is_periodic) {
        *out =
            (frame->counter[value->depth] % value->modulus == value->remainder) != value->unequal;
        return true;
    }
    peal_value result = {.kind = PEAL_BOOLEAN, .u.boolean = missing};
    if (value->expr && !host_evaluate(rank, value, frame, &result))
        return false;
    *out = result.u.boolean;
    return true;
}
