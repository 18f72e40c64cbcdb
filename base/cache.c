/* The cache of compiled kernels: one file an entry, named by the hash of all that it was made from,
 * with a hash of its own contents at its end. Entries appear by rename, whole or not at all. */
#define _GNU_SOURCE
#include "base/cache.h"

#include "base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char trailer_mark[8] = {'p', 'e', 'a', 'l', 'h', 'a', 's', 'h'};

enum { TRAILER_BYTES = sizeof(trailer_mark) + PEAL_SHA256_BYTES };

/* Who waits longer than that for another process makes the entry itself: that one may be stopped.
 */
enum { CLAIM_WAIT_MS = 60000, CLAIM_LOOK_MS = 5 };

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
    struct stat info;

    if (!path) {
        peal_warn(diagnostics, PEAL_E207, nowhere, hint,
                  "no folder for compiled kernels: HOME is "
                  "not set");
        return NULL;
    }
    if (!make_folders(path) || stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) {
        peal_warn(diagnostics, PEAL_E207, nowhere, hint, "cannot make the folder `%s`: %s", path,
                  errno == EEXIST ? "something else has this name" : strerror(errno));
        return NULL;
    }
    /* What is loaded from there is run: it must be ours alone. */
    if (info.st_uid != geteuid() || (info.st_mode & 022) != 0) {
        peal_warn(diagnostics, PEAL_E207, nowhere, hint,
                  "the folder `%s` belongs to or can be written by others", path);
        return NULL;
    }
    if (access(path, W_OK | X_OK) != 0) {
        peal_warn(diagnostics, PEAL_E207, nowhere, hint, "the folder `%s` cannot be written: %s",
                  path, strerror(errno));
        return NULL;
    }
    return path;
}

char *peal_file_read(const char *path, size_t *bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not hold us */
    struct stat info;
    char *text = NULL;
    size_t have = 0;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
        text = malloc((size_t)info.st_size + 1);
    while (text && have < (size_t)info.st_size) {
        ssize_t got = read(fd, text + have, (size_t)info.st_size - have);
        if (got <= 0)
            break;
        have += (size_t)got;
    }
    close(fd);
    if (text)
        text[have] = '\0';
    if (bytes)
        *bytes = have;
    return text;
}

static void make_trailer(const char *data, size_t bytes, unsigned char trailer[TRAILER_BYTES])
{
    peal_sha256 hash;
    peal_sha256_init(&hash);
    peal_sha256_add(&hash, data, bytes);
    memcpy(trailer, trailer_mark, sizeof(trailer_mark));
    peal_sha256_finish(&hash, trailer + sizeof(trailer_mark));
}

char *peal_cache_load(const char *path, size_t *bytes)
{
    unsigned char trailer[TRAILER_BYTES];
    size_t all = 0;
    char *data = peal_file_read(path, &all);
    bool good = data && all > TRAILER_BYTES;

    if (good) {
        make_trailer(data, all - TRAILER_BYTES, trailer);
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

bool peal_cache_store(const char *path, const char *target)
{
    unsigned char trailer[TRAILER_BYTES];
    size_t bytes = 0;
    char *data = peal_file_read(path, &bytes);
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK);
    bool stored = false;

    if (data && fd >= 0) {
        make_trailer(data, bytes, trailer);
        stored = write(fd, trailer, sizeof(trailer)) == (ssize_t)sizeof(trailer);
    }
    free(data);
    if (fd >= 0)
        stored = close(fd) == 0 && stored;
    return stored && rename(path, target) == 0;
}

/* Writes a file beside `target` and moves it there by `move`. */
static bool keep_by(bool (*move)(const char *path, const char *target), const void *data,
                    size_t bytes, const char *target)
{
    size_t length = strlen(target) + sizeof(".XXXXXX");
    char *path = malloc(length);
    bool kept = false;

    if (!path)
        return false;
    snprintf(path, length, "%s.XXXXXX", target);
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) {
        const char *at = data;
        size_t left = bytes;
        ssize_t put = 0;
        while (left > 0 && (put = write(fd, at, left)) > 0) {
            at += put;
            left -= (size_t)put;
        }
        kept = close(fd) == 0 && left == 0 && move(path, target);
        if (!kept)
            unlink(path);
    }
    free(path);
    return kept;
}

static bool move_only(const char *path, const char *target)
{
    return rename(path, target) == 0;
}

bool peal_cache_keep(const void *data, size_t bytes, const char *target)
{
    return keep_by(peal_cache_store, data, bytes, target);
}

bool peal_file_replace(const void *data, size_t bytes, const char *target)
{
    return keep_by(move_only, data, bytes, target);
}

/* One file for all entries, a byte of it for each: locks of open files end with their process. */
int peal_cache_claim(const char *path, int64_t deadline_ns)
{
    const int64_t deadline_ms = deadline_ns / 1000000;
    const int most =
        deadline_ns > 0 && deadline_ms < CLAIM_WAIT_MS ? (int)deadline_ms : CLAIM_WAIT_MS;
    static const char name[] = ".claims";
    const struct timespec pause = {.tv_nsec = CLAIM_LOOK_MS * 1000000l};
    const char *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
    char *file = malloc(folder + sizeof(name));
    struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

    if (!file)
        return -1;
    memcpy(file, path, folder);
    memcpy(file + folder, name, sizeof(name));
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
    free(file);
    uint32_t number = 2166136261u;
    for (const char *at = path + folder; *at; at++)
        number = (number ^ (unsigned char)*at) * 16777619u;
    byte.l_start = number;
    for (int waited = 0; fd >= 0 && fcntl(fd, F_OFD_SETLK, &byte) != 0; waited += CLAIM_LOOK_MS) {
        if ((errno != EAGAIN && errno != EACCES && errno != EINTR) || waited >= most) {
            close(fd);
            return -1;
        }
        nanosleep(&pause, NULL);
    }
    return fd;
}

void peal_cache_release(int claim)
{
    if (claim >= 0)
        close(claim);
}
