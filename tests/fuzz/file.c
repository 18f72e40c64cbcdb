/* A file in memory (memfd) with the fuzzer's bytes. */
#define _GNU_SOURCE
#include "tests/fuzz/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int fuzz_file_open(const uint8_t *data, size_t size, char path[32])
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || (size > 0 && pwrite(fd, data, size, 0) != (ssize_t)size)) {
        perror("memfd_create");
        exit(2);
    }
    snprintf(path, 32, "/proc/self/fd/%d", fd);
    return fd;
}
