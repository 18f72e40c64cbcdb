/* The stand-in's device memory by handles: a handle is a file in memory, which other processes can
 * map; and how much memory a device has (STANDIN_BYTES). */
#define _GNU_SOURCE
#include <cuda.h>

#include "tests/standin/record.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GRAIN = 2 << 20 };

static size_t used; /* never less: what has been released is not asked for again */

size_t standin_bytes(void)
{
    const char *text = getenv("STANDIN_BYTES");
    return text ? (size_t)strtoull(text, NULL, 10) : (size_t)1 << 34;
}

bool standin_fits(size_t bytes)
{
    return used + bytes <= standin_bytes();
}

CUresult cuMemGetInfo(size_t *have, size_t *total)
{
    NOTE(cuMemGetInfo);
    if (!standin_has_context())
        return CUDA_ERROR_INVALID_CONTEXT;
    *total = standin_bytes();
    *have = *total - used;
    return CUDA_SUCCESS;
}

static void *at(CUdeviceptr address)
{
    return (void *)(uintptr_t)address;
}

/* A handle is its file's number plus one. */
static int file_of(CUmemGenericAllocationHandle handle)
{
    return (int)handle - 1;
}

CUresult cuMemGetAllocationGranularity(size_t *grain, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags flags)
{
    (void)prop, (void)flags;
    NOTE(cuMemGetAllocationGranularity);
    *grain = GRAIN;
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *prop, unsigned long long flags)
{
    (void)prop, (void)flags;
    if (standin_call("cuMemCreate") || used + bytes > standin_bytes())
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (bytes % GRAIN)
        return CUDA_ERROR_INVALID_VALUE;
    int file = memfd_create("stand-in", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)bytes))
        return CUDA_ERROR_UNKNOWN;
    used += bytes;
    *handle = (CUmemGenericAllocationHandle)file + 1;
    standin_made(STANDIN_HANDLE);
    return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    NOTE(cuMemRelease);
    close(file_of(handle));
    standin_gone(STANDIN_HANDLE);
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *out, size_t bytes, size_t alignment, CUdeviceptr wish,
                             unsigned long long flags)
{
    (void)alignment, (void)wish, (void)flags;
    NOTE(cuMemAddressReserve);
    /* What lies behind is never mapped. */
    void *range =
        mmap(NULL, bytes + GRAIN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = (CUdeviceptr)(uintptr_t)range;
    standin_made(STANDIN_RANGE);
    return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
    NOTE(cuMemAddressFree);
    munmap(at(address), bytes + GRAIN);
    standin_gone(STANDIN_RANGE);
    return CUDA_SUCCESS;
}

/* Like the driver's: as much as the allocation has, without access at first. */
CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    struct stat state;
    (void)flags;
    NOTE(cuMemMap);
    if (fstat(file_of(handle), &state) || offset || (size_t)state.st_size != bytes)
        return CUDA_ERROR_INVALID_VALUE; /* a part of a handle is nothing that peal maps */
    if (mmap(at(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, file_of(handle),
             (off_t)offset) == MAP_FAILED)
        return CUDA_ERROR_UNKNOWN;
    standin_memory(address, bytes, CU_MEMORYTYPE_DEVICE);
    standin_made(STANDIN_MAPPING);
    return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    NOTE(cuMemUnmap);
    mmap(at(address), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    standin_memory(address, 0, 0);
    standin_gone(STANDIN_MAPPING);
    return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
                        size_t count)
{
    (void)access, (void)count;
    NOTE(cuMemSetAccess);
    mprotect(at(address), bytes, PROT_READ | PROT_WRITE);
    return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags)
{
    (void)type, (void)flags;
    NOTE(cuMemExportToShareableHandle);
    if (standin_lacks("handles"))
        return CUDA_ERROR_NOT_SUPPORTED;
    int file = dup(file_of(handle));
    memcpy(out, &file, sizeof(file));
    return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *from,
                                        CUmemAllocationHandleType type)
{
    (void)type;
    NOTE(cuMemImportFromShareableHandle);
    int file = dup((int)(intptr_t)from);
    if (file < 0)
        return CUDA_ERROR_INVALID_VALUE;
    *handle = (CUmemGenericAllocationHandle)file + 1;
    standin_made(STANDIN_HANDLE);
    return CUDA_SUCCESS;
}
