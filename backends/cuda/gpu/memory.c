/* Device memory for segments.
 *
 * What other processes use is made by handles (virtual memory management): a handle goes to them as
 * a file descriptor, and the memory lives as long as anyone has it mapped. Where that cannot be, it
 * is ordinary device memory with an IPC handle, which is held until nobody has it open any more. In
 * serial a segment is pinned host memory that the device has mapped: the host's executor works in
 * it between the tiles that the device runs. */
#define _GNU_SOURCE
#include "backends/cuda/gpu/memory.h"
#include "base/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const peal_source nowhere = {0};

typedef enum memory_kind {
    ORDINARY,
    BY_HANDLE,
    BY_IPC, /* ordinary, with an IPC handle */
    OPENED, /* another process's BY_IPC */
    PINNED,
    REGISTERED, /* the host's own memory */
} memory_kind;

enum { IPC_GRAIN = 2 << 20, PATIENCE_MS = 500 };

/* An allocation, as far as it has come: what destroy_block has to undo. */
typedef struct peal_cuda_block {
    memory_kind kind;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;
    size_t bytes; /* of the reserved range */
    void *host;
    bool has_handle, is_reserved, is_mapped;
    int descriptor;
    peal_cuda_ipc_note *note;
    struct peal_cuda_block *next; /* in device->held */
} peal_cuda_block;

static void undo_mapping(const peal_cuda_driver *driver, peal_cuda_block *block)
{
    if (block->kind == OPENED)
        driver->cuIpcCloseMemHandle_(block->address);
    else if (block->kind == REGISTERED)
        driver->cuMemHostUnregister_(block->host);
    else
        driver->cuMemUnmap_(block->address, block->bytes);
}

/* Undoes what was made, in reverse order. */
static void destroy_block(const peal_device *device, peal_cuda_block *block)
{
    const peal_cuda_driver *driver = device->driver;
    if (block->is_mapped)
        undo_mapping(driver, block);
    if (block->kind == OPENED && block->note)
        atomic_fetch_sub_explicit(&block->note->users, 1, memory_order_release);
    peal_cuda_ipc_close(block->note);
    if (block->is_reserved)
        driver->cuMemAddressFree_(block->address, block->bytes);
    if (block->has_handle)
        driver->cuMemRelease_(block->handle);
    if (block->descriptor >= 0)
        close(block->descriptor);
    if ((block->kind == ORDINARY || block->kind == BY_IPC) && block->address)
        driver->cuMemFree_(block->address);
    if (block->kind == PINNED && block->host)
        driver->cuMemFreeHost_(block->host);
    free(block);
}

static peal_cuda_block *make_block(memory_kind kind)
{
    peal_cuda_block *block = calloc(1, sizeof(*block));
    if (block) {
        block->kind = kind;
        block->descriptor = -1;
    }
    return block;
}

static peal_status failed(const peal_device *device, peal_diagnostics *diagnostics, CUresult result,
                          const char *call, int64_t bytes)
{
    size_t have = 0, total = 0;
    char what[80];
    if (result == CUDA_ERROR_OUT_OF_MEMORY && !device->driver->cuMemGetInfo_(&have, &total))
        return peal_report(diagnostics, PEAL_E_GPU_OUT_OF_MEMORY, nowhere,
                           "use smaller fields, more GPUs, or a GPU that nobody else uses",
                           "a rank needs %" PRId64 " bytes, %s %s has %zu free of %zu (%s)", bytes,
                           device->name, device->bus, have, total, call);
    snprintf(what, sizeof(what), "memory of %" PRId64 " bytes on GPU %s", bytes, device->bus);
    return peal_cuda_driver_failed(diagnostics, nowhere, result, call, what);
}

/* ---- by handles ---- */

static CUmemAllocationProp properties_of(const peal_device *device, bool shared)
{
    CUmemAllocationProp prop;
    memset(&prop, 0, sizeof(prop));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = device->device;
    if (shared)
        prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return prop;
}

