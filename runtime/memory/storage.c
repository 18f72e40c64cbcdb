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

peal_status peal_storage_create(const peal_place *place, int64_t bytes, bool shared,
                                peal_diagnostics *diagnostics, peal_storage *out)
{
    *out = (peal_storage){.descriptor = -1, .place = *place};
    if (!place->memory) {
        peal_status status = peal_segment_create(bytes, shared, diagnostics, &out->segment);
        if (!status)
            take_segment(out);
        return status;
    }
    peal_status status =
        place->memory->allocate(place->device, place->mode, bytes,
                                shared ? place->path : PEAL_PATH_NONE, diagnostics, &out->device);
    if (!status)
        take_device_memory(out);
    return status;
}

/* out->segment is made known to the device. */
static peal_status register_segment(const peal_place *place, peal_diagnostics *diagnostics,
                                    peal_storage *out)
{
    peal_status status =
        place->memory->register_host(place->device, out->segment.base, out->segment.bytes,
                                     diagnostics, &out->device);
    if (status) {
        peal_segment_destroy(&out->segment);
        return status;
    }
    take_device_memory(out);
    out->descriptor = out->segment.descriptor;
    return PEAL_STATUS_OK;
}

static bool is_staged(const peal_place *place)
{
    return place->memory && place->path == PEAL_PATH_STAGED;
}

peal_status peal_storage_create_mailbox(const peal_place *place, int64_t bytes,
                                        peal_diagnostics *diagnostics, peal_storage *out)
{
    if (!is_staged(place))
        return peal_storage_create(place, bytes, true, diagnostics, out);
    *out = (peal_storage){.descriptor = -1, .place = *place};
    peal_status status = peal_segment_create(bytes, true, diagnostics, &out->segment);
    return status ? status : register_segment(place, diagnostics, out);
}

peal_status peal_storage_import(const peal_place *place, int descriptor, int64_t bytes,
                                peal_diagnostics *diagnostics, peal_storage *out)
{
    *out = (peal_storage){.descriptor = -1, .place = *place};
    if (!place->memory) {
        peal_status status = peal_segment_import(descriptor, bytes, diagnostics, &out->segment);
        if (!status)
            take_segment(out);
        return status;
    }
    if (is_staged(place)) {
        peal_status status = peal_segment_import(descriptor, bytes, diagnostics, &out->segment);
        return status ? status : register_segment(place, diagnostics, out);
    }
    peal_status status = place->memory->import(place->device, place->path, descriptor, bytes,
                                               diagnostics, &out->device);
    if (!status)
        take_device_memory(out);
    return status;
}

void peal_storage_release(peal_storage *storage)
{
    if (!storage->base)
        return;
    if (storage->place.memory)
        storage->place.memory->release(storage->place.device, &storage->device);
    peal_segment_destroy(&storage->segment);
    *storage = (peal_storage){.descriptor = -1};
}

peal_status peal_place_write(const peal_place *place, void *to, const void *from, int64_t bytes,
                             peal_diagnostics *diagnostics)
{
    if (place->memory)
        return place->memory->write(place->device, to, from, bytes, diagnostics);
    memcpy(to, from, (size_t)bytes);
    return PEAL_STATUS_OK;
}

peal_status peal_place_read(const peal_place *place, void *to, const void *from, int64_t bytes,
                            peal_diagnostics *diagnostics)
{
    if (place->memory)
        return place->memory->read(place->device, to, from, bytes, diagnostics);
    memcpy(to, from, (size_t)bytes);
    return PEAL_STATUS_OK;
}
