/* Predicates (predicate.h): binds regions and their words, and fills in launches. */
#include "backends/cuda/lower/predicate.h"

#include "backends/cuda/lower/emit.h"
#include "backends/cuda/lower/sink.h"

#include <string.h>

enum { MOST_LAG = 255 };

/* ---- preparation ---- */

static bool is_decided_on_device(const peal_schedule *schedule, const peal_op *op)
{
    return (op->kind == PEAL_OP_IF && !op->condition) ||
           (op->kind == PEAL_OP_LOOP && schedule->loop[op->loop].until);
}

bool peal_cuda_predicates_are_needed(const peal_schedule *schedule)
{
    for (int i = schedule->step.first; i < schedule->step.end; i++)
        if (is_decided_on_device(schedule, &schedule->op[i]))
            return true;
    return false;
}

/* A loop with a lag acts on old verdicts, which are kept in a ring of words. */
static void bind_lag(peal_cuda_rank *rank, peal_cuda_predicate *decision, int loop)
{
    const peal_walk_value *lag = &rank->program->loop[loop].lag;

    decision->loop = loop;
    if (!lag->expr || !lag->is_constant || lag->value.u.integer <= 0 ||
        lag->value.u.integer > MOST_LAG)
        return;
    decision->lag = (int)lag->value.u.integer;
    decision->ring = rank->predicates->word_count;
    rank->predicates->word_count += decision->lag + 1;
}

static void bind_region(peal_cuda_rank *rank, int index, int outer)
{
    const peal_op *op = &rank->schedule->op[index];
    bool loops = op->kind == PEAL_OP_LOOP;
    int slot = loops ? rank->schedule->loop[op->loop].decision : op->decision;
    peal_cuda_predicate *decision = &rank->predicates->decision[slot];

    decision->on_device = rank->predicates->any = true;
    decision->outer = outer;
    decision->binding = PEAL_ARENA_ARRAY(rank->plan->arena, int, rank->schedule->array_count + 1);
    if (!loops)
        return;
    decision->loop_op = index;
    bind_lag(rank, decision, op->loop);
}

void peal_cuda_predicates_bind(peal_cuda_rank *rank)
{
    const peal_schedule *schedule = rank->schedule;
    peal_cuda_predicates *predicates = PEAL_ARENA_NEW(rank->plan->arena, peal_cuda_predicates);
    int region = -1;

    rank->predicates = predicates;
    predicates->word_count = schedule->decision_count;
    predicates->decision =
        PEAL_ARENA_ARRAY(rank->plan->arena, peal_cuda_predicate, schedule->decision_count + 1);
    for (int i = 0; i < schedule->decision_count; i++)
        predicates->decision[i] = (peal_cuda_predicate){.outer = -1, .loop = -1, .loop_op = -1};
    if (schedule->outer.until)
        bind_lag(rank, &predicates->decision[schedule->outer.decision], schedule->loop_count);
    for (int i = schedule->step.first; i < schedule->step.end; i++) {
        const peal_op *op = &schedule->op[i];
        bool ends =
            op->kind == PEAL_OP_END && is_decided_on_device(schedule, &schedule->op[op->end]);
        if (ends)
            region = predicates->decision[region].outer;
        rank->op[i].region = region;
        for (int r = region; op->kind == PEAL_OP_SWAP && r >= 0; r = predicates->decision[r].outer)
            predicates->decision[r].swaps = true;
        if (!is_decided_on_device(schedule, op))
            continue;
        bind_region(rank, i, region);
        region = op->kind == PEAL_OP_LOOP ? schedule->loop[op->loop].decision : op->decision;
    }
}

/* ---- what the device cannot skip ---- */

