/* Walks all ranks of the process, in turn (turns.c), and puts what they do onto lanes.
 *
 * A rank goes on until its iteration is over, until it has to wait for another rank of the process,
 * or for the device: a verdict that it has not given, or work that the walk may not be too far
 * ahead of. The host never waits for the device in one rank's turn: the device may be waiting for
 * another's. So what is put onto lanes depends only on what was put there before. */
#include "backends/cuda/run.h"

#include <string.h>
#include <sys/prctl.h>

/* Whether the next op is work of the host, which begins when the rank's lanes are idle. */
static bool is_file(const cuda_rank *rank)
{
    const cuda_op *op = &rank->op[rank->walk.position];
    return op->task && (op->task->kind == PEAL_TASK_LOAD || op->task->kind == PEAL_TASK_SAVE);
}

static bool is_idle(cuda_rank *rank, bool *idle)
{
    *idle = true;
    if (!cuda_flush_all(rank))
        return false;
    for (int l = 0; l < rank->lanes && *idle; l++) {
        rank->drains = 1 + l;
        if (!cuda_is_near(rank, idle))
            return false;
    }
    return true;
}

/* To the end of the section, of an iteration, or to something that has to be waited for. */
static cuda_advance advance_in(cuda_rank *rank, const peal_section *section)
{
    bool moved = false, near;

    for (;;) {
        if (!cuda_is_near(rank, &near))
            return CUDA_FAILED;
        if (!near)
            return moved ? CUDA_ADVANCED : CUDA_WAITS_FOR_DEVICE;
        switch (peal_walk_next(&rank->walk, section)) {
        case PEAL_WALK_END:
            return CUDA_FINISHED;
        case PEAL_WALK_BLOCKED:
            return moved ? CUDA_ADVANCED : CUDA_WAITS_FOR_DEVICE;
        case PEAL_WALK_FAILED:
            if (!rank->plan->status)
                cuda_fail(rank->plan, PEAL_STATUS_SPEC);
            return CUDA_FAILED;
        default:
            break;
        }
        if (is_file(rank) && !is_idle(rank, &near))
            return CUDA_FAILED;
        if (!near)
            return moved ? CUDA_ADVANCED : CUDA_WAITS_FOR_DEVICE;
        cuda_advance turn = cuda_turn(rank);
        if (turn != CUDA_ADVANCED)
            return moved && turn != CUDA_FAILED ? CUDA_ADVANCED : turn;
        if (!cuda_emit(rank))
            return CUDA_FAILED;
        rank->moved = moved = true;
    }
}

/* One rank, a little further in the iterations that it has left. */
static cuda_advance advance_steps(cuda_rank *rank)
{
    const peal_section *section = &rank->schedule->step;
    bool stop = false;

    if (rank->steps_left == 0 || rank->stop)
        return CUDA_FINISHED;
    if (rank->walk.position < section->end || !rank->at_end) {
        cuda_advance state = advance_in(rank, section);
        if (state != CUDA_FINISHED)
            return state;
        rank->at_end = true;
    }
    switch (peal_walk_step_done(&rank->walk, &stop)) {
    case PEAL_WALK_OP:
        break;
    case PEAL_WALK_BLOCKED:
        return CUDA_WAITS_FOR_DEVICE;
    default:
        cuda_fail(rank->plan, PEAL_STATUS_SPEC);
        return CUDA_FAILED;
    }
    rank->at_end = false;
    rank->moved = true;
    rank->stop = stop;
    rank->walk.position = section->first;
    if (rank->plan->capturing && !cuda_graph_step(rank))
        return CUDA_FAILED;
    return --rank->steps_left == 0 || stop ? CUDA_FINISHED : CUDA_ADVANCED;
}

static cuda_advance next_in_setup(cuda_rank *rank)
{
    return advance_in(rank, &rank->schedule->setup);
}

static cuda_advance next_in_finish(cuda_rank *rank)
{
    return advance_in(rank, &rank->schedule->finish);
}

static void go_to(cuda_plan *plan, bool finish)
{
    for (int r = 0; r < plan->rank_count; r++) {
        cuda_rank *rank = &plan->rank[r];
        rank->walk.position = finish ? rank->schedule->finish.first : rank->schedule->step.first;
    }
}

/* Once, before the first iteration. */
static bool enter(cuda_plan *plan)
{
    for (int r = 0; r < plan->rank_count; r++) {
        cuda_rank *rank = &plan->rank[r];
        if (rank->walk.loop[rank->schedule->loop_count].every == 0 &&
            peal_walk_enter(&rank->walk) != PEAL_WALK_OP)
            return cuda_fail(plan, PEAL_STATUS_SPEC);
    }
    return true;
}

bool cuda_run_steps(cuda_plan *plan, int64_t steps)
{
    for (int r = 0; r < plan->rank_count; r++) {
        plan->rank[r].steps_left = steps;
        plan->rank[r].stop = false;
    }
    bool ok = cuda_take_turns(plan, advance_steps);
    const cuda_rank *first = &plan->rank[0];
    plan->stopped = first->stop;
    if (!plan->capturing)
        atomic_store(&plan->steps_done, first->walk.loop[first->schedule->loop_count].iteration);
    return ok;
}

bool cuda_run_drain(cuda_plan *plan)
{
    for (int r = 0; r < plan->rank_count; r++)
        if (!cuda_flush_all(&plan->rank[r]))
            return false;
    for (int r = 0; r < plan->rank_count; r++)
        for (int l = 0; l < plan->rank[r].lanes; l++)
            if (!cuda_drain_lane(plan, plan->rank[r].lane[l].stream))
                return false;
    return cuda_rows_out(plan, true);
}

/* Steps in blocks, so that progress is seen. */
static bool run_in_blocks(cuda_plan *plan)
{
    enum { BLOCK = 16 };
    int64_t left = plan->steps;

    while (left > 0 && !plan->stopped) {
        int64_t now = left < BLOCK ? left : BLOCK;
        if (!cuda_run_steps(plan, now))
            return false;
        left -= now;
    }
    return true;
}

static bool run(cuda_plan *plan)
{
    if (plan->setup && !cuda_take_turns(plan, next_in_setup))
        return false;
    if (!enter(plan))
        return false;
    go_to(plan, false);
    if (!(plan->graphs ? cuda_graphs_run(plan) : run_in_blocks(plan)))
        return false;
    if (plan->finish) {
        go_to(plan, true);
        if (!cuda_take_turns(plan, next_in_finish))
            return false;
    }
    /* The last launches may have recorded a failure after the last look. */
    return cuda_follow_end(plan) && cuda_run_drain(plan) && cuda_check(plan);
}

/* The walk alone, without putting anything anywhere: through a section, verdicts false. */
bool cuda_run_dry(cuda_rank *rank, const peal_section *section)
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

void *cuda_run_thread(void *user)
{
    cuda_plan *plan = user;
    struct timespec begin, end;

    plan->driver->cuCtxSetCurrent_(plan->device->context);
    prctl(PR_SET_TIMERSLACK, 1000); /* naps of microseconds */
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    plan->begin = plan->last_progress = cuda_clock();
    if (!run(plan))
        cuda_release(plan);
    cuda_follow_leave(plan);
    plan->end = cuda_clock();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    plan->cpu = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    for (int r = 0; r < plan->rank_count; r++)
        memcpy(plan->rank[r].final_binding, plan->rank[r].walk.binding,
               (size_t)plan->rank[r].schedule->array_count * sizeof(int));
    return NULL;
}
