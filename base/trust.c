/* Owners and rights on a file's path, links followed. */
#define _GNU_SOURCE
#include "base/trust.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Who called sudo: root then runs what that user could have run. */
static bool is_caller(uid_t owner)
{
    const char *text = geteuid() == 0 ? getenv("SUDO_UID") : NULL;
    char *end = NULL;
    unsigned long uid = text ? strtoul(text, &end, 10) : 0;
    return text && *text && !*end && uid == owner;
}

static bool is_open_to_all(const struct stat *info)
{
    return (info->st_mode & S_IWOTH) && !(S_ISDIR(info->st_mode) && (info->st_mode & S_ISVTX));
}

const char *peal_distrust_file(const char *real, const struct stat *info, char *words, size_t bytes)
{
    char folder[PATH_MAX];
    struct stat its;

    if (info->st_uid != geteuid() && info->st_uid != 0 && !is_caller(info->st_uid)) {
        snprintf(words, bytes, "it belongs to user %u, not to user %u who runs it",
                 (unsigned)info->st_uid, (unsigned)geteuid());
        return words;
    }
    if (is_open_to_all(info)) {
        snprintf(words, bytes, "everybody can write it (mode %04o)",
                 (unsigned)info->st_mode & 07777u);
        return words;
    }
    snprintf(folder, sizeof(folder), "%s", real);
    for (char *slash = strrchr(folder, '/'); slash; slash = strrchr(folder, '/')) {
        slash[slash == folder] = 0;
        if (stat(folder, &its) == 0 && is_open_to_all(&its)) {
            snprintf(words, bytes, "everybody can write the folder `%s` (mode %04o)", folder,
                     (unsigned)its.st_mode & 07777u);
            return words;
        }
        if (slash == folder)
            break;
    }
    return NULL;
}

const char *peal_distrust(const char *path, char *words, size_t bytes)
{
    char real[PATH_MAX];
    struct stat info;

    if (realpath(path, real) && stat(real, &info) == 0)
        return peal_distrust_file(real, &info, words, bytes);
    snprintf(words, bytes, "it cannot be looked at: %s", strerror(errno));
    return words;
}

bool peal_path_is_inside(const char *folder, const char *real)
{
    char real_folder[PATH_MAX];

    if (!realpath(folder, real_folder))
        return false;
    size_t length = strlen(real_folder);
    return strcmp(real_folder, "/") == 0 ||
           (strncmp(real, real_folder, length) == 0 && real[length] == '/');
}
