/* The device of this process: which one, what it can do, its context. */
#include "backends/cuda/gpu/gpu.h"

#include "backends/cuda/gpu/memory.h"
#include "backends/cuda/gpu/pages.h"
#include "base/thread_room.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int attribute(const peal_device *device, CUdevice_attribute which)
{
    int value = 0;
    return device->driver->cuDeviceGetAttribute_(&value, which, device->device) ? 0 : value;
}

static void query(peal_device *device)
{
    const peal_cuda_driver *driver = device->driver;
    CUuuid uuid = {{0}};
    device->major = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    device->minor = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    device->sm_count = attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    device->has_vmm =
        attribute(device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) != 0;
    device->has_descriptors =
        device->has_vmm &&
        attribute(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) != 0;
    device->has_memops = attribute(device, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS) != 0;
    device->has_wait_nor =
        attribute(device, CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR) != 0;
    device->has_cooperative = attribute(device, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH) != 0;
    if (driver->cuDeviceGetName_(device->name, sizeof(device->name), device->device))
        snprintf(device->name, sizeof(device->name), "GPU %d", device->ordinal);
    if (driver->cuDeviceGetPCIBusId_(device->bus, sizeof(device->bus), device->device))
        snprintf(device->bus, sizeof(device->bus), "?");
    if (driver->cuDeviceGetUuid_(&uuid, device->device)) {
        snprintf(device->unique, sizeof(device->unique), "%s", device->bus);
        return;
    }
    for (size_t i = 0; i < sizeof(uuid.bytes); i++)
        snprintf(device->unique + 2 * i, 3, "%02x", (unsigned char)uuid.bytes[i]);
}

int peal_cuda_device_count(const char **reason)
{
    const peal_cuda_driver *driver = peal_cuda_open(reason);
    return driver ? driver->device_count : 0;
}

static const char *refusal(const char *call, CUresult result)
{
    enum { REASON_BYTES = 240 };
    char text[160], *reason = peal_thread_room(PEAL_ROOM_DEVICE, REASON_BYTES);
    if (!reason)
        return "no memory";
    snprintf(reason, REASON_BYTES, "%s: %s", call, peal_cuda_error(result, text));
    return reason;
}

const char *peal_cuda_device_open(const peal_device_request *request, peal_device **out)
{
    const char *reason = NULL;
    const peal_cuda_driver *driver = peal_cuda_open(&reason);
    *out = NULL;
    if (!driver)
        return reason;
    int processes = request->local_processes > 0 ? request->local_processes : 1;
    peal_device *device = calloc(1, sizeof(*device));
    if (!device)
        return "no memory";
    device->driver = driver;
    device->ordinal = (int)((int64_t)request->local_process * driver->device_count / processes);
    device->shared = processes > driver->device_count;
    CUresult result = driver->cuDeviceGet_(&device->device, device->ordinal);
    if (result) {
        free(device);
        return refusal("cuDeviceGet", result);
    }
    query(device);
    result = driver->cuDevicePrimaryCtxRetain_(&device->context, device->device);
    if (result) {
        free(device);
        return refusal("cuDevicePrimaryCtxRetain", result);
    }
    *out = device;
    return NULL;
}

void peal_cuda_device_close(peal_device *device)
{
    if (!device)
        return;
    if (!device->lost) {
        peal_cuda_memory_close(device);
        device->driver->cuDevicePrimaryCtxRelease_(device->device);
    }
    peal_cuda_pages_forget(device);
    free(device);
}

void peal_cuda_device_describe(const peal_device *device, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s %s, driver %d.%d", device->name, device->bus,
             device->driver->version / 1000, device->driver->version % 1000 / 10);
}

void peal_cuda_device_identify(const peal_device *device, peal_device_identity *out)
{
    *out = (peal_device_identity){0};
    snprintf(out->model, sizeof(out->model), "%.80s, sm_%d%d", device->name, device->major,
             device->minor);
    snprintf(out->unique, sizeof(out->unique), "%s", device->unique);
    snprintf(out->driver, sizeof(out->driver), "%d.%d", device->driver->version / 1000,
             device->driver->version % 1000 / 10);
}

CUcontext peal_cuda_context_enter(const peal_device *device)
{
    CUcontext previous = NULL;
    device->driver->cuCtxGetCurrent_(&previous);
    if (previous != device->context)
        device->driver->cuCtxSetCurrent_(device->context);
    return previous;
}

void peal_cuda_context_leave(const peal_device *device, CUcontext previous)
{
    if (previous != device->context)
        device->driver->cuCtxSetCurrent_(previous);
}
