/* By which paths this device and those of other processes reach each other's memory, as far as the
 * driver's attributes tell; the runtime tries a path out before it takes it. */
#include "backends/cuda/gpu/memory.h"

#include <stdio.h>
#include <string.h>

static bool has(const peal_device *device, CUdevice_attribute which)
{
    int value = 0;
    return !device->driver->cuDeviceGetAttribute_(&value, which, device->device) && value != 0;
}

/* The driver's number of the device of that identity; -1: this process does not see it. */
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

static const char *refuses_access(peal_device *device, const peal_device_identity *peer)
{
    int can = 0;
    CUdevice other;
    if (!peer || !strcmp(peer->unique, device->unique))
        return NULL;
    int ordinal = ordinal_of(device->driver, peer);
    if (ordinal < 0)
        return NULL; /* hidden from this process: only an import can tell */
    if (device->driver->cuDeviceGet_(&other, ordinal) ||
        device->driver->cuDeviceCanAccessPeer_(&can, device->device, other) || !can)
        return "the GPUs cannot access each other's memory (no peer access)";
    return NULL;
}

const char *peal_cuda_peer_access_refuses(peal_device *device, peal_path path,
                                          const peal_device_identity *peer)
{
    switch (path) {
    case PEAL_PATH_VMM:
        if (!device->has_vmm)
            return "the GPU has no virtual memory management";
        if (!device->has_descriptors)
            return "the GPU's memory cannot be passed on as file descriptors";
        return refuses_access(device, peer);
    case PEAL_PATH_IPC:
        if (!has(device, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING))
            return "the GPU has no unified addresses, which IPC handles need";
        return refuses_access(device, peer);
    case PEAL_PATH_STAGED:
        return has(device, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED)
                   ? NULL
                   : "the GPU cannot register host memory";
    default:
        return "it is no path between processes";
    }
}
