/* Pages of the host that a stream stores to: records and registers of a network's adapter. */
#ifndef PEAL_CUDA_GPU_PAGES_H
#define PEAL_CUDA_GPU_PAGES_H

#include "backends/cuda/gpu/gpu.h"

#include <peal/plugin/network.h>

/* Makes pages known to the device until they have been given back as often as they were taken;
 * *address: where it sees them. The driver's result. The device's context is current, here and
 * below. One thread of a device at a time. */
CUresult peal_cuda_pages_take(peal_device *device, const peal_network_pages *pages,
                              CUdeviceptr *address);
/* While the memory is still mapped. Pages that were not taken are left alone. */
void peal_cuda_pages_give(peal_device *device, const peal_network_pages *pages);
/* Of a device that is closed: what plans on a lost one have not given back, since a stream may
 * still store there, stays the driver's. */
void peal_cuda_pages_forget(peal_device *device);

#endif
