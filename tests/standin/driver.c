/* A stand-in for the CUDA driver: records what peal calls, and in which order. "Device memory" is
 * host memory, streams are queues (streams.c), kernels are not run. It stands in for no
 * result.
 *
 * STANDIN_DEVICES: how many devices there are (default 1). STANDIN_LACKS: words for what
 * they cannot do (peer vmm register memops cooperative; ampere: they are of compute capability 7.5;
 * ipc, handles: calls fail, though the attributes are there; capture: stream 2 is being captured).
 * STANDIN_MODELS=1: each is another model. */
#define _GNU_SOURCE
#include <cuda.h>

#include "tests/standin/emulate.h"
#include "tests/standin/record.h"
#include "tests/standin/streams.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char contexts[64]; /* a context is known by its address */
static _Thread_local CUcontext current;

static int device_count(void)
{
    const char *text = getenv("STANDIN_DEVICES");
    return text ? atoi(text) : 1;
}

bool standin_lacks(const char *what)
{
    const char *text = getenv("STANDIN_LACKS");
    return text && strstr(text, what);
}

bool standin_has_context(void)
{
    return current != NULL;
}

static int current_ordinal(void)
{
    return current ? (int)((char *)current - contexts) : 0;
}

static void *at(CUdeviceptr address)
{
    return (void *)(uintptr_t)address;
}

/* ---- the driver and its devices ---- */

CUresult cuInit(unsigned flags)
{
    (void)flags;
    NOTE(cuInit);
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    NOTE(cuDriverGetVersion);
    *version = 13000;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **text)
{
    *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_UNKNOWN";
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "unknown error";
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    NOTE(cuDeviceGetCount);
    *count = device_count();
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    NOTE(cuDeviceGet);
    if (ordinal < 0 || ordinal >= device_count())
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int bytes, CUdevice device)
{
    const char *several = getenv("STANDIN_MODELS");
    NOTE(cuDeviceGetName);
    snprintf(name, (size_t)bytes, several ? "Stand-in %c" : "Stand-in", 'A' + device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    NOTE(cuDeviceGetUuid);
    memset(uuid, 0, sizeof(*uuid));
    uuid->bytes[0] = (char)(device + 1);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device)
{
    (void)device;
    NOTE(cuDeviceGetAttribute);
    switch (which) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = standin_lacks("ampere") ? 7 : 9;
        break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = standin_lacks("ampere") ? 5 : 0;
        break;
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
        *value = !standin_lacks("cooperative");
        break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = getenv("STANDIN_SMS") ? atoi(getenv("STANDIN_SMS")) : 132;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
        *value = 2048;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
        *value = 32;
        break;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
        *value = !standin_lacks("vmm");
        break;
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
        *value = !standin_lacks("register");
        break;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
        *value = !standin_lacks("memops");
        break;
    default:
        *value = 1;
    }
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    (void)device;
    NOTE(cuDeviceTotalMem);
    *bytes = standin_bytes();
    return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    (void)device, (void)peer;
    NOTE(cuDeviceCanAccessPeer);
    *can = !standin_lacks("peer");
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute which, CUdevice a, CUdevice b)
{
    (void)a, (void)b;
    NOTE(cuDeviceGetP2PAttribute);
    *value = which == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ? 0 : !standin_lacks("peer");
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *text, int bytes, CUdevice device)
{
    NOTE(cuDeviceGetPCIBusId);
    snprintf(text, (size_t)bytes, "0000:%02x:00.0", device + 1);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    NOTE(cuDevicePrimaryCtxRetain);
    *context = (CUcontext)(void *)&contexts[device];
    standin_made(STANDIN_CONTEXT);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    (void)device;
    NOTE(cuDevicePrimaryCtxRelease);
    standin_gone(STANDIN_CONTEXT);
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    NOTE(cuCtxSetCurrent);
    current = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    NOTE(cuCtxGetCurrent);
    *context = current;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    NOTE(cuCtxGetStreamPriorityRange);
    *least = 0;
    *greatest = -5;
    return CUDA_SUCCESS;
}

/* NVRTC looks for what a real driver offers it; it can do without. */
CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    (void)id;
    *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}

/* ---- memory: every call needs a context ---- */

