/* libyaml's events to a tree with places; refuses what the language doesn't have: anchors, aliases,
 * tags, merge keys, duplicate keys, several documents.
 *
 * libyaml counts characters; places of bytes are found by a table of line starts. */
#include "dsl/document.h"

#include <string.h>
#include <yaml.h>

typedef struct loader {
    const char *file, *bytes;
    size_t count;
    peal_arena *arena;
    peal_diagnostics *diagnostics;
    yaml_event_t held[PEAL_DOCUMENT_DEPTH + 1]; /* those of the nodes around */
    int held_count;
    yaml_parser_t parser;
    size_t *line_start;
    size_t line_count;
    yaml_mark_t last_mark; /* marks are asked for in order: the next one is near */
    size_t last_byte;
    int node_count;
    bool failed; /* something was reported; reading goes on where it can */
} loader;

static peal_status load_node(loader *l, yaml_event_t *event, int depth, peal_node **out);

static peal_source place_of(const loader *l, yaml_mark_t mark)
{
    return (peal_source){l->file, (int)mark.line + 1, (int)mark.column + 1};
}

static void find_lines(loader *l)
{
    size_t lines = 1;
    for (size_t i = 0; i < l->count; i++)
        lines += l->bytes[i] == '\n' || l->bytes[i] == '\r';
    l->line_start = PEAL_ARENA_ARRAY(l->arena, size_t, lines);
    l->line_count = 1;
    for (size_t i = 0; i < l->count; i++)
        if (l->bytes[i] == '\n' ||
            (l->bytes[i] == '\r' && (i + 1 == l->count || l->bytes[i + 1] != '\n')))
            l->line_start[l->line_count++] = i + 1;
}

/* The byte at a mark. */
static size_t byte_at(loader *l, yaml_mark_t mark)
{
    if (mark.line >= l->line_count)
        return l->count;
    size_t at = l->line_start[mark.line], column = 0;
    if (mark.line == l->last_mark.line && mark.column >= l->last_mark.column) {
        at = l->last_byte;
        column = l->last_mark.column;
    }
    for (; column < mark.column && at < l->count; column++)
        do
            at++;
        while (at < l->count && ((unsigned char)l->bytes[at] & 0xc0) == 0x80);
    l->last_mark = mark;
    l->last_byte = at;
    return at;
}

static const char *hint_for(const char *problem)
{
    if (strstr(problem, "cannot start any token"))
        return "indent by spaces, not tabs; quote a value that begins with % @ or `";
    if (strstr(problem, "mapping values are not allowed"))
        return "a value that holds `: ` needs quotes; check the indentation";
    if (strstr(problem, "expected ',' or"))
        return "a bracket is not closed, or a value needs quotes";
    if (strstr(problem, "could not find expected ':'"))
        return "write `key: value`, with a space after the colon";
    if (strstr(problem, "end of stream"))
        return "a quote is not closed";
    if (strstr(problem, "did not find expected key"))
        return "begin all keys of a map in one column; a list is either [ ] or lines with `- `";
    if (strstr(problem, "'-' indicator"))
        return "begin every item of a list with `- `, all in one column";
    return NULL;
}

static peal_status syntax_error(loader *l)
{
    const char *problem = l->parser.problem ? l->parser.problem : "cannot be read";
    yaml_mark_t mark = l->parser.problem_mark;
    if (l->parser.error == YAML_READER_ERROR)
        mark = l->parser.mark;
    else if (strstr(problem, "end of stream") && l->parser.context)
        mark = l->parser.context_mark; /* where the quote opens, not where the file ends */
    return peal_report(l->diagnostics, PEAL_E_YAML_SYNTAX, place_of(l, mark), hint_for(problem),
                       "%s%s%s", problem, l->parser.context ? ", " : "",
                       l->parser.context ? l->parser.context : "");
}

static peal_status next_event(loader *l, yaml_event_t *event)
{
    return yaml_parser_parse(&l->parser, event) ? PEAL_STATUS_OK : syntax_error(l);
}

static void refuse(loader *l, peal_code code, peal_source place, const char *hint, const char *what)
{
    peal_report(l->diagnostics, code, place, hint, "%s", what);
    l->failed = true;
}

static void check_properties(loader *l, const yaml_char_t *anchor, const yaml_char_t *tag,
                             peal_source place)
{
    if (anchor)
        refuse(l, PEAL_E_UNSUPPORTED_YAML, place, "write it out, or use a param",
               "anchors (&name) are not part of the language");
    if (tag)
        refuse(l, PEAL_E_UNSUPPORTED_YAML, place, NULL,
               "tags (!name) are not part of the language");
}

static peal_node *new_node(loader *l, peal_node_kind kind, peal_source place)
{
    peal_node *node = PEAL_ARENA_NEW(l->arena, peal_node);
    node->kind = kind;
    node->at = place;
    return node;
}

