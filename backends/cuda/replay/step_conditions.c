/* Conditions on the step. What a recording holds as constants is right again only where they are as
 * they were in its steps. A condition is *kept*: then K is a multiple of its period. Or it is
 * *rare*: then the recording has steps in which it is as usual, and a step in which it is not is
 * run singly or recorded apart (rare_steps.c). Messages of such steps alone need not come round
 * with the recording; and the host can read and write files in those that are run singly.
 */
#include "backends/cuda/replay/step_conditions.h"

enum { MOST_CHANGES = 1 << 12 };

/* ---- which there are ---- */

typedef struct listing {
    peal_cuda_rank *rank;
    peal_cuda_step_conditions *out;
    peal_scope scope;
    int64_t *counter;
    peal_cuda_step_condition *file; /* whose atoms are being added */
    const char **reason;
} listing;

static peal_cuda_step_condition *add(listing *l)
{
    peal_cuda_step_conditions *out = l->out;

    PEAL_ARENA_ROOM(l->rank->plan->arena, out->of, out->count, out->room);
    peal_cuda_step_condition *condition = &out->of[out->count++];
    *condition = (peal_cuda_step_condition){.rank = l->rank, .counter = l->counter};
    return condition;
}

static void add_atom(void *user, const peal_expr *expr)
{
    listing *l = user;

    if (!peal_step_atom_prepare(expr, &l->scope, &add(l)->atom))
        *l->reason = "a condition on the step without a period: compare `step` or `step % n` with "
                     "a number";
}

static void add_conditions(listing *l, const peal_walk_value *value)
{
    if (!value->expr || value->is_constant)
        return;
    if (peal_expr_uses(value->expr) & PEAL_USES_ELEMENT)
        *l->reason = "a run-time condition";
    peal_step_atoms_visit(value->expr, add_atom, l);
}

/* A value that is no condition is kept. */
static void add_length(listing *l, const peal_walk_value *value)
{
    int64_t period = peal_step_period(value->expr, &l->scope);

    if (period == 0)
        *l->reason = "a loop whose length depends on the step";
    if (period > 1)
        add(l)->atom = (peal_step_atom){.expr = value->expr, .period = period};
}

static void add_part(void *user, const peal_expr *expr)
{
    listing *l = user;
    peal_cuda_step_condition *file = l->file;

    PEAL_ARENA_ROOM(l->rank->plan->arena, file->part, file->part_count, file->part_room);
    if (!peal_step_atom_prepare(expr, &l->scope, &file->part[file->part_count++]))
        *l->reason = "a condition on the step without a period: compare `step` or `step % n` with "
                     "a number";
}

static bool names_inner_counter(const peal_expr *expr)
{
    if (expr->kind == PEAL_EXPR_COUNTER)
        return expr->index > 0;
    for (int i = 0; expr->kind == PEAL_EXPR_OPERATOR && i < expr->operand_count; i++)
        if (names_inner_counter(expr->operand[i]))
            return true;
    return false;
}

/* What of a condition around a file the step decides: the parts between its `and`. Others may
 * hold in any step. */
static void add_around_file(listing *l, const peal_expr *expr)
{
    peal_cuda_step_condition *file = l->file;

    if (expr->kind == PEAL_EXPR_OPERATOR && expr->op == PEAL_OPERATOR_AND) {
        for (int i = 0; i < expr->operand_count; i++)
            add_around_file(l, expr->operand[i]);
        return;
    }
    if (peal_step_kind_of(expr) == PEAL_STEP_UNNAMED || names_inner_counter(expr))
        return;
    PEAL_ARENA_ROOM(l->rank->plan->arena, file->file, file->file_count, file->file_room);
    file->file[file->file_count++] = expr;
    peal_step_atoms_visit(expr, add_part, l);
}

/* The `load` or `save` at `index`: when it is done. */
static void add_file(listing *l, int index)
{
    const peal_schedule *schedule = l->rank->schedule;
    peal_cuda_step_condition *file = PEAL_ARENA_NEW(l->rank->plan->arena, peal_cuda_step_condition);

    *file = (peal_cuda_step_condition){.rank = l->rank, .counter = l->counter};
    l->file = file;
    for (int i = schedule->step.first; i < index && !*l->reason; i++) {
        const peal_op *op = &schedule->op[i];
        if (op->end <= index || (op->kind != PEAL_OP_IF && op->kind != PEAL_OP_LOOP))
            continue;
        const peal_walk_value *condition = &l->rank->program->op[i].condition;
        if (op->kind == PEAL_OP_LOOP ? schedule->loop[op->loop].until : !op->condition)
            *l->reason = "`load` or `save` where the GPU decides whether it is done";
        else if (op->kind == PEAL_OP_IF && condition->is_constant && !condition->value.u.boolean)
            return; /* it is never done */
        else if (op->kind == PEAL_OP_IF && condition->expr && !condition->is_constant)
            add_around_file(l, condition->expr);
    }
    if (file->file_count > 0 && !*l->reason)
        *add(l) = *file;
    else if (!*l->reason)
        *l->reason = "`load` or `save` in steps that no `when` on the step foresees";
}

/* Whether the region of an IF has nothing but files: then it is in no recording. */
static bool has_files_alone(const peal_schedule *schedule, const peal_op *region)
{
    for (int i = (int)(region - schedule->op) + 1; i < region->end; i++) {
        const peal_op *op = &schedule->op[i];
        bool encloses =
            op->kind == PEAL_OP_IF || op->kind == PEAL_OP_LOOP || op->kind == PEAL_OP_END;
        if (!encloses && !peal_cuda_moves_file(schedule, op))
            return false;
    }
    return true;
}

