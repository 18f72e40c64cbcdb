/* Mapped host memory in which the device stores data for the host while it runs: controls, verdicts
 * of run-time conditions, rows of `print`. */
#include "backends/cuda/drive/run.h"
#include "backends/cuda/lower/plan.h"
#include "backends/cuda/lower/predicate.h"
#include "backends/cuda/stream/stream_sink.h"

#include <string.h>

enum { VERDICTS = 64, ROWS = PEAL_CUDA_ROWS, PENDING = -1, EMPTY = -1 };

static size_t most_items(const peal_cuda_plan *plan)
{
    size_t most = 1;
    for (int r = 0; r < plan->rank_count; r++)
        for (int t = 0; t < plan->rank[r].schedule->task_count; t++) {
            int count = plan->rank[r].schedule->task[t].item_count;
            most = (size_t)count > most ? (size_t)count : most;
        }
    return most;
}

peal_status peal_cuda_mapped_create(peal_cuda_plan *plan)
{
    size_t controls = 256, verdicts = 0, bytes = 0;
    char text[160];

    plan->run->mailbox.row_items = most_items(plan);
    for (int r = 0; r < plan->rank_count; r++) {
        verdicts = (size_t)plan->rank[r].schedule->decision_count * VERDICTS * sizeof(unsigned);
        bytes += controls + (verdicts + 255) / 256 * 256;
    }
    size_t rows_at = bytes;
    bytes += ROWS * plan->run->mailbox.row_items * sizeof(peal_device_item);
    CUresult result =
        plan->driver->cuMemHostAlloc_(&plan->run->mailbox.mapped, bytes,
                                      CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE);
    if (!result)
        result = plan->driver->cuMemHostGetDevicePointer_(&plan->run->mailbox.mapped_device,
                                                          plan->run->mailbox.mapped, 0);
    if (result)
        return peal_report(plan->desc.diagnostics, PEAL_E_DRIVER_CALL_FAILED, PEAL_CUDA_NOWHERE,
                           NULL, "cannot map %zu bytes of host memory: %s", bytes,
                           peal_cuda_error(result, text));
    memset(plan->run->mailbox.mapped, 0, bytes);
    unsigned char *at = plan->run->mailbox.mapped;
    for (int r = 0; r < plan->rank_count; r++) {
        peal_cuda_rank *rank = &plan->rank[r];
        verdicts = (size_t)rank->schedule->decision_count * VERDICTS * sizeof(unsigned);
        rank->control = (peal_device_control *)(void *)at;
        rank->verdict = (unsigned *)(void *)(at + controls);
        rank->control_device = plan->run->mailbox.mapped_device +
                               (uint64_t)(at - (unsigned char *)plan->run->mailbox.mapped);
        rank->verdict_device = rank->control_device + controls;
        at += controls + (verdicts + 255) / 256 * 256;
    }
    plan->run->mailbox.row_item =
        (peal_device_item *)(void *)((unsigned char *)plan->run->mailbox.mapped + rows_at);
    plan->run->mailbox.row_device = plan->run->mailbox.mapped_device + rows_at;
    plan->run->mailbox.row = PEAL_ARENA_ARRAY(plan->arena, peal_cuda_row, ROWS);
    plan->run->mailbox.row_event = PEAL_ARENA_ARRAY(plan->arena, CUevent, ROWS);
    for (int i = 0; i < ROWS && !result; i++)
        result =
            plan->driver->cuEventCreate_(&plan->run->mailbox.row_event[i], CU_EVENT_DISABLE_TIMING);
    if (!result)
        return PEAL_STATUS_OK;
    return peal_report(plan->desc.diagnostics, PEAL_E_DRIVER_CALL_FAILED, PEAL_CUDA_NOWHERE, NULL,
                       "cannot create the events of rows: %s", peal_cuda_error(result, text));
}

void peal_cuda_mapped_destroy(peal_cuda_plan *plan)
{
    for (int i = 0; plan->run->mailbox.row_event && i < ROWS; i++)
        if (plan->run->mailbox.row_event[i])
            plan->driver->cuEventDestroy_(plan->run->mailbox.row_event[i]);
    if (plan->run->mailbox.mapped)
        plan->driver->cuMemFreeHost_(plan->run->mailbox.mapped);
}

/* ---- verdicts ---- */

static CUdeviceptr verdict_word(peal_cuda_rank *rank, int slot, uint64_t instance)
{
    size_t at = (size_t)slot * VERDICTS + instance % VERDICTS;

    if (rank->stop_word && rank->plan->emission.sink->is_replayed)
        return rank->stop_word;
    __atomic_store_n(&rank->verdict[at], (unsigned)PENDING, __ATOMIC_RELEASE);
    return rank->verdict_device + at * sizeof(unsigned);
}

