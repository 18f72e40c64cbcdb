/* The files by which IPC handles travel: a page that both sides have mapped, sealed like all memory
 * that processes hand to each other. */
#define _GNU_SOURCE
#include "backends/cuda/gpu/memory.h"

#include "base/memory_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static peal_cuda_ipc_note *map(int descriptor)
{
    void *page =
        mmap(NULL, sizeof(peal_cuda_ipc_note), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    return page == MAP_FAILED ? NULL : page;
}

bool peal_cuda_ipc_create(const CUipcMemHandle *handle, peal_cuda_ipc_note **note, int *descriptor)
{
    int error, file = peal_memory_file("peal-ipc", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0)
        return false;
    peal_cuda_ipc_note *made = NULL;
    if (!fallocate(file, 0, 0, sizeof(peal_cuda_ipc_note)) && !fcntl(file, F_ADD_SEALS, SEALS))
        made = map(file);
    if (!made) {
        error = errno;
        close(file);
        errno = error;
        return false;
    }
    made->handle = *handle;
    *note = made;
    *descriptor = file;
    return true;
}

bool peal_cuda_ipc_open(int descriptor, peal_cuda_ipc_note **note)
{
    struct stat state;
    int seals = fcntl(descriptor, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS || fstat(descriptor, &state) ||
        state.st_size != (off_t)sizeof(peal_cuda_ipc_note)) {
        errno = EINVAL; /* not what peal_cuda_ipc_create makes */
        return false;
    }
    *note = map(descriptor);
    return *note != NULL;
}

void peal_cuda_ipc_close(peal_cuda_ipc_note *note)
{
    if (note)
        munmap(note, sizeof(*note));
}
