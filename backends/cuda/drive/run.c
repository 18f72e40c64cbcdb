/* Walks all ranks of the process in turn (rank_turns.c) and emits their ops.
 *
 * A rank's turn ends when its iteration is over, when it needs another rank of the process to
 * advance, or when it needs the device: for a verdict, or because the walk is as far ahead as it
 * may be. The host never waits for the device within a turn, because the device may wait for what
 * another rank is to enqueue. So whatever is enqueued depends only on what was enqueued before. */
#include "backends/cuda/drive/run.h"
#include "base/clock.h"

#include "backends/cuda/lower/sink.h"

#include <string.h>

static bool is_idle(peal_cuda_rank *rank, bool *idle)
{
    *idle = true;
    if (!peal_cuda_flush_all(rank))
        return false;
    for (int l = 0; l < rank->lanes && *idle; l++) {
        rank->drains = 1 + l;
        if (!peal_cuda_within_lookahead(rank, idle))
            return false;
    }
    return true;
}

/* Whether the host can do its part of the next op now: of `load` and `save`. */
static bool is_ready_for_host(peal_cuda_rank *rank, bool *ready)
{
    const peal_cuda_op *op = &rank->op[rank->walk.position];

    *ready = true;
    if (!peal_cuda_moves_file(rank->schedule, op->source))
        return true;
    if (peal_cuda_file_is_written_beside(rank, op)) {
        *ready = peal_cuda_file_writer_has_room(rank);
    } else {
        if (!is_idle(rank, ready))
            return false;
        *ready = *ready && peal_cuda_file_writer_is_idle(rank);
    }
    /* What has failed may look idle. */
    return !*ready || peal_cuda_check_failure(rank->plan);
}

/* Emits ops of the rank until the section ends, or something has to be waited for. */
static peal_cuda_advance advance_in(peal_cuda_rank *rank, const peal_section *section)
{
    bool moved = false, is_within;

    for (;;) {
        if (!peal_cuda_within_lookahead(rank, &is_within))
            return PEAL_CUDA_FAILED;
        if (!is_within)
            return moved ? PEAL_CUDA_ADVANCED : PEAL_CUDA_WAITS_FOR_DEVICE;
        switch (peal_walk_next(&rank->walk, section)) {
        case PEAL_WALK_END:
            return PEAL_CUDA_FINISHED;
        case PEAL_WALK_BLOCKED:
            return moved ? PEAL_CUDA_ADVANCED : PEAL_CUDA_WAITS_FOR_DEVICE;
        case PEAL_WALK_FAILED:
            if (!rank->plan->emission.status)
                peal_cuda_fail(rank->plan, PEAL_STATUS_SPEC);
            return PEAL_CUDA_FAILED;
        default:
            break;
        }
        if (!is_ready_for_host(rank, &is_within))
            return PEAL_CUDA_FAILED;
        if (!is_within)
            return moved ? PEAL_CUDA_ADVANCED : PEAL_CUDA_WAITS_FOR_DEVICE;
        peal_cuda_advance turn = peal_cuda_may_emit(rank);
        if (turn != PEAL_CUDA_ADVANCED)
            return moved && turn != PEAL_CUDA_FAILED ? PEAL_CUDA_ADVANCED : turn;
        int index = rank->walk.position;
        if (!peal_cuda_emit(rank) ||
            (rank->plan->synchronous && !peal_cuda_synchronize(rank, index)))
            return PEAL_CUDA_FAILED;
        rank->moved = moved = true;
    }
}

/* One turn of a rank within the iterations that it has left: at most to the end of one. */
static peal_cuda_advance advance_steps(peal_cuda_rank *rank)
{
    const peal_section *section = &rank->schedule->step;
    bool stop = false;

    if (rank->steps_left == 0 || rank->stop)
        return PEAL_CUDA_FINISHED;
    if (rank->walk.position < section->end || !rank->at_end) {
        peal_cuda_advance state = advance_in(rank, section);
        if (state != PEAL_CUDA_FINISHED)
            return state;
        rank->at_end = true;
    }
    switch (peal_walk_step_done(&rank->walk, &stop)) {
    case PEAL_WALK_OP:
        break;
    case PEAL_WALK_BLOCKED:
        return PEAL_CUDA_WAITS_FOR_DEVICE;
    default:
        peal_cuda_fail(rank->plan, PEAL_STATUS_SPEC);
        return PEAL_CUDA_FAILED;
    }
    rank->at_end = false;
    rank->moved = true;
    rank->stop = stop;
    rank->walk.position = section->first;
    const peal_cuda_sink *sink = rank->plan->emission.sink;
    if (sink->end_of_step && !sink->end_of_step(rank))
        return PEAL_CUDA_FAILED;
    return --rank->steps_left == 0 || stop ? PEAL_CUDA_FINISHED : PEAL_CUDA_ADVANCED;
}

