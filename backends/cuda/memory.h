/* What the files about memory share: how a device is reached by other processes, and the files by
 * which IPC handles travel. */
#ifndef PEAL_CUDA_MEMORY_H
#define PEAL_CUDA_MEMORY_H

#include "backends/cuda/cuda.h"

#include <stdatomic.h>

/* A file in memory that stands for an allocation: its IPC handle, and in how many processes it is
 * open. The owner must not free the allocation before that is none (cuIpcCloseMemHandle). */
typedef struct cuda_ipc_note {
    CUipcMemHandle handle;
    _Atomic int users;
} cuda_ipc_note;

/* ipc.c. False: errno says why. The descriptor that open is given stays the caller's. */
bool cuda_ipc_create(const CUipcMemHandle *handle, cuda_ipc_note **note, int *descriptor);
bool cuda_ipc_open(int descriptor, cuda_ipc_note **note);
/* NULL is fine. */
void cuda_ipc_close(cuda_ipc_note *note);

/* lent.c: peal_memory_ops.refuses and .classify */
const char *cuda_lent_refuses(peal_device *device, peal_mode mode, const void *memory);
const char *cuda_lent_classify(peal_device *device, const void *memory, bool *of_device);

/* paths.c: peal_memory_ops.refuses_path */
const char *cuda_path_refuses(peal_device *device, peal_path path,
                              const peal_device_identity *peer);

#endif
