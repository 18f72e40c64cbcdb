/* Texts: what the builder gets of scalars and lists, with the place of every piece.
 *
 * A list becomes "[a, [b, c]]" whatever its style in the file; each scalar in it is a piece with
 * its own place, so that messages of the expression parser point into the file. */
#include "dsl/reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void peal_reader_report(peal_reader *reader, peal_code code, peal_source place, const char *hint,
                        const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    peal_report(reader->diagnostics, code, place, hint, "%s", text);
    reader->failures++;
}

/* Appends bytes to the pool; false if it is full, which its size rules out. */
static bool append(peal_reader *reader, const char *text, size_t length)
{
    if ((size_t)(reader->pool_end - reader->pool) <= length)
        return false;
    memcpy(reader->pool, text, length);
    reader->pool += length;
    return true;
}

static void append_piece(peal_reader *reader, const char *text, peal_source place)
{
    peal_graph_add_piece(reader->graph, reader->pool, place);
    append(reader, text, strlen(text));
}

/* `grow(a` of {box: grow(a, 1)}: a scalar without quotes in which a parenthesis stays open. */
static bool is_cut(const peal_node *node)
{
    int open = 0;
    for (const char *p = node->text; *p && !node->quoted; p++)
        open += (*p == '(') - (*p == ')');
    return open > 0;
}

static bool check_cut(peal_reader *reader, peal_node *node)
{
    if (node->trapped || !is_cut(node))
        return !node->trapped;
    node->trapped = true;
    reader->trapped = true;
    peal_reader_report(reader, PEAL_E_VALUE_CUT_AT_COMMA, node->at,
                       "within {} and [] YAML ends a value at a comma: quote it, \"min(a, b)\"; "
                       "boxes and footprints are written {a: {grow: 1}}",
                       "`%.60s` is cut off", node->text);
    return false;
}

const char *peal_reader_text(peal_reader *reader, peal_node *node)
{
    if (node->trapped)
        return NULL;
    if (node->kind != PEAL_NODE_SCALAR) {
        peal_reader_report(reader, PEAL_E_WRONG_VALUE_SHAPE, node->at, NULL,
                           "expected a single value, found a %s",
                           node->kind == PEAL_NODE_LIST ? "list" : "map");
        return NULL;
    }
    if (!check_cut(reader, node))
        return NULL;
    if (!node->quoted && (!*node->text || !strcmp(node->text, "~"))) {
        if (!reader->trapped)
            peal_reader_report(reader, PEAL_E_WRONG_VALUE_SHAPE, node->at, NULL,
                               "the value is missing");
        return NULL;
    }
    if (!node->lent) {
        node->lent = reader->pool;
        append_piece(reader, node->text, node->at);
        append(reader, "", 1);
    }
    return node->lent;
}

static bool append_list(peal_reader *reader, peal_node *node)
{
    bool good = true;
    if (node->kind == PEAL_NODE_MAP) {
        peal_reader_report(reader, PEAL_E_WRONG_VALUE_SHAPE, node->at, NULL,
                           "expected a value or a list, found a map");
        return false;
    }
    if (node->kind == PEAL_NODE_SCALAR) {
        good = check_cut(reader, node);
        append_piece(reader, node->text, node->at);
        return good;
    }
    append_piece(reader, "[", node->at);
    for (int i = 0; i < node->count; i++) {
        if (i > 0)
            append(reader, ", ", 2);
        good = append_list(reader, node->item[i]) && good;
    }
    append(reader, "]", 1);
    return good;
}

const char *peal_reader_list(peal_reader *reader, peal_node *node)
{
    if (node->kind != PEAL_NODE_LIST)
        return peal_reader_text(reader, node);
    const char *start = reader->pool;
    bool good = append_list(reader, node);
    append(reader, "", 1);
    return good ? start : NULL;
}

int peal_reader_word(peal_reader *reader, const peal_node *word, const char *const *names,
                     int count, const char *what)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(word->text, names[i]))
            return i;
    const char *nearest = peal_nearest_word(word->text, names, (size_t)count);
    peal_reader_report(reader, PEAL_E_UNKNOWN_WORD, word->at,
                       nearest ? peal_arena_print(reader->arena, "did you mean `%s`?", nearest)
                               : NULL,
                       "`%s` is no %s", word->text, what);
    return -1;
}