static bool can_skip_op(const peal_cuda_rank *rank, int index, const char **reason)
{
    const peal_cuda_op *op = &rank->op[index];

    if (op->source->kind == PEAL_OP_COPY && op->pieces.count > 0 &&
        rank->plan->options.copy == PEAL_CUDA_COPY_ENGINE)
        *reason = "a run-time condition needs copy kernels: the copy engine cannot be skipped";
    if (op->task && (op->task->cuda_function || op->task->enqueue))
        *reason = "a run-time condition: the application's CUDA functions cannot be skipped";
    return *reason == NULL;
}

static bool can_decide(const peal_cuda_rank *rank, const peal_cuda_predicate *decision,
                       const char **reason)
{
    const peal_walk_loop *loop = decision->loop < 0 ? NULL : &rank->program->loop[decision->loop];

    if (loop && loop->lag.expr && decision->lag == 0 &&
        !(loop->lag.is_constant && loop->lag.value.u.integer == 0))
        *reason = "a `lag` that changes, or is above 255";
    else if (!loop && decision->swaps)
        *reason = "a `swap` under a run-time condition (`when`)";
    else if (decision->uneven)
        *reason = "an inner `until` that may end where a `swap` has not come round: give it an "
                  "`every`";
    return *reason == NULL;
}

bool peal_cuda_predicates_are_supported(const peal_cuda_rank *rank, const char **reason)
{
    const peal_schedule *schedule = rank->schedule;

    for (int i = 0; i < schedule->decision_count; i++)
        if (!can_decide(rank, &rank->predicates->decision[i], reason))
            return false;
    for (int i = schedule->step.first; i < schedule->step.end; i++)
        if (rank->op[i].region >= 0 && !can_skip_op(rank, i, reason))
            return false;
    return true;
}

/* The walk is at a step in which the loop may end. What arrays name must be the same in all of
 * these steps, since the walk does not know in which one it ends. */
static void check_bindings_at_end(const peal_cuda_rank *rank, peal_cuda_predicate *decision)
{
    const peal_walk_loop_state *state = &rank->walk.loop[decision->loop];
    size_t bytes = (size_t)rank->schedule->array_count * sizeof(int);

    if (!decision->swaps)
        return;
    if (state->evaluations == (uint64_t)state->lag)
        memcpy(decision->binding, rank->walk.binding, bytes);
    decision->uneven = decision->uneven || state->repeat % state->every != 0 ||
                       memcmp(decision->binding, rank->walk.binding, bytes) != 0;
}

/* ---- emission ---- */

void peal_cuda_predicates_restart(peal_cuda_rank *rank)
{
    for (int i = 0; rank->predicates && i < rank->schedule->decision_count; i++)
        rank->predicates->decision[i].entered = 0;
}

static CUdeviceptr word_at(const peal_cuda_rank *rank, int word)
{
    return word < 0 ? 0 : rank->predicates->words + sizeof(unsigned) * (uint64_t)word;
}

CUdeviceptr peal_cuda_skip_word(const peal_cuda_rank *rank, int index)
{
    return rank->predicates ? word_at(rank, rank->op[index].region) : 0;
}

bool peal_cuda_begin_word(peal_cuda_rank *rank, peal_cuda_lane *lane, CUdeviceptr word,
                          CUdeviceptr outer, CUdeviceptr ring, int count)
{
    peal_cuda_plan *plan = rank->plan;
    peal_launch launch;

    memset(&launch, 0, sizeof(launch));
    launch.control = rank->control_device;
    launch.stop = plan->emission.sink->is_replayed ? rank->stop_word : 0;
    launch.view[0] = word;
    launch.view[1] = outer;
    launch.view[2] = ring;
    launch.argument[0].integer = count;
    CUresult result = peal_cuda_sink_launch(
        rank, lane,
        &(peal_cuda_kernel_launch){.function = peal_cuda_kernels_builtin(plan->kernels,
                                                                         PEAL_CUDA_BUILTIN_BEGIN),
                                   .blocks = 1,
                                   .threads = {32, 1, 1},
                                   .launch = &launch});
    return !result || peal_cuda_report_driver_error(plan, result, NULL, "the begin of a loop");
}

