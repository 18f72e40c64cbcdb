/* A plan without a device: the launches of graph and fused are recorded as they would be on a GPU,
 * so that it is known where there is none whether they fit, and which unit mode fused compiles. The
 * driver's functions are replaced: memory has addresses that nobody uses, streams, events and
 * graphs are numbers. */
#include "backends/cuda/dry_plan.h"

#include "backends/cuda/codegen/device/fused_launch.h"
#include "backends/cuda/executor.h"
#include "backends/cuda/fused/fused.h"
#include "backends/cuda/graph/bundle.h"
#include "backends/cuda/lower/plan.h"

#include <stdlib.h>

/* Addresses of the device's memory, of peers' memory, and of mapped host memory: far from each
 * other, and aligned as the driver aligns them. */
#define OWN_MEMORY  ((uint64_t)1 << 40)
#define PEER_MEMORY ((uint64_t)1 << 41)
#define APART       ((uint64_t)1 << 36)

/* What is known before a run is the same everywhere, whatever GPU is there: that of an H100. */
enum { REHEARSED = 90 };

/* ---- calls of the driver that a plan's creation makes ---- */

static CUresult allocate(CUdeviceptr *out, size_t bytes)
{
    (void)bytes;
    *out = OWN_MEMORY + APART;
    return CUDA_SUCCESS;
}

static CUresult free_device(CUdeviceptr memory)
{
    (void)memory;
    return CUDA_SUCCESS;
}

static CUresult allocate_host(void **out, size_t bytes, unsigned flags)
{
    (void)flags;
    *out = malloc(bytes);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult free_host(void *memory)
{
    free(memory);
    return CUDA_SUCCESS;
}

static CUresult map_host(CUdeviceptr *out, void *memory, unsigned flags)
{
    (void)flags;
    *out = (CUdeviceptr)(uintptr_t)memory;
    return CUDA_SUCCESS;
}

static CUresult copy_in(CUdeviceptr to, const void *from, size_t bytes)
{
    (void)to, (void)from, (void)bytes;
    return CUDA_SUCCESS;
}

static CUresult set_bytes(CUdeviceptr to, unsigned char value, size_t bytes)
{
    (void)to, (void)value, (void)bytes;
    return CUDA_SUCCESS;
}

/* All memory is the device's own. */
static CUresult describe_pointer(void *out, CUpointer_attribute which, CUdeviceptr pointer)
{
    (void)pointer;
    *(int *)out = which == CU_POINTER_ATTRIBUTE_MEMORY_TYPE ? (int)CU_MEMORYTYPE_DEVICE : 0;
    return CUDA_SUCCESS;
}

static CUresult find_device(CUdevice *out, int ordinal)
{
    *out = ordinal;
    return CUDA_SUCCESS;
}

static CUresult create_stream(CUstream *out, unsigned flags, int priority)
{
    (void)flags, (void)priority;
    *out = (CUstream)(uintptr_t)1;
    return CUDA_SUCCESS;
}

static CUresult create_event(CUevent *out, unsigned flags)
{
    (void)flags;
    *out = (CUevent)(uintptr_t)1;
    return CUDA_SUCCESS;
}

static CUresult use_stream(CUstream stream)
{
    (void)stream;
    return CUDA_SUCCESS;
}

static CUresult use_event(CUevent event)
{
    (void)event;
    return CUDA_SUCCESS;
}

static CUresult record_event(CUevent event, CUstream stream)
{
    (void)event, (void)stream;
    return CUDA_SUCCESS;
}

static CUresult priorities(int *least, int *greatest)
{
    *least = *greatest = 0;
    return CUDA_SUCCESS;
}

static CUresult synchronize(void)
{
    return CUDA_SUCCESS;
}

static CUresult current_context(CUcontext *out)
{
    *out = NULL;
    return CUDA_SUCCESS;
}

static CUresult use_context(CUcontext context)
{
    (void)context;
    return CUDA_SUCCESS;
}

/* Functions are told from each other by the text that names them. */
static CUresult find_function(CUfunction *out, CUmodule module, const char *name)
{
    (void)module;
    *out = (CUfunction)(uintptr_t)name;
    return CUDA_SUCCESS;
}

static CUresult find_global(CUdeviceptr *out, size_t *bytes, CUmodule module, const char *name)
{
    (void)module, (void)name;
    *bytes = sizeof(unsigned);
    return allocate(out, *bytes);
}

static CUresult set_function(CUfunction function, CUfunction_attribute which, int value)
{
    (void)function, (void)which, (void)value;
    return CUDA_SUCCESS;
}

static CUresult describe_function(int *out, CUfunction_attribute which, CUfunction function)
{
    (void)which, (void)function;
    *out = 0;
    return CUDA_SUCCESS;
}

static CUresult resident_blocks(int *out, CUfunction function, int threads, size_t bytes)
{
    (void)function, (void)threads, (void)bytes;
    *out = PEAL_FUSED_BLOCKS;
    return CUDA_SUCCESS;
}

static CUresult launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                       unsigned x, unsigned y, unsigned z, unsigned shared, CUstream stream,
                       void **parameter, void **extra)
{
    (void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)x, (void)y, (void)z;
    (void)shared, (void)stream, (void)parameter, (void)extra;
    return CUDA_SUCCESS;
}