/* Points text at the bytes in the file if they are what libyaml decoded. */
static void load_scalar(loader *l, const yaml_event_t *event, peal_node *node)
{
    const char *value = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    yaml_scalar_style_t style = event->data.scalar.style;
    size_t first = byte_at(l, event->start_mark);
    node->quoted = style != YAML_PLAIN_SCALAR_STYLE;
    check_properties(l, event->data.scalar.anchor, event->data.scalar.tag, node->at);
    if (memchr(value, 0, length)) {
        refuse(l, PEAL_E_NUL_IN_SPEC, node->at, NULL, "a NUL in a text");
        length = strlen(value);
    }
    if (style == YAML_SINGLE_QUOTED_SCALAR_STYLE || style == YAML_DOUBLE_QUOTED_SCALAR_STYLE) {
        first++;
        node->at.column++;
    }
    node->exact =
        first <= l->count && length <= l->count - first && !memcmp(l->bytes + first, value, length);
    node->text = peal_arena_copy_bytes(l->arena, value, length);
    size_t end = byte_at(l, event->end_mark);
    if (node->exact || node->quoted || end <= first || end > l->count)
        return;
    node->exact = true; /* plain, over several lines: as written, so that places stay right */
    node->text = peal_arena_copy_bytes(l->arena, l->bytes + first, end - first);
}

static peal_status load_list(loader *l, int depth, peal_node *node)
{
    int capacity = 0;
    for (;;) {
        yaml_event_t event;
        peal_node *item;
        peal_status status = next_event(l, &event);
        if (status)
            return status;
        if (event.type == YAML_SEQUENCE_END_EVENT) {
            yaml_event_delete(&event);
            return PEAL_STATUS_OK;
        }
        status = load_node(l, &event, depth + 1, &item);
        if (status)
            return status;
        if (node->count == capacity) {
            capacity = capacity ? 2 * capacity : 4;
            peal_node **larger = PEAL_ARENA_ARRAY(l->arena, peal_node *, capacity);
            if (node->count > 0)
                memcpy(larger, node->item, (size_t)node->count * sizeof(*larger));
            node->item = larger;
        }
        node->item[node->count++] = item;
    }
}

static int by_key(const void *left, const void *right)
{
    const peal_pair *a = left, *b = right;
    int order = strcmp(a->key->text, b->key->text);
    if (order)
        return order;
    if (a->key->at.line != b->key->at.line)
        return a->key->at.line < b->key->at.line ? -1 : 1;
    return (a->key->at.column > b->key->at.column) - (a->key->at.column < b->key->at.column);
}

static void check_duplicates(loader *l, const peal_node *map)
{
    if (map->count < 2)
        return;
    peal_pair *sorted = PEAL_ARENA_ARRAY(l->arena, peal_pair, map->count);
    memcpy(sorted, map->pair, (size_t)map->count * sizeof(*sorted));
    qsort(sorted, (size_t)map->count, sizeof(*sorted), by_key);
    for (int i = 1; i < map->count; i++)
        if (!strcmp(sorted[i].key->text, sorted[i - 1].key->text)) {
            peal_report(l->diagnostics, PEAL_E_DUPLICATE_KEY, sorted[i].key->at,
                        peal_arena_print(l->arena, "the first one is on line %d",
                                         sorted[i - 1].key->at.line),
                        "key `%.100s` is given twice", sorted[i].key->text);
            l->failed = true;
        }
}

static void add_pair(loader *l, peal_node *map, int *capacity, peal_pair pair)
{
    if (map->count == *capacity) {
        *capacity = *capacity ? 2 * *capacity : 4;
        peal_pair *larger = PEAL_ARENA_ARRAY(l->arena, peal_pair, *capacity);
        if (map->count > 0)
            memcpy(larger, map->pair, (size_t)map->count * sizeof(*larger));
        map->pair = larger;
    }
    map->pair[map->count++] = pair;
}

static peal_status load_map(loader *l, int depth, peal_node *node)
{
    int capacity = 0;
    for (;;) {
        yaml_event_t event;
        peal_pair pair;
        peal_status status = next_event(l, &event);
        if (status)
            return status;
        if (event.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&event);
            check_duplicates(l, node);
            return PEAL_STATUS_OK;
        }
        status = load_node(l, &event, depth + 1, &pair.key);
        if (status || (status = next_event(l, &event)) ||
            (status = load_node(l, &event, depth + 1, &pair.value)))
            return status;
        if (pair.key->kind != PEAL_NODE_SCALAR)
            refuse(l, PEAL_E_WRONG_VALUE_SHAPE, pair.key->at, NULL, "a key must be a word");
        else if (!pair.key->quoted && !strcmp(pair.key->text, "<<"))
            refuse(l, PEAL_E_UNSUPPORTED_YAML, pair.key->at, "use `like:` for fields",
                   "merge keys (<<) are not part of the language");
        else
            add_pair(l, node, &capacity, pair);
    }
}

