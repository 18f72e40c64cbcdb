/* A rank's memory: one sealed memfd that its neighbours map. No names, nothing to leave behind. */
#ifndef PEAL_RUNTIME_MEMORY_SEGMENT_H
#define PEAL_RUNTIME_MEMORY_SEGMENT_H

#include "base/diagnostic.h"

typedef struct peal_segment {
    unsigned char *base;
    int64_t bytes;
    int descriptor; /* -1: anonymous, not for other processes */
} peal_segment;

/* Zeroed memory of `bytes` (rounded up to pages), every page present before it returns: too little
 * memory is PEAL_STATUS_ENVIRONMENT with need and have, never a SIGBUS later. shared: a memfd
 * sealed against shrinking and growing; else private. */
peal_status peal_segment_create(int64_t bytes, bool shared, peal_diagnostics *diagnostics,
                                peal_segment *out);
/* The same, where nobody touches what lies behind the first `used` bytes: these pages are not made.
 */
peal_status peal_segment_create_used(int64_t bytes, int64_t used, bool shared,
                                     peal_diagnostics *diagnostics, peal_segment *out);
/* Maps another process's segment; takes the descriptor. Its seals and size are checked. */
peal_status peal_segment_import(int descriptor, int64_t bytes, peal_diagnostics *diagnostics,
                                peal_segment *out);
void peal_segment_destroy(peal_segment *segment);

#endif
