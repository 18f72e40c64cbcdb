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
 * failed has been reported: no compiler (E203), it died (E208) or stood still (E303), the result
 * cannot be loaded (E208), there is no room (E209), what is included must not be run (E230, E231).
 * A cache that is full, mounted noexec, or can't be written is a warning (E207). */
peal_status host_compile(const host_compile_request *request, host_compile_result *out);

#endif
