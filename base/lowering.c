/* The words of --lower: which there are, and which values they take. Backends read them; that they
 * are known is checked everywhere, on the host too, where most have no effect. */
#define _GNU_SOURCE
#include "base/lowering.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Either one of some words, or a number of a range. */
static const struct lowering_key {
    const char *name, *value[6]; /* NULL behind the last */
    int64_t low, high;
} keys[] = {{"signal", {"fused", "kernel", "memop"}, 0, 0},
            {"copy", {"kernel", "engine"}, 0, 0},
            {"until", {"unroll", "while"}, 0, 0},
            {"network", {"word", "doorbell"}, 0, 0},
            {"order", {"tiles", "grid", "tickets", "paper"}, 0, 0},
            {"lanes", {NULL}, 1, 2},
            {"plain", {NULL}, 0, INT64_MAX},
            {"steps", {NULL}, 1, 1024},
            {"bundle", {NULL}, 0, 64},
            {"deep", {NULL}, 1, 63},
            {"blocks", {NULL}, 1, 64},
            {"tile", {NULL}, 1, INT64_MAX}};
enum { KEYS = sizeof(keys) / sizeof(keys[0]), WORD_BYTES = 80 };

/* Values that have another name now. */
static const struct lowering_rename {
    const char *key, *before, *now;
} renames[] = {{"order", "period", "paper"}};
enum { RENAMES = sizeof(renames) / sizeof(renames[0]) };

static bool is_in_range(const char *text, const struct lowering_key *key)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    return !errno && !*end && value >= key->low && value <= key->high;
}

static int count_values(const struct lowering_key *key)
{
    int count = 0;
    while (key->value[count])
        count++;
    return count;
}

static bool takes(const struct lowering_key *key, const char *value)
{
    int count = count_values(key);
    for (int i = 0; i < count; i++)
        if (!strcmp(value, key->value[i]))
            return true;
    return !count && is_in_range(value, key);
}

static void hint_at_value(const struct lowering_key *key, const char *value, char *hint,
                          size_t bytes)
{
    int count = count_values(key);
    size_t used;
    for (int i = 0; i < RENAMES; i++)
        if (!strcmp(key->name, renames[i].key) && !strcmp(value, renames[i].before)) {
            snprintf(hint, bytes, "%s=%s is called %s=%s now", key->name, value, key->name,
                     renames[i].now);
            return;
        }
    const char *nearest = count ? peal_nearest_word(value, key->value, (size_t)count) : NULL;
    if (nearest) {
        snprintf(hint, bytes, "did you mean %s=%s?", key->name, nearest);
        return;
    }
    if (!count && key->high == INT64_MAX) {
        snprintf(hint, bytes, "%s is a number, at least %" PRId64, key->name, key->low);
        return;
    }
    if (!count) {
        snprintf(hint, bytes, "%s is a number from %" PRId64 " to %" PRId64, key->name, key->low,
                 key->high);
        return;
    }
    used = (size_t)snprintf(hint, bytes, "%s is one of", key->name);
    for (int i = 0; i < count && used < bytes; i++)
        used += (size_t)snprintf(hint + used, bytes - used, " %s", key->value[i]);
}

static bool check_word(const char *word, char *hint, size_t bytes)
{
    const char *names[KEYS], *equals = strchr(word, '=');
    char name[WORD_BYTES];
    snprintf(name, sizeof(name), "%.*s", (int)(equals ? equals - word : (long)strlen(word)), word);
    for (int i = 0; i < KEYS; i++) {
        names[i] = keys[i].name;
        if (strcmp(name, keys[i].name))
            continue;
        if (equals && takes(&keys[i], equals + 1))
            return true;
        hint_at_value(&keys[i], equals ? equals + 1 : "", hint, bytes);
        return false;
    }
    const char *nearest = peal_nearest_word(name, names, KEYS);
    if (nearest)
        snprintf(hint, bytes, "did you mean %s=...?", nearest);
    else
        snprintf(hint, bytes, "words are %s", PEAL_LOWERING_WORDS);
    return false;
}

peal_status peal_lowering_check(const char *words, peal_diagnostics *diagnostics)
{
    peal_status status = PEAL_STATUS_OK;
    while (words && *words) {
        char word[WORD_BYTES], hint[400];
        size_t length = strcspn(words, ",");
        snprintf(word, sizeof(word), "%.*s", (int)(length < WORD_BYTES ? length : WORD_BYTES - 1),
                 words);
        if (!check_word(word, hint, sizeof(hint)))
            status = peal_report(diagnostics, PEAL_E_UNKNOWN_LOWERING, (peal_source){0}, hint,
                                 "'%s' is no lowering", word);
        words += length + (words[length] == ',');
    }
    return status;
}