/* Sets a loop's predicate to "go on", unless an outer one skips all of the loop. */
static bool begin_loop(peal_cuda_rank *rank, const peal_cuda_op *op, int slot)
{
    const peal_cuda_predicate *decision = &rank->predicates->decision[slot];
    peal_cuda_lane *lane = peal_cuda_lane_at(rank, op->lane);
    bool is_lagged = decision->lag > 0;

    return peal_cuda_flush(rank, op->lane) &&
           peal_cuda_begin_word(rank, lane, word_at(rank, slot), word_at(rank, decision->outer),
                                is_lagged ? word_at(rank, decision->ring) : 0,
                                is_lagged ? decision->lag + 1 : 0) &&
           peal_cuda_enqueued(rank, lane, (int)(op - rank->op));
}

/* Begins the loops of a region, the outer ones first: the predicate of an inner loop starts with
 * the outer one's value. */
static bool begin_loops(peal_cuda_rank *rank, const peal_cuda_op *op, int slot)
{
    if (slot < 0)
        return true;
    peal_cuda_predicate *decision = &rank->predicates->decision[slot];
    if (!begin_loops(rank, op, decision->outer))
        return false;
    uint64_t passed = decision->loop_op < 0 ? 0 : rank->walk.passed[decision->loop_op];
    if (passed == decision->entered)
        return true;
    decision->entered = passed;
    return begin_loop(rank, op, slot);
}

bool peal_cuda_predicate_begin(peal_cuda_rank *rank, int index)
{
    peal_cuda_op *op = &rank->op[index];
    peal_cuda_group *group = &peal_cuda_lane_at(rank, op->lane)->group;

    if (!rank->predicates)
        return true;
    if (group->kind != PEAL_CUDA_GROUP_NONE && group->region != op->region &&
        !peal_cuda_flush(rank, op->lane))
        return false;
    return begin_loops(rank, op, op->region);
}

/* ---- verdicts ---- */

void peal_cuda_predicate_decide(peal_cuda_rank *rank, int index, const peal_walk_frame *frame,
                                peal_launch *launch)
{
    int slot = rank->op[index].task->decision;
    const peal_cuda_predicate *decision =
        rank->predicates ? &rank->predicates->decision[slot] : NULL;

    launch->view[1] = launch->view[2] = 0;
    launch->argument[0].integer = 0;
    if (decision && decision->on_device) {
        launch->view[0] = word_at(rank, slot);
        if (decision->loop < 0) {
            launch->skip =
                0; /* if it is to be skipped, it still tells the launches in its region */
            launch->view[1] = word_at(rank, decision->outer);
            launch->argument[0].integer = 1;
        }
    } else {
        launch->view[0] = rank->plan->host->verdict_word(rank, slot, frame->instance);
    }
    if (decision && decision->lag > 0) {
        uint64_t evaluation = rank->walk.loop[decision->loop].evaluations;
        uint64_t ring_length = (uint64_t)decision->lag + 1;
        launch->view[2] = word_at(rank, decision->ring);
        launch->argument[1].integer = (long long)(evaluation % ring_length);
        launch->argument[2].integer = (long long)((evaluation + 1) % ring_length);
    }
}

bool peal_cuda_predicate_verdict(peal_cuda_rank *rank, int slot, bool *verdict)
{
    peal_cuda_predicate *decision = rank->predicates ? &rank->predicates->decision[slot] : NULL;

    if (!decision || !decision->on_device)
        return false;
    if (rank->dry && decision->loop >= 0)
        check_bindings_at_end(rank, decision);
    *verdict = decision->loop < 0;
    return true;
}

uint64_t peal_cuda_predicate_instance(const peal_cuda_rank *rank, int slot, uint64_t instance)
{
    return instance + (rank->predicates ? (uint64_t)rank->predicates->decision[slot].lag : 0);
}
