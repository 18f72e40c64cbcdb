/* Memory of ranks: segments of the host, what the backend's device gives, or mailboxes: segments of
 * the host that the device has mapped. */
#include "runtime/memory/storage.h"

#include <string.h>

static void take_segment(peal_storage *out)
{
    out->base = out->segment.base;
    out->bytes = out->segment.bytes;
    out->descriptor = out->segment.descriptor;
    out->host_visible = true;
}

static void take_device_memory(peal_storage *out)
{
    out->base = out->device.base;
    out->bytes = out->device.bytes;
    out->descriptor = out->device.descriptor;
    out->host_visible = out->device.host_visible;
}

peal_status peal_storage_create_used(const peal_memory_space *space, int64_t bytes, int64_t used,
                                     bool shared, peal_diagnostics *diagnostics, peal_storage *out)
{
    *out = (peal_storage){.descriptor = -1, .space = *space};
    if (!space->memory) {
        peal_status status =
            peal_segment_create_used(bytes, used, shared, diagnostics, &out->segment);
        if (status)
            return status;
        take_segment(out);
        out->offered = bytes;
        return PEAL_STATUS_OK;
    }
    peal_status status =
        space->memory->allocate(space->device, space->mode, used,
                                shared ? space->path : PEAL_PATH_NONE, diagnostics, &out->device);
    if (status)
        return status;
    take_device_memory(out);
    out->offered = used;
    return PEAL_STATUS_OK;
}

peal_status peal_storage_create(const peal_memory_space *space, int64_t bytes, bool shared,
                                peal_diagnostics *diagnostics, peal_storage *out)
{
    return peal_storage_create_used(space, bytes, bytes, shared, diagnostics, out);
}

/* out->segment is made known to the device. */
static peal_status register_segment(const peal_memory_space *space, peal_diagnostics *diagnostics,
                                    peal_storage *out)
{
    peal_status status =
        space->memory->register_host(space->device, out->segment.base, out->segment.bytes,
                                     diagnostics, &out->device);
    if (status) {
        peal_segment_destroy(&out->segment);
        return status;
    }
    take_device_memory(out);
    out->descriptor = out->segment.descriptor;
    return PEAL_STATUS_OK;
}

static bool is_staged(const peal_memory_space *space)
{
    return space->memory && space->path == PEAL_PATH_STAGED;
}

peal_status peal_storage_create_pinned(const peal_memory_space *space, int64_t bytes,
                                       peal_diagnostics *diagnostics, peal_storage *out)
{
    *out = (peal_storage){.descriptor = -1, .space = *space};
    peal_status status = peal_segment_create(bytes, true, diagnostics, &out->segment);
    if (!status)
        status = register_segment(space, diagnostics, out);
    out->offered = status ? 0 : bytes;
    return status;
}

peal_status peal_storage_create_mailbox(const peal_memory_space *space, int64_t bytes,
                                        peal_diagnostics *diagnostics, peal_storage *out)
{
    return is_staged(space) ? peal_storage_create_pinned(space, bytes, diagnostics, out)
                            : peal_storage_create(space, bytes, true, diagnostics, out);
}

peal_status peal_storage_import(const peal_memory_space *space, int descriptor, int64_t bytes,
                                peal_diagnostics *diagnostics, peal_storage *out)
{
    *out = (peal_storage){.descriptor = -1, .space = *space};
    if (!space->memory) {
        peal_status status = peal_segment_import(descriptor, bytes, diagnostics, &out->segment);
        if (!status)
            take_segment(out);
        return status;
    }
    if (is_staged(space)) {
        peal_status status = peal_segment_import(descriptor, bytes, diagnostics, &out->segment);
        return status ? status : register_segment(space, diagnostics, out);
    }
    peal_status status = space->memory->import(space->device, space->path, descriptor, bytes,
                                               diagnostics, &out->device);
    if (!status)
        take_device_memory(out);
    return status;
}

void peal_storage_release(peal_storage *storage)
{
    if (!storage->base)
        return;
    if (storage->space.memory)
        storage->space.memory->release(storage->space.device, &storage->device);
    peal_segment_destroy(&storage->segment);
    *storage = (peal_storage){.descriptor = -1};
}

peal_status peal_space_write(const peal_memory_space *space, void *to, const void *from,
                             int64_t bytes, peal_diagnostics *diagnostics)
{
    if (space->memory)
        return space->memory->write(space->device, to, from, bytes, diagnostics);
    memcpy(to, from, (size_t)bytes);
    return PEAL_STATUS_OK;
}

peal_status peal_space_read(const peal_memory_space *space, void *to, const void *from,
                            int64_t bytes, peal_diagnostics *diagnostics)
{
    if (space->memory)
        return space->memory->read(space->device, to, from, bytes, diagnostics);
    memcpy(to, from, (size_t)bytes);
    return PEAL_STATUS_OK;
}
