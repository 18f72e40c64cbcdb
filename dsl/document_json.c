/* A spec's document as JSON, as peal understands YAML's scalars: integers, reals (1e-8 is one),
 * true, false; all else is text. */
#include "dsl/document.h"
#include "dsl/dsl.h"
#include "dsl/parser.h"

#include <jansson.h>
#include <string.h>

static json_t *scalar_json(const peal_node *node)
{
    if (node->quoted)
        return json_string(node->text);
    if (!*node->text || !strcmp(node->text, "~"))
        return json_null();
    peal_value value = peal_parse_literal(node->text);
    switch (value.kind) {
    case PEAL_INTEGER:
        return json_integer(value.u.integer);
    case PEAL_BOOLEAN:
        return json_boolean(value.u.boolean);
    case PEAL_REAL: {
        json_t *real = json_real(value.u.real); /* NULL for inf */
        return real ? real : json_string(node->text);
    }
    default:
        return json_string(node->text);
    }
}

static json_t *node_json(const peal_node *node)
{
    if (node->kind == PEAL_NODE_SCALAR)
        return scalar_json(node);
    json_t *out = node->kind == PEAL_NODE_LIST ? json_array() : json_object();
    for (int i = 0; i < node->count; i++)
        if (node->kind == PEAL_NODE_LIST)
            json_array_append_new(out, node_json(node->item[i]));
        else
            json_object_set_new(out, node->pair[i].key->text, node_json(node->pair[i].value));
    return out;
}

static peal_status print_json(const char *path, peal_arena *arena, FILE *stream,
                              peal_diagnostics *diagnostics)
{
    const char *bytes, *name = strcmp(path, "-") ? path : "<stdin>";
    peal_source whole = {name, 0, 0};
    size_t count;
    int node_count;
    peal_node *root;
    peal_status status = peal_document_load(path, arena, diagnostics, &bytes, &count);
    if (!status)
        status = peal_document_parse(name, bytes, count, arena, diagnostics, &root, &node_count);
    if (status)
        return status;
    json_t *json = node_json(root);
    bool written = json && !json_dumpf(json, stream, JSON_INDENT(2) | JSON_ENCODE_ANY);
    json_decref(json);
    if (!written || fputc('\n', stream) == EOF)
        return peal_report(diagnostics, PEAL_E_SPEC_UNREADABLE, whole, NULL,
                           "cannot write the document as JSON");
    return PEAL_STATUS_OK;
}

static peal_status try_to_print(const char *path, peal_arena *arena, FILE *stream,
                                peal_diagnostics *diagnostics)
{
    PEAL_ARENA_GUARD(arena, return peal_document_no_memory(path, arena, diagnostics));
    return print_json(path, arena, stream, diagnostics);
}

peal_status peal_document_print_json(const char *path, FILE *stream, peal_diagnostics *diagnostics)
{
    peal_arena *arena = peal_arena_create();
    if (!arena)
        return PEAL_STATUS_ENVIRONMENT;
    peal_status status = try_to_print(path, arena, stream, diagnostics);
    peal_arena_destroy(arena);
    return status;
}
