/* The walk over a rank's ops: loops, conditions, swaps, verdicts. */
#include "base/walk.h"

#include <string.h>

/* ---- values ---- */

void peal_walk_scope(const peal_walk_program *program, const int64_t *counter, peal_scope *scope)
{
    const peal_schedule *schedule = program->schedule;

    *scope = (peal_scope){.graph = schedule->graph,
                          .rank = schedule->rank,
                          .ranks = schedule->machine ? schedule->machine->ranks : 1,
                          .counter = counter,
                          .counter_count = counter ? schedule->loop_depth : 0,
                          .layout = program->layout};
    memcpy(scope->position, schedule->rank_position, sizeof(scope->position));
    memcpy(scope->dims, schedule->rank_dims, sizeof(scope->dims));
}

/* Counters are never negative, so that C's % is the language's. */
static void find_period(const peal_expr *expr, const peal_scope *scope, peal_walk_value *out)
{
    bool compares = expr->kind == PEAL_EXPR_OPERATOR &&
                    (expr->op == PEAL_OPERATOR_EQUAL || expr->op == PEAL_OPERATOR_UNEQUAL);
    const peal_expr *modulo = compares ? expr->operand[0] : NULL;
    if (!modulo || modulo->kind != PEAL_EXPR_OPERATOR || modulo->op != PEAL_OPERATOR_MODULO ||
        modulo->operand[0]->kind != PEAL_EXPR_COUNTER)
        return;
    unsigned dynamic = PEAL_USES_COUNTER | PEAL_USES_ELEMENT;
    if ((peal_expr_uses(modulo->operand[1]) | peal_expr_uses(expr->operand[1])) & dynamic)
        return;
    if (peal_expr_integer(modulo->operand[1], scope, 0, &out->modulus, NULL) ||
        peal_expr_integer(expr->operand[1], scope, 0, &out->remainder, NULL))
        return;
    out->is_periodic = out->modulus > 0;
    out->unequal = expr->op == PEAL_OPERATOR_UNEQUAL;
    out->depth = modulo->operand[0]->index;
}

/* What an `and` (`or`) comes to that has an operand which is known before the run, such as the
 * second of `rank == 0 and step % 10 == 0` on rank 0. */
static const peal_expr *what_remains(const peal_expr *expr, const peal_scope *scope)
{
    unsigned dynamic = PEAL_USES_COUNTER | PEAL_USES_ELEMENT;
    bool holds;

    for (int i = 0; expr->kind == PEAL_EXPR_OPERATOR && i < 2; i++) {
        bool all = expr->op == PEAL_OPERATOR_AND;
        if (!all && expr->op != PEAL_OPERATOR_OR)
            break;
        if (peal_expr_uses(expr->operand[i]) & dynamic ||
            peal_expr_boolean(expr->operand[i], scope, true, &holds, NULL))
            continue;
        if (holds != all && i > 0 && peal_expr_uses(expr->operand[0]) & PEAL_USES_ELEMENT)
            break; /* it may go wrong */
        return what_remains(expr->operand[holds == all ? 1 - i : i], scope);
    }
    return expr;
}

peal_status peal_walk_value_prepare(const peal_walk_program *program, const peal_expr *expr,
                                    peal_diagnostics *diagnostics, peal_walk_value *out)
{
    peal_scope scope;

    *out = (peal_walk_value){.expr = expr};
    if (!expr)
        return PEAL_STATUS_OK;
    peal_walk_scope(program, NULL, &scope);
    out->expr = expr = what_remains(expr, &scope);
    find_period(expr, &scope, out);
    if (peal_expr_uses(expr) & (PEAL_USES_COUNTER | PEAL_USES_ELEMENT))
        return PEAL_STATUS_OK;
    peal_status status = peal_expr_evaluate(expr, &scope, &out->value, diagnostics);
    out->is_constant = status == PEAL_STATUS_OK;
    return status;
}

peal_status peal_walk_evaluate(const peal_walk_program *program, const peal_walk_value *value,
                               const int64_t *counter, peal_diagnostics *diagnostics,
                               peal_value *out)
{
    peal_scope scope;

    if (value->is_constant) {
        *out = value->value;
        return PEAL_STATUS_OK;
    }
    peal_walk_scope(program, counter, &scope);
    return peal_expr_evaluate(value->expr, &scope, out, diagnostics);
}

