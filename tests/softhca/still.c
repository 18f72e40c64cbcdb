/* Looks at /proc: states, clocks and context switches of all threads of a process. */
#define _GNU_SOURCE
#include "tests/softhca/still.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

stillness look_at(pid_t pid)
{
    stillness s = {0};
    char path[320], line[256], state;
    unsigned long count;
    clockid_t clock;
    struct timespec t = {0};
    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    for (struct dirent *e; tasks && (e = readdir(tasks));) {
        if (*e->d_name == '.')
            continue;
        snprintf(path, sizeof(path), "/proc/%d/task/%s/status", pid, e->d_name);
        FILE *status = fopen(path, "re");
        s.threads++;
        while (status && fgets(line, sizeof(line), status)) {
            if (sscanf(line, "State: %c", &state) == 1)
                s.stopped += state == 'T';
            if (sscanf(line, "voluntary_ctxt_switches: %lu", &count) == 1 ||
                sscanf(line, "nonvoluntary_ctxt_switches: %lu", &count) == 1)
                s.switches += count;
        }
        if (status)
            fclose(status);
    }
    if (tasks)
        closedir(tasks);
    if (!clock_getcpuclockid(pid, &clock))
        clock_gettime(clock, &t);
    s.cpu_ns = t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
    return s;
}

void stop_all(const pid_t *pid, int count, stillness *seen)
{
    for (int i = 0; i < count; i++)
        kill(pid[i], SIGSTOP);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < 2000; k++) {
            seen[i] = look_at(pid[i]);
            if (seen[i].stopped == seen[i].threads)
                break;
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
}

bool was_still(int i, const stillness *before, const stillness *after)
{
    printf("  rank %d: threads %d, in state T %d before and %d after; CPU %lld ns, context "
           "switches %lld "
           "meanwhile\n",
           i, before->threads, before->stopped, after->stopped,
           (long long)(after->cpu_ns - before->cpu_ns),
           (long long)(after->switches - before->switches));
    return before->stopped == before->threads && after->stopped == after->threads &&
           after->cpu_ns == before->cpu_ns && after->switches == before->switches;
}