static void list_rank(peal_cuda_rank *rank, peal_cuda_step_conditions *out, const char **reason)
{
    listing l = {.rank = rank, .out = out, .reason = reason};
    const peal_schedule *schedule = rank->schedule;

    l.counter = PEAL_ARENA_ARRAY(rank->plan->arena, int64_t, schedule->loop_depth + 1);
    peal_walk_scope(rank->program, NULL, &l.scope);
    for (int i = schedule->step.first; i < schedule->step.end && !*reason; i++) {
        const peal_op *op = &schedule->op[i];
        if (op->kind == PEAL_OP_LOOP) {
            const peal_walk_loop *loop = &rank->program->loop[op->loop];
            add_length(&l, &loop->repeat);
            add_length(&l, &loop->every);
            add_length(&l, &loop->lag);
        } else if (op->kind == PEAL_OP_IF && op->condition && !has_files_alone(schedule, op)) {
            add_conditions(&l, &rank->program->op[i].condition);
        } else if (op->kind == PEAL_OP_LAUNCH) {
            add_conditions(&l, &rank->task[op->task].needed);
            if (peal_cuda_moves_file(schedule, op))
                add_file(&l, i);
        }
    }
}

bool peal_cuda_step_conditions_list(peal_cuda_plan *plan, peal_cuda_step_conditions *out,
                                    const char **reason)
{
    *out = (peal_cuda_step_conditions){.count = 0};
    for (int r = 0; r < plan->rank_count && !*reason; r++)
        list_rank(&plan->rank[r], out, reason);
    return *reason == NULL;
}

/* ---- what they are in a step ---- */

static bool holds(const peal_cuda_step_condition *condition, int64_t step)
{
    peal_scope scope;
    bool out = false;

    condition->counter[0] = step;
    peal_walk_scope(condition->rank->program, condition->counter, &scope);
    for (int i = 0; i < condition->file_count; i++)
        if (!peal_expr_boolean(condition->file[i], &scope, false, &out, NULL) && !out)
            return false;
    if (condition->file)
        return true;
    /* What fails is reported when the step is run. */
    if (peal_expr_boolean(condition->atom.expr, &scope, false, &out, NULL))
        return false;
    return out;
}

static int64_t next_change(const peal_cuda_step_condition *condition, int64_t step)
{
    int64_t next = INT64_MAX;

    if (!condition->file)
        return peal_step_next_change(&condition->atom, step);
    for (int i = 0; i < condition->part_count; i++) {
        int64_t here = peal_step_next_change(&condition->part[i], step);
        next = here < next ? here : next;
    }
    return next;
}

/* Whether it holds in most of the steps before `end`. */
static bool holds_mostly(const peal_cuda_step_condition *condition, int64_t end)
{
    int64_t held = 0, step = 0;

    for (int changes = 0; step < end && changes < MOST_CHANGES; changes++) {
        int64_t next = next_change(condition, step);
        next = next < end ? next : end;
        held += holds(condition, step) ? next - step : 0;
        step = next;
    }
    return 2 * held > step;
}

bool peal_cuda_step_conditions_keep(peal_cuda_step_conditions *of, int64_t most, int64_t end)
{
    for (int i = 0; i < of->count; i++) {
        peal_cuda_step_condition *condition = &of->of[i];
        int64_t period = condition->atom.period;
        condition->is_rare = condition->file || period == 0 || period > most;
        if (condition->is_rare && !condition->file && !condition->atom.is_steps)
            return false;
        condition->usual = condition->is_rare && !condition->file &&
                           holds_mostly(condition, period > 0 && period < end / 2 ? period : end);
        condition->from = condition->to = 0;
        condition->is_event = false;
    }
    return true;
}

/* The first step from `step` on, before `end`, in which it is not as usual; else `end`. */
static int64_t next_event_of(peal_cuda_step_condition *condition, int64_t step, int64_t end)
{
    if (step < condition->from || step > condition->to) {
        condition->from = condition->to = step;
        condition->is_event = false;
    }
    while (!condition->is_event && condition->to < end) {
        condition->is_event = holds(condition, condition->to) != condition->usual;
        if (!condition->is_event)
            condition->to = next_change(condition, condition->to);
    }
    return condition->to < end ? condition->to : end;
}

int64_t peal_cuda_step_conditions_next(peal_cuda_step_conditions *of, int64_t step, int64_t end)
{
    for (int i = 0; i < of->count && step < end; i++)
        if (of->of[i].is_rare)
            end = next_event_of(&of->of[i], step, end);
    return end;
}

void peal_cuda_step_conditions_truth(const peal_cuda_step_conditions *of, int64_t step, bool *out)
{
    for (int i = 0; i < of->count; i++)
        out[i] = of->of[i].is_rare && holds(&of->of[i], step);
}

bool peal_cuda_step_conditions_moves_file(const peal_cuda_step_conditions *of, int64_t step)
{
    for (int i = 0; i < of->count; i++)
        if (of->of[i].file && holds(&of->of[i], step))
            return true;
    return false;
}

bool peal_cuda_step_conditions_repeat(const peal_cuda_step_conditions *of,
                                      const peal_cuda_rank *rank, int64_t steps)
{
    for (int i = 0; i < of->count; i++)
        if (of->of[i].rank == rank && !of->of[i].is_rare && steps % of->of[i].atom.period != 0)
            return false;
    return true;
}