/* Both sides round alike: their devices are of one model. */
static CUresult round_up(const peal_device *device, bool shared, int64_t bytes, size_t *out)
{
    const CUmemAllocationProp prop = properties_of(device, shared);
    size_t grain = 0;
    CUresult result =
        device->driver->cuMemGetAllocationGranularity_(&grain, &prop,
                                                       CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    if (!result && grain)
        *out = ((size_t)(bytes > 0 ? bytes : 1) + grain - 1) / grain * grain;
    return result ? result : grain ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Puts the handle at an address where this device may use it. */
static CUresult map_block(const peal_device *device, peal_cuda_block *block, const char **call)
{
    const peal_cuda_driver *driver = device->driver;
    const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                                 .id = device->device},
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    *call = "cuMemAddressReserve";
    CUresult result = driver->cuMemAddressReserve_(&block->address, block->bytes, 0, 0, 0);
    if (result)
        return result;
    block->is_reserved = true;
    *call = "cuMemMap";
    result = driver->cuMemMap_(block->address, block->bytes, 0, block->handle, 0);
    if (result)
        return result;
    block->is_mapped = true;
    *call = "cuMemSetAccess";
    return driver->cuMemSetAccess_(block->address, block->bytes, &access, 1);
}

static CUresult clear(const peal_device *device, const peal_cuda_block *block, const char **call)
{
    *call = "cuMemsetD8";
    CUresult result = device->driver->cuMemsetD8_(block->address, 0, block->bytes);
    if (result)
        return result;
    *call = "cuCtxSynchronize"; /* cuMemsetD8 returns before it is done */
    return device->driver->cuCtxSynchronize_();
}

static CUresult create_by_handle(const peal_device *device, bool shared, peal_cuda_block *block,
                                 int64_t bytes, const char **call)
{
    const peal_cuda_driver *driver = device->driver;
    const CUmemAllocationProp prop = properties_of(device, shared);
    *call = "cuMemGetAllocationGranularity";
    CUresult result = round_up(device, shared, bytes, &block->bytes);
    if (result)
        return result;
    *call = "cuMemCreate";
    result = driver->cuMemCreate_(&block->handle, block->bytes, &prop, 0);
    if (result)
        return result;
    block->has_handle = true;
    result = map_block(device, block, call);
    if (!result)
        result = clear(device, block, call);
    if (result || !shared)
        return result;
    *call = "cuMemExportToShareableHandle";
    result = driver->cuMemExportToShareableHandle_(&block->descriptor, block->handle,
                                                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (!result)
        fcntl(block->descriptor, F_SETFD, FD_CLOEXEC);
    return result;
}

/* ---- the other kinds ---- */

static CUresult create_ordinary(const peal_device *device, peal_cuda_block *block, int64_t bytes,
                                const char **call)
{
    *call = "cuMemAlloc";
    block->bytes = (size_t)(bytes > 0 ? bytes : 1);
    CUresult result = device->driver->cuMemAlloc_(&block->address, block->bytes);
    return result ? result : clear(device, block, call);
}

static CUresult create_pinned(const peal_device *device, peal_cuda_block *block, int64_t bytes,
                              const char **call)
{
    *call = "cuMemHostAlloc";
    block->bytes = (size_t)(bytes > 0 ? bytes : 1);
    CUresult result =
        device->driver->cuMemHostAlloc_(&block->host, block->bytes,
                                        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (result)
        return result;
    memset(block->host, 0, block->bytes);
    *call = "cuMemHostGetDevicePointer";
    result = device->driver->cuMemHostGetDevicePointer_(&block->address, block->host, 0);
    /* Host and device need the same address: the host's executor computes the addresses that
     * kernels get. */
    if (!result && block->address != (CUdeviceptr)(uintptr_t)block->host)
        result = CUDA_ERROR_NOT_SUPPORTED;
    return result;
}

/* Rounded up to the size of the driver's own allocations, since an IPC handle stands for all of
 * one.
 */
static CUresult create_by_ipc(const peal_device *device, peal_cuda_block *block, int64_t bytes,
                              const char **call)
{
    CUipcMemHandle handle;
    int64_t rounded = ((bytes > 0 ? bytes : 1) + IPC_GRAIN - 1) / IPC_GRAIN * IPC_GRAIN;
    CUresult result = create_ordinary(device, block, rounded, call);
    if (result)
        return result;
    *call = "cuIpcGetMemHandle";
    result = device->driver->cuIpcGetMemHandle_(&handle, block->address);
    if (result)
        return result;
    *call = "a file for its IPC handle";
    return peal_cuda_ipc_create(&handle, &block->note, &block->descriptor)
               ? CUDA_SUCCESS
               : CUDA_ERROR_OPERATING_SYSTEM;
}

static void hand_out(peal_cuda_block *block, int64_t bytes, peal_device_memory *out)
{
    *out = (peal_device_memory){
        .base = (unsigned char *)(uintptr_t)block->address,
        .bytes = block->bytes ? (int64_t)block->bytes : bytes,
        .host_visible = block->kind == PINNED,
        .descriptor = block->descriptor,
        .handle = block,
    };
}

/* Ends the creation of a block: hands it out, or undoes what was made. */
static peal_status settle(const peal_device *device, peal_cuda_block *block, CUresult result,
                          const char *call, int64_t bytes, peal_diagnostics *diagnostics,
                          peal_device_memory *out)
{
    if (!result) {
        hand_out(block, bytes, out);
        return PEAL_STATUS_OK;
    }
    peal_status status = failed(device, diagnostics, result, call, bytes);
    destroy_block(device, block);
    return status;
}

static peal_status no_memory(peal_diagnostics *diagnostics)
{
    return peal_report(diagnostics, PEAL_E_OUT_OF_MEMORY, nowhere, NULL, "no memory");
}

/* Whether other processes have it open, so that it must not be freed. */
static bool is_held(const peal_cuda_block *block)
{
    return block->kind == BY_IPC && block->note &&
           atomic_load_explicit(&block->note->users, memory_order_acquire) > 0;
}

/* Frees held blocks that no process has open any more. all: also the others, because those
 * processes are gone or the job is over. */
static void free_held(peal_device *device, bool all)
{
    for (peal_cuda_block **at = &device->held; *at;) {
        peal_cuda_block *block = *at;
        if (is_held(block) && !all) {
            at = &block->next;
            continue;
        }
        *at = block->next;
        destroy_block(device, block);
    }
}

static peal_status allocate(peal_device *device, peal_mode mode, int64_t bytes, peal_path path,
                            peal_diagnostics *diagnostics, peal_device_memory *out)
{
    const char *call = "", *reason = NULL;
    bool shared = path != PEAL_PATH_NONE;
    memory_kind kind = mode == PEAL_MODE_SERIAL                   ? PINNED
                       : path == PEAL_PATH_IPC                    ? BY_IPC
                       : path == PEAL_PATH_VMM || device->has_vmm ? BY_HANDLE
                                                                  : ORDINARY;
    if (shared)
        reason = kind == PINNED ? "mode serial has one process"
                                : peal_cuda_peer_access_refuses(device, path, NULL);
    if (reason)
        return peal_report(diagnostics, PEAL_E_DRIVER_REFUSED, nowhere,
                           "host all ranks in one process: --processes 1",
                           "GPU %s cannot share memory between processes: %s", device->bus, reason);
    peal_cuda_block *block = make_block(kind);
    if (!block)
        return no_memory(diagnostics);
    CUcontext previous = peal_cuda_context_enter(device);
    free_held(device, false);
    CUresult result = kind == PINNED      ? create_pinned(device, block, bytes, &call)
                      : kind == BY_HANDLE ? create_by_handle(device, shared, block, bytes, &call)
                      : kind == BY_IPC    ? create_by_ipc(device, block, bytes, &call)
                                          : create_ordinary(device, block, bytes, &call);
    peal_status status = settle(device, block, result, call, bytes, diagnostics, out);
    peal_cuda_context_leave(device, previous);
    return status;
}

/* ---- of other processes, and of the host ---- */

static CUresult import_handle(const peal_device *device, peal_cuda_block *block, int descriptor,
                              int64_t bytes, const char **call)
{
    *call = "cuMemGetAllocationGranularity";
    CUresult result = round_up(device, true, bytes, &block->bytes);
    if (result)
        return result;
    *call = "cuMemImportFromShareableHandle";
    result =
        device->driver->cuMemImportFromShareableHandle_(&block->handle,
                                                        (void *)(intptr_t)descriptor,
                                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (result)
        return result;
    block->has_handle = true;
    return map_block(device, block, call);
}

static CUresult open_ipc(const peal_device *device, peal_cuda_block *block, int descriptor,
                         const char **call)
{
    *call = "the file of an IPC handle";
    if (!peal_cuda_ipc_open(descriptor, &block->note))
        return CUDA_ERROR_OPERATING_SYSTEM;
    /* From now on the owner keeps the memory. Pairs with the acquire in is_held. */
    atomic_fetch_add_explicit(&block->note->users, 1, memory_order_acq_rel);
    *call = "cuIpcOpenMemHandle";
    CUresult result = device->driver->cuIpcOpenMemHandle_(&block->address, block->note->handle,
                                                          CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    block->is_mapped = !result;
    return result;
}

static peal_status import(peal_device *device, peal_path path, int descriptor, int64_t bytes,
                          peal_diagnostics *diagnostics, peal_device_memory *out)
{
    const char *call = "";
    peal_cuda_block *block = make_block(path == PEAL_PATH_IPC ? OPENED : BY_HANDLE);
    if (!block) {
        close(descriptor);
        return no_memory(diagnostics);
    }
    CUcontext previous = peal_cuda_context_enter(device);
    CUresult result = block->kind == OPENED
                          ? open_ipc(device, block, descriptor, &call)
                          : import_handle(device, block, descriptor, bytes, &call);
    close(descriptor);
    peal_status status = settle(device, block, result, call, bytes, diagnostics, out);
    peal_cuda_context_leave(device, previous);
    return status;
}

static peal_status register_host(peal_device *device, void *memory, int64_t bytes,
                                 peal_diagnostics *diagnostics, peal_device_memory *out)
{
    const peal_cuda_driver *driver = device->driver;
    const char *call = "cuMemHostRegister";
    peal_cuda_block *block = make_block(REGISTERED);
    char what[100];
    if (!block)
        return no_memory(diagnostics);
    block->host = memory;
    CUcontext previous = peal_cuda_context_enter(device);
    CUresult result =
        driver->cuMemHostRegister_(memory, (size_t)bytes,
                                   CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
    if (!result) {
        block->is_mapped = true;
        call = "cuMemHostGetDevicePointer";
        result = driver->cuMemHostGetDevicePointer_(&block->address, memory, 0);
    }
    peal_status status = PEAL_STATUS_OK;
    if (result) {
        snprintf(what, sizeof(what), "%" PRId64 " bytes of host memory for GPU %s", bytes,
                 device->bus);
        status = peal_cuda_driver_failed(diagnostics, nowhere, result, call, what);
        destroy_block(device, block);
    } else {
        hand_out(block, bytes, out);
    }
    peal_cuda_context_leave(device, previous);
    return status;
}

/* ---- giving back ---- */

/* After an abort the other processes may still be ending. One that died never closes what it had
 * open, so the wait is bounded. */
void peal_cuda_memory_close(peal_device *device)
{
    CUcontext previous = peal_cuda_context_enter(device);
    for (int i = 0; device->held && i < PATIENCE_MS; i++) {
        free_held(device, false);
        if (device->held)
            peal_clock_sleep(1000000);
    }
    free_held(device, true);
    peal_cuda_context_leave(device, previous);
}

static void release(peal_device *device, peal_device_memory *memory)
{
    peal_cuda_block *block = memory->handle;
    if (!block)
        return;
    *memory = (peal_device_memory){.descriptor = -1};
    if (device->lost) /* the memory is freed when the process ends */
        return;
    CUcontext previous = peal_cuda_context_enter(device);
    if (is_held(block)) {
        block->next = device->held;
        device->held = block;
    } else {
        destroy_block(device, block);
    }
    free_held(device, false);
    peal_cuda_context_leave(device, previous);
}

/* A copy from pageable memory returns once it has been staged, so its end is waited for. */
static peal_status write_memory(peal_device *device, void *to, const void *from, int64_t bytes,
                                peal_diagnostics *diagnostics)
{
    const char *call = "cuMemcpyHtoD";
    CUcontext previous = peal_cuda_context_enter(device);
    CUresult result =
        device->driver->cuMemcpyHtoD_((CUdeviceptr)(uintptr_t)to, from, (size_t)bytes);
    if (!result) {
        call = "cuCtxSynchronize";
        result = device->driver->cuCtxSynchronize_();
    }
    peal_cuda_context_leave(device, previous);
    return result ? peal_cuda_driver_failed(diagnostics, nowhere, result, call,
                                            "writing to the GPU's memory")
                  : PEAL_STATUS_OK;
}

static peal_status read_memory(peal_device *device, void *to, const void *from, int64_t bytes,
                               peal_diagnostics *diagnostics)
{
    CUcontext previous = peal_cuda_context_enter(device);
    CUresult result =
        device->driver->cuMemcpyDtoH_(to, (CUdeviceptr)(uintptr_t)from, (size_t)bytes);
    peal_cuda_context_leave(device, previous);
    return result ? peal_cuda_driver_failed(diagnostics, nowhere, result, "cuMemcpyDtoH",
                                            "reading the GPU's memory")
                  : PEAL_STATUS_OK;
}

const peal_memory_ops peal_cuda_memory = {
    .size = sizeof(peal_memory_ops),
    .allocate = allocate,
    .import = import,
    .register_host = register_host,
    .release = release,
    .write = write_memory,
    .read = read_memory,
    .refuses = peal_cuda_user_memory_refuses,
    .classify = peal_cuda_user_memory_classify,
    .refuses_path = peal_cuda_peer_access_refuses,
};
