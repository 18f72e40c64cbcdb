/* A plan without a device, for mode fused: a rank's launches are recorded as they would be on a
 * GPU, so that the unit with their shapes is known where there is no GPU. The driver's functions
 * are replaced: memory has addresses that nobody uses, streams and events are numbers. */
#include "backends/cuda/dry_plan.h"

#include "backends/cuda/codegen/device/fused_launch.h"
#include "backends/cuda/executor.h"
#include "backends/cuda/lower/plan.h"

#include <stdlib.h>

/* Addresses of the device's memory, of peers' memory, and of mapped host memory: far from each
 * other, and aligned as the driver aligns them. */
#define OWN_MEMORY  ((uint64_t)1 << 40)
#define PEER_MEMORY ((uint64_t)1 << 41)
#define APART       ((uint64_t)1 << 36)

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

peal_status peal_cuda_dry_plan_fused(const peal_backend_desc *desc, int index, int architecture,
                                     peal_arena *arena, const char **out)
{
    const peal_schedule *schedule = desc->rank[index].schedule;
    peal_device device = {.driver = &driver,
                          .major = architecture / 10,
                          .minor = architecture % 10,
                          .sm_count = PEAL_CUDA_DRY_PLAN_SMS,
                          .name = "no GPU",
                          .has_cooperative = true,
                          .dry = true};
    peal_backend_rank rank = {.schedule = schedule,
                              .segment = (unsigned char *)(uintptr_t)OWN_MEMORY,
                              .peer_segment = peers_from(arena, schedule->peer_count, PEER_MEMORY),
                              .mailbox = (unsigned char *)(uintptr_t)(2 * PEER_MEMORY),
                              .peer_mailbox =
                                  peers_from(arena, schedule->peer_count, 3 * PEER_MEMORY)};
    _Atomic int abort_word = 0;
    peal_backend_desc one = *desc;
    peal_cuda_plan *plan = NULL;

    one.mode = PEAL_MODE_FUSED;
    one.device = &device;
    one.rank = &rank;
    one.rank_count = 1;
    one.abort_word = &abort_word;
    peal_status status = peal_cuda_plan_create(&one, &plan);
    if (!status)
        *out = peal_arena_copy_text(arena, peal_cuda_kernels_fused_text(plan->kernels));
    peal_cuda_plan_destroy(plan);
    return status;
}
