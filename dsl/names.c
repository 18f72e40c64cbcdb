/* Names: which are well formed, which are taken, the table of those that a graph declares, and
 * hints for those that nobody knows. */
#include "dsl/parser.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_SIZE = 64, NAME_BYTES = 63 };

static const char *const reserved[] = {"rank", "ranks", "rx",   "ry",   "rz",    "Rx",   "Ry",
                                       "Rz",   "step",  "and",  "or",   "not",   "true", "false",
                                       "min",  "max",   "abs",  "sqrt", "floor", "ceil", "all",
                                       "auto", "whole", "tile", "if",   "else",  "pi"};

bool peal_is_name(const char *text)
{
    size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    return length > 0 && length <= NAME_BYTES && !text[length] &&
           !(text[0] >= '0' && text[0] <= '9');
}

bool peal_is_reserved(const char *name)
{
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
        if (!strcmp(name, reserved[i]))
            return true;
    return false;
}

static size_t hash_name(const char *name)
{
    uint64_t hash = 14695981039346656037u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 1099511628211u;
    return (size_t)(hash ^ hash >> 29);
}

/* The slot of name, or the free one where it would be. */
static struct peal_name_slot *slot_of(const peal_name_table *table, const char *name)
{
    size_t i = hash_name(name) & (table->size - 1);
    while (table->slot[i].name && strcmp(table->slot[i].name, name))
        i = (i + 1) & (table->size - 1);
    return &table->slot[i];
}

static void grow(peal_arena *arena, peal_name_table *table)
{
    peal_name_table larger = {.size = table->size ? 2 * table->size : FIRST_SIZE,
                              .used = table->used};
    larger.slot = PEAL_ARENA_ARRAY(arena, struct peal_name_slot, larger.size);
    for (size_t i = 0; i < table->size; i++)
        if (table->slot[i].name)
            *slot_of(&larger, table->slot[i].name) = table->slot[i];
    *table = larger;
}

bool peal_name_add(peal_arena *arena, peal_name_table *table, const char *name, peal_name_kind kind,
                   int index, struct peal_name_slot *slot)
{
    if (2 * (table->used + 1) > table->size)
        grow(arena, table);
    struct peal_name_slot *own = slot_of(table, name);
    if (own->name) {
        *slot = *own;
        return false;
    }
    own->name = name;
    own->kind = kind;
    own->index = index;
    table->used++;
    return true;
}

bool peal_name_find(const peal_name_table *table, const char *name, struct peal_name_slot *slot)
{
    const struct peal_name_slot *own = table->size ? slot_of(table, name) : NULL;
    if (!own || !own->name)
        return false;
    *slot = *own;
    return true;
}

void peal_parser_report(peal_parser *parser, peal_code code, const char *at, peal_source source,
                        const char *hint, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    char text[512];
    int used = vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    for (int i = 0; i < parser->bound_count && used < (int)sizeof(text); i++)
        used += snprintf(text + used, sizeof(text) - (size_t)used, "%s%s = %" PRId64,
                         i ? ", " : ", where ", parser->bound[i].name, parser->bound[i].value);
    peal_report(parser->diagnostics, code, peal_graph_place(parser->graph, at, source), hint, "%s",
                text);
    parser->failures++;
}

const char *peal_parser_hint(peal_parser *parser, const char *word, const char *const *candidates,
                             size_t count)
{
    enum { HINTS = 200 }; /* after that many mistakes nobody reads them, and they cost time */
    const char *nearest =
        parser->failures < HINTS ? peal_nearest_word(word, candidates, count) : NULL;
    return nearest ? peal_arena_print(parser->graph->arena, "did you mean `%s`?", nearest) : NULL;
}
