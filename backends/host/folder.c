/* Folders that are locked while they are used. A folder that no process has locked was left behind.
 */
#define _GNU_SOURCE
#include "backends/host/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES = 10, DEPTH = 4, PROBE_BYTES = 1 << 20 };

/* In a cache everything is peal's; elsewhere the prefix says so. */
static const char *prefix_of(bool is_cache)
{
    return is_cache ? "new-" : "peal-new-";
}

/* Removes everything in a folder and closes its descriptor. No link is followed. */
static void empty(int folder, int depth)
{
    DIR *list = fdopendir(folder);
    if (!list) {
        close(folder);
        return;
    }
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        if (unlinkat(folder, entry->d_name, 0) == 0 || depth == 0)
            continue;
        int below = openat(folder, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below >= 0)
            empty(below, depth - 1);
        unlinkat(folder, entry->d_name, AT_REMOVEDIR);
    }
    closedir(list);
}

static void remove_left(int base, const char *prefix, const char *name)
{
    struct stat info;
    if (strncmp(name, prefix, strlen(prefix)) != 0 || strlen(name) != strlen(prefix) + 6)
        return;
    int folder = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return;
    if (fstat(folder, &info) == 0 && info.st_uid == geteuid() &&
        flock(folder, LOCK_EX | LOCK_NB) == 0) {
        int copy = dup(folder);
        if (copy >= 0)
            empty(copy, DEPTH);
        unlinkat(base, name, AT_REMOVEDIR);
    }
    close(folder);
}

static void clean(const char *base, const char *prefix)
{
    DIR *list = opendir(base);
    for (struct dirent *entry = list ? readdir(list) : NULL; entry; entry = readdir(list))
        remove_left(dirfd(list), prefix, entry->d_name);
    if (list)
        closedir(list);
}

int host_folder_make(const char *base, bool is_cache, peal_arena *arena, host_folder *out)
{
    struct stat here, there;

    const char *prefix = prefix_of(is_cache);

    clean(base, prefix);
    for (int i = 0; i < TRIES; i++) {
        char *path = peal_arena_print(arena, "%s/%sXXXXXX", base, prefix);
        if (!mkdtemp(path))
            return errno;
        int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (folder < 0 && errno != ENOENT) {
            int error = errno;
            rmdir(path);
            return error;
        }
        if (folder < 0)
            continue; /* another process took it for one that was left behind */
        while (flock(folder, LOCK_SH) != 0 && errno == EINTR)
            ;
        if (fstat(folder, &here) == 0 && stat(path, &there) == 0 && here.st_ino == there.st_ino) {
            *out = (host_folder){path, folder};
            return 0;
        }
        close(folder);
    }
    return EBUSY;
}

void host_folder_remove(host_folder *folder)
{
    if (!folder->path)
        return;
    int copy = dup(folder->descriptor);
    if (copy >= 0)
        empty(copy, DEPTH);
    rmdir(folder->path);
    close(folder->descriptor);
    folder->path = NULL;
}

bool host_folder_is_full(const host_folder *folder)
{
    static const char name[] = "probe";
    int file = openat(folder->descriptor, name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return errno == ENOSPC || errno == EDQUOT;
    int error = posix_fallocate(file, 0, PROBE_BYTES);
    unlinkat(folder->descriptor, name, 0);
    close(file);
    return error == ENOSPC || error == EDQUOT;
}