#define NEED_CONTEXT(name)                                                                         \
    do {                                                                                           \
        NOTE(name);                                                                                \
        if (!current)                                                                              \
            return CUDA_ERROR_INVALID_CONTEXT;                                                     \
    } while (0)

CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    NEED_CONTEXT(cuMemHostAlloc);
    if (!(flags & CU_MEMHOSTALLOC_DEVICEMAP))
        return CUDA_ERROR_INVALID_VALUE;
    *out = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    standin_memory((CUdeviceptr)(uintptr_t)*out, bytes, CU_MEMORYTYPE_HOST);
    standin_made(STANDIN_PINNED);
    return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void *address)
{
    int fails = standin_call("cuMemFreeHost");
    if (!current)
        return CUDA_ERROR_INVALID_CONTEXT;
    standin_memory((CUdeviceptr)(uintptr_t)address, 0, 0);
    free(address); /* no leak of the stand-in's own, but it counts as left */
    if (fails)
        return CUDA_ERROR_UNKNOWN;
    standin_gone(STANDIN_PINNED);
    return CUDA_SUCCESS;
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    NEED_CONTEXT(cuMemcpy);
    memcpy(at(to), at(from), bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes)
{
    NEED_CONTEXT(cuMemcpyHtoD);
    CUresult result = standin_waits("cuMemcpyHtoD");
    if (!result)
        memcpy(at(to), from, bytes);
    return result;
}

CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes)
{
    NEED_CONTEXT(cuMemcpyDtoH);
    CUresult result = standin_waits("cuMemcpyDtoH");
    if (!result)
        memcpy(to, at(from), bytes);
    return result;
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    (void)stream;
    NEED_CONTEXT(cuMemcpyHtoDAsync);
    memcpy(at(to), from, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    NEED_CONTEXT(cuMemcpyDtoHAsync);
    memcpy(to, at(from), bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t bytes)
{
    NEED_CONTEXT(cuMemsetD8);
    memset(at(to), value, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)
{
    (void)stream;
    NEED_CONTEXT(cuMemsetD8Async);
    memset(at(to), value, bytes);
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *out, CUpointer_attribute which, CUdeviceptr address)
{
    unsigned type = standin_memory_type(address);
    NOTE(cuPointerGetAttribute);
    if (which == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
        memcpy(out, &type, sizeof(type));
    else if (which == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
        memcpy(out, &(int){type == CU_MEMORYTYPE_DEVICE ? current_ordinal() : -1}, sizeof(int));
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* What cuMemAlloc and cuMemHostAlloc gave is known, all else is not. */
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *which, void **out,
                                CUdeviceptr address)
{
    unsigned type = standin_memory_type(address);
    NOTE(cuPointerGetAttributes);
    for (unsigned i = 0; i < count; i++)
        switch (which[i]) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            memcpy(out[i], &type, sizeof(type));
            break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            memcpy(out[i], &(int){type == CU_MEMORYTYPE_DEVICE ? current_ordinal() : -1},
                   sizeof(int));
            break;
        default:
            break;
        }
    return CUDA_SUCCESS;
}

/* ---- modules ---- */

CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name)
{
    enum { ROOM = 256 };
    static char known[ROOM][64]; /* a function is its name (launches.c) */
    int i = 0;
    NOTE(cuModuleGetFunction);
    if (emulate_function) {
        *out = emulate_function((void *)module, name);
        return CUDA_SUCCESS;
    }
    while (i < ROOM - 1 && known[i][0] && strcmp(known[i], name) != 0)
        i++;
    snprintf(known[i], sizeof(known[i]), "%s", name);
    *out = (CUfunction)(void *)known[i];
    return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal(CUdeviceptr *out, size_t *bytes, CUmodule module, const char *name)
{
    static uint64_t word;
    NOTE(cuModuleGetGlobal);
    *out = (CUdeviceptr)(uintptr_t)(emulate_global ? emulate_global((void *)module, name) : &word);
    if (bytes)
        *bytes = sizeof(word);
    return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction function)
{
    (void)which, (void)function;
    NOTE(cuFuncGetAttribute);
    *value = 32;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
                                                     size_t bytes)
{
    (void)function, (void)bytes;
    NOTE(cuOccupancyMaxActiveBlocksPerMultiprocessor);
    *blocks = threads > 0 ? 2048 / threads : 1;
    return CUDA_SUCCESS;
}
