/* The environment variables that peal reads, and the warning about those that it doesn't. */
#define _POSIX_C_SOURCE 200809L
#include "tools/options.h"

#include <string.h>

extern char **environ;

/* Name and use. PEAL_TEST_* and PEAL_LAUNCH_* are between parts of peal and never warned of. */
static const struct {
    const char *name, *use;
} variables[] = {
    {"PEAL_CACHE", "folder of compiled kernels (default: XDG_CACHE_HOME/peal)"},
    {"PEAL_LOG", "info or debug: say on standard error how the job was set up"},
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

void environment_check(peal_diagnostics *diagnostics)
{
    static const peal_source nowhere;
    const char *names[VARIABLE_COUNT];
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
        peal_warn(diagnostics, PEAL_E405, nowhere,
                  nearest ? hint : "`peal doctor` lists the variables that exist",
                  "nobody reads the environment variable %s", name);
    }
}
