/* Registers pages of the host with the driver. Plans of a session store to the same ones, and the
 * driver takes pages once: so they are counted. */
#include "backends/cuda/gpu/pages.h"

#include <stdlib.h>

typedef struct peal_cuda_pages {
    struct peal_cuda_pages *next;
    void *at;
    size_t bytes;
    CUdeviceptr address;
    int takers;
} peal_cuda_pages;

static peal_cuda_pages **find(peal_device *device, const peal_network_pages *pages)
{
    peal_cuda_pages **at = &device->pages;
    while (*at && ((*at)->at != pages->at || (*at)->bytes != pages->bytes))
        at = &(*at)->next;
    return at;
}

/* Registers of an adapter of silicon are no memory, which the driver refuses unless it is told; the
 * register pages of one of software are. */
static CUresult register_pages(const peal_device *device, const peal_network_pages *pages)
{
    const peal_cuda_driver *driver = device->driver;
    const unsigned mapped = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
    CUresult result = driver->cuMemHostRegister_(pages->at, pages->bytes, mapped);
    if (result && pages->registers)
        result = driver->cuMemHostRegister_(pages->at, pages->bytes,
                                            mapped | CU_MEMHOSTREGISTER_IOMEMORY);
    return result;
}

CUresult peal_cuda_pages_take(peal_device *device, const peal_network_pages *pages,
                              CUdeviceptr *address)
{
    peal_cuda_pages *entry = *find(device, pages);
    if (!entry) {
        entry = calloc(1, sizeof(*entry));
        if (!entry)
            return CUDA_ERROR_OUT_OF_MEMORY;
        *entry = (peal_cuda_pages){device->pages, pages->at, pages->bytes, 0, 0};
        CUresult result = register_pages(device, pages);
        if (!result) {
            result = device->driver->cuMemHostGetDevicePointer_(&entry->address, pages->at, 0);
            if (result)
                device->driver->cuMemHostUnregister_(pages->at);
        }
        if (result) {
            free(entry);
            return result;
        }
        device->pages = entry;
    }
    entry->takers++;
    *address = entry->address;
    return CUDA_SUCCESS;
}

void peal_cuda_pages_give(peal_device *device, const peal_network_pages *pages)
{
    peal_cuda_pages **at = find(device, pages), *entry = *at;
    if (!entry || --entry->takers > 0)
        return;
    *at = entry->next;
    device->driver->cuMemHostUnregister_(entry->at);
    free(entry);
}

void peal_cuda_pages_forget(peal_device *device)
{
    while (device->pages) {
        peal_cuda_pages *entry = device->pages;
        device->pages = entry->next;
        free(entry);
    }
}
