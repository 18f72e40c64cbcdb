/* Runs the C compiler on a generated source, and keeps what it makes in a cache. */
#ifndef PEAL_HOST_COMPILE_H
#define PEAL_HOST_COMPILE_H

#include "base/arena.h"
#include "base/diagnostic.h"

/* The headers that kernels include, as text: an uninstalled peal finds them too. Ends with {0, 0}.
 */
typedef struct host_header {
    const char *name, *text;
} host_header;
extern const host_header peal_kernel_headers[];

/* A message of the compiler that is an error. */
typedef struct host_compile_error {
    const char *file;
    int line, column;
    const char *message;
} host_compile_error;

typedef struct host_compile_request {
    const char *source;        /* the C text */
    const char *const *folder; /* where #include "..." looks */
    int folder_count;
    bool fma;
    const char *cache_folder; /* NULL: by XDG rules */
    peal_diagnostics *diagnostics;
    peal_arena *arena; /* of the results */
} host_compile_request;

typedef struct host_compile_result {
    void *library; /* from dlopen; NULL: errors, or a report was made */
    bool was_cached;
    char *preprocessed; /* malloc'ed: the source with all that it includes; NULL: it has errors */
    const host_compile_error *error;
    int error_count;
} host_compile_result;

/* PEAL_STATUS_OK also when the compiler refused the source: then error[] says why. Otherwise what
 * failed has been reported: no compiler (E203), it died (E208), the result cannot be loaded (E208).
 */
peal_status host_compile(const host_compile_request *request, host_compile_result *out);

/* cache.c. The folder of the cache, made if need be, or NULL (reported as a warning, E207): then
 * nothing is kept. */
const char *host_cache_open(const char *given, peal_arena *arena, peal_diagnostics *diagnostics);
/* Whether the entry is there and has the contents that were stored. */
bool host_cache_check(const char *path);
/* Adds to the file at path the trailer that host_cache_check verifies, and moves it to target. */
bool host_cache_store(const char *path, const char *target);
/* The whole file, with a NUL behind; malloc'ed. NULL: it cannot be read. */
char *host_file_read(const char *path, size_t *bytes);

#endif
