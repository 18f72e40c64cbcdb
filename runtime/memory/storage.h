/* A rank's memory wherever its backend wants it: a segment of the host's, or memory of the device
 * that the backend has opened. */
#ifndef PEAL_RUNTIME_MEMORY_STORAGE_H
#define PEAL_RUNTIME_MEMORY_STORAGE_H

#include "runtime/memory/segment.h"

#include <peal/plugin/backend.h>

/* Where memory is to be: zeroed, the host's. */
typedef struct peal_memory_space {
    const peal_memory_ops *memory; /* NULL: the host's */
    peal_device *device;
    peal_mode mode; /* of the schedules that will use it */
    peal_path path; /* to the ranks of other processes, on a device */
} peal_memory_space;

typedef struct peal_storage {
    unsigned char *base; /* NULL: there is none */
    int64_t bytes;
    int descriptor;  /* what other processes import it by; -1 */
    int64_t offered; /* the bytes that they import */
    bool host_visible;
    peal_memory_space space;
    peal_segment segment;      /* the host's; of a mailbox, too */
    peal_device_memory device; /* the device's; of a mailbox: where it has the host's */
} peal_storage;

/* Zeroed memory; shared: for other processes of this host too. */
peal_status peal_storage_create(const peal_memory_space *space, int64_t bytes, bool shared,
                                peal_diagnostics *diagnostics, peal_storage *out);
/* The same; nothing is made for what lies behind the first `used` bytes. Others import memory of a
 * device by what there is of it, out->offered. */
peal_status peal_storage_create_used(const peal_memory_space *space, int64_t bytes, int64_t used,
                                     bool shared, peal_diagnostics *diagnostics, peal_storage *out);
/* Shared memory of the host that the device of the space has mapped: base is its address there,
 * segment.base here. */
peal_status peal_storage_create_pinned(const peal_memory_space *space, int64_t bytes,
                                       peal_diagnostics *diagnostics, peal_storage *out);
/* What other processes of this host put messages into: on PEAL_PATH_STAGED shared memory of the
 * host that the device has mapped, else shared memory in the space. */
peal_status peal_storage_create_mailbox(const peal_memory_space *space, int64_t bytes,
                                        peal_diagnostics *diagnostics, peal_storage *out);
/* Another process's, a mailbox on PEAL_PATH_STAGED; takes the descriptor. */
peal_status peal_storage_import(const peal_memory_space *space, int descriptor, int64_t bytes,
                                peal_diagnostics *diagnostics, peal_storage *out);
/* Zeroed storages are fine. */
void peal_storage_release(peal_storage *storage);

/* Between the host's memory and memory of a space. */
peal_status peal_space_write(const peal_memory_space *space, void *to, const void *from,
                             int64_t bytes, peal_diagnostics *diagnostics);
peal_status peal_space_read(const peal_memory_space *space, void *to, const void *from,
                            int64_t bytes, peal_diagnostics *diagnostics);

#endif
