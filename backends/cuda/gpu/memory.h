/* What the files about memory share: how a device is reached by other processes, and the files by
 * which IPC handles travel. */
#ifndef PEAL_CUDA_MEMORY_H
#define PEAL_CUDA_MEMORY_H

#include "backends/cuda/gpu/context.h"

#include <stdatomic.h>

/* A file in memory that stands for an allocation: its IPC handle, and in how many processes it is
 * open. The owner must not free the allocation before that is none (cuIpcCloseMemHandle). */
typedef struct peal_cuda_ipc_note {
    CUipcMemHandle handle;
    _Atomic int users;
} peal_cuda_ipc_note;

/* ipc.c. False: errno says why. The descriptor that open is given stays the caller's. */
bool peal_cuda_ipc_create(const CUipcMemHandle *handle, peal_cuda_ipc_note **note, int *descriptor);
bool peal_cuda_ipc_open(int descriptor, peal_cuda_ipc_note **note);
/* NULL is fine. */
void peal_cuda_ipc_close(peal_cuda_ipc_note *note);

/* user_memory.c: peal_memory_ops.refuses and .classify */
const char *peal_cuda_user_memory_refuses(peal_device *device, peal_mode mode, const void *memory);
const char *peal_cuda_user_memory_classify(peal_device *device, const void *memory,
                                           bool *of_device);

/* peer_access.c: peal_memory_ops.refuses_path */
const char *peal_cuda_peer_access_refuses(peal_device *device, peal_path path,
                                          const peal_device_identity *peer);

#endif
