/* What the room's files about memory share; no other room includes this. */
#ifndef PEAL_CUDA_MEMORY_H
#define PEAL_CUDA_MEMORY_H

#include "backends/cuda/gpu/gpu.h"

#include <stdatomic.h>

/* A file in memory that stands for an allocation: its IPC handle, and in how many processes it is
 * open. The owner must not free the allocation before that is none (cuIpcCloseMemHandle). */
typedef struct peal_cuda_ipc_note {
    CUipcMemHandle handle;
    _Atomic int users;
} peal_cuda_ipc_note;

/* Such a file; false: errno says why. The descriptor that open is given stays the caller's. */
bool peal_cuda_ipc_create(const CUipcMemHandle *handle, peal_cuda_ipc_note **note, int *descriptor);
bool peal_cuda_ipc_open(int descriptor, peal_cuda_ipc_note **note);
/* Unmaps it; NULL is fine. */
void peal_cuda_ipc_close(peal_cuda_ipc_note *note);

/* Frees what other processes have kept open, and waits a moment until they have closed it. */
void peal_cuda_memory_close(peal_device *device);

/* peal_memory_ops.refuses and .classify, of memory that the application lends */
const char *peal_cuda_user_memory_refuses(peal_device *device, peal_mode mode, const void *memory);
const char *peal_cuda_user_memory_classify(peal_device *device, const void *memory,
                                           bool *of_device);

/* peal_memory_ops.refuses_path */
const char *peal_cuda_peer_access_refuses(peal_device *device, peal_path path,
                                          const peal_device_identity *peer);

#endif
