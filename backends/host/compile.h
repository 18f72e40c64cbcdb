/* Compiles a generated source with the C compiler, and caches the result. */
#ifndef PEAL_HOST_COMPILE_H
#define PEAL_HOST_COMPILE_H

#include "base/compile_error.h"
#include "base/text_file.h"

#include <stdatomic.h>

/* The text of the headers that kernels include, so that an uninstalled peal has them. */
extern const peal_text_file peal_kernel_headers[];

typedef struct host_compile_request {
    const char *source;             /* the C text */
    const peal_kernel_files *files; /* files that it includes are checked like these */
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

/* Compiles and loads the source, or loads it from the cache. PEAL_STATUS_OK also if the compiler
 * refused the source: error[] then says why. Other failures have been reported:
 * - there is no compiler: PEAL_E_NO_C_COMPILER
 * - it was killed, or the result cannot be loaded: PEAL_E_KERNELS_NOT_LOADED
 * - it made no progress within the deadline: PEAL_E_COMPILER_STALLED
 * - there is no room: PEAL_E_SOURCE_NOT_WRITTEN
 * - an included file must not be run: PEAL_E_KERNEL_FILE_NOT_TRUSTED, PEAL_E_INCLUDED_FILE_OUTSIDE
 * A cache that is full, mounted noexec or not writable is a warning: PEAL_E_KERNELS_NOT_CACHED. */
peal_status host_compile(const host_compile_request *request, host_compile_result *out);

#endif
