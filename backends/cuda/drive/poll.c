/* Polling that never hangs: every wait of the host checks the abort word, the failures that kernels
 * have recorded, and for how long the device has not advanced. */
#include "backends/cuda/drive/run.h"
#include "backends/cuda/lower/sink.h"
#include "base/clock.h"

#include <stdio.h>
#include <string.h>

/* ---- failures that kernels have recorded ---- */

bool peal_cuda_device_has_failed(const peal_cuda_plan *plan)
{
    for (int r = 0; r < plan->rank_count; r++)
        if (__atomic_load_n(&plan->rank[r].control->failed, __ATOMIC_ACQUIRE))
            return true;
    return false;
}

static bool check_device_records(peal_cuda_plan *plan)
{
    for (int r = 0; r < plan->rank_count; r++)
        if (__atomic_load_n(&plan->rank[r].control->failed, __ATOMIC_ACQUIRE))
            return plan->emission.status ? false : peal_cuda_report_failure(plan, &plan->rank[r]);
    return true;
}

/* ---- waiting ---- */

/* Waits for replays and full lanes take long, so the thread sleeps and leaves the processor to the
 * application. The shortest sleep takes some 60 us, so rounds that only yield come first: of a
 * microsecond or two, as each asks the driver. Each sleep is longer by an eighth than the one
 * before, so the end of a wait is noticed late by at most a ninth of the wait, beside that. */
peal_backoff peal_cuda_backoff(void)
{
    return (
        peal_backoff){.spins = 29, .yields = 100, .sleep_ns = 5000, .most_ns = 200000, .growth = 8};
}

static uint64_t device_steps(const peal_cuda_plan *plan)
{
    uint64_t steps = 0;
    for (int r = 0; r < plan->rank_count; r++)
        steps += __atomic_load_n(&plan->rank[r].control->steps_done, __ATOMIC_RELAXED);
    return steps;
}

bool peal_cuda_check_failure(peal_cuda_plan *plan)
{
    peal_status unwritten = peal_cuda_file_writers_failed(plan);

    if (!check_device_records(plan))
        return false;
    if (unwritten)
        return peal_cuda_fail(plan, unwritten);
    if (!peal_cuda_is_aborted(plan))
        return true;
    peal_cuda_stop_device(plan);
    return peal_cuda_fail(plan, (peal_status)atomic_load(plan->desc.abort_word));
}

bool peal_cuda_poll_once(peal_cuda_plan *plan, peal_backoff *backoff)
{
    uint64_t steps = device_steps(plan);
    double now = peal_clock_s(), deadline = 1e-9 * (double)plan->desc.deadline_ns;
    double jump = (deadline < 4 ? deadline / 4 : 1) + 0.1;

    if (plan->options.rings) /* nobody else looks after the network */
        plan->desc.network->progress(plan->desc.network->user);
    if (!peal_cuda_check_failure(plan))
        return false;
    if (now - plan->run->last_poll >
        jump) /* this process was stopped for a while, and perhaps all others with it */
        plan->run->last_progress = now;
    plan->run->last_poll = now;
    if (steps != plan->run->seen_steps || !peal_cuda_interop_has_begun(plan)) {
        plan->run->seen_steps = steps;
        plan->run->last_progress = now;
    }
    /* A wait in a kernel notices the deadline itself, and its report says more. So the host gives
     * it a little longer. */
    if (deadline > 0 && now - plan->run->last_progress > 1.25 * deadline + 0.5) {
        peal_cuda_report_stall(plan);
        return peal_cuda_fail(plan, PEAL_STATUS_DEADLINE);
    }
    peal_backoff_wait(backoff);
    return true;
}

/* Polls until an event has passed, or (event NULL) a stream is idle. */
static bool poll_until(peal_cuda_plan *plan, CUevent event, CUstream stream)
{
    peal_backoff backoff = peal_cuda_backoff();

    for (;;) {
        CUresult result =
            event ? plan->driver->cuEventQuery_(event) : plan->driver->cuStreamQuery_(stream);
        if (result == CUDA_SUCCESS) {
            plan->run->last_progress = peal_clock_s();
            return true;
        }
        if (result != CUDA_ERROR_NOT_READY)
            return peal_cuda_report_driver_error(plan, result, NULL, "the work before");
        if (!peal_cuda_rows_out(plan, false) || !peal_cuda_poll_once(plan, &backoff))
            return false;
    }
}

bool peal_cuda_await_event(peal_cuda_plan *plan, CUevent event)
{
    return poll_until(plan, event, NULL);
}

bool peal_cuda_drain_lane(peal_cuda_plan *plan, CUstream stream)
{
    return poll_until(plan, NULL, stream);
}

/* The lane is not drained here: its work may wait for another rank of this process, which needs a
 * turn first. */
bool peal_cuda_synchronize(peal_cuda_rank *rank, int index)
{
    const peal_cuda_op *op = &rank->op[index];

    if (op->skipped)
        return true;
    if (!peal_cuda_flush(rank, op->lane))
        return false;
    if (op->source->kind != PEAL_OP_WAIT && op->source->kind != PEAL_OP_WRITE)
        rank->drains = 1 + op->lane;
    return true;
}

/* Whether a query says that work has been done. *ok is false if the query failed, which has then
 * been reported. */
static bool has_passed(peal_cuda_plan *plan, CUresult result, bool *ok)
{
    *ok = result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY ||
          peal_cuda_report_driver_error(plan, result, NULL, "the work before");
    if (result == CUDA_SUCCESS)
        plan->run->last_progress = peal_clock_s();
    return result == CUDA_SUCCESS;
}

bool peal_cuda_within_lookahead(peal_cuda_rank *rank, bool *is_within)
{
    peal_cuda_plan *plan = rank->plan;
    const peal_cuda_driver *driver = plan->driver;
    bool ok = true;

    *is_within = true;
    if (plan->emission.sink->is_replayed || rank->dry)
        return true;
    if (rank->drains) {
        *is_within =
            has_passed(plan, driver->cuStreamQuery_(rank->lane[rank->drains - 1].stream), &ok);
        if (*is_within)
            rank->lane[rank->drains - 1].log_done = rank->lane[rank->drains - 1].log_count;
        rank->drains = *is_within ? 0 : rank->drains;
    }
    if (plan->run->mailbox.rows - plan->run->mailbox.rows_out >= PEAL_CUDA_ROWS / 2 - 1) {
        ok = peal_cuda_rows_out(plan, false);
        *is_within = *is_within &&
                     plan->run->mailbox.rows - plan->run->mailbox.rows_out < PEAL_CUDA_ROWS / 2 - 1;
    }
    for (int l = 0; l < rank->lanes && ok && *is_within; l++) {
        peal_cuda_lane *lane = &rank->lane[l];
        uint64_t marks = (uint64_t)plan->options.marks;
        while (lane->marks - lane->marks_passed >= marks && ok && *is_within) {
            *is_within =
                has_passed(plan, driver->cuEventQuery_(lane->mark[lane->marks_passed % marks]),
                           &ok);
            lane->marks_passed += *is_within;
        }
    }
    return ok;
}
