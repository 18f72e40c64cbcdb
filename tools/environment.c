/* The environment variables that peal reads, and the warning about those that it doesn't. */
#define _POSIX_C_SOURCE 200809L
#include "tools/options.h"

#include <stdlib.h>
#include <string.h>

extern char **environ;

/* Name and use. PEAL_TEST_* and PEAL_LAUNCH_* are between parts of peal and never warned of. */
static const struct {
    const char *name, *use;
} variables[] = {
    {"PEAL_CACHE", "folder of compiled kernels and tuned answers (default: XDG_CACHE_HOME/peal or "
                   "~/.cache/peal)"},
    {"PEAL_MACHINE", "machine file whose times mode auto predicts with (default: peal's own)"},
    {"PEAL_RDMA",
     "adapter, port and GID of --transport verbs and mlx5: mlx5_1, mlx5_1:1, mlx5_1:1:3"},
    {"PEAL_LOG", "quiet, error (default) or info: say on standard error how the job was set up"},
};
enum { VARIABLE_COUNT = sizeof(variables) / sizeof(*variables) };

bool environment_describe(int index, const char **name, const char **use)
{
    if (index >= VARIABLE_COUNT)
        return false;
    *name = variables[index].name;
    *use = variables[index].use;
    return true;
}

/* The levels of PEAL_LOG; `debug` says no more than `info` yet. */
static const struct {
    const char *name;
    peal_log_level level;
} levels[] = {{"quiet", PEAL_LOG_QUIET},
              {"error", PEAL_LOG_ERROR},
              {"info", PEAL_LOG_INFO},
              {"debug", PEAL_LOG_INFO}};
enum { LEVEL_COUNT = sizeof(levels) / sizeof(*levels) };

static int find_level(const char *name)
{
    for (int i = 0; i < LEVEL_COUNT; i++)
        if (!strcmp(levels[i].name, name))
            return i;
    return -1;
}

peal_log_level environment_log_level(void)
{
    const char *name = getenv("PEAL_LOG");
    int found = name ? find_level(name) : -1;
    return found < 0 ? PEAL_LOG_ERROR : levels[found].level;
}

static void check_log_level(peal_diagnostics *diagnostics)
{
    const char *name = getenv("PEAL_LOG");
    if (name && find_level(name) < 0)
        peal_warn(diagnostics, PEAL_E_UNKNOWN_ENVIRONMENT_VARIABLE, (peal_source){0},
                  "known: quiet, error, info", "PEAL_LOG has no level '%s'", name);
}

void environment_check(peal_diagnostics *diagnostics)
{
    static const peal_source nowhere;
    const char *names[VARIABLE_COUNT];
    check_log_level(diagnostics);
    for (int i = 0; i < VARIABLE_COUNT; i++)
        names[i] = variables[i].name;
    for (char **entry = environ; *entry; entry++) {
        char name[64], hint[120];
        size_t length = strcspn(*entry, "=");
        if (strncmp(*entry, "PEAL_", 5) || !strncmp(*entry, "PEAL_TEST_", 10) ||
            !strncmp(*entry, "PEAL_LAUNCH_", 12) || length >= sizeof(name))
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)length, *entry);
        bool known = false;
        for (int i = 0; i < VARIABLE_COUNT; i++)
            known |= !strcmp(name, names[i]);
        if (known)
            continue;
        const char *nearest = peal_nearest_word(name, names, VARIABLE_COUNT);
        if (nearest)
            snprintf(hint, sizeof(hint), "did you mean %s?", nearest);
        peal_warn(diagnostics, PEAL_E_UNKNOWN_ENVIRONMENT_VARIABLE, nowhere,
                  nearest ? hint : "`peal doctor` lists the variables that exist",
                  "nobody reads the environment variable %s", name);
    }
}
