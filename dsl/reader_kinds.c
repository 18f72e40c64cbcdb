/* Values of keys, by type: a small function each, in one table. peal_reader_fill reads a map into
 * a struct with it, row by row of the table of keys. */
#include "base/number.h"
#include "dsl/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void read_text(peal_reader *r, const peal_key *key, peal_node *node, void *out)
{
    *(const char **)peal_key_member(key, out) = peal_reader_text(r, node);
}

static void read_list(peal_reader *r, const peal_key *key, peal_node *node, void *out)
{
    *(const char **)peal_key_member(key, out) = peal_reader_list(r, node);
}

/* A text, or a list of texts. */
static void read_texts(peal_reader *r, const peal_key *key, peal_node *node, void *out)
{
    const char **text = peal_key_member(key, out);
    int count = 0, most = peal_key_room(key);
    bool is_list = node->kind == PEAL_NODE_LIST;
    for (int i = 0; i < (is_list ? node->count : 1); i++) {
        peal_node *item = is_list ? node->item[i] : node;
        if (count == most) {
            peal_reader_report(r, PEAL_E_TOO_MANY_ITEMS, item->at, NULL, "more than %d items",
                               most);
            return;
        }
        const char *value = peal_reader_text(r, item);
        if (value)
            text[count++] = value;
    }
}

static void read_pair(peal_reader *r, const peal_key *key, peal_node *node, void *out)
{
    if (node->kind != PEAL_NODE_LIST || node->count != 2)
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, node->at,
                           peal_arena_print(r->arena, "write {%s: [a, b]}", key->name),
                           "expected a list of two names");
    else
        read_texts(r, key, node, out);
}

static void read_boolean(peal_reader *r, const peal_key *key, peal_node *node, void *out)
{
    bool is_plain = node->kind == PEAL_NODE_SCALAR && !node->quoted;
    bool is_true = is_plain && !strcmp(node->text, "true");
    if (!is_true && !(is_plain && !strcmp(node->text, "false")))
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, node->at, NULL, "expected true or false");
    *(bool *)peal_key_member(key, out) = is_true;
}

/* The only word is said, or the key is left out. */
static void read_consent(peal_reader *r, const peal_key *key, peal_node *node, void *out)
{
    const char *word = peal_reader_text(r, node);
    bool is_said = word && !strcmp(word, key->words);
    *(bool *)peal_key_member(key, out) = is_said;
    if (word && !is_said)
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, node->at,
                           peal_arena_print(r->arena, "leave `%s` out where it is not meant so",
                                            key->name),
                           "expected `%s: %s`", key->name, key->words);
}

/* Of the language or of machine files, whichever begins with this key. */
static void read_version(peal_reader *r, const peal_key *key, peal_node *node, void *out)
{
    (void)out;
    if (node->kind != PEAL_NODE_SCALAR || strcmp(node->text, "1"))
        peal_reader_report(r, PEAL_E_WRONG_VERSION, node->at,
                           peal_arena_print(r->arena, "write `%s: 1`", key->name),
                           "this peal reads version 1 of %s",
                           strcmp(key->name, "peal") ? "machine files" : "the language");
}

/* A scalar without quotes, of these characters. */
static bool is_made_of(const peal_node *node, const char *characters)
{
    return node->kind == PEAL_NODE_SCALAR && !node->quoted && *node->text &&
           strspn(node->text, characters) == strlen(node->text);
}

/* A whole number from 1 to `most`; 0: reported. */
static int64_t whole_number(peal_reader *r, const peal_key *key, const peal_node *node)
{
    if (!is_made_of(node, "0123456789")) {
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, node->at, NULL, "`%s` is a whole number",
                           key->name);
        return 0;
    }
    errno = 0;
    int64_t value = strtoll(node->text, NULL, 10), most = (int64_t)key->most;
    if (!errno && value >= 1 && value <= most)
        return value;
    peal_reader_report(r, PEAL_E_VALUE_OUT_OF_RANGE, node->at, NULL,
                       "`%s` is %s, not from 1 to %" PRId64, key->name, node->text, most);
    return 0;
}

static void read_count(peal_reader *r, const peal_key *key, peal_node *node, void *out)
{
    *(int *)peal_key_member(key, out) = (int)whole_number(r, key, node);
}

static void read_bytes(peal_reader *r, const peal_key *key, peal_node *node, void *out)
{
    *(int64_t *)peal_key_member(key, out) = whole_number(r, key, node);
}

