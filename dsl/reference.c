/* The reference page of the language, in Markdown, from the key table: docs/spec-reference.md. */
#include "dsl/dsl.h"
#include "dsl/keys.h"

#include <string.h>

static const char introduction[] =
    "# Reference of the spec's keys, version 1\n"
    "\n"
    "This page is generated from the table that the reader uses; a test compares the two. A spec "
    "is\n"
    "YAML without anchors, aliases, tags and merge keys. Any key that is not listed is an error. "
    "A\n"
    "list of one item needs no brackets.\n"
    "\n"
    "**Expressions** hold integers (64 bits, overflow is an error), reals, `true`, `false`, "
    "params,\n"
    "`rank ranks rx ry rz Rx Ry Rz`, loop counters, `u.nx u.x0` (extent and first coordinate of "
    "my\n"
    "part of field u; y, z alike), `b.count`, and the operators `or and not == != < <= > >= + - * "
    "/\n"
    "%`, `a if c else b` and functions `min max abs sqrt floor ceil`. `/` of integers rounds down, "
    "`%` is\n"
    "never negative. Of what is known before the run also `x ** y log2 sin cos tan exp log tanh`: "
    "whole\n"
    "numbers to a power are exact, log2 of one is exact or an error. `pi` is a number. Buffers of "
    "one\n"
    "element have a value in `args set when until print`. Quote what holds a comma: `\"min(a, "
    "b)\"`.\n"
    "\n"
    "**Amounts** are a number (each end of every axis), or a list by axis of numbers or\n"
    "`[low, high]`. **Ranges** list `[first, end]` by axis, **directions** -1, 0 or 1 by axis.\n";

static void print_words(const char *words, FILE *stream)
{
    const char *before = "";
    while (*words) {
        size_t length = strcspn(words, " ");
        fprintf(stream, "%s`%.*s`", before, (int)length, words);
        words += length + (words[length] == ' ');
        before = ", ";
    }
}

static void print_key(const peal_key *key, FILE *stream)
{
    fprintf(stream, "| `%s` | ", key->name);
    const peal_key_kind *kind = peal_key_kind_of(key);
    if (!kind->definition)
        print_words(key->words, stream);
    else {
        fputs(kind->name, stream);
        if (key->words) {
            fputs("; or ", stream);
            print_words(key->words, stream);
        }
    }
    fprintf(stream, " | %s | %s |\n", key->required ? "yes" : "", key->doc);
}

static void print_context(const peal_context *context, FILE *stream)
{
    fprintf(stream, "\n## %s\n\n%s\n\n```yaml\n%s\n```\n\n", context->title, context->doc,
            context->example);
    fputs("| key | value | needed | meaning |\n|---|---|---|---|\n", stream);
    for (int i = 0; i < context->key_count; i++)
        print_key(&context->key[i], stream);
}

void peal_reference_print(FILE *stream)
{
    fputs(introduction, stream);
    for (int id = PEAL_CONTEXT_SPEC; id < PEAL_CONTEXT_COUNT; id++)
        print_context(peal_context_at((peal_context_id)id), stream);
    for (int id = PEAL_CONTEXT_MACHINE; id < PEAL_CONTEXT_SPEC; id++)
        print_context(peal_context_at((peal_context_id)id), stream);
}
