/* The report of a stall that no kernel has reported: read from the lanes' logs of what was
 * enqueued, after the last mark that the device has passed. */
#include "backends/cuda/drive/run.h"
#include "base/count.h"
#include "base/stored.h"

static const char *label_of(const peal_cuda_rank *rank, int op)
{
    const peal_op *source = &rank->schedule->op[op];
    if (source->channel >= 0 && rank->schedule->channel[source->channel].edge)
        return rank->schedule->channel[source->channel].edge;
    return source->label ? source->label : "an op";
}

/* ---- what a kernel has recorded ---- */

bool peal_cuda_report_failure(peal_cuda_plan *plan, const peal_cuda_rank *rank)
{
    const peal_device_control *control = rank->control;
    int index = control->op >= 0 && control->op < rank->schedule->op_count ? control->op : 0;
    const peal_op *op = &rank->schedule->op[index];

    if (control->kind == PEAL_FAILED_EXPRESSION) {
        peal_report(plan->emission.late, PEAL_E_EXPRESSION_FAILED_ON_GPU, op->source,
                    "--backend host names the operator and its values",
                    "rank %d, step %lld: an expression of `%s` overflowed or divided by zero",
                    rank->schedule->rank, (long long)control->step, label_of(rank, index));
        return peal_cuda_fail(plan, PEAL_STATUS_SPEC);
    }
    if (control->kind == PEAL_FAILED_COUNT)
        return peal_cuda_fail(plan, peal_count_report(plan->emission.late, rank->schedule, op,
                                                      control->step, (int64_t)control->seen,
                                                      (int64_t)control->expected));
    if (control->kind == PEAL_FAILED_VALUE)
        return peal_cuda_fail(plan, peal_stored_report(plan->emission.late, rank->schedule, op,
                                                       control->step, (int64_t)control->seen));
    const peal_channel *channel = op->channel >= 0 ? &rank->schedule->channel[op->channel] : NULL;
    uint64_t quantum = channel && channel->quantum ? channel->quantum : 1;
    peal_report(plan->emission.late, PEAL_E_GPU_STALLED, op->source,
                "is a neighbour stuck, or much slower? --deadline sets the limit",
                "rank %d, step %lld: `%s` waits for %s%s, message %llu (mod %llu), has seen %llu",
                rank->schedule->rank, (long long)control->step, op->label ? op->label : "a receive",
                op->credit ? "the credit of " : "", label_of(rank, index),
                (unsigned long long)(control->expected / quantum),
                (unsigned long long)(UINT64_MAX / quantum + 1),
                (unsigned long long)(control->seen / quantum));
    return peal_cuda_fail(plan, PEAL_STATUS_DEADLINE);
}

/* ---- a wait by memory operation ---- */

bool peal_cuda_report_wait(peal_cuda_plan *plan, const peal_cuda_rank *rank,
                           const peal_cuda_log_entry *ring, uint64_t from, uint64_t to,
                           int64_t first_step, int64_t least_step)
{
    for (uint64_t i = from; i < to; i++) {
        const peal_cuda_log_entry *entry = &ring[i % PEAL_CUDA_LOG_ENTRIES];
        uint64_t seen = 0;
        if (!entry->word || first_step + entry->step < least_step)
            continue;
        const peal_cuda_op *op = &rank->op[entry->op];
        uint64_t quantum = op->channel->quantum ? op->channel->quantum : 1;
        if (!peal_cuda_rescue_read(plan, entry->word, &seen))
            return false;
        if (seen + quantum != entry->value)
            continue;
        peal_report(plan->emission.late, PEAL_E_GPU_STALLED, op->source->source,
                    "is a neighbour stuck, or much slower? --deadline sets the limit",
                    "rank %d, step %lld: `%s` waits for %s%s, message %llu (mod %llu), has seen "
                    "%llu",
                    rank->schedule->rank, (long long)(first_step + entry->step),
                    op->source->label ? op->source->label : "a receive",
                    op->source->credit ? "the credit of " : "", label_of(rank, entry->op),
                    (unsigned long long)(entry->value / quantum),
                    (unsigned long long)(UINT64_MAX / quantum + 1),
                    (unsigned long long)(seen / quantum));
        return true;
    }
    return false;
}

/* ---- a lane ---- */

/* The number of the first log entry that may not have been done yet. */
static uint64_t first_unfinished_entry(const peal_cuda_plan *plan, const peal_cuda_lane *lane)
{
    uint64_t oldest =
        lane->log_count > PEAL_CUDA_LOG_ENTRIES ? lane->log_count - PEAL_CUDA_LOG_ENTRIES : 0;
    uint64_t marks = (uint64_t)plan->options.marks;
    uint64_t mark = lane->marks > marks ? lane->marks - marks : 0;

    for (; mark < lane->marks; mark++) {
        if (plan->driver->cuEventQuery_(lane->mark[mark % marks]) != CUDA_SUCCESS)
            break;
        oldest = lane->mark_log[mark % marks];
    }
    return oldest > lane->log_done ? oldest : lane->log_done;
}

static bool report_lane_wait(peal_cuda_plan *plan, const peal_cuda_rank *rank,
                             const peal_cuda_lane *lane)
{
    return peal_cuda_report_wait(plan, rank, lane->log, first_unfinished_entry(plan, lane),
                                 lane->log_count, 0, INT64_MIN);
}

/* Reports the range of kernels that are not known to have ended. Which of them hangs is unknown.
 * Always true. */
static bool report_lane_range(peal_cuda_plan *plan, const peal_cuda_rank *rank,
                              const peal_cuda_lane *lane)
{
    uint64_t from = first_unfinished_entry(plan, lane);

    if (from == lane->log_count)
        return true;
    const peal_cuda_log_entry *first = &lane->log[from % PEAL_CUDA_LOG_ENTRIES];
    const peal_cuda_log_entry *last = &lane->log[(lane->log_count - 1) % PEAL_CUDA_LOG_ENTRIES];
    peal_report(
        plan->emission.late, PEAL_E_GPU_STALLED, rank->schedule->op[first->op].source,
        "a kernel that does not end, or a message that does not come; --deadline sets the "
        "limit",
        "rank %d: no progress for %.1f s in what lies between `%s` of step %lld and `%s` of "
        "step %lld (%llu launches)",
        rank->schedule->rank, (double)plan->desc.deadline_ns * 1e-9, label_of(rank, first->op),
        (long long)first->step, label_of(rank, last->op), (long long)last->step,
        (unsigned long long)(lane->log_count - from));
    return true;
}

/* Calls `report` for all lanes that are busy. */
static bool report_lanes(peal_cuda_plan *plan,
                         bool (*report)(peal_cuda_plan *, const peal_cuda_rank *,
                                        const peal_cuda_lane *))
{
    bool reported = false;

    for (int r = 0; r < plan->rank_count; r++)
        for (int l = 0; l < plan->rank[r].lanes; l++) {
            const peal_cuda_lane *lane = &plan->rank[r].lane[l];
            if (plan->driver->cuStreamQuery_(lane->stream) == CUDA_ERROR_NOT_READY)
                reported |= report(plan, &plan->rank[r], lane);
        }
    return reported;
}

void peal_cuda_report_stall(peal_cuda_plan *plan)
{
    bool reported = plan->run->report_replay && plan->run->report_replay(plan);

    if (!reported && !report_lanes(plan, report_lane_wait))
        report_lanes(plan, report_lane_range);
}