peal_walk_result peal_cuda_verdict_read(void *user, int slot, uint64_t instance, bool *out)
{
    peal_cuda_rank *rank = user;
    size_t at =
        (size_t)slot * VERDICTS + peal_cuda_predicate_instance(rank, slot, instance) % VERDICTS;

    *out = false;
    if (peal_cuda_predicate_verdict(rank, slot, out))
        return PEAL_WALK_OP;
    if (rank->dry) /* the walk goes on; the device's stop word says when the loop has ended */
        return PEAL_WALK_OP;
    if (!peal_cuda_flush_all(rank))
        return PEAL_WALK_FAILED;
    unsigned verdict = __atomic_load_n(&rank->verdict[at], __ATOMIC_ACQUIRE);
    if (verdict == (unsigned)PENDING)
        return PEAL_WALK_BLOCKED;
    *out = verdict != 0;
    return PEAL_WALK_OP;
}

/* ---- rows ---- */

static bool report_too_many_rows(peal_cuda_plan *plan, const peal_schedule_task *task)
{
    peal_report(plan->desc.diagnostics, PEAL_E_GRAPH_MODE_NOT_APPLICABLE, task->source,
                "print less often, or use --mode stream",
                "a graph prints more than %d rows in one replay", ROWS / 2);
    return peal_cuda_fail(plan, PEAL_STATUS_SPEC);
}

static bool row_begin(peal_cuda_rank *rank, const peal_schedule_task *task,
                      const peal_walk_frame *frame, bool empty, unsigned long long *items)
{
    peal_cuda_plan *plan = rank->plan;
    unsigned slot = (unsigned)(plan->run->mailbox.rows % ROWS);

    if (plan->emission.sink->is_replayed) {
        if (plan->run->mailbox.recorded_rows == ROWS / 2)
            return report_too_many_rows(plan, task);
        slot = plan->run->mailbox.recorded_slot * (ROWS / 2) + plan->run->mailbox.recorded_rows++;
    } else if (plan->run->mailbox.rows - plan->run->mailbox.rows_out >= ROWS / 2 &&
               !peal_cuda_rows_out(plan, true)) {
        return false;
    }
    plan->run->mailbox.row[slot] =
        (peal_cuda_row){.task = task,
                        .slot = slot,
                        .may_be_empty = empty,
                        .step = frame->counter[0] -
                                (plan->emission.sink->is_replayed ? rank->graph_begin : 0)};
    if (empty)
        plan->run->mailbox.row_item[slot * plan->run->mailbox.row_items].kind = EMPTY;
    *items = plan->run->mailbox.row_device +
             slot * plan->run->mailbox.row_items * sizeof(peal_device_item);
    return true;
}

static bool row_enqueued(peal_cuda_rank *rank, peal_cuda_lane *lane)
{
    peal_cuda_plan *plan = rank->plan;

    if (plan->emission.sink->is_replayed)
        return true;
    CUresult result =
        plan->driver->cuEventRecord_(plan->run->mailbox.row_event[plan->run->mailbox.rows % ROWS],
                                     lane->stream);
    plan->run->mailbox.rows++;
    return !result || peal_cuda_report_driver_error(plan, result, NULL, "a row");
}

void peal_cuda_row_out(peal_cuda_plan *plan, const peal_cuda_row *row, int64_t first_step)
{
    enum { MOST = 64 };
    peal_device_item *item = plan->run->mailbox.row_item + row->slot * plan->run->mailbox.row_items;
    peal_value value[MOST];
    const char *name[MOST];
    int count = row->task->item_count < MOST ? row->task->item_count : MOST;

    if (row->may_be_empty && item[0].kind == EMPTY)
        return;
    for (int i = 0; i < count; i++) {
        name[i] = row->task->item[i].name;
        value[i].kind = (peal_value_kind)item[i].kind;
        if (value[i].kind == PEAL_REAL)
            value[i].u.real = item[i].value.real;
        else if (value[i].kind == PEAL_BOOLEAN)
            value[i].u.boolean = item[i].value.integer != 0;
        else
            value[i].u.integer = item[i].value.integer;
    }
    item[0].kind = row->may_be_empty ? EMPTY : item[0].kind;
    if (plan->desc.row)
        plan->desc.row(plan->desc.row_user, first_step + row->step, count, name, value);
}

bool peal_cuda_rows_out(peal_cuda_plan *plan, bool all)
{
    while (plan->run->mailbox.rows_out < plan->run->mailbox.rows) {
        unsigned slot = (unsigned)(plan->run->mailbox.rows_out % ROWS);
        CUresult result = plan->driver->cuEventQuery_(plan->run->mailbox.row_event[slot]);
        if (result == CUDA_ERROR_NOT_READY && !all)
            return true;
        if (result == CUDA_ERROR_NOT_READY) {
            peal_backoff backoff = peal_cuda_backoff();
            if (!peal_cuda_poll_once(plan, &backoff))
                return false;
            continue;
        }
        if (result)
            return peal_cuda_report_driver_error(plan, result, NULL, "a row");
        peal_cuda_row_out(plan, &plan->run->mailbox.row[slot], 0);
        plan->run->mailbox.rows_out++;
    }
    return true;
}

const struct peal_cuda_host_ops peal_cuda_host = {.verdict_word = verdict_word,
                                                  .row_begin = row_begin,
                                                  .row_enqueued = row_enqueued,
                                                  .run_file = peal_cuda_file_run};
