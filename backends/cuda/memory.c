/* Device memory for segments.
 *
 * What other processes use is made by handles (virtual memory management): a handle goes to them as
 * a file descriptor, and the memory lives as long as anyone has it mapped. In serial a segment is
 * pinned host memory that the device has mapped: the host's executor works in it between the tiles
 * that the device runs. */
#define _GNU_SOURCE
#include "backends/cuda/cuda.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const peal_source nowhere = {0};

typedef enum memory_kind { PLAIN, BY_HANDLE, PINNED } memory_kind;

/* How far an allocation has come: what release undoes. */
typedef struct cuda_block {
    memory_kind kind;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;
    size_t bytes; /* of the reserved range */
    void *host;
    bool has_handle, is_reserved, is_mapped;
    int descriptor;
} cuda_block;

/* In the order in which it was made, backwards. */
static void destroy_block(const peal_device *device, cuda_block *block)
{
    const peal_cuda_driver *driver = device->driver;
    if (block->is_mapped)
        driver->cuMemUnmap_(block->address, block->bytes);
    if (block->is_reserved)
        driver->cuMemAddressFree_(block->address, block->bytes);
    if (block->has_handle)
        driver->cuMemRelease_(block->handle);
    if (block->descriptor >= 0)
        close(block->descriptor);
    if (block->kind == PLAIN && block->address)
        driver->cuMemFree_(block->address);
    if (block->host)
        driver->cuMemFreeHost_(block->host);
    free(block);
}

