/* The cache of compiled kernels: one file an entry, named by the hash of all that it was made from,
 * with a hash of its name and its contents at its end. Entries appear by rename, whole or not at
 * all; no link is followed. */
#define _GNU_SOURCE
#include "base/cache.h"
#include "base/clock.h"

#include "base/new_file.h"
#include "base/sha256.h"
#include "base/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char trailer_mark[8] = {'p', 'e', 'a', 'l', 'h', 'a', 's', 'h'};

enum { TRAILER_BYTES = sizeof(trailer_mark) + PEAL_SHA256_BYTES };

/* Who waits longer than that for another process makes the entry itself: that one may be stopped.
 */
enum { CLAIM_WAIT_MS = 20000, CLAIM_LOOK_MS = 5 };

static const char *cache_path(const char *given, peal_arena *arena)
{
    const char *cache = getenv("PEAL_CACHE");
    const char *xdg = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");

    if (given && *given)
        return given;
    if (cache && *cache)
        return cache;
    if (xdg && *xdg == '/')
        return peal_arena_print(arena, "%s/peal", xdg);
    if (home && *home)
        return peal_arena_print(arena, "%s/.cache/peal", home);
    return NULL;
}

static bool make_folders(const char *path)
{
    char *copy = strdup(path);
    bool made = copy != NULL;

    for (char *at = copy; at && *at; at++) {
        if (*at != '/' || at == copy)
            continue;
        *at = '\0';
        if (mkdir(copy, 0700) != 0 && errno != EEXIST)
            made = false;
        *at = '/';
    }
    free(copy);
    return (mkdir(path, 0700) == 0 || errno == EEXIST) && made;
}

const char *peal_cache_open(const char *given, peal_arena *arena, peal_diagnostics *diagnostics)
{
    static const char *const hint = "kernels are compiled anew at every start; set PEAL_CACHE to a "
                                    "folder of your own that can be written";
    peal_source nowhere = {0};
    const char *path = cache_path(given, arena);
    char words[PATH_MAX + 128];
    struct stat info;

    if (!path) {
        peal_warn(diagnostics, PEAL_E_KERNELS_NOT_CACHED, nowhere, hint,
                  "no folder for compiled kernels: HOME is "
                  "not set");
        return NULL;
    }
    if (!make_folders(path) || stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) {
        peal_warn(diagnostics, PEAL_E_KERNELS_NOT_CACHED, nowhere, hint,
                  "cannot make the folder `%s`: %s", path,
                  errno == EEXIST ? "something else has this name" : strerror(errno));
        return NULL;
    }
    /* What is loaded from there is run: it must be ours alone. */
    if (info.st_uid != geteuid() || (info.st_mode & 022) != 0) {
        peal_warn(diagnostics, PEAL_E_KERNELS_NOT_CACHED, nowhere, hint,
                  "the folder `%s` belongs to or can be written by others", path);
        return NULL;
    }
    const char *reason = peal_distrust(path, words, sizeof(words));
    if (reason) {
        peal_warn(diagnostics, PEAL_E_KERNELS_NOT_CACHED, nowhere, hint,
                  "the folder `%s` is not safe: %s", path, reason);
        return NULL;
    }
    if (access(path, W_OK | X_OK) != 0) {
        peal_warn(diagnostics, PEAL_E_KERNELS_NOT_CACHED, nowhere, hint,
                  "the folder `%s` cannot be written: %s", path, strerror(errno));
        return NULL;
    }
    return path;
}

/* As much of a file as there is, and a NUL; 0 or an errno. */
static int read_whole(int fd, char *text, size_t size, size_t *have)
{
    for (*have = 0; *have < size;) {
        ssize_t got = read(fd, text + *have, size - *have);
        if (got < 0 && errno != EINTR)
            return errno;
        if (got == 0)
            break;
        *have += got > 0 ? (size_t)got : 0;
    }
    text[*have] = '\0';
    return 0;
}

/* Takes the descriptor. ours: only what belongs to this user and others cannot write. */
static char *read_descriptor(int fd, size_t *bytes, bool ours)
{
    struct stat info;
    char *text = NULL;
    int error = 0;

    if (fstat(fd, &info) != 0)
        error = errno;
    else if (S_ISREG(info.st_mode) &&
             (!ours || (info.st_uid == geteuid() && (info.st_mode & 022) == 0))) {
        text = malloc((size_t)info.st_size + 1);
        error = text ? read_whole(fd, text, (size_t)info.st_size, bytes) : ENOMEM;
    }
    close(fd);
    if (error) {
        free(text);
        text = NULL;
    }
    errno = error;
    return text;
}