/* A time or a rate, within bounds that keep all sums finite; 0: reported. */
static double real_number(peal_reader *r, const peal_key *key, const peal_node *node)
{
    double least = key->type == PEAL_KEY_SECONDS ? 0 : 1;
    double most = key->type == PEAL_KEY_SECONDS ? 1e9 : key->most;
    char *end = NULL;
    bool number = is_made_of(node, "0123456789.eE+-");
    double value = number ? peal_number_read(node->text, &end) : 0;
    if (!number || *end) {
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, node->at,
                           "seconds and bytes without a unit, such as 1.5e-6", "`%s` is a number",
                           key->name);
        return 0;
    }
    if (value >= least && value <= most)
        return value;
    peal_reader_report(r, PEAL_E_VALUE_OUT_OF_RANGE, node->at, NULL,
                       "`%s` is %s, not from %g to %g", key->name, node->text, least, most);
    return 0;
}

static void read_number(peal_reader *r, const peal_key *key, peal_node *node, void *out)
{
    *(double *)peal_key_member(key, out) = real_number(r, key, node);
}

static void read_share(peal_reader *r, const peal_key *key, peal_node *node, void *out)
{
    static const char *const names[] = {"none", "device", "node"};
    int share = 0;
    if (node->kind != PEAL_NODE_SCALAR)
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, node->at, NULL,
                           "`shared` is none, device or node");
    else
        share = peal_reader_word(r, node, names, 3, "way to share a link: none, device, node");
    *(peal_link_share *)peal_key_member(key, out) =
        share < 0 ? PEAL_SHARE_NONE : (peal_link_share)share;
}

/* By type; NULL: left to who reads the context, such as the body of a loop that must have begun. */
static peal_key_reader *const readers[PEAL_KEY_TYPE_COUNT] = {
    [PEAL_KEY_VERSION] = read_version,
    [PEAL_KEY_COUNT] = read_count,
    [PEAL_KEY_BYTES] = read_bytes,
    [PEAL_KEY_SECONDS] = read_number,
    [PEAL_KEY_RATE] = read_number,
    [PEAL_KEY_TEXT] = read_text,
    [PEAL_KEY_KERNEL_FILES] = peal_reader_kernel_files,
    [PEAL_KEY_REQUIREMENTS] = peal_reader_requirements,
    [PEAL_KEY_NAME] = read_text,
    [PEAL_KEY_NAMES] = read_texts,
    [PEAL_KEY_PAIR] = read_pair,
    [PEAL_KEY_BOOLEAN] = read_boolean,
    [PEAL_KEY_BOOLEANS] = read_list,
    [PEAL_KEY_WORD] = read_text,
    [PEAL_KEY_CONSENT] = read_consent,
    [PEAL_KEY_SHARE] = read_share,
    [PEAL_KEY_LITERAL] = read_text,
    [PEAL_KEY_EXPRESSION] = read_text,
    [PEAL_KEY_CONDITION] = read_text,
    [PEAL_KEY_AXES] = read_list,
    [PEAL_KEY_LIST] = read_list,
    [PEAL_KEY_ARGUMENTS] = read_texts,
    [PEAL_KEY_AMOUNT] = read_list,
    [PEAL_KEY_RANGES] = read_list,
    [PEAL_KEY_CUTS] = read_list,
    [PEAL_KEY_DIRECTION] = read_list,
    [PEAL_KEY_PART] = read_list,
    [PEAL_KEY_PEERS] = peal_reader_peers,
    [PEAL_KEY_PARAMS] = peal_reader_params,
    [PEAL_KEY_DEFINES] = peal_reader_defines,
    [PEAL_KEY_TOPOLOGY] = peal_reader_topology,
    [PEAL_KEY_FIELDS] = peal_reader_fields,
    [PEAL_KEY_BUFFERS] = peal_reader_buffers,
    [PEAL_KEY_POINTS] = peal_reader_points,
    [PEAL_KEY_MESSAGE] = peal_reader_points,
    [PEAL_KEY_ACCESSES] = peal_reader_accesses,
    [PEAL_KEY_EXCHANGE] = peal_reader_accesses,
    [PEAL_KEY_REDUCTIONS] = peal_reader_reductions,
    [PEAL_KEY_PRINT] = peal_reader_columns,
};

void peal_reader_fill(peal_reader *r, const peal_node *map, peal_context_id id, void *out)
{
    const peal_context *context = peal_context_at(id);
    for (int turn = -1; turn <= 1; turn++)
        for (int i = 0; i < context->key_count; i++) {
            const peal_key *key = &context->key[i];
            peal_node *node = key->turn == turn ? peal_node_find(map, key->name) : NULL;
            if (node && readers[key->type])
                readers[key->type](r, key, node, out);
        }
}

bool peal_reader_keys(peal_reader *r, const peal_node *map, peal_context_id id, void *out)
{
    bool complete = peal_reader_check_keys(r, map, id);
    peal_reader_fill(r, map, id, out);
    return complete;
}