static cuda_block *make_block(memory_kind kind)
{
    cuda_block *block = calloc(1, sizeof(*block));
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
        return peal_report(diagnostics, PEAL_E382, nowhere,
                           "use smaller fields, more GPUs, or a GPU that nobody else uses",
                           "a rank needs %" PRId64 " bytes, %s %s has %zu free of %zu (%s)", bytes,
                           device->name, device->bus, have, total, call);
    snprintf(what, sizeof(what), "memory of %" PRId64 " bytes on GPU %s", bytes, device->bus);
    return cuda_failed(diagnostics, nowhere, result, call, what);
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
static CUresult map_block(const peal_device *device, cuda_block *block, const char **call)
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

static CUresult clear(const peal_device *device, const cuda_block *block, const char **call)
{
    *call = "cuMemsetD8";
    CUresult result = device->driver->cuMemsetD8_(block->address, 0, block->bytes);
    if (result)
        return result;
    *call = "cuCtxSynchronize"; /* it runs beside the host and beside other streams */
    return device->driver->cuCtxSynchronize_();
}

static CUresult create_by_handle(const peal_device *device, bool shared, cuda_block *block,
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

static CUresult create_plain(const peal_device *device, cuda_block *block, int64_t bytes,
                             const char **call)
{
    *call = "cuMemAlloc";
    block->bytes = (size_t)(bytes > 0 ? bytes : 1);
    CUresult result = device->driver->cuMemAlloc_(&block->address, block->bytes);
    return result ? result : clear(device, block, call);
}

static CUresult create_pinned(const peal_device *device, cuda_block *block, int64_t bytes,
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
    /* one address for both: the host's executor computes those that kernels are given */
    if (!result && block->address != (CUdeviceptr)(uintptr_t)block->host)
        result = CUDA_ERROR_NOT_SUPPORTED;
    return result;
}

static void hand_out(cuda_block *block, int64_t bytes, peal_device_memory *out)
{
    *out = (peal_device_memory){
        .base = (unsigned char *)(uintptr_t)block->address,
        .bytes = block->bytes ? (int64_t)block->bytes : bytes,
        .host_visible = block->kind == PINNED,
        .descriptor = block->descriptor,
        .handle = block,
    };
}

static peal_status allocate(peal_device *device, peal_mode mode, int64_t bytes, bool shared,
                            peal_diagnostics *diagnostics, peal_device_memory *out)
{
    const char *call = "";
    memory_kind kind = mode == PEAL_MODE_SERIAL ? PINNED : device->has_vmm ? BY_HANDLE : PLAIN;
    if (shared && (kind != BY_HANDLE || !device->has_descriptors))
        return peal_report(diagnostics, PEAL_E383, nowhere,
                           "host all ranks in one process: --processes 1",
                           "GPU %s cannot share memory between processes: it has no %s",
                           device->bus,
                           device->has_vmm ? "handles as file descriptors"
                                           : "virtual memory management");
    cuda_block *block = make_block(kind);
    if (!block)
        return peal_report(diagnostics, PEAL_E367, nowhere, NULL, "no memory");
    CUcontext previous = cuda_enter(device);
    CUresult result = kind == PINNED      ? create_pinned(device, block, bytes, &call)
                      : kind == BY_HANDLE ? create_by_handle(device, shared, block, bytes, &call)
                                          : create_plain(device, block, bytes, &call);
    peal_status status = PEAL_STATUS_OK;
    if (result) {
        status = failed(device, diagnostics, result, call, bytes);
        destroy_block(device, block);
    } else {
        hand_out(block, bytes, out);
    }
    cuda_leave(device, previous);
    return status;
}

static peal_status import(peal_device *device, int descriptor, int64_t bytes,
                          peal_diagnostics *diagnostics, peal_device_memory *out)
{
    const peal_cuda_driver *driver = device->driver;
    const char *call = "cuMemGetAllocationGranularity";
    cuda_block *block = make_block(BY_HANDLE);
    if (!block) {
        close(descriptor);
        return peal_report(diagnostics, PEAL_E367, nowhere, NULL, "no memory");
    }
    CUcontext previous = cuda_enter(device);
    CUresult result = round_up(device, true, bytes, &block->bytes);
    if (!result) {
        call = "cuMemImportFromShareableHandle";
        result =
            driver->cuMemImportFromShareableHandle_(&block->handle, (void *)(intptr_t)descriptor,
                                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        block->has_handle = !result;
    }
    close(descriptor);
    if (!result)
        result = map_block(device, block, &call);
    peal_status status = PEAL_STATUS_OK;
    if (result) {
        status = failed(device, diagnostics, result, call, bytes);
        destroy_block(device, block);
    } else {
        hand_out(block, bytes, out);
    }
    cuda_leave(device, previous);
    return status;
}

static void release(peal_device *device, peal_device_memory *memory)
{
    if (!memory->handle)
        return;
    if (device->lost) { /* it ends with the process */
        *memory = (peal_device_memory){.descriptor = -1};
        return;
    }
    CUcontext previous = cuda_enter(device);
    destroy_block(device, memory->handle);
    cuda_leave(device, previous);
    *memory = (peal_device_memory){.descriptor = -1};
}

/* A copy from pageable memory returns when it has been staged: the rest is waited for. */
static peal_status write_memory(peal_device *device, void *to, const void *from, int64_t bytes,
                                peal_diagnostics *diagnostics)
{
    const char *call = "cuMemcpyHtoD";
    CUcontext previous = cuda_enter(device);
    CUresult result =
        device->driver->cuMemcpyHtoD_((CUdeviceptr)(uintptr_t)to, from, (size_t)bytes);
    if (!result) {
        call = "cuCtxSynchronize";
        result = device->driver->cuCtxSynchronize_();
    }
    cuda_leave(device, previous);
    return result ? cuda_failed(diagnostics, nowhere, result, call, "writing to the GPU's memory")
                  : PEAL_STATUS_OK;
}

static peal_status read_memory(peal_device *device, void *to, const void *from, int64_t bytes,
                               peal_diagnostics *diagnostics)
{
    CUcontext previous = cuda_enter(device);
    CUresult result =
        device->driver->cuMemcpyDtoH_(to, (CUdeviceptr)(uintptr_t)from, (size_t)bytes);
    cuda_leave(device, previous);
    return result ? cuda_failed(diagnostics, nowhere, result, "cuMemcpyDtoH",
                                "reading the GPU's memory")
                  : PEAL_STATUS_OK;
}

/* Memory of the application, as the driver knows it. */
typedef struct lent_memory {
    unsigned type; /* 0: unknown to the driver */
    unsigned managed;
    int ordinal;
    unsigned legacy; /* cuMemAlloc's: it could be passed on by IPC */
    void *pool;
} lent_memory;

static lent_memory look_up(const peal_device *device, const void *memory)
{
    lent_memory found = {.ordinal = -1};
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                        CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                        CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                                        CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE};
    void *values[] = {&found.type, &found.managed, &found.ordinal, &found.legacy, &found.pool};
    CUcontext previous = cuda_enter(device);
    CUresult result = device->driver->cuPointerGetAttributes_(5, attributes, values,
                                                              (CUdeviceptr)(uintptr_t)memory);
    cuda_leave(device, previous);
    if (result)
        found.type = 0;
    return found;
}

static const char *classify(peal_device *device, const void *memory, bool *of_device)
{
    const lent_memory found = look_up(device, memory);
    *of_device = found.type != 0 && (found.managed || found.type != CU_MEMORYTYPE_HOST);
    if (found.type == 0)
        return "ordinary host memory";
    if (found.managed)
        return "managed memory";
    if (found.type == CU_MEMORYTYPE_HOST)
        return "pinned host memory";
    if (found.ordinal != device->ordinal)
        return "memory of another GPU";
    if (found.pool)
        return "memory of a pool";
    return found.legacy ? "device memory" : "device memory by handles";
}

static const char *refuses(peal_device *device, peal_mode mode, const void *memory)
{
    const lent_memory found = look_up(device, memory);
    if (found.type == 0)
        return "it is ordinary host memory, unknown to the GPU";
    if (found.managed)
        return NULL;
    if (found.type == CU_MEMORYTYPE_HOST)
        return mode == PEAL_MODE_SERIAL ? NULL : "it is pinned host memory, not the GPU's";
    if (mode == PEAL_MODE_SERIAL)
        return "it is the GPU's memory, which the host cannot touch in mode serial";
    if (found.ordinal != device->ordinal)
        return "it is the memory of another GPU than this process's";
    return NULL;
}

/* Where the driver numbers the device of that identity; -1: this process does not see it. */
static int ordinal_of(const peal_cuda_driver *driver, const peal_device_identity *peer)
{
    for (int i = 0; i < driver->device_count; i++) {
        CUdevice other;
        CUuuid uuid;
        char text[33];
        if (driver->cuDeviceGet_(&other, i) || driver->cuDeviceGetUuid_(&uuid, other))
            continue;
        for (size_t k = 0; k < sizeof(uuid.bytes); k++)
            snprintf(text + 2 * k, 3, "%02x", (unsigned char)uuid.bytes[k]);
        if (!strcmp(text, peer->unique))
            return i;
    }
    return -1;
}

static const char *refuses_peer(peal_device *device, const peal_device_identity *peer)
{
    int can = 0, ordinal;
    CUdevice other;
    if (!device->has_descriptors)
        return "this GPU cannot import memory of other processes (no virtual memory management)";
    if (!strcmp(peer->unique, device->unique))
        return NULL;
    ordinal = ordinal_of(device->driver, peer);
    if (ordinal < 0)
        return NULL; /* hidden from this process: the import will tell */
    if (device->driver->cuDeviceGet_(&other, ordinal) ||
        device->driver->cuDeviceCanAccessPeer_(&can, device->device, other) || !can)
        return "the GPUs cannot access each other's memory (no peer access)";
    return NULL;
}

const peal_memory_ops cuda_memory = {
    .size = sizeof(peal_memory_ops),
    .allocate = allocate,
    .import = import,
    .release = release,
    .write = write_memory,
    .read = read_memory,
    .refuses = refuses,
    .classify = classify,
    .refuses_peer = refuses_peer,
};
