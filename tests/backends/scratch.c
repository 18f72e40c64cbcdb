/* Folders of a test's own, and files in them. */
#define _GNU_SOURCE
#include "tests/backends/scratch.h"

#include "tests/backends/check.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

bool scratch_make(char *path, size_t bytes)
{
    snprintf(path, bytes, "/tmp/peal-test-XXXXXX");
    return mkdtemp(path) != NULL;
}

bool scratch_keep(char *path, size_t bytes, const char *name)
{
    const char *cache = getenv("PEAL_TEST_CACHE");

    if (!cache || !*cache)
        return scratch_make(path, bytes);
    return snprintf(path, bytes, "%s/%s", cache, name) < (int)bytes &&
           (mkdir(path, 0700) == 0 || errno == EEXIST);
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

void scratch_write(const char *folder, const char *name, const char *text)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

int scratch_entries(const char *folder, char *last, size_t bytes)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    int count = 0;

    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.') {
            snprintf(last, bytes, "%s/%s", folder, entry->d_name);
            count++;
        }
    if (dir)
        closedir(dir);
    return count;
}
