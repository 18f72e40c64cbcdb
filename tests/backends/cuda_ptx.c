/* Follows the address of each suspicious load to where it comes from. */
#define _GNU_SOURCE
#include "tests/backends/cuda_ptx.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_REGISTERS = 64, NAME_BYTES = 32 };

typedef struct search {
    const char *begin, *end; /* of the function */
    char seen[MOST_REGISTERS][NAME_BYTES];
    int count;
} search;

static bool is_table(search *s, const char *name);

/* What a line that sets the register makes of it: a table's address plus something? */
static bool line_gives_table(search *s, const char *line)
{
    char opcode[32] = "", target[NAME_BYTES] = "", first[64] = "", second[64] = "";

    if (sscanf(line, " %31s %31[^,], %63[^,;], %63[^,;]", opcode, target, first, second) < 3)
        return false;
    if (strncmp(opcode, "mov.", 4) == 0 || strncmp(opcode, "cvta.", 5) == 0)
        return strncmp(first, "__cudart_", 9) == 0 || (*first == '%' && is_table(s, first));
    if (strncmp(opcode, "add.", 4) != 0)
        return false;
    return (*first == '%' && is_table(s, first)) || (*second == '%' && is_table(s, second));
}

/* All that sets the register makes it point into a table. */
static bool is_table(search *s, const char *name)
{
    char pattern[NAME_BYTES + 4];
    bool any = false;

    for (int i = 0; i < s->count; i++)
        if (strcmp(s->seen[i], name) == 0)
            return true; /* of a loop: its other setters decide */
    if (s->count == MOST_REGISTERS)
        return false;
    snprintf(s->seen[s->count++], NAME_BYTES, "%s", name);
    snprintf(pattern, sizeof(pattern), "\t%s, ", name);
    for (const char *at = s->begin; (at = strstr(at, pattern)) && at < s->end; at++) {
        const char *line = at;
        while (line > s->begin && line[-1] != '\n')
            line--;
        any = true;
        if (!line_gives_table(s, line))
            return false;
    }
    return any;
}

static bool loads_table(const char *ptx, const char *load)
{
    char name[NAME_BYTES] = "";
    const char *address = strchr(load, '[');
    search *s = calloc(1, sizeof(*s));

    s->begin = ptx;
    for (const char *at = ptx; (at = strstr(at, "\n{\n")) && at < load; at++)
        s->begin = at;
    const char *end = strstr(load, "\n}\n");
    s->end = end ? end : load + strlen(load);
    bool table = address && sscanf(address, "[%31[%a-z0-9]", name) == 1 && is_table(s, name);
    free(s);
    return table;
}

const char *ptx_non_coherent(const char *ptx)
{
    static const char *const words[] = {"ld.global.nc", "ldu.global", "\ttex.", "\ttld4.",
                                        "\tsuld."};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        for (const char *at = ptx; (at = strstr(at, words[i])); at++)
            if (!loads_table(ptx, at))
                return at;
    return NULL;
}
