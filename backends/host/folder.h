/* The private folders in which kernels are compiled. */
#ifndef PEAL_HOST_FOLDER_H
#define PEAL_HOST_FOLDER_H

#include "base/arena.h"

#include <stdbool.h>

typedef struct host_folder {
    const char *path;
    int descriptor; /* of the folder, locked while it is in use */
} host_folder;

/* Makes a folder in `base`, and removes those that killed processes have left there. is_cache:
 * everything in `base` is peal's. Returns 0 or an errno. */
int host_folder_make(const char *base, bool is_cache, peal_arena *arena, host_folder *out);
/* Removes the folder and everything in it. */
void host_folder_remove(host_folder *folder);
/* Whether its disk, or the user's quota on it, is full. */
bool host_folder_is_full(const host_folder *folder);

#endif
