/* The private folders in which kernels are compiled. */
#ifndef PEAL_HOST_FOLDER_H
#define PEAL_HOST_FOLDER_H

#include "base/arena.h"

#include <stdbool.h>

typedef struct host_folder {
    const char *path;
    int descriptor; /* its lock says that it is in use */
} host_folder;

/* Makes one in `base`, and removes those that killed processes left there. 0 or an errno. */
int host_folder_make(const char *base, bool is_cache, peal_arena *arena, host_folder *out);
/* Removes it with all that is in it. */
void host_folder_remove(host_folder *folder);
/* Whether the disk that it is on, or the user's share of it, is full. */
bool host_folder_is_full(const host_folder *folder);

#endif
