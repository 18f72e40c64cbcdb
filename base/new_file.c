/* Files that appear whole, for `save` and all that the command writes. */
#define _GNU_SOURCE
#include "base/new_file.h"
#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST_LINKS = 40, MOST_TRIES = 100 };

/* ---- where it will be ---- */

/* Replaces path by what the link at its end says, as long as there is one. */
static int follow_links(char path[PATH_MAX])
{
    char link[PATH_MAX], joined[PATH_MAX];
    struct stat info;

    for (int hops = 0; lstat(path, &info) == 0 && S_ISLNK(info.st_mode); hops++) {
        ssize_t length = readlink(path, link, sizeof(link) - 1);
        if (length < 0)
            return errno;
        if (hops == MOST_LINKS)
            return ELOOP;
        link[length] = 0;
        const char *slash = strrchr(path, '/');
        int before = *link == '/' || !slash ? 0 : (int)(slash - path) + 1;
        if (snprintf(joined, sizeof(joined), "%.*s%s", before, path, link) >= (int)sizeof(joined))
            return ENAMETOOLONG;
        memcpy(path, joined, sizeof(joined));
    }
    return 0;
}

static bool is_within(const char *root, const char *folder)
{
    char real[PATH_MAX];
    if (!realpath(root, real))
        return false;
    size_t length = strlen(real);
    return strcmp(real, "/") == 0 ||
           (strncmp(folder, real, length) == 0 && (folder[length] == '/' || folder[length] == 0));
}

/* Folder and name, links in the folder resolved. */
static int split(const char *root, char path[PATH_MAX], peal_target *out)
{
    char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
        return EISDIR;
    if (strlen(name) > NAME_MAX)
        return ENAMETOOLONG;
    strcpy(out->name, name);
    if (slash)
        slash[slash == path] = 0; /* the root keeps its own */
    if (!realpath(slash ? path : ".", out->folder_path))
        return errno;
    return root && !is_within(root, out->folder_path) ? EXDEV : 0;
}