char *peal_descriptor_read(int descriptor, size_t *bytes)
{
    size_t count = 0;

    char *text = read_descriptor(descriptor, &count, false);
    if (text && bytes)
        *bytes = count;
    return text;
}

char *peal_file_read(const char *path, size_t *bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    return fd < 0 ? NULL : peal_descriptor_read(fd, bytes);
}

bool peal_is_lack_of_means(int error)
{
    static const int all[] = {ENOMEM, EMFILE, ENFILE, EIO, EAGAIN, ENOBUFS, ENOSPC, EDQUOT};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (error == all[i])
            return true;
    return false;
}

/* A link in the place of an entry is replaced itself, not what it leads to. */
static int unlink_link(const char *path)
{
    struct stat info;
    if (lstat(path, &info) != 0 || S_ISREG(info.st_mode))
        return 0;
    return unlink(path) != 0 ? errno : 0;
}

/* The name is part of it: an entry under another's name is none. */
static void make_trailer(const char *path, const char *data, size_t bytes,
                         unsigned char trailer[TRAILER_BYTES])
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    peal_sha256 hash;
    peal_sha256_init(&hash);
    peal_sha256_add(&hash, name, strlen(name) + 1);
    peal_sha256_add(&hash, data, bytes);
    memcpy(trailer, trailer_mark, sizeof(trailer_mark));
    peal_sha256_finish(&hash, trailer + sizeof(trailer_mark));
}

char *peal_cache_load(const char *path, size_t *bytes)
{
    unsigned char trailer[TRAILER_BYTES];
    size_t all = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    char *data = fd >= 0 ? read_descriptor(fd, &all, true) : NULL;
    bool good = data && all > TRAILER_BYTES;

    if (good) {
        make_trailer(path, data, all - TRAILER_BYTES, trailer);
        good = memcmp(data + all - TRAILER_BYTES, trailer, TRAILER_BYTES) == 0;
    }
    if (!good) {
        free(data);
        return NULL;
    }
    *bytes = all - TRAILER_BYTES;
    return data;
}

bool peal_cache_check(const char *path)
{
    size_t bytes = 0;
    char *data = peal_cache_load(path, &bytes);

    free(data);
    return data != NULL;
}

bool peal_cache_keep(const void *data, size_t bytes, const char *path,
                     peal_diagnostics *diagnostics)
{
    unsigned char trailer[TRAILER_BYTES];
    char *all = malloc(bytes + TRAILER_BYTES);
    int error = ENOMEM;

    if (all) {
        make_trailer(path, data, bytes, trailer);
        memcpy(all, data, bytes);
        memcpy(all + bytes, trailer, TRAILER_BYTES);
        error = unlink_link(path);
        if (!error)
            error = peal_file_replace(all, bytes + TRAILER_BYTES, path, 0600);
    }
    free(all);
    if (error)
        peal_warn(diagnostics, PEAL_E_KERNELS_NOT_CACHED, (peal_source){0},
                  "kernels are compiled anew at every start; make room, or set PEAL_CACHE to "
                  "another folder",
                  "cannot keep the compiled kernels in `%.*s`: %s",
                  (int)(strrchr(path, '/') ? strrchr(path, '/') - path : 0), path, strerror(error));
    return !error;
}

/* One file for all entries, a byte of it for each: locks of open files end with their process. */
int peal_cache_claim(const char *path, int64_t deadline_ns, const _Atomic int *abort_word)
{
    const int64_t deadline_ms = deadline_ns / 1000000;
    const int most =
        deadline_ns > 0 && deadline_ms < CLAIM_WAIT_MS ? (int)deadline_ms : CLAIM_WAIT_MS;
    static const char name[] = ".claims";
    const char *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
    char *file = malloc(folder + sizeof(name));
    struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

    if (!file)
        return -1;
    memcpy(file, path, folder);
    memcpy(file + folder, name, sizeof(name));
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    free(file);
    uint32_t number = 2166136261u;
    for (const char *at = path + folder; *at; at++)
        number = (number ^ (unsigned char)*at) * 16777619u;
    byte.l_start = number;
    for (int waited = 0; fd >= 0 && fcntl(fd, F_OFD_SETLK, &byte) != 0; waited += CLAIM_LOOK_MS) {
        if ((errno != EAGAIN && errno != EACCES && errno != EINTR) || waited >= most ||
            (abort_word && atomic_load(abort_word))) {
            close(fd);
            return -1;
        }
        peal_clock_sleep(CLAIM_LOOK_MS * INT64_C(1000000));
    }
    return fd;
}

void peal_cache_release(int claim)
{
    if (claim >= 0)
        close(claim);
}
