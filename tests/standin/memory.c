/* The stand-in's ordinary device memory, which other processes can open by IPC, and host memory
 * that is made known to the device. The device's address of registered memory is another one than
 * the host's, as on machines where a device cannot use the host's.
 *
 * Memory is a file in memory; a page behind it counts the processes that have it open: freeing it
 * then is what a driver calls undefined. */
#define _GNU_SOURCE
#include <cuda.h>

#include "tests/standin/record.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, MOST = 256 };

/* A mapping of the device's: own memory, another process's, or the host's. */
typedef struct region {
    unsigned char *base; /* NULL: free */
    void *host;          /* registered memory */
    size_t bytes;
    int file;
} region;

static region regions[MOST];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static region *add_region(region wanted)
{
    region *found = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST && !found; i++)
        if (!regions[i].base)
            found = &regions[i];
    if (found)
        *found = wanted;
    pthread_mutex_unlock(&lock);
    return found;
}

static bool take_region(const void *base, const void *host, bool remove, region *out)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST && !found; i++)
        if (regions[i].base && (host ? regions[i].host == host : regions[i].base == base)) {
            *out = regions[i];
            found = true;
            if (remove)
                regions[i] = (region){0};
        }
    pthread_mutex_unlock(&lock);
    return found;
}

static _Atomic int *users_of(const region *r)
{
    return (_Atomic int *)(void *)(r->base + r->bytes);
}

static size_t whole_pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static bool map_file(int file, size_t bytes, region *out)
{
    void *base = mmap(NULL, bytes + PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (base == MAP_FAILED)
        return false;
    *out = (region){.base = base, .bytes = bytes, .file = file};
    return true;
}

#define NEED_CONTEXT(name)                                                                         \
    do {                                                                                           \
        if (standin_call(name))                                                                    \
            return CUDA_ERROR_UNKNOWN;                                                             \
        if (!standin_has_context())                                                                \
            return CUDA_ERROR_INVALID_CONTEXT;                                                     \
    } while (0)

CUresult cuMemAlloc(CUdeviceptr *out, size_t bytes)
{
    region made = {0};
    NEED_CONTEXT("cuMemAlloc");
    if (!standin_fits(bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    int file = memfd_create("stand-in-memory", MFD_CLOEXEC);
    size_t size = whole_pages(bytes);
    if (file < 0 || ftruncate(file, (off_t)(size + PAGE)) || !map_file(file, size, &made) ||
        !add_region(made))
        return CUDA_ERROR_UNKNOWN;
    *out = (CUdeviceptr)(uintptr_t)made.base;
    standin_memory(*out, bytes, CU_MEMORYTYPE_DEVICE);
    standin_made(STANDIN_MEMORY);
    return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr address)
{
    region r;
    int fails = standin_call("cuMemFree");
    if (!standin_has_context() || !take_region((void *)(uintptr_t)address, NULL, true, &r))
        return CUDA_ERROR_INVALID_VALUE;
    if (*users_of(&r))
        standin_bad("cuMemFree", "of what another process has open");
    standin_memory(address, 0, 0);
    munmap(r.base, r.bytes + PAGE); /* no leak of the stand-in's own, but it counts as left */
    close(r.file);
    if (fails)
        return CUDA_ERROR_UNKNOWN;
    standin_gone(STANDIN_MEMORY);
    return CUDA_SUCCESS;
}

/* ---- IPC: a handle says whose descriptor the file is ---- */

typedef struct ipc_handle {
    int process, file;
    size_t bytes;
} ipc_handle;

CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr address)
{
    region r;
    NEED_CONTEXT("cuIpcGetMemHandle");
    if (standin_lacks("ipc"))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!take_region((void *)(uintptr_t)address, NULL, false, &r) || r.host)
        return CUDA_ERROR_INVALID_VALUE;
    const ipc_handle handle = {getpid(), r.file, r.bytes};
    memset(out, 0, sizeof(*out));
    memcpy(out->reserved, &handle, sizeof(handle));
    return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *out, CUipcMemHandle from, unsigned flags)
{
    ipc_handle handle;
    region made;
    char path[64];
    NEED_CONTEXT("cuIpcOpenMemHandle");
    memcpy(&handle, from.reserved, sizeof(handle));
    if (handle.process == getpid())
        return CUDA_ERROR_INVALID_CONTEXT; /* as the driver has it */
    if (!(flags & CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS))
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", handle.process, handle.file);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0 || !map_file(file, handle.bytes, &made) || !add_region(made))
        return CUDA_ERROR_MAP_FAILED;
    ++*users_of(&made);
    *out = (CUdeviceptr)(uintptr_t)made.base;
    standin_made(STANDIN_OPENED);
    return CUDA_SUCCESS;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address)
{
    region r;
    int fails = standin_call("cuIpcCloseMemHandle");
    if (!take_region((void *)(uintptr_t)address, NULL, true, &r))
        return CUDA_ERROR_INVALID_VALUE;
    --*users_of(&r);
    munmap(r.base, r.bytes + PAGE);
    close(r.file);
    if (fails)
        return CUDA_ERROR_UNKNOWN;
    standin_gone(STANDIN_OPENED);
    return CUDA_SUCCESS;
}

/* ---- memory of the host ---- */

CUresult cuMemHostRegister(void *memory, size_t bytes, unsigned flags)
{
    NEED_CONTEXT("cuMemHostRegister");
    if (!(flags & CU_MEMHOSTREGISTER_DEVICEMAP) || (uintptr_t)memory % PAGE || bytes % PAGE)
        return CUDA_ERROR_INVALID_VALUE;
    /* of a shared mapping: once more, elsewhere */
    void *there = mremap(memory, 0, bytes, MREMAP_MAYMOVE);
    if (there == MAP_FAILED)
        return CUDA_ERROR_INVALID_VALUE;
    const region made = {.base = there, .host = memory, .bytes = bytes, .file = -1};
    if (!add_region(made))
        return CUDA_ERROR_UNKNOWN;
    standin_made(STANDIN_REGISTERED);
    return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void *memory)
{
    region r;
    int fails = standin_call("cuMemHostUnregister");
    unsigned char resident;
    if (!take_region(NULL, memory, true, &r))
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    if (mincore(memory, PAGE, &resident))
        standin_bad("cuMemHostUnregister", "of memory that is gone");
    munmap(r.base, r.bytes);
    if (fails)
        return CUDA_ERROR_UNKNOWN;
    standin_gone(STANDIN_REGISTERED);
    return CUDA_SUCCESS;
}

/* What was registered is elsewhere, what was allocated for both is where it is. */
CUresult cuMemHostGetDevicePointer(CUdeviceptr *out, void *address, unsigned flags)
{
    region r;
    (void)flags;
    NEED_CONTEXT("cuMemHostGetDevicePointer");
    *out = (CUdeviceptr)(uintptr_t)(take_region(NULL, address, false, &r) ? r.base : address);
    return CUDA_SUCCESS;
}