peal_status peal_walk_boolean(const peal_walk_program *program, const peal_walk_value *value,
                              const int64_t *counter, bool missing, peal_diagnostics *diagnostics,
                              bool *out)
{
    peal_value result = {.kind = PEAL_BOOLEAN, .u.boolean = missing};
    peal_status status = PEAL_STATUS_OK;

    if (value->is_periodic) {
        *out = (counter[value->depth] % value->modulus == value->remainder) != value->unequal;
        return PEAL_STATUS_OK;
    }
    if (value->expr)
        status = peal_walk_evaluate(program, value, counter, diagnostics, &result);
    *out = result.u.boolean;
    return status;
}

static bool evaluate_integer(const peal_walk *walk, const peal_walk_value *value, int64_t missing,
                             int64_t *out)
{
    peal_value result = {.kind = PEAL_INTEGER, .u.integer = missing};

    if (value->expr && peal_walk_evaluate(walk->program, value, walk->counter,
                                          walk->hooks.diagnostics, &result) != PEAL_STATUS_OK)
        return false;
    *out = result.kind == PEAL_REAL ? (int64_t)result.u.real : result.u.integer;
    return true;
}

/* ---- preparation ---- */

/* By channel the first op that counts its messages, and by op the next one of its channel; those
 * that count with an earlier one are left out. 0: none, else 1 + the op. */
typedef struct channel_ops {
    int *first, *next;
} channel_ops;

/* Ops of one kind on one end of a channel count its messages together. */
static int message_counter(peal_walk_program *program, int index, channel_ops *list)
{
    const peal_op *op = &program->schedule->op[index];
    int *link = &list->first[op->channel];

    for (; *link; link = &list->next[*link - 1]) {
        const peal_op *other = &program->schedule->op[*link - 1];
        if (other->kind == op->kind && other->credit == op->credit && other->copy == op->copy)
            return program->op[*link - 1].message_counter;
    }
    *link = index + 1;
    return program->message_counter_count++;
}

static peal_status prepare_op(peal_walk_program *program, int index, channel_ops *list,
                              peal_diagnostics *diagnostics)
{
    const peal_op *op = &program->schedule->op[index];
    peal_walk_op *out = &program->op[index];
    bool has_channel = (op->kind == PEAL_OP_COPY && op->copy != PEAL_COPY_LOCAL) ||
                       op->kind == PEAL_OP_WRITE || op->kind == PEAL_OP_WAIT;

    out->message_counter = has_channel ? message_counter(program, index, list) : -1;
    out->decision_loop = -1;
    if (op->kind == PEAL_OP_LAUNCH) {
        const peal_schedule_task *task = &program->schedule->task[op->task];
        out->decides = task->kind == PEAL_TASK_DECIDE;
        if (!out->decides)
            return PEAL_STATUS_OK;
        program->decision_op[task->decision] = index;
        for (int i = 0; i <= program->schedule->loop_count; i++)
            if (program->loop[i].source->until &&
                program->loop[i].source->decision == task->decision)
                out->decision_loop = i;
    }
    return op->kind == PEAL_OP_IF
               ? peal_walk_value_prepare(program, op->condition, diagnostics, &out->condition)
               : PEAL_STATUS_OK;
}

peal_status peal_walk_program_create(const peal_schedule *schedule, peal_arena *arena,
                                     peal_diagnostics *diagnostics, peal_walk_program **out)
{
    peal_walk_program *program = PEAL_ARENA_NEW(arena, peal_walk_program);
    peal_status status = PEAL_STATUS_OK;

    program->schedule = schedule;
    program->layout = PEAL_ARENA_ARRAY(arena, peal_layout, schedule->array_count + 1);
    for (int i = 0; i < schedule->array_count; i++)
        program->layout[i] = schedule->array[i].layout;
    program->loop = PEAL_ARENA_ARRAY(arena, peal_walk_loop, schedule->loop_count + 1);
    for (int i = 0; i <= schedule->loop_count && !status; i++) {
        peal_walk_loop *loop = &program->loop[i];
        loop->source = i == schedule->loop_count ? &schedule->outer : &schedule->loop[i];
        status = peal_walk_value_prepare(program, loop->source->repeat, diagnostics, &loop->repeat);
        if (!status)
            status =
                peal_walk_value_prepare(program, loop->source->every, diagnostics, &loop->every);
        if (!status)
            status = peal_walk_value_prepare(program, loop->source->lag, diagnostics, &loop->lag);
    }
    program->decision_op = PEAL_ARENA_ARRAY(arena, int, schedule->decision_count + 1);
    for (int i = 0; i < schedule->decision_count; i++)
        program->decision_op[i] = -1;
    program->op = PEAL_ARENA_ARRAY(arena, peal_walk_op, schedule->op_count + 1);
    channel_ops list = {PEAL_ARENA_ARRAY(arena, int, schedule->channel_count + 1),
                        PEAL_ARENA_ARRAY(arena, int, schedule->op_count + 1)};
    for (int i = 0; i < schedule->op_count && !status; i++)
        status = prepare_op(program, i, &list, diagnostics);
    *out = program;
    return status;
}