const char *peal_reader_key(peal_reader *reader, const peal_pair *pair)
{
    peal_node *key = pair->key;
    if (!key->lent) {
        key->lent = reader->pool;
        append_piece(reader, key->text, key->at);
        append(reader, "", 1);
    }
    return key->lent;
}

static bool is_statement(const char *name)
{
    for (int id = PEAL_CONTEXT_TASK; id < PEAL_CONTEXT_COUNT; id++)
        if (!strcmp(peal_context_at((peal_context_id)id)->name, name))
            return true;
    return false;
}

/* The key that others call so, if the context has it. */
static const char *word_of_others(const peal_context *context, const char *word,
                                  const char *otherwise)
{
    static const char *const words[][2] = {{"if", "when"},     {"shape", "size"},
                                           {"dtype", "type"},  {"ghost", "halo"},
                                           {"ghosts", "halo"}, {"for", "repeat"},
                                           {"loop", "repeat"}, {"do", "step"},
                                           {"body", "step"},   {"from", "to"},
                                           {"to", "from"},     {"dest", "to"},
                                           {"source", "from"}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (!strcmp(word, words[i][0]) && peal_context_find(context, words[i][1]))
            return words[i][1];
    return otherwise;
}

static void report_unknown(peal_reader *reader, const peal_node *map, int index,
                           const peal_context *context)
{
    enum { MOST = 32 };
    const peal_node *key = map->pair[index].key;
    const char *candidates[MOST], *written = key->text;
    int count = 0;
    if (!key->quoted && strchr(key->text, ')') && !strchr(key->text, '(')) {
        peal_node *before = index > 0 ? map->pair[index - 1].value : NULL;
        if (before && before->kind == PEAL_NODE_SCALAR && check_cut(reader, before))
            peal_reader_report(reader, PEAL_E_UNKNOWN_KEY, key->at, NULL,
                               "unknown key `%.100s` in %s", key->text, context->title);
        if (before)
            return;
    }
    if (peal_key_is_reserved(key->text)) {
        peal_reader_report(reader, PEAL_E_RESERVED_KEY, key->at, NULL,
                           "key `%s` is reserved for a later version", key->text);
        return;
    }
    if (is_statement(context->name) && is_statement(key->text)) {
        peal_reader_report(reader, PEAL_E_NOT_A_STATEMENT, key->at, "write two statements",
                           "`%s` and `%s` in one statement", context->name, key->text);
        return;
    }
    for (; count < context->key_count && count < MOST; count++)
        candidates[count] = context->key[count].name;
    const char *hint = NULL;
    const char *nearest =
        reader->failures < 200 ? peal_nearest_word(key->text, candidates, (size_t)count) : NULL;
    nearest = word_of_others(context, key->text, nearest);
    bool is_misplaced = !nearest && context == peal_context_at(PEAL_CONTEXT_SPEC) &&
                        map->pair[index].value->kind == PEAL_NODE_MAP;
    reader->trapped |= is_misplaced; /* a field, perhaps, that is missed where it is used */
    if (nearest) {
        hint = peal_arena_print(reader->arena, "did you mean `%s`?", nearest);
        if (!peal_node_find(map, nearest)) /* it is read as that, lest it be told as missing too */
            map->pair[index].key->text = nearest;
    } else {
        hint =
            is_misplaced ? "is it to be indented, below the line before? keys are:" : "keys are:";
        for (int i = 0; i < count && reader->failures < 200; i++)
            hint = peal_arena_print(reader->arena, "%s %s", hint, candidates[i]);
    }
    peal_reader_report(reader, PEAL_E_UNKNOWN_KEY, key->at, hint, "unknown key `%.100s` in %s",
                       written, context->title);
}

bool peal_reader_check_keys(peal_reader *reader, const peal_node *map, peal_context_id id)
{
    const peal_context *context = peal_context_at(id);
    for (int i = 0; i < map->count; i++)
        if (!peal_context_find(context, map->pair[i].key->text))
            report_unknown(reader, map, i, context);
    bool complete = true;
    for (int i = 0; i < context->key_count; i++) {
        const peal_key *key = &context->key[i];
        if (!key->required || peal_node_find(map, key->name))
            continue;
        complete = false;
        peal_reader_report(reader, PEAL_E_MISSING_KEY, map->at,
                           peal_arena_print(reader->arena, "%s: %.*s", key->name,
                                            (int)strcspn(key->doc, ";"), key->doc),
                           "%s needs the key `%s`", context->title, key->name);
    }
    return complete;
}
