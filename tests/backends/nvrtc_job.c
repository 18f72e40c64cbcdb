/* The compiler for GPUs, if there is one, and folders for what it is given. */
#define _GNU_SOURCE
#include "tests/backends/nvrtc_job.h"

#include "base/cuda_driver.h"
#include "tests/backends/check.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool nvrtc_is_here(void)
{
    const char *reason = NULL;
    if (peal_nvrtc_open(&reason))
        return true;
    print_message("skipped: %s\n", reason);
    return false;
}

bool scratch_make(char *path, size_t bytes)
{
    snprintf(path, bytes, "/tmp/peal-nvrtc-XXXXXX");
    return mkdtemp(path) != NULL;
}

void scratch_remove(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        char name[600];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        if (unlink(name) != 0)
            scratch_remove(name);
    }
    if (dir)
        closedir(dir);
    rmdir(path);
}
