/* Memory that the application lends: its kind, and whether peal can work in it. */
#include "backends/cuda/gpu/memory.h"

/* Memory of the application, as the driver knows it. */
typedef struct lent_memory {
    unsigned type; /* 0: unknown to the driver */
    unsigned managed;
    int ordinal;
    unsigned legacy; /* cuMemAlloc's: it could be passed on by IPC */
    void *pool;
} lent_memory;

static lent_memory look_up(const peal_device *device, const void *memory)
{
    lent_memory found = {.ordinal = -1};
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                        CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                        CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                                        CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE};
    void *values[] = {&found.type, &found.managed, &found.ordinal, &found.legacy, &found.pool};
    CUcontext previous = peal_cuda_context_enter(device);
    CUresult result = device->driver->cuPointerGetAttributes_(5, attributes, values,
                                                              (CUdeviceptr)(uintptr_t)memory);
    peal_cuda_context_leave(device, previous);
    if (result)
        found.type = 0;
    return found;
}

const char *peal_cuda_user_memory_classify(peal_device *device, const void *memory, bool *of_device)
{
    const lent_memory found = look_up(device, memory);
    *of_device = found.type != 0 && (found.managed || found.type != CU_MEMORYTYPE_HOST);
    if (found.type == 0)
        return "ordinary host memory";
    if (found.managed)
        return "managed memory";
    if (found.type == CU_MEMORYTYPE_HOST)
        return "pinned host memory";
    if (found.ordinal != device->ordinal)
        return "memory of another GPU";
    if (found.pool)
        return "memory of a pool";
    return found.legacy ? "device memory" : "device memory by handles";
}

const char *peal_cuda_user_memory_refuses(peal_device *device, peal_mode mode, const void *memory)
{
    const lent_memory found = look_up(device, memory);
    if (found.type == 0)
        return "it is ordinary host memory, unknown to the GPU";
    if (found.managed)
        return NULL;
    if (found.type == CU_MEMORYTYPE_HOST)
        return mode == PEAL_MODE_SERIAL ? NULL : "it is pinned host memory, not the GPU's";
    if (mode == PEAL_MODE_SERIAL)
        return "it is the GPU's memory, which the host cannot touch in mode serial";
    if (found.ordinal != device->ordinal)
        return "it is the memory of another GPU than this process's";
    return NULL;
}