static peal_cuda_advance next_in_setup(peal_cuda_rank *rank)
{
    return advance_in(rank, &rank->schedule->setup);
}

static peal_cuda_advance next_in_finish(peal_cuda_rank *rank)
{
    return advance_in(rank, &rank->schedule->finish);
}

static void set_positions(peal_cuda_plan *plan, bool finish)
{
    for (int r = 0; r < plan->rank_count; r++) {
        peal_cuda_rank *rank = &plan->rank[r];
        rank->walk.position = finish ? rank->schedule->finish.first : rank->schedule->step.first;
    }
}

/* Enters the outermost loop of all ranks, before the first iteration. */
static bool enter_outer_loops(peal_cuda_plan *plan)
{
    for (int r = 0; r < plan->rank_count; r++) {
        peal_cuda_rank *rank = &plan->rank[r];
        if (rank->walk.loop[rank->schedule->loop_count].every == 0 &&
            peal_walk_enter(&rank->walk) != PEAL_WALK_OP)
            return peal_cuda_fail(plan, PEAL_STATUS_SPEC);
    }
    return true;
}

bool peal_cuda_run_steps(peal_cuda_plan *plan, int64_t steps)
{
    for (int r = 0; r < plan->rank_count; r++) {
        plan->rank[r].steps_left = steps;
        plan->rank[r].stop = false;
    }
    bool ok = peal_cuda_take_turns(plan, advance_steps);
    const peal_cuda_rank *first = &plan->rank[0];
    plan->run->stopped = first->stop;
    if (!plan->emission.sink->is_replayed && !plan->run->lags)
        atomic_store(&plan->run->steps_done,
                     first->walk.loop[first->schedule->loop_count].iteration);
    return ok;
}

bool peal_cuda_run_drain(peal_cuda_plan *plan)
{
    for (int r = 0; r < plan->rank_count; r++)
        if (!peal_cuda_flush_all(&plan->rank[r]))
            return false;
    for (int r = 0; r < plan->rank_count; r++)
        for (int l = 0; l < plan->rank[r].lanes; l++)
            if (!peal_cuda_drain_lane(plan, plan->rank[r].lane[l].stream))
                return false;
    return peal_cuda_rows_out(plan, true);
}

bool peal_cuda_run_in_blocks(peal_cuda_plan *plan)
{
    enum { BLOCK = 16 };
    int64_t left = plan->run->steps;

    while (left > 0 && !plan->run->stopped) {
        int64_t now = left < BLOCK ? left : BLOCK;
        if (!peal_cuda_run_steps(plan, now))
            return false;
        left -= now;
    }
    return true;
}

static bool run(peal_cuda_plan *plan)
{
    if (plan->run->setup && !peal_cuda_take_turns(plan, next_in_setup))
        return false;
    if (!enter_outer_loops(plan))
        return false;
    set_positions(plan, false);
    if (!plan->run->run_iterations(plan))
        return false;
    if (plan->run->finish) {
        set_positions(plan, true);
        if (!peal_cuda_take_turns(plan, next_in_finish))
            return false;
    }
    /* The last launches may have recorded a failure after the last poll. */
    return peal_cuda_interop_end(plan) && peal_cuda_run_drain(plan) &&
           peal_cuda_file_writers_await(plan) && peal_cuda_check_failure(plan);
}

bool peal_cuda_walk_section_only(peal_cuda_rank *rank, const peal_section *section)
{
    for (;;) {
        switch (peal_walk_next(&rank->walk, section)) {
        case PEAL_WALK_END:
            return true;
        case PEAL_WALK_OP:
            peal_walk_pass(&rank->walk);
            break;
        default:
            return false;
        }
    }
}

void peal_cuda_run_start(peal_cuda_plan *plan)
{
    int64_t begin = peal_clock_thread_cpu_ns();

    plan->run->begin = plan->run->last_progress = peal_clock_s();
    if (!run(plan))
        peal_cuda_rescue_all(plan);
    peal_cuda_interop_leave(plan);
    peal_cuda_file_writers_settle(plan);
    plan->run->end = peal_clock_s();
    plan->run->cpu = 1e-9 * (double)(peal_clock_thread_cpu_ns() - begin);
    for (int r = 0; r < plan->rank_count; r++)
        memcpy(plan->rank[r].final_binding, plan->rank[r].walk.binding,
               (size_t)plan->rank[r].schedule->array_count * sizeof(int));
}