static CUresult launch_together(CUfunction function, unsigned grid_x, unsigned grid_y,
                                unsigned grid_z, unsigned x, unsigned y, unsigned z,
                                unsigned shared, CUstream stream, void **parameter)
{
    return launch(function, grid_x, grid_y, grid_z, x, y, z, shared, stream, parameter, NULL);
}

static CUresult launch_by_config(const CUlaunchConfig *config, CUfunction function,
                                 void **parameter, void **extra)
{
    (void)config, (void)function, (void)parameter, (void)extra;
    return CUDA_SUCCESS;
}

/* ---- calls that are captured ---- */

static CUresult wait_event(CUstream stream, CUevent event, unsigned flags)
{
    (void)stream, (void)event, (void)flags;
    return CUDA_SUCCESS;
}

static CUresult use_word(CUstream stream, CUdeviceptr word, cuuint64_t value, unsigned flags)
{
    (void)stream, (void)word, (void)value, (void)flags;
    return CUDA_SUCCESS;
}

static CUresult copy_run(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)to, (void)from, (void)bytes, (void)stream;
    return CUDA_SUCCESS;
}

static CUresult copy_box(const CUDA_MEMCPY3D *box, CUstream stream)
{
    (void)box, (void)stream;
    return CUDA_SUCCESS;
}

static CUresult begin_capture(CUstream stream, CUstreamCaptureMode mode)
{
    (void)stream, (void)mode;
    return CUDA_SUCCESS;
}

static CUresult begin_capture_to(CUstream stream, CUgraph graph, const CUgraphNode *nodes,
                                 const CUgraphEdgeData *edges, size_t count,
                                 CUstreamCaptureMode mode)
{
    (void)stream, (void)graph, (void)nodes, (void)edges, (void)count, (void)mode;
    return CUDA_SUCCESS;
}

static CUresult end_capture(CUstream stream, CUgraph *out)
{
    (void)stream;
    *out = (CUgraph)(uintptr_t)1;
    return CUDA_SUCCESS;
}

static CUresult create_graph(CUgraph *out, unsigned flags)
{
    (void)flags;
    *out = (CUgraph)(uintptr_t)1;
    return CUDA_SUCCESS;
}

static CUresult create_condition(CUgraphConditionalHandle *out, CUgraph graph, CUcontext context,
                                 unsigned value, unsigned flags)
{
    (void)graph, (void)context, (void)value, (void)flags;
    *out = 1;
    return CUDA_SUCCESS;
}

