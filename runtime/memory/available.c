/* How much memory is left: the smallest of what /proc/meminfo and each control group above this
 * process (version 2 or 1) say.
 *
 * A control group's limit is met by the kernel with a kill, not with an error code, so it has to
 * be asked before memory is taken. */
#define _GNU_SOURCE
#include "runtime/memory/available.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096 };

/* The number after `key` at the start of a line, or at the start of the file if key is "". */
static bool read_number(const char *path, const char *key, int64_t *out)
{
    FILE *file = fopen(path, "re");
    char line[512];
    bool found = false;
    if (!file)
        return false;
    while (!found && fgets(line, sizeof(line), file)) {
        size_t length = strlen(key);
        char *end;
        if (strncmp(line, key, length))
            continue;
        int64_t value = strtoll(line + length, &end, 10);
        if (end != line + length) {
            *out = value;
            found = true;
        } else if (!length)
            break; /* "max": no limit */
    }
    fclose(file);
    return found;
}

typedef struct smallest {
    int64_t bytes;
    char *reason;
    size_t reason_bytes;
} smallest;

static void offer(smallest *least, int64_t bytes, const char *what, const char *name)
{
    if (bytes < 0)
        bytes = 0;
    if (bytes >= least->bytes)
        return;
    least->bytes = bytes;
    snprintf(least->reason, least->reason_bytes, "%s%s", what, name);
}

/* File names of one version of control groups. */
typedef struct group_files {
    const char *mount, *limit, *usage, *file_cache;
} group_files;

static void ask_group(smallest *least, const char *root, const group_files *files, const char *path)
{
    char name[PATH_BYTES];
    int64_t limit, usage, cache = 0;
    const char *slash = strcmp(path, "/") ? "/" : "";
    snprintf(name, sizeof(name), "%s%s%s%s%s", root, files->mount, path, slash, files->limit);
    if (!read_number(name, "", &limit))
        return;
    snprintf(name, sizeof(name), "%s%s%s%s%s", root, files->mount, path, slash, files->usage);
    if (!read_number(name, "", &usage))
        return;
    snprintf(name, sizeof(name), "%s%s%s%smemory.stat", root, files->mount, path, slash);
    if (!read_number(name, files->file_cache, &cache))
        cache = 0; /* what the page cache holds can be given back */
    if (limit < (INT64_C(1) << 60))
        offer(least, limit - usage + cache, "control group ", path);
}

/* The group of this process and all above it. */
static void ask_groups(smallest *least, const char *root, const group_files *files, char *path)
{
    path[strcspn(path, "\n")] = 0;
    for (;;) {
        ask_group(least, root, files, path[0] ? path : "/");
        char *slash = strrchr(path, '/');
        if (!path[0] || !path[1] || !slash)
            return;
        *slash = 0;
    }
}

static bool has_memory_controller(const char *controllers, size_t length)
{
    char list[256];
    snprintf(list, sizeof(list), ",%.*s,", (int)(length > 250 ? 250 : length), controllers);
    return strstr(list, ",memory,") != NULL;
}

static void ask_control_groups(smallest *least, const char *root)
{
    static const group_files two = {"/sys/fs/cgroup", "memory.max", "memory.current",
                                    "inactive_file "};
    static const group_files one = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                    "memory.usage_in_bytes", "total_inactive_file "};
    char name[PATH_BYTES], line[PATH_BYTES];
    snprintf(name, sizeof(name), "%s/proc/self/cgroup", root);
    FILE *file = fopen(name, "re");
    if (!file)
        return;
    while (fgets(line, sizeof(line), file)) { /* number:controllers:path */
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        if (path == controllers + 1)
            ask_groups(least, root, &two, path + 1);
        else if (has_memory_controller(controllers + 1, (size_t)(path - controllers - 1)))
            ask_groups(least, root, &one, path + 1);
    }
    fclose(file);
}

int64_t peal_memory_available(const char *root, char *reason, size_t reason_bytes)
{
    smallest least = {INT64_MAX, reason, reason_bytes};
    char name[PATH_BYTES];
    int64_t kibibytes;
    snprintf(reason, reason_bytes, "unknown");
    snprintf(name, sizeof(name), "%s/proc/meminfo", root);
    if (read_number(name, "MemAvailable:", &kibibytes) && kibibytes < (INT64_MAX >> 10))
        offer(&least, kibibytes << 10, "memory of the machine", "");
    ask_control_groups(&least, root);
    return least.bytes;
}
