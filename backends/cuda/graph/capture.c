/* The engine of mode graph: captures iterations from the lanes' streams, instantiates and uploads
 * the graph, and launches it. */
#include "backends/cuda/graph/bundle.h"
#include "backends/cuda/graph/graph.h"
#include "backends/cuda/stream/stream_sink.h"

enum { REPORTS = 8 };

/* ---- the sink: streams that are being captured ---- */

/* Whether a kernel may start while the kernel before it still runs, so that blocks of both are
 * resident. It may only if one lane of one rank uses the device: then the earlier kernel waits for
 * nothing whose blocks the later one could keep off the device. */
static bool may_launch_early(const peal_cuda_plan *plan, const peal_cuda_lane *lane)
{
    return lane->chained && plan->options.launches_early && !plan->graphs->loops &&
           plan->device->major >= 9 && plan->rank_count == 1 && plan->rank[0].lanes == 1;
}

static CUresult launch_now(peal_cuda_rank *rank, peal_cuda_lane *lane,
                           const peal_cuda_kernel_launch *what)
{
    peal_cuda_plan *plan = rank->plan;
    void *parameter[] = {(void *)(uintptr_t)what->launch};
    CUlaunchAttribute early = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
    CUlaunchConfig config = {.gridDimX = what->blocks,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = (unsigned)what->threads[0],
                             .blockDimY = (unsigned)what->threads[1],
                             .blockDimZ = (unsigned)what->threads[2],
                             .hStream = lane->stream,
                             .attrs = &early,
                             .numAttrs = 1};

    early.value.programmaticStreamSerializationAllowed = 1;
    if (what->group && !what->group->communication_free && may_launch_early(plan, lane))
        return plan->driver->cuLaunchKernelEx_(&config, what->function, parameter, NULL);
    return peal_cuda_stream_launch(rank, lane, what);
}

static CUresult launch(peal_cuda_rank *rank, peal_cuda_lane *lane,
                       const peal_cuda_kernel_launch *what)
{
    return peal_cuda_bundle_or_launch(rank, lane, what, launch_now);
}

/* A lane's bundle ends before anything else is put onto the lane. Whether that is captured: not
 * while bundles are looked for. */
static bool may_put(peal_cuda_rank *rank, peal_cuda_lane *lane, CUresult *result)
{
    *result = peal_cuda_bundle_end(rank, lane, launch_now);
    return !*result && !peal_cuda_bundles_look(rank->plan);
}

static CUresult end_bundles(peal_cuda_plan *plan)
{
    CUresult result = CUDA_SUCCESS;

    for (int r = 0; r < plan->rank_count; r++)
        for (int l = 0; l < plan->rank[r].lanes && !result; l++)
            result = peal_cuda_bundle_end(&plan->rank[r], &plan->rank[r].lane[l], launch_now);
    return result;
}

static CUresult copy(peal_cuda_rank *rank, peal_cuda_lane *lane, const peal_device_piece *piece,
                     CUdeviceptr to, CUdeviceptr from)
{
    CUresult result;

    return may_put(rank, lane, &result) ? peal_cuda_stream_copy(rank, lane, piece, to, from)
                                        : result;
}

static CUresult write_word(peal_cuda_rank *rank, peal_cuda_lane *lane, CUdeviceptr word,
                           uint64_t value)
{
    CUresult result;

    return may_put(rank, lane, &result) ? peal_cuda_stream_write_word(rank, lane, word, value)
                                        : result;
}

static CUresult wait_word(peal_cuda_rank *rank, peal_cuda_lane *lane, int op, CUdeviceptr word,
                          uint64_t value)
{
    CUresult result;

    return may_put(rank, lane, &result) ? peal_cuda_stream_wait_word(rank, lane, op, word, value)
                                        : result;
}

static CUresult record(peal_cuda_rank *rank, peal_cuda_lane *lane, CUevent event)
{
    CUresult result;

    return may_put(rank, lane, &result) ? peal_cuda_stream_record(rank, lane, event) : result;
}

static CUresult wait_event(peal_cuda_rank *rank, peal_cuda_lane *lane, CUevent event)
{
    CUresult result;

    return may_put(rank, lane, &result) ? peal_cuda_stream_wait_event(rank, lane, event) : result;
}

