/* `until` as a WHILE node of the graph: the K iterations are the body of a loop that the device
 * repeats until the verdict is true. The host does one launch, and no replay is launched after the
 * loop has ended.
 *
 * The last node of the body sets the loop's condition from rank 0's stop word. The verdict is the
 * same on all ranks, so the loops of all processes have the same number of rounds. A word holds how
 * many rounds they may have. Nodes of the body may be kernels, copies and memsets; events between
 * lanes become edges. A loop that prints is unrolled, because rows would be overwritten before the
 * host has taken them. All loops are unrolled if the driver has no WHILE nodes. */
#include "backends/cuda/graph/graph.h"

#include <string.h>

enum { ROUNDS_LEFT_AT = 24 }; /* offset in rank 0's words: how many rounds may follow */

static bool prints(const peal_schedule *schedule)
{
    for (int i = schedule->step.first; i < schedule->step.end; i++)
        if (schedule->op[i].kind == PEAL_OP_LAUNCH &&
            schedule->task[schedule->op[i].task].kind == PEAL_TASK_PRINT)
            return true;
    return false;
}

static void warn_unrolled(peal_cuda_plan *plan, const char *why)
{
    peal_warn(plan->desc.diagnostics, PEAL_E_NO_WHILE_NODE, PEAL_CUDA_NOWHERE, NULL,
              "`until` is not a WHILE node here, its steps are unrolled: %s", why);
    plan->graphs->loops = false;
}

/* Processes may decide differently, since only rank 0 prints; the steps are the same. */
peal_status peal_cuda_conditional_create(peal_cuda_plan *plan)
{
    peal_cuda_graphs *graphs = plan->graphs;
    char text[160];

    graphs->rounds = 1;
    graphs->loops = graphs->stops && plan->options.until == PEAL_CUDA_UNTIL_WHILE;
    if (!graphs->loops)
        return PEAL_STATUS_OK;
    for (int r = 0; r < plan->rank_count; r++)
        if (prints(plan->rank[r].schedule)) {
            warn_unrolled(plan, "`print` in the loop, whose rows the host takes between replays");
            return PEAL_STATUS_OK;
        }
    CUresult result = CUDA_SUCCESS;
    peal_status status = peal_cuda_kernels_round(plan->kernels, &graphs->round, &result);
    if (!status && result)
        warn_unrolled(plan, peal_cuda_error(result, text));
    return status;
}

bool peal_cuda_conditional_abandon(peal_cuda_plan *plan, int slot, CUresult result)
{
    peal_cuda_graphs *graphs = plan->graphs;
    char text[160];

    if (!graphs->loops)
        return false;
    warn_unrolled(plan, peal_cuda_error(result, text));
    peal_cuda_recording_free(plan, slot);
    return true;
}

CUresult peal_cuda_conditional_begin(peal_cuda_plan *plan, int slot)
{
    peal_cuda_graphs *graphs = plan->graphs;
    const peal_cuda_driver *driver = plan->driver;
    CUgraphNodeParams node;
    CUgraphNode added;
    CUresult result = driver->cuGraphCreate_(&graphs->graph[slot], 0);

    if (!result)
        result = driver->cuGraphConditionalHandleCreate_(&graphs->condition, graphs->graph[slot],
                                                         plan->device->context, 1,
                                                         CU_GRAPH_COND_ASSIGN_DEFAULT);
    if (result)
        return result;
    memset(&node, 0, sizeof(node));
    node.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    node.conditional.handle = graphs->condition;
    node.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
    node.conditional.size = 1;
    node.conditional.ctx = plan->device->context;
    result = driver->cuGraphAddNode_(&added, graphs->graph[slot], NULL, NULL, 0, &node);
    if (result)
        return result;
    return driver->cuStreamBeginCaptureToGraph_(peal_cuda_origin(plan),
                                                node.conditional.phGraph_out[0], NULL, NULL, 0,
                                                CU_STREAM_CAPTURE_MODE_RELAXED);
}

bool peal_cuda_conditional_end_round(peal_cuda_plan *plan)
{
    const peal_cuda_rank *first = &plan->rank[0];
    CUdeviceptr rounds_left = first->words + ROUNDS_LEFT_AT,
                given_up = peal_cuda_kernels_given_up(plan->kernels);
    void *parameter[] = {&plan->graphs->condition, &rounds_left, &plan->rank[0].stop_word,
                         &given_up, &plan->rank[0].control_device};
    CUresult result;

    if (!plan->graphs->loops)
        return true;
    result = plan->driver->cuLaunchKernel_(plan->graphs->round, 1, 1, 1, 32, 1, 1, 0,
                                           peal_cuda_origin(plan), parameter, NULL);

    return !result || peal_cuda_report_driver_error(plan, result, NULL, "the end of a round");
}

CUresult peal_cuda_conditional_set_rounds(peal_cuda_plan *plan, int64_t rounds)
{
    peal_launch launch;
    void *parameter[] = {&launch};

    memset(&launch, 0, sizeof(launch));
    launch.step = plan->rank[0].words + ROUNDS_LEFT_AT;
    launch.argument[0].integer = plan->graphs->rounds = rounds;
    return plan->driver->cuLaunchKernel_(peal_cuda_kernels_builtin(plan->kernels,
                                                                   PEAL_CUDA_BUILTIN_STEP),
                                         1, 1, 1, 1, 1, 1, 0, peal_cuda_origin(plan), parameter,
                                         NULL);
}
