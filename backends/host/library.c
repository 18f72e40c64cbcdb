/* Loads compiled kernels: from their file, or from memory where no file may be executed. */
#define _GNU_SOURCE
#include "backends/host/library.h"

#include "base/new_file.h"
#include "base/phase.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void *load_from_memory(const void *data, size_t bytes, int *memory)
{
    char path[64];
    void *library = NULL;
    const unsigned how = MFD_CLOEXEC | MFD_ALLOW_SEALING;
#ifdef MFD_EXEC
    int file = memfd_create("peal-kernels", how | MFD_EXEC);
    if (file < 0 && errno == EINVAL) /* a kernel before 6.3 */
        file = memfd_create("peal-kernels", how);
#else
    int file = memfd_create("peal-kernels", how);
#endif
    if (file < 0)
        return NULL;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    if (fchmod(file, 0600) == 0 && peal_write_all(file, data, bytes, 0) == 0)
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library) /* open until it is unloaded: the loader knows it by this name */
        *memory = file;
    else
        close(file);
    return library;
}

peal_status host_library_load(const host_compile_request *request, const char *path,
                              const void *data, size_t bytes, host_compile_result *out)
{
    peal_source nowhere = {0};

    peal_phase before = peal_phase_enter(1, "the dynamic linker, with the compiled kernels");
    out->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (out->library) {
        peal_phase_leave(&before);
        return PEAL_STATUS_OK;
    }
    const char *reason = peal_arena_copy_text(request->arena, dlerror());
    out->library = load_from_memory(data, bytes, &out->memory);
    peal_phase_leave(&before);
    if (!out->library)
        return peal_report(request->diagnostics, PEAL_E_KERNELS_NOT_LOADED, nowhere,
                           "is the folder mounted noexec? set PEAL_CACHE to another one",
                           "cannot load the compiled kernels: %s", reason);
    peal_warn(request->diagnostics, PEAL_E_KERNELS_NOT_CACHED, nowhere,
              "is the folder mounted noexec? set PEAL_CACHE to another one",
              "kernels are loaded from memory, since they cannot be from their file: %s", reason);
    return PEAL_STATUS_OK;
}