/* A WHILE node has a graph for its body. */
static CUresult add_node(CUgraphNode *out, CUgraph graph, const CUgraphNode *nodes,
                         const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *node)
{
    static CUgraph body[1];
    (void)graph, (void)nodes, (void)edges, (void)count;
    *out = (CUgraphNode)(uintptr_t)1;
    node->conditional.phGraph_out = body;
    return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *how)
{
    (void)graph, (void)how;
    *out = (CUgraphExec)(uintptr_t)1;
    return CUDA_SUCCESS;
}

static CUresult destroy_exec(CUgraphExec exec)
{
    (void)exec;
    return CUDA_SUCCESS;
}

static CUresult destroy_graph(CUgraph graph)
{
    (void)graph;
    return CUDA_SUCCESS;
}

static const peal_cuda_driver driver = {
    .cuMemAlloc_ = allocate,
    .cuMemFree_ = free_device,
    .cuMemHostAlloc_ = allocate_host,
    .cuMemFreeHost_ = free_host,
    .cuMemHostGetDevicePointer_ = map_host,
    .cuMemcpyHtoD_ = copy_in,
    .cuMemsetD8_ = set_bytes,
    .cuPointerGetAttribute_ = describe_pointer,
    .cuDeviceGet_ = find_device,
    .cuStreamCreateWithPriority_ = create_stream,
    .cuStreamDestroy_ = use_stream,
    .cuStreamSynchronize_ = use_stream,
    .cuEventCreate_ = create_event,
    .cuEventDestroy_ = use_event,
    .cuEventRecord_ = record_event,
    .cuCtxGetStreamPriorityRange_ = priorities,
    .cuCtxSynchronize_ = synchronize,
    .cuCtxGetCurrent_ = current_context,
    .cuCtxSetCurrent_ = use_context,
    .cuModuleGetFunction_ = find_function,
    .cuModuleGetGlobal_ = find_global,
    .cuFuncSetAttribute_ = set_function,
    .cuFuncGetAttribute_ = describe_function,
    .cuOccupancyMaxActiveBlocksPerMultiprocessor_ = resident_blocks,
    .cuLaunchKernel_ = launch,
    .cuLaunchCooperativeKernel_ = launch_together,
    .cuLaunchKernelEx_ = launch_by_config,
    .cuStreamWaitEvent_ = wait_event,
    .cuStreamWaitValue64_ = use_word,
    .cuStreamWriteValue64_ = use_word,
    .cuMemcpyAsync_ = copy_run,
    .cuMemcpy3DAsync_ = copy_box,
    .cuStreamBeginCapture_ = begin_capture,
    .cuStreamBeginCaptureToGraph_ = begin_capture_to,
    .cuStreamEndCapture_ = end_capture,
    .cuGraphCreate_ = create_graph,
    .cuGraphConditionalHandleCreate_ = create_condition,
    .cuGraphAddNode_ = add_node,
    .cuGraphInstantiateWithParams_ = instantiate,
    .cuGraphExecDestroy_ = destroy_exec,
    .cuGraphDestroy_ = destroy_graph,
};

/* ---- the plan ---- */

/* Addresses of peers' memory by the index of the peer, from `first` on. */
static unsigned char **peers_from(peal_arena *arena, int count, uint64_t first)
{
    unsigned char **peer = PEAL_ARENA_ARRAY(arena, unsigned char *, count + 1);

    for (int p = 0; p < count; p++)
        peer[p] = (unsigned char *)(uintptr_t)(first + (uint64_t)p * APART);
    return peer;
}

/* What a rank would be bound to. */
static peal_backend_rank bind_rank(const peal_schedule *schedule, peal_arena *arena)
{
    return (peal_backend_rank){.schedule = schedule,
                               .segment = (unsigned char *)(uintptr_t)OWN_MEMORY,
                               .peer_segment = peers_from(arena, schedule->peer_count, PEER_MEMORY),
                               .mailbox = (unsigned char *)(uintptr_t)(2 * PEER_MEMORY),
                               .peer_mailbox =
                                   peers_from(arena, schedule->peer_count, 3 * PEER_MEMORY)};
}

