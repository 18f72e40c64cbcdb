/* In place of kernels.c until it is there: a graph without kernels of its own can run. */
#include "backends/cuda/kernels.h"

peal_status cuda_kernels_create(const peal_backend_desc *desc, CUdevice device, cuda_kernels **out)
{
    (void)desc, (void)device;
    *out = NULL;
    return PEAL_STATUS_OK;
}

void cuda_kernels_destroy(cuda_kernels *kernels)
{
    (void)kernels;
}

const cuda_task_kernel *cuda_kernels_task(const cuda_kernels *kernels,
                                          const peal_schedule *schedule,
                                          const peal_schedule_task *task)
{
    (void)kernels, (void)schedule, (void)task;
    return NULL;
}