void peal_walk_init(peal_walk *walk, const peal_walk_program *program, peal_arena *arena,
                    uint64_t first_message)
{
    const peal_schedule *schedule = program->schedule;
    int depth = schedule->loop_depth > 0 ? schedule->loop_depth : 1;

    *walk = (peal_walk){.program = program};
    walk->counter = PEAL_ARENA_ARRAY(arena, int64_t, depth);
    walk->binding = PEAL_ARENA_ARRAY(arena, int, schedule->array_count + 1);
    walk->passed = PEAL_ARENA_ARRAY(arena, uint64_t, schedule->op_count + 1);
    walk->message = PEAL_ARENA_ARRAY(arena, uint64_t, program->message_counter_count + 1);
    walk->loop = PEAL_ARENA_ARRAY(arena, peal_walk_loop_state, schedule->loop_count + 1);
    for (int i = 0; i < schedule->array_count; i++)
        walk->binding[i] = i;
    for (int i = 0; i < program->message_counter_count; i++)
        walk->message[i] = first_message;
}

void peal_walk_copy(peal_walk *to, const peal_walk *from)
{
    const peal_schedule *schedule = from->program->schedule;
    size_t depth = schedule->loop_depth > 0 ? (size_t)schedule->loop_depth : 1;

    to->position = from->position;
    memcpy(to->counter, from->counter, depth * sizeof(*to->counter));
    memcpy(to->binding, from->binding, (size_t)schedule->array_count * sizeof(*to->binding));
    memcpy(to->passed, from->passed, (size_t)schedule->op_count * sizeof(*to->passed));
    memcpy(to->message, from->message,
           (size_t)from->program->message_counter_count * sizeof(*to->message));
    memcpy(to->loop, from->loop, ((size_t)schedule->loop_count + 1) * sizeof(*to->loop));
}

/* ---- loops and conditions ---- */

static bool enter_loop(peal_walk *walk, int index)
{
    const peal_walk_loop *loop = &walk->program->loop[index];
    peal_walk_loop_state *state = &walk->loop[index];

    *state = (peal_walk_loop_state){0};
    return evaluate_integer(walk, &loop->repeat, 1, &state->repeat) &&
           evaluate_integer(walk, &loop->every, 1, &state->every) &&
           evaluate_integer(walk, &loop->lag, 0, &state->lag) &&
           ((state->every = state->every < 1 ? 1 : state->every), true);
}

static bool is_due(const peal_walk_loop_state *state)
{
    return state->every <= 1 || (state->iteration + 1) % state->every == 0;
}

/* After iteration `state->iteration`: whether `until` ends the loop. Changes nothing if blocked. */
static peal_walk_result leave_loop(peal_walk *walk, int index, bool *leave)
{
    const peal_schedule_loop *loop = walk->program->loop[index].source;
    peal_walk_loop_state *state = &walk->loop[index];

    *leave = false;
    if (!loop->until || !is_due(state))
        return PEAL_WALK_OP;
    if (state->evaluations + 1 > (uint64_t)state->lag) {
        int decide = walk->program->decision_op[loop->decision];
        uint64_t instance = walk->passed[decide] - (uint64_t)state->lag;
        peal_walk_result result =
            walk->hooks.verdict(walk->hooks.user, loop->decision, instance, leave);
        if (result != PEAL_WALK_OP)
            return result;
    }
    state->evaluations++;
    return PEAL_WALK_OP;
}

