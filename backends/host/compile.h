/* Runs the C compiler on a generated source, and keeps what it makes in a cache. */
#ifndef PEAL_HOST_COMPILE_H
#define PEAL_HOST_COMPILE_H

#include "base/compile_error.h"
#include "base/text_file.h"

#include <stdatomic.h>

/* The headers that kernels include: an uninstalled peal finds them too. */
extern const peal_text_file peal_kernel_headers[];

typedef struct host_compile_request {
    const char *source;             /* the C text */
    const peal_kernel_files *files; /* what it includes is checked as they are */
    bool fma;
    const char *cache_folder;      /* NULL: by XDG rules */
    int64_t deadline_ns;           /* longest time without progress; 0: none */
    const _Atomic int *abort_word; /* ends the compiler; may be NULL */
    peal_diagnostics *diagnostics;
    peal_arena *arena; /* of the results */
} host_compile_request;

typedef struct host_compile_result {
    void *library; /* from dlopen; NULL: errors, or a report was made */
    int memory;    /* the library's file, if that is in memory: closed after it; else -1 */
    bool was_cached;
    char *preprocessed; /* malloc'ed: the source with all that it includes; NULL: it has errors */
    peal_compile_error *error;
    int error_count;
} host_compile_result;

/* PEAL_STATUS_OK also when the compiler refused the source: then error[] says why. Otherwise what
 * failed has been reported: no compiler (PEAL_E_NO_C_COMPILER), it died (PEAL_E_KERNELS_NOT_LOADED)
 * or stood still (PEAL_E_COMPILER_STALLED), the result cannot be loaded
 * (PEAL_E_KERNELS_NOT_LOADED), there is no room (PEAL_E_SOURCE_NOT_WRITTEN), what is included must
 * not be run (PEAL_E_KERNEL_FILE_NOT_TRUSTED, PEAL_E_INCLUDED_FILE_OUTSIDE). A cache that is full,
 * mounted noexec, or can't be written is a warning (PEAL_E_KERNELS_NOT_CACHED). */
peal_status host_compile(const host_compile_request *request, host_compile_result *out);

#endif
