/* Files that appear whole: a new file beside the old one, synced, renamed over it, and the folder
 * synced. Whatever ends the process in between, the name stands for the old file or the new one. */
#ifndef PEAL_BASE_NEW_FILE_H
#define PEAL_BASE_NEW_FILE_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What new files are called until they are whole: others of this prefix that no process holds are
 * left behind by killed ones, and removed. */
#define PEAL_NEW_FILE_PREFIX ".peal-new-"
enum { PEAL_NEW_FILE_NAME = 96 };

/* Where a file will be. */
typedef struct peal_target {
    int folder; /* open */
    char folder_path[PATH_MAX];
    char name[NAME_MAX + 1];
    bool exists;    /* with this mode, owner and group, which the new file gets */
    bool is_device; /* a character device: written in place, there is nothing to lose */
    mode_t mode;
    uid_t owner;
    gid_t group;
} peal_target;

/* Follows links to where the file is or will be, and opens its folder. root: a folder that it must
 * not leave; NULL: anywhere. 0, or an errno: EXDEV: outside of root; EISDIR; EINVAL: something else
 * than a file or character device; EACCES: the file that is there must not be written. */
int peal_target_open(const char *root, const char *path, peal_target *out);
/* The same to read it: it need not be a file, nor may be written. */
int peal_target_find(const char *root, const char *path, peal_target *out);
/* The whole path, links resolved. */
void peal_target_path(const peal_target *target, char *path, size_t bytes);
void peal_target_close(peal_target *target);

/* Creates the new file of this name, or opens it where another rank of the job has; a lock on it
 * says that it is in use until it is closed. 0 or an errno. */
int peal_target_create(const peal_target *target, const char *name, int *descriptor);
/* Gives the new file its mode, syncs it and moves it to the target. 0 or an errno: then the target
 * is as it was, unless only syncing the folder failed. */
int peal_target_commit(const peal_target *target, const char *name, int descriptor);
/* What was written is on the disk; a file system without that is fine. 0 or an errno. */
int peal_sync(int descriptor);
/* Removes what killed processes left in the folder, but not what begins with `ours`, if not NULL.
 */
void peal_target_clean(const peal_target *target, const char *ours);

/* Writes or reads all; 0, an errno, or -1: the file has ended. */
int peal_write_all(int descriptor, const void *data, size_t bytes, off_t offset);
int peal_read_all(int descriptor, void *data, size_t bytes, off_t offset);

/* Keeps a write beyond the limit of file sizes (EFBIG) from ending the process, in this thread. */
typedef struct peal_size_guard {
    sigset_t mask;
    bool was_pending;
} peal_size_guard;
void peal_size_guard_begin(peal_size_guard *guard);
void peal_size_guard_end(const peal_size_guard *guard);

/* Replaces the file at path by these bytes. mode: the file's; 0: what it was, or by the umask. 0 or
 * an errno. A character device is written to. */
int peal_file_replace(const void *data, size_t bytes, const char *path, mode_t mode);
/* A name for a new file that nobody else has; `word`: what it is for. */
void peal_new_file_name(char name[PEAL_NEW_FILE_NAME], const char *word);

#endif
