/* Loads a compiled shared object into this process. */
#ifndef PEAL_HOST_LIBRARY_H
#define PEAL_HOST_LIBRARY_H

#include "backends/host/compile.h"

#include <stddef.h>

/* The library at `path`, whose contents are also in `data`: sets out->library, and out->memory
 * where the file itself cannot be loaded (a warning, PEAL_E_KERNELS_NOT_CACHED).
 * PEAL_E_KERNELS_NOT_LOADED: it cannot be loaded at all. */
peal_status host_library_load(const host_compile_request *request, const char *path,
                              const void *data, size_t bytes, host_compile_result *out);

#endif
