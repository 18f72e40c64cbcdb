/* Which host a process is started on, and by which command. */
#define _GNU_SOURCE
#include "runtime/launch/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

peal_launch_place peal_launch_place_of(const peal_launch_desc *desc, int process)
{
    int first = 0;
    for (int h = 0; h < desc->host_count; h++) {
        const peal_launch_host *host = &desc->host[h];
        if (process < first + host->processes)
            return (peal_launch_place){host, process - first, host->processes};
        first += host->processes;
    }
    return (peal_launch_place){NULL, process, desc->processes};
}

static size_t count_words(char *const *words)
{
    size_t count = 0;
    while (words && words[count])
        count++;
    return count;
}

static bool is_here(const peal_launch_place *place)
{
    return !place->host || !strcmp(place->host->name, "localhost");
}

bool peal_launch_is_by_agent(const peal_launch_desc *desc, const peal_launch_place *place)
{
    return !is_here(place) && count_words(desc->agent) > 0;
}

bool peal_launch_command(const peal_launch_desc *desc, const peal_launch_place *place,
                         const char *program, char **path, const char ***words)
{
    size_t agents = is_here(place) ? 0 : count_words(desc->agent), own = count_words(desc->argv);
    size_t count = 0;
    const char **all = calloc(agents + own + 4, sizeof(*all));
    *path = agents ? peal_child_find(desc->agent[0]) : strdup(program);
    if (!all || !*path) {
        errno = all ? ENOENT : ENOMEM;
        free(all);
        free(*path);
        return false;
    }
    for (size_t i = 0; i < agents; i++)
        all[count++] = desc->agent[i];
    if (agents) {
        all[count++] = place->host->name;
        all[count++] = program;
    }
    for (size_t i = agents ? 1 : 0; i < own; i++)
        all[count++] = desc->argv[i];
    if (agents && desc->mark)
        all[count++] = desc->mark;
    *words = all;
    return true;
}
