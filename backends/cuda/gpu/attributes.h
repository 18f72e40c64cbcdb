/* What the driver knows of functions and addresses, and what a plan keeps on the device. */
#ifndef PEAL_CUDA_GPU_ATTRIBUTES_H
#define PEAL_CUDA_GPU_ATTRIBUTES_H

#include "backends/cuda/gpu/gpu.h"

/* *most: threads that a block of the function may have. Asking loads the function, which must not
 * happen once waits are queued. */
CUresult peal_cuda_most_threads(const peal_device *device, void *function, int *most);
/* Whether kernels of this device may add to the word at that address: it is in memory of this
 * device, or of one whose atomic operations this device takes part in. */
bool peal_cuda_can_add_to(const peal_device *device, CUdeviceptr word);
/* An event without time, which the caller destroys. */
CUresult peal_cuda_event_create(const peal_device *device, CUevent *out);
/* Device memory with a copy of the bytes; *copied: false where not even memory was there. */
CUresult peal_cuda_table_create(const peal_device *device, const void *data, size_t bytes,
                                CUdeviceptr *out, bool *copied);

#endif
