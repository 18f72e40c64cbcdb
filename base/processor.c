/* Reads the system's description of the first processor. */
#define _GNU_SOURCE
#include "base/processor.h"

#include <stdio.h>
#include <string.h>

static const char place[] = "/proc/cpuinfo";

void peal_processor_add(peal_sha256 *hash)
{
    static const char *const keys[] = {"vendor_id", "cpu family", "model",   "stepping",
                                       "flags",     "Features",   "CPU part"};
    FILE *file = fopen(place, "re");
    char line[8192];

    while (file && fgets(line, sizeof(line), file) && line[0] != '\n')
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
            if (strncmp(line, keys[i], strlen(keys[i])) == 0)
                peal_sha256_add(hash, line, strlen(line));
    if (file)
        fclose(file);
}

void peal_processor_name(char *text, size_t bytes)
{
    static const char key[] = "model name";
    FILE *file = fopen(place, "re");
    char line[8192];

    snprintf(text, bytes, "unknown processor");
    while (file && fgets(line, sizeof(line), file) && line[0] != '\n') {
        const char *value = strchr(line, ':');
        if (strncmp(line, key, sizeof(key) - 1) != 0 || !value)
            continue;
        value += 1 + strspn(value + 1, " \t");
        snprintf(text, bytes, "%.*s", (int)strcspn(value, "\n"), value);
        break;
    }
    if (file)
        fclose(file);
}
