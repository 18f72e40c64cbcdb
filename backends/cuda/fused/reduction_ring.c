/* The reduction ring of mode fused: memory for what the blocks of a step leave to a fold of that
 * step (partials, contributions gathered from ranks). A few steps in a row each have their own
 * part, so the next steps' tiles need not wait until the fold is done. Only reductions whose
 * results no task of the loop needs are in the ring: others are waited for anyway. */
#include "backends/cuda/fused/dispatchers/dispatcher.h"
#include "backends/cuda/lower/emit.h"

/* ---- which arrays ---- */

/* Whether all that a FOLD or COMBINE reads comes from ops of its own step. */
static bool gathers_here(const peal_cuda_rank *rank, int index)
{
    const peal_op *op = &rank->schedule->op[index];
    int gather = rank->op[index].task->gather;

    for (int i = 0; i < op->dependence_count; i++) {
        const peal_dependence *d = &op->dependence[i];
        const peal_cuda_op *before = &rank->op[d->op];
        bool here = rank->schedule->op[d->op].kind != PEAL_OP_LAUNCH ||
                    before->task->kind != PEAL_TASK_KERNEL || (d->lag == 0 && d->op < index);
        for (int k = 0; !here && k < before->task->reduction_count; k++)
            if (before->task->reduction[k].partials == gather)
                return false;
    }
    return true;
}

static bool wants_scratch(const peal_cuda_rank *rank, int index)
{
    const peal_cuda_op *op = &rank->op[index];

    return rank->schedule->op[index].kind == PEAL_OP_LAUNCH && op->region < 0 &&
           (op->task->kind == PEAL_TASK_FOLD || op->task->kind == PEAL_TASK_COMBINE) &&
           rank->schedule->array[op->task->gather].hidden && op->task->reported &&
           gathers_here(rank, index);
}

static peal_status part(peal_cuda_rank *rank, int storage)
{
    peal_cuda_plan *plan = rank->plan;
    size_t bytes = PEAL_CUDA_RING_STEPS * peal_cuda_ring_bytes(rank, storage);
    char text[160];

    if (!rank->scratch)
        rank->scratch = PEAL_ARENA_ARRAY(plan->arena, CUdeviceptr, rank->schedule->array_count + 1);
    if (rank->scratch[storage] || bytes == 0)
        return PEAL_STATUS_OK;
    CUresult result = plan->driver->cuMemAlloc_(&rank->scratch[storage], bytes);
    if (!result)
        return PEAL_STATUS_OK;
    return peal_report(plan->desc.diagnostics, PEAL_E_DRIVER_CALL_FAILED, PEAL_CUDA_NOWHERE, NULL,
                       "no device memory for what mode fused folds, %zu bytes: %s", bytes,
                       peal_cuda_error(result, text));
}

peal_status peal_cuda_reduction_ring_create(peal_cuda_plan *plan)
{
    peal_status status = PEAL_STATUS_OK;

    for (int r = 0; r < plan->rank_count && plan->options.dispatcher->has_reduction_ring; r++) {
        peal_cuda_rank *rank = &plan->rank[r];
        const peal_schedule *schedule = rank->schedule;
        for (int i = schedule->step.first; i < schedule->step.end && !status; i++)
            if (wants_scratch(rank, i))
                status = part(rank, rank->op[i].task->gather);
    }
    return status;
}

/* That holds if a COMBINE of the same step writes the array, and nothing reads it before. */
bool peal_cuda_fused_sends_fold(const peal_cuda_rank *rank, const peal_cuda_group *group)
{
    const peal_schedule *schedule = rank->schedule;
    int fold = group->launch.op;
    bool is_sent = false;

    if (group->task->kind != PEAL_TASK_FOLD || !rank->scratch ||
        !rank->scratch[group->task->gather] || group->launch.list_count > 0 /* copies read it */)
        return false;
    for (int i = fold + 1; i < schedule->step.end; i++) {
        const peal_op *op = &schedule->op[i];
        const peal_schedule_task *task = rank->op[i].task;
        bool follows = false;
        if (op->kind == PEAL_OP_LAUNCH && task->kind == PEAL_TASK_COMBINE &&
            task->array == group->task->array)
            return is_sent;
        for (int k = 0; k < op->dependence_count; k++)
            follows |= op->dependence[k].op == fold && op->dependence[k].lag == 0;
        if (follows &&
            (op->kind != PEAL_OP_COPY || !peal_cuda_group_has(group, i, group->op_count)))
            return false;
        is_sent |= follows;
    }
    return false;
}

bool peal_cuda_reduction_ring_free(peal_cuda_plan *plan)
{
    bool any = false;

    for (int r = 0; r < plan->rank_count; r++) {
        peal_cuda_rank *rank = &plan->rank[r];
        for (int i = 0; rank->scratch && i < rank->schedule->array_count; i++)
            if (rank->scratch[i])
                plan->driver->cuMemFree_(rank->scratch[i]);
        any |= rank->scratch != NULL;
        rank->scratch = NULL;
    }
    return any;
}