static peal_device gpu_of(int architecture)
{
    return (peal_device){.driver = &driver,
                         .major = architecture / 10,
                         .minor = architecture % 10,
                         .sm_count = PEAL_CUDA_DRY_PLAN_SMS,
                         .name = "no GPU",
                         .has_cooperative = true,
                         .has_memops = true,
                         .dry = true};
}

/* The plan of `count` ranks of desc, from rank `first` on, to be destroyed if there is no error. */
static peal_status make(const peal_backend_desc *desc, int first, int count, peal_device *device,
                        peal_arena *arena, peal_cuda_plan **out)
{
    peal_backend_rank *rank = PEAL_ARENA_ARRAY(arena, peal_backend_rank, count + 1);
    _Atomic int *abort_word = PEAL_ARENA_NEW(arena, _Atomic int);
    peal_backend_desc one = *desc;

    for (int r = 0; r < count; r++)
        rank[r] = bind_rank(desc->rank[first + r].schedule, arena);
    one.device = device;
    one.rank = rank;
    one.rank_count = count;
    one.abort_word = abort_word;
    return peal_cuda_plan_create(&one, out);
}

peal_status peal_cuda_dry_plan_fused(const peal_backend_desc *desc, int index, int architecture,
                                     peal_arena *arena, const char **out)
{
    peal_backend_desc one = *desc;
    peal_device device = gpu_of(architecture);
    peal_cuda_plan *plan = NULL;

    one.mode = PEAL_MODE_FUSED;
    peal_status status = make(&one, index, 1, &device, arena, &plan);
    if (!status)
        *out = peal_arena_copy_text(arena, peal_cuda_kernels_recorded_text(plan->kernels));
    if (!status)
        peal_cuda_plan_destroy(plan);
    return status;
}

peal_status peal_cuda_dry_plan_compile(const peal_backend_desc *desc, bool many, peal_arena *arena)
{
    const peal_device *real = desc->device;
    peal_device device = gpu_of(10 * real->major + real->minor);
    peal_cuda_plan *plan = NULL;

    device.sm_count = real->sm_count;
    device.shared = real->shared;
    device.has_memops = real->has_memops;
    device.has_wait_nor = real->has_wait_nor;
    device.has_cooperative = real->has_cooperative;
    peal_status status = make(desc, 0, desc->rank_count, &device, arena, &plan);
    if (status)
        return status;
    if (peal_cuda_kernels_recorded_text(plan->kernels))
        status =
            peal_cuda_kernels_compile_recorded(plan->kernels, desc->device->driver->version, many);
    peal_cuda_plan_destroy(plan);
    return status;
}

static peal_status no_memory(const peal_backend_desc *desc)
{
    return peal_report(desc->diagnostics, PEAL_E_OUT_OF_MEMORY, (peal_source){0}, NULL,
                       "no memory");
}

static peal_status try_to_rehearse(const peal_backend_desc *desc, peal_arena *arena,
                                   peal_backend_rehearsal *out)
{
    PEAL_ARENA_GUARD(arena, return no_memory(desc));
    peal_device device = gpu_of(REHEARSED);
    peal_cuda_plan *plan = NULL;
    peal_status status = make(desc, 0, desc->rank_count, &device, arena, &plan);
    if (!status && plan->fused) {
        out->saved = plan->fused[0].saved;
        snprintf(out->note, sizeof(out->note), "%s",
                 plan->fused[0].note ? plan->fused[0].note : "");
    }
    if (!status) {
        peal_cuda_bundles_rehearse(plan, out);
        peal_cuda_plan_destroy(plan);
    }
    return status;
}

peal_status peal_cuda_rehearse(const peal_backend_desc *desc, peal_backend_rehearsal *out)
{
    peal_arena *arena = peal_arena_create();
    *out = (peal_backend_rehearsal){.saved = 0};
    peal_status status = arena ? try_to_rehearse(desc, arena, out) : no_memory(desc);

    peal_arena_destroy(arena);
    return status;
}