static peal_walk_result condition_holds(peal_walk *walk, const peal_op *op, bool *out)
{
    const peal_walk_value *condition = &walk->program->op[walk->position].condition;

    if (op->decision >= 0 && !condition->expr) {
        int decide = walk->program->decision_op[op->decision];
        return walk->hooks.verdict(walk->hooks.user, op->decision, walk->passed[decide], out);
    }
    return peal_walk_boolean(walk->program, condition, walk->counter, true, walk->hooks.diagnostics,
                             out)
               ? PEAL_WALK_FAILED
               : PEAL_WALK_OP;
}

static peal_walk_result end_region(peal_walk *walk, const peal_op *op)
{
    const peal_op *begin = &walk->program->schedule->op[op->end];
    peal_walk_result result;
    bool leave = false;

    if (begin->kind == PEAL_OP_LOOP) {
        peal_walk_loop_state *state = &walk->loop[begin->loop];
        result = leave_loop(walk, begin->loop, &leave);
        if (result != PEAL_WALK_OP)
            return result;
        int64_t *counter = &walk->counter[walk->program->loop[begin->loop].source->depth];
        state->iteration++;
        if (!leave && state->iteration < state->repeat) {
            *counter = state->iteration;
            walk->passed[walk->position]++;
            walk->position = op->end + 1;
            return PEAL_WALK_OP;
        }
        *counter = 0; /* what comes behind is then recorded alike, however the loop ended */
    }
    walk->passed[walk->position++]++;
    return PEAL_WALK_OP;
}

/* One control op; moves position. */
static peal_walk_result control(peal_walk *walk, const peal_op *op)
{
    peal_walk_result result;
    bool holds = false;

    switch (op->kind) {
    case PEAL_OP_LOOP:
        if (!enter_loop(walk, op->loop))
            return PEAL_WALK_FAILED;
        walk->counter[walk->program->loop[op->loop].source->depth] = 0;
        holds = walk->loop[op->loop].repeat > 0;
        break;
    case PEAL_OP_IF:
        result = condition_holds(walk, op, &holds);
        if (result != PEAL_WALK_OP)
            return result;
        break;
    default:
        return end_region(walk, op);
    }
    walk->passed[walk->position]++;
    walk->position = holds ? walk->position + 1 : op->end + 1;
    return PEAL_WALK_OP;
}

/* DECIDE is passed only when its loop looks at the verdict. */
static bool passes_decide(const peal_walk *walk, const peal_walk_op *op)
{
    return op->decision_loop < 0 || is_due(&walk->loop[op->decision_loop]);
}

peal_walk_result peal_walk_next(peal_walk *walk, const peal_section *section)
{
    const peal_op *ops = walk->program->schedule->op;

    while (walk->position < section->end) {
        const peal_op *op = &ops[walk->position];
        const peal_walk_op *prepared = &walk->program->op[walk->position];
        peal_walk_result result = PEAL_WALK_OP;
        switch (op->kind) {
        case PEAL_OP_LAUNCH:
            if (!prepared->decides || passes_decide(walk, prepared))
                return PEAL_WALK_OP;
            walk->position++;
            break;
        case PEAL_OP_COPY:
        case PEAL_OP_WRITE:
        case PEAL_OP_WAIT:
        case PEAL_OP_FENCE:
            return PEAL_WALK_OP;
        case PEAL_OP_SWAP: {
            int other = walk->binding[op->first];
            walk->binding[op->first] = walk->binding[op->second];
            walk->binding[op->second] = other;
            walk->passed[walk->position++]++;
            break;
        }
        default:
            result = control(walk, op);
            if (result != PEAL_WALK_OP)
                return result;
        }
    }
    return PEAL_WALK_END;
}

peal_walk_frame peal_walk_pass(peal_walk *walk)
{
    peal_walk_frame frame = {.counter = walk->counter, .binding = walk->binding};
    int counter = walk->program->op[walk->position].message_counter;

    frame.instance = ++walk->passed[walk->position++];
    if (counter >= 0)
        frame.message = ++walk->message[counter];
    return frame;
}

peal_walk_result peal_walk_enter(peal_walk *walk)
{
    return enter_loop(walk, walk->program->schedule->loop_count) ? PEAL_WALK_OP : PEAL_WALK_FAILED;
}

peal_walk_result peal_walk_step_done(peal_walk *walk, bool *stop)
{
    int outer = walk->program->schedule->loop_count;
    peal_walk_result result = leave_loop(walk, outer, stop);

    if (result == PEAL_WALK_OP)
        walk->counter[0] = ++walk->loop[outer].iteration;
    return result;
}