/* What is there under the name. */
static int look(peal_target *out)
{
    struct stat info;
    if (fstatat(out->folder, out->name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : errno;
    if (S_ISDIR(info.st_mode))
        return EISDIR;
    out->is_device = S_ISCHR(info.st_mode);
    if (!out->is_device && !S_ISREG(info.st_mode))
        return EINVAL;
    out->exists = true;
    out->mode = info.st_mode & 07777;
    out->owner = info.st_uid;
    out->group = info.st_gid;
    return faccessat(out->folder, out->name, W_OK, AT_EACCESS) != 0 ? errno : 0;
}

int peal_target_find(const char *root, const char *path, peal_target *out)
{
    char copy[PATH_MAX];

    *out = (peal_target){.folder = -1};
    if (snprintf(copy, sizeof(copy), "%s", path) >= (int)sizeof(copy))
        return ENAMETOOLONG;
    int error = follow_links(copy);
    if (!error)
        error = split(root, copy, out);
    if (error)
        return error;
    /* Its path has no links: one that has been put there since is not followed. */
    out->folder = open(out->folder_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (out->folder < 0 && errno == EACCES) /* may be entered, not listed */
        out->folder = open(out->folder_path, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return out->folder < 0 ? errno : 0;
}

int peal_target_open(const char *root, const char *path, peal_target *out)
{
    int error = peal_target_find(root, path, out);
    if (!error)
        error = look(out);
    if (error)
        peal_target_close(out);
    return error;
}

void peal_target_path(const peal_target *target, char *path, size_t bytes)
{
    const char *folder = target->folder_path;
    snprintf(path, bytes, "%s/%s", strcmp(folder, "/") ? folder : "", target->name);
}

void peal_target_close(peal_target *target)
{
    if (target->folder >= 0)
        close(target->folder);
    target->folder = -1;
}

/* ---- the new file ---- */

/* Between open and lock another job may have taken the file for one that was left behind. */
static bool is_linked(int folder, const char *name, int descriptor)
{
    struct stat here, there;
    return fstat(descriptor, &here) == 0 && here.st_nlink > 0 &&
           fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && here.st_ino == there.st_ino &&
           here.st_dev == there.st_dev;
}

int peal_target_create(const peal_target *target, const char *name, int *descriptor)
{
    mode_t mode = target->exists ? target->mode & 0666 : 0666;

    for (int i = 0; i < MOST_TRIES; i++) {
        int file =
            openat(target->folder, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode | 0600);
        if (file < 0 && errno == EINTR)
            continue;
        if (file < 0)
            return errno;
        while (flock(file, LOCK_SH) != 0 && errno == EINTR)
            ; /* a file system without locks: nobody can clean up there either */
        if (is_linked(target->folder, name, file)) {
            *descriptor = file;
            return 0;
        }
        close(file);
    }
    return EBUSY;
}

int peal_sync(int descriptor)
{
    while (fsync(descriptor) != 0) {
        if (errno == EINVAL || errno == EBADF || errno == EROFS)
            return 0; /* the file system, or a folder that may not be listed, has no fsync */
        if (errno != EINTR)
            return errno;
    }
    return 0;
}

int peal_target_commit(const peal_target *target, const char *name, int descriptor)
{
    struct stat info;

    if (!is_linked(target->folder, name, descriptor))
        return ESTALE;
    if (target->exists && fstat(descriptor, &info) == 0) {
        bool other = info.st_uid != target->owner || info.st_gid != target->group;
        if (other && fchown(descriptor, target->owner, target->group) != 0)
            errno = 0; /* only root may: then it is the writer's, as an editor's would be */
        if (fchmod(descriptor, target->mode) != 0)
            return errno;
    }
    int error = peal_sync(descriptor);
    if (error)
        return error;
    if (renameat(target->folder, name, target->folder, target->name) != 0)
        return errno;
    return peal_sync(target->folder);
}

/* Removes a new file that no process works on. */
static void remove_left(int folder, const char *name)
{
    struct stat info;
    if (strncmp(name, PEAL_NEW_FILE_PREFIX, strlen(PEAL_NEW_FILE_PREFIX)) != 0)
        return;
    const int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    /* To write: over a network an exclusive lock is for who may. It may have its last mode already,
     * which does not let its owner write. */
    int file = openat(folder, name, O_RDWR | flags);
    if (file < 0 && errno == EACCES)
        file = openat(folder, name, O_RDONLY | flags);
    if (file < 0)
        return;
    /* Another job may have removed it since, and its owner made it again: that one stays. */
    bool left = fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
                flock(file, LOCK_EX | LOCK_NB) == 0 && is_linked(folder, name, file);
    if (left) /* locked: whoever opens it now sees that it is gone */
        unlinkat(folder, name, 0);
    close(file);
}

void peal_target_clean(const peal_target *target, const char *ours)
{
    int copy = openat(target->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy >= 0 ? fdopendir(copy) : NULL;

    if (!list) {
        if (copy >= 0)
            close(copy);
        return;
    }
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list))
        if (!ours || strncmp(entry->d_name, ours, strlen(ours)) != 0)
            remove_left(target->folder, entry->d_name);
    closedir(list);
}

int peal_write_all(int descriptor, const void *data, size_t bytes, off_t offset)
{
    const char *at = data;
    while (bytes > 0) {
        ssize_t done = pwrite(descriptor, at, bytes, offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? errno : EIO;
        at += done;
        bytes -= (size_t)done;
        offset += done;
    }
    return 0;
}

int peal_read_all(int descriptor, void *data, size_t bytes, off_t offset)
{
    char *at = data;
    while (bytes > 0) {
        ssize_t done = pread(descriptor, at, bytes, offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? errno : -1;
        at += done;
        bytes -= (size_t)done;
        offset += done;
    }
    return 0;
}

/* ---- the limit of file sizes ---- */

void peal_size_guard_begin(peal_size_guard *guard)
{
    sigset_t block, pending;
    sigemptyset(&block);
    sigaddset(&block, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &block, &guard->mask);
    guard->was_pending = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

void peal_size_guard_end(const peal_size_guard *guard)
{
    const struct timespec now = {0};
    sigset_t taken;
    sigemptyset(&taken);
    sigaddset(&taken, SIGXFSZ);
    while (!guard->was_pending && sigtimedwait(&taken, NULL, &now) < 0 && errno == EINTR)
        ;
    pthread_sigmask(SIG_SETMASK, &guard->mask, NULL);
}

/* ---- one call ---- */

void peal_new_file_name(char name[PEAL_NEW_FILE_NAME], const char *word)
{
    uint64_t number = 0;
    if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != (ssize_t)sizeof(number)) {
        number = (uint64_t)(peal_clock_ns() % 1000000000) ^ (uint64_t)getpid() << 32;
    }
    snprintf(name, PEAL_NEW_FILE_NAME, "%s%016llx-%s", PEAL_NEW_FILE_PREFIX,
             (unsigned long long)number, word);
}

static int replace(const peal_target *target, const void *data, size_t bytes)
{
    char name[PEAL_NEW_FILE_NAME];
    int file = -1;

    peal_target_clean(target, NULL);
    peal_new_file_name(name, "file");
    int error = peal_target_create(target, name, &file);
    if (error)
        return error;
    error = peal_write_all(file, data, bytes, 0);
    if (!error)
        error = peal_target_commit(target, name, file);
    if (error)
        unlinkat(target->folder, name, 0);
    close(file);
    return error;
}

static int write_device(const peal_target *target, const void *data, size_t bytes)
{
    int error = 0, file = openat(target->folder, target->name, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return errno;
    for (const char *at = data; bytes > 0 && !error;) {
        ssize_t done = write(file, at, bytes);
        if (done > 0) {
            at += done;
            bytes -= (size_t)done;
        } else if (done == 0 || errno != EINTR) {
            error = done == 0 ? EIO : errno;
        }
    }
    close(file);
    return error;
}

int peal_file_replace(const void *data, size_t bytes, const char *path, mode_t mode)
{
    peal_size_guard guard;
    peal_target target;

    int error = peal_target_open(NULL, path, &target);
    if (error)
        return error;
    if (mode && !target.exists) {
        target.exists = true;
        target.owner = geteuid();
        target.group = getegid();
    }
    if (mode)
        target.mode = mode;
    peal_size_guard_begin(&guard);
    error = target.is_device ? write_device(&target, data, bytes) : replace(&target, data, bytes);
    peal_size_guard_end(&guard);
    peal_target_close(&target);
    return error;
}
