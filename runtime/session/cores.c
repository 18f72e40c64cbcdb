/* Cores that a job may use: the union of its processes' affinities, and the time that control
 * groups give (cpu.max of version 2, cpu.cfs_quota_us of version 1), those above a process's own
 * included. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "runtime/session/cores.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_BYTES = 4096 };

/* The first line of a file; false: there is none. */
static bool read_line(const char *path, char *line, size_t bytes)
{
    FILE *file = fopen(path, "re");
    bool good = file && fgets(line, (int)bytes, file);
    if (file)
        fclose(file);
    return good;
}

/* The quota and period of a group, in microseconds; false: it has no quota. */
static bool read_quota(const char *folder, bool second_version, long long *quota, long long *period)
{
    char path[PATH_BYTES + 32], line[64];
    if (second_version) {
        snprintf(path, sizeof(path), "%s/cpu.max", folder);
        return read_line(path, line, sizeof(line)) &&
               sscanf(line, "%lld %lld", quota, period) == 2 && *quota > 0 && *period > 0;
    }
    snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", folder);
    if (!read_line(path, line, sizeof(line)) || sscanf(line, "%lld", quota) != 1 || *quota <= 0)
        return false;
    snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", folder);
    return read_line(path, line, sizeof(line)) && sscanf(line, "%lld", period) == 1 && *period > 0;
}

/* A group and all above it. */
static void ask_groups(const char *mount, bool second_version, char *path, peal_core_share *out)
{
    char folder[PATH_BYTES];
    struct stat info;
    long long quota, period;
    for (;;) {
        if (snprintf(folder, sizeof(folder), "%s%s", mount, path) < PATH_BYTES &&
            read_quota(folder, second_version, &quota, &period)) {
            int64_t cores = quota / period > 0 ? quota / period : 1;
            if ((!out->group || cores < out->quota) && !stat(folder, &info)) {
                out->quota = cores;
                out->group = ((uint64_t)info.st_dev << 40 ^ (uint64_t)info.st_ino) + 1;
            }
        }
        char *slash = strrchr(path, '/');
        if (!*path || !slash)
            return;
        *slash = 0;
    }
}

static void ask_control_groups(const char *root, peal_core_share *out)
{
    char name[PATH_BYTES], line[PATH_BYTES], mount[PATH_BYTES];
    snprintf(name, sizeof(name), "%s/proc/self/cgroup", root);
    FILE *file = fopen(name, "re");
    if (!file)
        return;
    while (fgets(line, sizeof(line), file)) { /* number:controllers:path */
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = 0;
        path[strcspn(path, "\n")] = 0;
        bool second_version = !controllers[1];
        bool of_cpu = second_version || !strncmp(controllers + 1, "cpu,", 4) ||
                      !strcmp(controllers + 1, "cpu") || strstr(controllers + 1, ",cpu,") ||
                      !strcmp(controllers + 1, "cpuacct,cpu");
        snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup%s", root, second_version ? "" : "/cpu");
        if (of_cpu)
            ask_groups(mount, second_version, path, out);
    }
    fclose(file);
}

void peal_cores_ask(const char *root, peal_core_share *out)
{
    cpu_set_t set;
    *out = (peal_core_share){{0}};
    if (sched_getaffinity(0, sizeof(set), &set))
        CPU_ZERO(&set);
    for (int core = 0; core < 64 * PEAL_CORE_WORDS && core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &set))
            out->allowed[core / 64] |= (uint64_t)1 << core % 64;
    ask_control_groups(root, out);
}

/* The time of the groups that the processes are in; INT64_MAX: somebody's is not limited. */
static int64_t quota_of(const peal_core_share *share, int processes)
{
    int64_t sum = 0;
    for (int p = 0; p < processes; p++) {
        bool known = false;
        if (!share[p].group)
            return INT64_MAX;
        for (int other = 0; other < p && !known; other++)
            known = share[other].group == share[p].group;
        sum += known ? 0 : share[p].quota;
    }
    return sum;
}

int peal_cores_of(const peal_core_share *share, int processes)
{
    int cores = 0;
    for (int word = 0; word < PEAL_CORE_WORDS; word++) {
        uint64_t any = 0;
        for (int p = 0; p < processes; p++)
            any |= share[p].allowed[word];
        cores += __builtin_popcountll(any);
    }
    int64_t quota = quota_of(share, processes);
    cores = quota < cores ? (int)quota : cores;
    return cores > 0 ? cores : 1;
}
