/* Uses a device as a plan does, step by step, on the stand-in of the driver: opens it, allocates,
 * writes, reads, passes memory on, imports it, gives everything back. Prints what came of each step
 * and which descriptors and mappings are left at the end. */
#define _GNU_SOURCE
#include "base/diagnostic.h"

#include <peal/plugin/backend.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 3000000 };

static peal_device *device;
static const peal_memory_ops *memory;
static peal_diagnostics *diagnostics;

static int open_descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

static peal_status told(const char *step, peal_status status)
{
    printf("%s: %s\n", step, peal_status_name(status));
    return status;
}

/* Writes a pattern into one mapping, reads it back through another. */
static peal_status copy_through(const peal_device_memory *to, const peal_device_memory *from)
{
    unsigned char *pattern = malloc(BYTES), *found = calloc(1, BYTES);
    for (int i = 0; i < BYTES; i++)
        pattern[i] = (unsigned char)(i * 7 + 3);
    peal_status status =
        told("write", memory->write(device, to->base, pattern, BYTES, diagnostics));
    if (!status)
        status = told("read", memory->read(device, found, from->base, BYTES, diagnostics));
    if (!status && memcmp(pattern, found, BYTES) != 0)
        status = told("compare", PEAL_STATUS_WRONG_RESULT);
    free(pattern);
    free(found);
    return status;
}

static peal_status check_zero(const peal_device_memory *m)
{
    unsigned char *found = malloc(BYTES);
    peal_status status = memory->read(device, found, m->base, BYTES, diagnostics);
    for (int i = 0; !status && i < BYTES; i++)
        if (found[i] != 0)
            status = told("zero", PEAL_STATUS_WRONG_RESULT);
    free(found);
    return status;
}

/* One segment that is passed on by handles, as its own process and as a neighbour's. */
static peal_status share(void)
{
    peal_device_memory own = {.descriptor = -1}, there = {.descriptor = -1};
    peal_status status = told("allocate", memory->allocate(device, PEAL_MODE_STREAM, BYTES,
                                                           PEAL_PATH_VMM, diagnostics, &own));
    if (!status && (own.descriptor < 0 || own.host_visible || own.bytes < BYTES))
        status = told("segment", PEAL_STATUS_INTERNAL);
    if (!status)
        status = told("import", memory->import(device, PEAL_PATH_VMM, dup(own.descriptor), BYTES,
                                               diagnostics, &there));
    if (!status)
        status = copy_through(&own, &there);
    memory->release(device, &there);
    memory->release(device, &own);
    return status;
}

/* One that is passed on by IPC: the driver does not let its own process open it. */
static peal_status share_by_ipc(void)
{
    peal_device_memory own = {.descriptor = -1}, there = {.descriptor = -1};
    peal_diagnostics *refused = peal_diagnostics_create();
    peal_status status = told("allocate", memory->allocate(device, PEAL_MODE_STREAM, BYTES,
                                                           PEAL_PATH_IPC, diagnostics, &own));
    if (!status && (own.descriptor < 0 || own.bytes < BYTES))
        status = told("segment", PEAL_STATUS_INTERNAL);
    if (!status &&
        !memory->import(device, PEAL_PATH_IPC, dup(own.descriptor), BYTES, refused, &there))
        status = told("import", PEAL_STATUS_INTERNAL);
    if (!status)
        status = check_zero(&own);
    memory->release(device, &there);
    memory->release(device, &own);
    peal_diagnostics_print(refused, stdout, 0);
    peal_diagnostics_destroy(refused);
    return status;
}

/* Host memory, written by the device, read by the host. */
static peal_status share_host(void)
{
    enum { PAGES = 3 * 4096 };
    peal_device_memory there = {.descriptor = -1};
    const unsigned char pattern[] = "through the host";
    unsigned char *page =
        mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    peal_status status =
        told("register", memory->register_host(device, page, PAGES, diagnostics, &there));
    if (!status)
        status = told("write", memory->write(device, there.base + 4096, pattern, sizeof(pattern),
                                             diagnostics));
    if (!status && memcmp(page + 4096, pattern, sizeof(pattern)) != 0)
        status = told("compare", PEAL_STATUS_WRONG_RESULT);
    memory->release(device, &there);
    munmap(page, PAGES);
    return status;
}

/* What only this process uses, and what serial uses. */
static peal_status keep(peal_mode mode)
{
    peal_device_memory own = {.descriptor = -1};
    peal_status status =
        told(peal_mode_name(mode),
             memory->allocate(device, mode, BYTES, PEAL_PATH_NONE, diagnostics, &own));
    if (!status && (own.descriptor >= 0 || own.host_visible != (mode == PEAL_MODE_SERIAL)))
        status = told("segment", PEAL_STATUS_INTERNAL);
    if (!status)
        status = check_zero(&own);
    memory->release(device, &own);
    return status;
}

int main(int count, char **words)
{
    int processes = count > 1 ? atoi(words[1]) : 1, process = count > 2 ? atoi(words[2]) : 0;
    const peal_device_request request = {.size = sizeof(request),
                                         .local_process = process,
                                         .local_processes = processes};
    int before = open_descriptors();
    diagnostics = peal_diagnostics_create();
    memory = peal_backend_cuda.memory;
    const char *reason = peal_backend_cuda.open(&request, &device);
    if (reason) {
        printf("open: %s\n", reason);
        peal_diagnostics_destroy(diagnostics);
        return PEAL_STATUS_ENVIRONMENT;
    }
    char text[160];
    peal_backend_cuda.describe(device, text, sizeof(text));
    printf("open: %s\n", text);
    const char *path = count > 3 ? words[3] : "p2p:vmm";
    peal_status status = !strcmp(path, "shm")       ? share_host()
                         : !strcmp(path, "p2p:ipc") ? share_by_ipc()
                                                    : share();
    if (!status)
        status = keep(PEAL_MODE_SYNC);
    if (!status)
        status = keep(PEAL_MODE_SERIAL);
    peal_backend_cuda.close(device);
    peal_diagnostics_print(diagnostics, stdout, 0);
    peal_diagnostics_destroy(diagnostics);
    /* the record's file has been opened with the driver */
    printf("descriptors: %d\n", open_descriptors() - before - (getenv("STANDIN_RECORD") != NULL));
    return (int)status;
}
