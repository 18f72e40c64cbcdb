/* What the driver knows of functions and addresses, and what a plan keeps on the device. */
#include "backends/cuda/gpu/attributes.h"

CUresult peal_cuda_most_threads(const peal_device *device, void *function, int *most)
{
    return device->driver->cuFuncGetAttribute_(most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                                               function);
}

bool peal_cuda_can_add_to(const peal_device *device, CUdeviceptr word)
{
    const peal_cuda_driver *driver = device->driver;
    int ordinal = -1, can = 0;
    unsigned type = 0;
    CUdevice other;

    /* Memory of the host has an ordinal, too. */
    if (driver->cuPointerGetAttribute_(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, word) ||
        driver->cuPointerGetAttribute_(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, word) ||
        type != CU_MEMORYTYPE_DEVICE || ordinal < 0 || driver->cuDeviceGet_(&other, ordinal))
        return false;
    return other == device->device ||
           (!driver->cuDeviceGetP2PAttribute_(&can, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED,
                                              device->device, other) &&
            can);
}

CUresult peal_cuda_event_create(const peal_device *device, CUevent *out)
{
    return device->driver->cuEventCreate_(out, CU_EVENT_DISABLE_TIMING);
}

CUresult peal_cuda_table_create(const peal_device *device, const void *data, size_t bytes,
                                CUdeviceptr *out, bool *copied)
{
    CUresult result = device->driver->cuMemAlloc_(out, bytes);

    *copied = !result;
    return result ? result : device->driver->cuMemcpyHtoD_(*out, data, bytes);
}
