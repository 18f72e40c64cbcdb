/* Runs NVRTC on a text, links the result with device code of the application, and keeps what comes
 * out in the cache. No driver is needed: tests do so without a GPU. */
#ifndef PEAL_CUDA_COMPILE_H
#define PEAL_CUDA_COMPILE_H

#include "base/compile_error.h"
#include "base/kernel_source.h"

#include <stdatomic.h>

typedef struct peal_cuda_compile_request {
    const char *source;
    const peal_kernel_files *files; /* already in the source: for their folders and includes */
    int architecture;               /* 90 */
    bool ptx;                       /* text for that architecture instead of an image */
    bool fma;
    bool links;   /* calls functions of files->code: linked with it (not if ptx) */
    bool verbose; /* instead of an image what ptxas says of each kernel and, behind its NUL, the
                     PTX; of what is linked, if there is device code */
    peal_source spec_source;  /* in the spec, of device code that does not link */
    int driver;               /* its version: part of the key */
    bool anew;                /* compile even if the cache has it */
    bool many;                /* others are compiled at the same time: in one thread each */
    const char *cache_folder; /* NULL: by XDG rules; ptx is kept only where a folder is named */
    int64_t deadline_ns;      /* longest wait for a process that compiles the same; 0: 20 s */
    const _Atomic int *abort_word; /* ends that wait; may be NULL */
    peal_diagnostics *diagnostics;
    peal_arena *arena; /* of the results */
} peal_cuda_compile_request;

typedef struct peal_cuda_compile_result {
    const char *image; /* in the arena; NULL: errors */
    size_t bytes;
    bool was_cached;
    peal_compile_error *error;
    int error_count;
} peal_cuda_compile_result;

/* PEAL_STATUS_OK also when the compiler refused the source: then error[] says why. Otherwise what
 * failed has been reported: no NVRTC (PEAL_E_NO_NVRTC), it failed (PEAL_E_NVRTC_FAILED). */
peal_status peal_cuda_compile(const peal_cuda_compile_request *request,
                              peal_cuda_compile_result *out);

/* Whether the cache is there, and lacks what the request would give. */
bool peal_cuda_is_missing(const peal_cuda_compile_request *request);

/* PEAL_E_NO_NVJITLINK if there is no nvJitLink. */
peal_status peal_cuda_link_open(peal_diagnostics *diagnostics);
/* Its name and version, in the arena. */
const char *peal_cuda_link_version(peal_arena *arena);
/* The image of a unit in LTO-IR with the request's device code. A function that is nowhere is an
 * error of the file "<link NAME>"; what else nvJitLink refuses has been reported
 * (PEAL_E_DEVICE_LINK_ERROR). */
peal_status peal_cuda_link(const peal_cuda_compile_request *request, const char *unit, size_t bytes,
                           peal_cuda_compile_result *out);

#endif