static CUresult call(peal_cuda_rank *rank, peal_cuda_lane *lane, const peal_schedule_task *task,
                     peal_call *what, peal_status *status)
{
    CUresult result;

    return may_put(rank, lane, &result) ? peal_cuda_stream_call(rank, lane, task, what, status)
                                        : result;
}

/* The driver's assignment of branches to queues is undocumented: an edge leads from each kernel
 * that writes flags to each later wait (drive/rank_turns.c says why). */
static CUresult flags_written(peal_cuda_rank *rank, peal_cuda_lane *lane)
{
    peal_cuda_plan *plan = rank->plan;

    if (!plan->keeps_order)
        return CUDA_SUCCESS;
    lane->sent = ++plan->emission.sends;
    return record(rank, lane, lane->sent_event);
}

static CUresult follow_flags(peal_cuda_rank *rank, peal_cuda_lane *mine)
{
    peal_cuda_plan *plan = rank->plan;
    CUresult result = CUDA_SUCCESS;

    for (int r = 0; r < plan->rank_count; r++)
        for (int l = 0; l < plan->rank[r].lanes && !result; l++) {
            const peal_cuda_lane *lane = &plan->rank[r].lane[l];
            if (lane == mine || lane->sent <= mine->followed)
                continue;
            result = wait_event(rank, mine, lane->sent_event);
        }
    mine->followed = plan->emission.sends;
    return result;
}

static const struct peal_cuda_sink_ops capture_sink = {
    .launch = launch,
    .copy = copy,
    .write_word = write_word,
    .wait_word = wait_word,
    .submit = end_bundles,
    .record = record,
    .wait_event = wait_event,
    .call = call,
    .flags_written = flags_written,
    .follow_flags = follow_flags,
};

/* ---- the engine ---- */

static peal_status settle(peal_cuda_plan *plan)
{
    peal_cuda_bundles_create(plan);
    return peal_cuda_conditional_create(plan);
}

static CUresult begin(peal_cuda_plan *plan, int slot)
{
    peal_cuda_bundles_begin(plan);
    return plan->graphs->loops
               ? peal_cuda_conditional_begin(plan, slot)
               : plan->driver->cuStreamBeginCapture_(peal_cuda_origin(plan),
                                                     CU_STREAM_CAPTURE_MODE_RELAXED);
}

/* The body of a WHILE node belongs to the graph that was created before the capture. */
static CUresult end(peal_cuda_plan *plan, int slot)
{
    CUgraph captured = NULL;
    CUresult result = plan->driver->cuStreamEndCapture_(peal_cuda_origin(plan), &captured);

    if (!plan->graphs->loops)
        plan->graphs->graph[slot] = captured;
    return result;
}

static peal_status build(peal_cuda_plan *plan, int slot, CUresult *result)
{
    CUDA_GRAPH_INSTANTIATE_PARAMS how = {.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD,
                                         .hUploadStream = peal_cuda_origin(plan)};

    *result = peal_cuda_bundles_upload(plan);
    if (*result)
        return PEAL_STATUS_OK;
    *result = plan->driver->cuGraphInstantiateWithParams_(&plan->graphs->exec[slot],
                                                          plan->graphs->graph[slot], &how);
    if (!*result)
        *result = plan->driver->cuStreamSynchronize_(peal_cuda_origin(plan));
    return PEAL_STATUS_OK;
}

static CUresult launch_graph(peal_cuda_plan *plan, int slot, int64_t rounds)
{
    /* A WHILE node reads the number from a word. */
    CUresult result =
        plan->graphs->loops ? peal_cuda_conditional_set_rounds(plan, rounds) : CUDA_SUCCESS;

    return result ? result
                  : plan->driver->cuGraphLaunch_(plan->graphs->exec[slot], peal_cuda_origin(plan));
}

const struct peal_cuda_engine peal_cuda_graph_engine = {
    .sink = &capture_sink,
    .has_pieces = true,
    .reports = REPORTS,
    .settle = settle,
    .looks = peal_cuda_bundles_look,
    .looked = peal_cuda_bundles_looked,
    .begin = begin,
    .end_round = peal_cuda_conditional_end_round,
    .end = end,
    .build = build,
    .abandon = peal_cuda_conditional_abandon,
    .launch = launch_graph,
};
