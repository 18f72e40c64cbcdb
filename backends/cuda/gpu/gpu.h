/* The device of this process, as all rooms of the backend use it.
 *
 * This room is the lowest one: the device and its context (here), the driver's errors as
 * diagnostics (error.h), how many blocks an SM holds (occupancy.h). memory.h is the room's own: the
 * rest of the backend reaches device memory by peal_cuda_memory.
 *
 * The driver's calls go through device->driver (base/cuda_driver.h). A thread that makes any makes
 * the device's context current first: applications have contexts of their own. */
#ifndef PEAL_CUDA_GPU_H
#define PEAL_CUDA_GPU_H

#include "backends/cuda/gpu/error.h"
#include "base/cuda_driver.h"

#include <peal/plugin/backend.h>

struct peal_device {
    const peal_cuda_driver *driver;
    CUdevice device;
    CUcontext context; /* the primary one, retained */
    int ordinal;       /* of the driver's devices */
    int major, minor;  /* of the architecture */
    int sm_count;
    char name[96];
    char bus[32];                  /* "0000:04:00.0" */
    char unique[48];               /* its UUID in hexadecimal */
    bool shared;                   /* more processes of this host than devices that this one sees */
    bool has_vmm;                  /* memory by handles ... */
    bool has_descriptors;          /* ... that can be passed on as file descriptors */
    bool has_memops;               /* 64-bit memory operations on streams ... */
    bool has_wait_nor;             /* ... and waits for a bit that is clear */
    bool has_cooperative;          /* cooperative launches */
    bool dry;                      /* there is no GPU: nothing is compiled for it (dry_plan.c) */
    bool lost;                     /* work on it does not end: no call may wait for it any more */
    struct peal_cuda_pages *pages; /* of the host that streams store to (pages.h) */
    struct peal_cuda_block *held;  /* released memory that other processes still have open (IPC) */
};

/* Opens the device that this process uses of those that its host has. NULL, or why not, in words
 * that are good until the next call by this thread. */
const char *peal_cuda_device_open(const peal_device_request *request, peal_device **out);
/* Frees what is held and releases the context; NULL is fine. */
void peal_cuda_device_close(peal_device *device);
/* "NAME BUS, driver 12.4" for people. */
void peal_cuda_device_describe(const peal_device *device, char *text, size_t bytes);
/* What makes it this device, for other processes and for caches. */
void peal_cuda_device_identify(const peal_device *device, peal_device_identity *out);
/* Devices that this process sees; 0: *reason says why there are none. */
int peal_cuda_device_count(const char **reason);

/* Makes the device's context current on this thread, and returns the one that was; leave makes that
 * one current again. Both are cheap and nest. */
CUcontext peal_cuda_context_enter(const peal_device *device);
void peal_cuda_context_leave(const peal_device *device, CUcontext previous);

/* Memory of segments: allocated, shared with other processes, lent by the application. */
extern const peal_memory_ops peal_cuda_memory;

#endif
