/* How much memory is left: the smallest of what /proc/meminfo, each control group above this
 * process (version 2 or 1) and `ulimit -v` say.
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
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Takes one limit: what is left of it, and whose it is. */
typedef void limit_function(void *user, int64_t bytes, uint64_t id, const char *what,
                            const char *name);

typedef struct memory_survey {
    const char *root;
    limit_function *offer;
    void *user;
} memory_survey;

static void offer(const memory_survey *survey, int64_t bytes, uint64_t id, const char *what,
                  const char *name)
{
    survey->offer(survey->user, bytes < 0 ? 0 : bytes, id, what, name);
}

/* The same directory is the same group, also where containers give it other paths. */
static uint64_t identity_of(const char *folder)
{
    struct stat info;
    if (stat(folder, &info))
        return 1;
    return ((uint64_t)info.st_dev << 40 ^ (uint64_t)info.st_ino) + 2;
}

/* File names of one version of control groups. */
typedef struct group_files {
    const char *mount, *limit, *usage, *file_cache;
} group_files;

static void ask_group(const memory_survey *survey, const group_files *files, const char *path)
{
    char name[PATH_BYTES];
    int64_t limit, usage, cache = 0;
    const char *slash = strcmp(path, "/") ? "/" : "", *root = survey->root;
    snprintf(name, sizeof(name), "%s%s%s%s%s", root, files->mount, path, slash, files->limit);
    if (!read_number(name, "", &limit))
        return;
    snprintf(name, sizeof(name), "%s%s%s%s%s", root, files->mount, path, slash, files->usage);
    if (!read_number(name, "", &usage))
        return;
    snprintf(name, sizeof(name), "%s%s%s%smemory.stat", root, files->mount, path, slash);
    if (!read_number(name, files->file_cache, &cache))
        cache = 0; /* what the page cache holds can be given back */
    snprintf(name, sizeof(name), "%s%s%s", root, files->mount, path);
    if (limit < (INT64_C(1) << 60))
        offer(survey, limit - usage + cache, identity_of(name), "control group ", path);
}

/* The group of this process and all above it. */
static void ask_groups(const memory_survey *survey, const group_files *files, char *path)
{
    path[strcspn(path, "\n")] = 0;
    for (;;) {
        ask_group(survey, files, path[0] ? path : "/");
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

static void ask_control_groups(const memory_survey *survey)
{
    static const group_files two = {"/sys/fs/cgroup", "memory.max", "memory.current",
                                    "inactive_file "};
    static const group_files one = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                    "memory.usage_in_bytes", "total_inactive_file "};
    char name[PATH_BYTES], line[PATH_BYTES];
    snprintf(name, sizeof(name), "%s/proc/self/cgroup", survey->root);
    FILE *file = fopen(name, "re");
    if (!file)
        return;
    while (fgets(line, sizeof(line), file)) { /* number:controllers:path */
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        if (path == controllers + 1)
            ask_groups(survey, &two, path + 1);
        else if (has_memory_controller(controllers + 1, (size_t)(path - controllers - 1)))
            ask_groups(survey, &one, path + 1);
    }
    fclose(file);
}

int64_t peal_address_space_left(void)
{
    struct rlimit limit;
    int64_t pages = 0;
    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur >= (rlim_t)INT64_MAX ||
        !read_number("/proc/self/statm", "", &pages))
        return INT64_MAX;
    int64_t left = (int64_t)limit.rlim_cur - pages * sysconf(_SC_PAGESIZE);
    return left > 0 ? left : 0;
}

/* Of this process alone. */
static void ask_address_space(const memory_survey *survey)
{
    int64_t left = peal_address_space_left();
    if (left < INT64_MAX)
        offer(survey, left, UINT64_MAX - (uint64_t)getpid(), "address space, ulimit -v", "");
}

static void ask_all(const memory_survey *survey)
{
    char name[PATH_BYTES];
    int64_t kibibytes;
    snprintf(name, sizeof(name), "%s/proc/meminfo", survey->root);
    if (read_number(name, "MemAvailable:", &kibibytes) && kibibytes < (INT64_MAX >> 10))
        offer(survey, kibibytes << 10, 0, "memory of the machine", "");
    ask_control_groups(survey);
    ask_address_space(survey);
}

typedef struct smallest {
    int64_t bytes;
    char *reason;
    size_t reason_bytes;
} smallest;

static void keep_smallest(void *user, int64_t bytes, uint64_t id, const char *what,
                          const char *name)
{
    smallest *least = user;
    (void)id;
    if (bytes >= least->bytes)
        return;
    least->bytes = bytes;
    snprintf(least->reason, least->reason_bytes, "%s%s", what, name);
}

int64_t peal_memory_available(const char *root, char *reason, size_t reason_bytes)
{
    smallest least = {INT64_MAX, reason, reason_bytes};
    memory_survey survey = {root, keep_smallest, &least};
    snprintf(reason, reason_bytes, "unknown");
    ask_all(&survey);
    return least.bytes;
}

/* ---- the room of several processes ---- */

static void keep_limit(void *user, int64_t bytes, uint64_t id, const char *what, const char *name)
{
    peal_memory_room *room = user;
    size_t most = sizeof(room->limit[0].name) - strlen(what) - 1, length = strlen(name);
    int at = room->limit_count;
    if (at == PEAL_MEMORY_LIMITS) { /* instead of the one that leaves most */
        at = 0;
        for (int i = 1; i < PEAL_MEMORY_LIMITS; i++)
            at = room->limit[i].bytes > room->limit[at].bytes ? i : at;
        if (room->limit[at].bytes <= bytes)
            return;
    } else
        room->limit_count++;
    room->limit[at].id = id;
    room->limit[at].bytes = bytes;
    snprintf(room->limit[at].name, sizeof(room->limit[at].name), "%s%s", what,
             length > most ? name + length - most : name);
}

void peal_memory_room_ask(const char *root, int64_t need, peal_memory_room *out)
{
    memory_survey survey = {root, keep_limit, out};
    memset(out, 0, sizeof(*out)); /* all of it is sent */
    out->need = need;
    ask_all(&survey);
}

static const peal_memory_limit *limit_of(const peal_memory_room *room, uint64_t id)
{
    for (int i = 0; i < room->limit_count && i < PEAL_MEMORY_LIMITS; i++)
        if (room->limit[i].id == id)
            return &room->limit[i];
    return NULL;
}

bool peal_memory_room_exceeded(const peal_memory_room *all, int processes, int64_t *need,
                               int64_t *have, int *sharers, const char **name)
{
    for (int p = 0; p < processes; p++)
        for (int i = 0; i < all[p].limit_count && i < PEAL_MEMORY_LIMITS; i++) {
            const peal_memory_limit *limit = &all[p].limit[i];
            *need = *sharers = 0;
            *have = limit->bytes;
            *name = limit->name;
            for (int q = 0; q < processes; q++) {
                const peal_memory_limit *same = limit_of(&all[q], limit->id);
                if (!same)
                    continue;
                ++*sharers;
                if (__builtin_add_overflow(*need, all[q].need, need))
                    *need = INT64_MAX;
                *have = same->bytes < *have ? same->bytes : *have;
            }
            if (*need > *have)
                return true;
        }
    return false;
}
