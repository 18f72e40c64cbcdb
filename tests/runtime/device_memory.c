/* Memory of a GPU by the driver, which is opened here as peal opens it: at run time. */
#include "tests/runtime/device_memory.h"

#include <dlfcn.h>
#include <stdint.h>

static int (*init)(unsigned), (*count_devices)(int *), (*retain)(void **, int), (*enter)(void *);
static int (*take)(uint64_t *, size_t), (*give)(uint64_t), (*wait_for_all)(void);
static int (*to_host)(void *, uint64_t, size_t), (*to_device)(uint64_t, const void *, size_t);
static int (*make_stream)(void **, unsigned, int), (*wait_for_stream)(void *), (*look)(void *);
static int (*to_device_by)(uint64_t, const void *, size_t, void *);
static void *context;

static bool find(void *driver, void *function, const char *name)
{
    *(void **)function = dlsym(driver, name);
    return *(void **)function != NULL;
}

bool device_memory_open(int process, int processes)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    int devices = 0;
    return driver && find(driver, &init, "cuInit") &&
           find(driver, &count_devices, "cuDeviceGetCount") &&
           find(driver, &retain, "cuDevicePrimaryCtxRetain") &&
           find(driver, &enter, "cuCtxSetCurrent") && find(driver, &take, "cuMemAlloc_v2") &&
           find(driver, &give, "cuMemFree_v2") && find(driver, &wait_for_all, "cuCtxSynchronize") &&
           find(driver, &to_host, "cuMemcpyDtoH_v2") &&
           find(driver, &to_device, "cuMemcpyHtoD_v2") &&
           find(driver, &make_stream, "cuStreamCreateWithPriority") &&
           find(driver, &wait_for_stream, "cuStreamSynchronize") &&
           find(driver, &look, "cuStreamQuery") &&
           find(driver, &to_device_by, "cuMemcpyHtoDAsync_v2") && !init(0) &&
           !count_devices(&devices) && devices > 0 &&
           !retain(&context, process * devices / processes) && !enter(context);
}

void *device_memory_take(size_t bytes)
{
    uint64_t memory = 0;
    return !enter(context) && !take(&memory, bytes) ? (void *)(uintptr_t)memory : NULL;
}

void device_memory_give(void *memory)
{
    if (memory && !enter(context))
        give((uint64_t)(uintptr_t)memory);
}

bool device_memory_read(void *to, const void *from, size_t bytes)
{
    return !enter(context) && !wait_for_all() && !to_host(to, (uint64_t)(uintptr_t)from, bytes);
}

bool device_memory_write(void *to, const void *from, size_t bytes)
{
    return !enter(context) && !wait_for_all() && !to_device((uint64_t)(uintptr_t)to, from, bytes);
}

void *device_memory_stream(void)
{
    const unsigned waits_for_nobody = 1; /* CU_STREAM_NON_BLOCKING */
    void *stream = NULL;
    return !enter(context) && !make_stream(&stream, waits_for_nobody, 0) ? stream : NULL;
}

void device_memory_look(void *stream)
{
    look(stream);
}

bool device_memory_write_beside(void *to, const void *from, size_t bytes)
{
    static void *stream;
    stream = stream ? stream : device_memory_stream();
    return stream && !to_device_by((uint64_t)(uintptr_t)to, from, bytes, stream) &&
           !wait_for_stream(stream);
}