/* Takes over the event. */
static peal_status load_node(loader *l, yaml_event_t *event, int depth, peal_node **out)
{
    l->held[l->held_count++] = *event;
    peal_source place = place_of(l, event->start_mark);
    peal_status status = PEAL_STATUS_OK;
    *out = new_node(l, PEAL_NODE_SCALAR, place);
    if (depth > PEAL_DOCUMENT_DEPTH)
        status = peal_report(l->diagnostics, PEAL_E_NESTED_TOO_DEEP, place, NULL,
                             "lists and maps are nested more than %d deep", PEAL_DOCUMENT_DEPTH);
    else if (++l->node_count > PEAL_DOCUMENT_NODES)
        status = peal_report(l->diagnostics, PEAL_E_TOO_MANY_NODES, place,
                             "large tables belong in .npy files, large graphs in C",
                             "the spec has more than %d nodes", PEAL_DOCUMENT_NODES);
    else if (event->type == YAML_ALIAS_EVENT)
        status = peal_report(l->diagnostics, PEAL_E_UNSUPPORTED_YAML, place,
                             "write it out, or use a param",
                             "aliases (*name) are not part of the language");
    else if (event->type == YAML_SCALAR_EVENT)
        load_scalar(l, event, *out);
    else if (event->type == YAML_SEQUENCE_START_EVENT) {
        (*out)->kind = PEAL_NODE_LIST;
        check_properties(l, event->data.sequence_start.anchor, event->data.sequence_start.tag,
                         place);
        status = load_list(l, depth, *out);
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        (*out)->kind = PEAL_NODE_MAP;
        check_properties(l, event->data.mapping_start.anchor, event->data.mapping_start.tag, place);
        status = load_map(l, depth, *out);
    }
    l->held_count--;
    yaml_event_delete(event);
    return status;
}

static peal_status load_stream(loader *l, peal_node **out)
{
    yaml_event_t event;
    for (;;) {
        peal_status status = next_event(l, &event);
        if (status)
            return status;
        yaml_event_type_t type = event.type;
        peal_source place = place_of(l, event.start_mark);
        if (type == YAML_STREAM_END_EVENT) {
            yaml_event_delete(&event);
            return PEAL_STATUS_OK;
        }
        if (type == YAML_DOCUMENT_START_EVENT && *out) {
            yaml_event_delete(&event);
            return peal_report(l->diagnostics, PEAL_E_SEVERAL_DOCUMENTS, place,
                               "one spec, one file", "a second document begins");
        }
        if (type == YAML_STREAM_START_EVENT || type == YAML_DOCUMENT_START_EVENT ||
            type == YAML_DOCUMENT_END_EVENT) {
            yaml_event_delete(&event);
            continue;
        }
        status = load_node(l, &event, 1, out);
        if (status) {
            *out = NULL;
            return status;
        }
    }
}

peal_status peal_document_no_memory(const char *file, const peal_arena *arena,
                                    peal_diagnostics *diagnostics)
{
    return peal_report(diagnostics, PEAL_E_COMPILE_OUT_OF_MEMORY, (peal_source){file, 0, 0}, NULL,
                       "no memory to read it: %zu bytes are in use, %zu more are needed",
                       peal_arena_bytes(arena), peal_arena_wanted(arena));
}

static peal_status out_of_memory(loader *l)
{
    while (l->held_count)
        yaml_event_delete(&l->held[--l->held_count]);
    return peal_document_no_memory(l->file, l->arena, l->diagnostics);
}

static peal_status try_to_load_stream(loader *l, peal_node **out)
{
    PEAL_ARENA_GUARD(l->arena, return out_of_memory(l));
    find_lines(l);
    return load_stream(l, out);
}

peal_status peal_document_parse(const char *file, const char *bytes, size_t count,
                                peal_arena *arena, peal_diagnostics *diagnostics, peal_node **out,
                                int *node_count)
{
    loader l = {.file = file, .arena = arena, .diagnostics = diagnostics};
    peal_node *root = NULL;
    peal_source whole = {file, 0, 0};
    peal_status status = peal_document_scan(file, &bytes, &count, diagnostics);
    if (status)
        return status;
    l.bytes = bytes;
    l.count = count;
    if (!yaml_parser_initialize(&l.parser))
        return peal_report(diagnostics, PEAL_E_COMPILE_OUT_OF_MEMORY, whole, NULL,
                           "no memory to read it");
    yaml_parser_set_encoding(&l.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&l.parser, (const unsigned char *)bytes, count);
    status = try_to_load_stream(&l, &root);
    yaml_parser_delete(&l.parser);
    if (!status && l.failed)
        status = PEAL_STATUS_SPEC;
    if (!status && !root)
        status = peal_report(diagnostics, PEAL_E_NOT_A_SPEC, (peal_source){file, 1, 1},
                             "a spec begins with `peal: 1`", "the spec is empty");
    if (!status) {
        *out = root;
        *node_count = l.node_count;
    }
    return status;
}

peal_node *peal_node_find(const peal_node *map, const char *key)
{
    for (int i = 0; map && map->kind == PEAL_NODE_MAP && i < map->count; i++)
        if (!strcmp(map->pair[i].key->text, key))
            return map->pair[i].value;
    return NULL;
}
