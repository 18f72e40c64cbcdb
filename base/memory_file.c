/* memfds: they are made with mode 0777, and whoever may see our /proc/PID/fd could open them. */
#define _GNU_SOURCE
#include "base/memory_file.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

int peal_memory_file(const char *name, unsigned flags)
{
    int file = memfd_create(name, flags | MFD_NOEXEC_SEAL);
    if (file < 0 && errno == EINVAL) /* before Linux 6.3 */
        file = memfd_create(name, flags);
    if (file >= 0 && fchmod(file, 0600) != 0) {
        int error = errno;
        close(file);
        errno = error;
        return -1;
    }
    return file;
}
