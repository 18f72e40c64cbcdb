/* What the files of the CUDA backend share: the device of this process, and what an executor is.
 *
 * The driver's calls go through device->driver (base/peal_cuda_driver.h). A thread that makes any
 * makes the device's context current first: applications have contexts of their own. */
#ifndef PEAL_CUDA_CUDA_H
#define PEAL_CUDA_CUDA_H

#include "base/cuda_driver.h"
#include "base/diagnostic.h"

#include <peal/plugin/backend.h>

struct peal_device {
    const peal_cuda_driver *driver;
    CUdevice device;
    CUcontext context; /* the primary one, retained */
    int ordinal;       /* of the driver's devices */
    int major, minor;  /* of the architecture */
    int sm_count;
    char name[96];
    char bus[32];         /* "0000:04:00.0" */
    char unique[48];      /* its UUID in hexadecimal */
    bool shared;          /* more processes of this host than devices that this one sees */
    bool has_vmm;         /* memory by handles ... */
    bool has_descriptors; /* ... that can be passed on as file descriptors */
    bool has_memops;      /* 64-bit memory operations on streams */
    bool has_cooperative; /* cooperative launches */
    bool sketched;        /* there is none: nothing is compiled for it (dry_plan.c) */
    bool lost;            /* it does not end what it runs: no call may wait for it any more */
    struct peal_cuda_block *held; /* memory given back that other processes have still open (IPC) */
};

/* context.c */
const char *peal_cuda_device_open(const peal_device_request *request, peal_device **out);
void peal_cuda_device_close(peal_device *device);
void peal_cuda_device_describe(const peal_device *device, char *text, size_t bytes);
void peal_cuda_device_identify(const peal_device *device, peal_device_identity *out);
int peal_cuda_device_count(const char **reason);

/* Makes the device's context current on this thread; leave puts back what was. Both are cheap and
 * nest. */
CUcontext peal_cuda_context_enter(const peal_device *device);
void peal_cuda_context_leave(const peal_device *device, CUcontext previous);

/* PEAL_E_DRIVER_REFUSED: "what for: call: CUDA_ERROR_...". */
peal_status peal_cuda_driver_failed(peal_diagnostics *diagnostics, peal_source source,
                                    CUresult result, const char *call, const char *what);

/* PEAL_E_STREAM_NOT_USABLE: the application's stream or event. */
peal_status peal_cuda_interop_failed(peal_diagnostics *diagnostics, const peal_device *device,
                                     CUresult result);

/* memory.c */
extern const peal_memory_ops peal_cuda_memory;
/* Frees what other processes have kept open; waits a moment for them. */
void peal_cuda_memory_close(peal_device *device);

/* An executor of sync, stream and graph. */
struct peal_cuda_plan;
peal_status peal_cuda_plan_create(const peal_backend_desc *desc, struct peal_cuda_plan **out);
peal_status peal_cuda_plan_start(struct peal_cuda_plan *plan, bool setup, int64_t steps,
                                 bool finish);
peal_status peal_cuda_plan_wait(struct peal_cuda_plan *plan, peal_backend_result *result);
peal_status peal_cuda_plan_follow(struct peal_cuda_plan *plan, void *stream, void *event);
peal_status peal_cuda_plan_event(struct peal_cuda_plan *plan, void **event);
peal_status peal_cuda_plan_enqueue(struct peal_cuda_plan *plan, void *stream,
                                   peal_backend_phase phase);
peal_status peal_cuda_plan_settle(struct peal_cuda_plan *plan);
int peal_cuda_plan_storage(const struct peal_cuda_plan *plan, int index, int array);
int64_t peal_cuda_plan_progress(const struct peal_cuda_plan *plan);
int64_t peal_cuda_plan_repeats(const struct peal_cuda_plan *plan, int64_t *first);
void peal_cuda_plan_destroy(struct peal_cuda_plan *plan);

/* serial.c: the host's executor of serial, whose tiles run on the device. */
typedef struct peal_cuda_serial peal_cuda_serial;
peal_status peal_cuda_serial_create(const peal_backend_desc *desc, peal_cuda_serial **out);
peal_status peal_cuda_serial_start(peal_cuda_serial *serial, bool setup, int64_t steps,
                                   bool finish);
peal_status peal_cuda_serial_wait(peal_cuda_serial *serial, peal_backend_result *result);
peal_status peal_cuda_serial_follow(peal_cuda_serial *serial, void *stream, void *event);
peal_status peal_cuda_serial_event(peal_cuda_serial *serial, void **event);
int peal_cuda_serial_storage(const peal_cuda_serial *serial, int index, int array);
int64_t peal_cuda_serial_progress(const peal_cuda_serial *serial);
void peal_cuda_serial_destroy(peal_cuda_serial *serial);
peal_function peal_cuda_serial_function(const peal_cuda_serial *serial, int index, int task,
                                        bool partials, void **user);

#endif
