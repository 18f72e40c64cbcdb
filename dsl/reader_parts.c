/* Values of keys that have a form of their own: points, accesses, reductions, columns, peers. */
#include "dsl/parser.h"
#include "dsl/reader.h"

#include <string.h>

/* The form of one field's or buffer's points: {u: <form>}. */
static void read_form(peal_reader *r, peal_node *form, bool message, peal_points_desc *out)
{
    if (form->kind == PEAL_NODE_LIST)
        out->box = peal_reader_list(r, form);
    else if (form->kind == PEAL_NODE_MAP)
        peal_reader_keys(r, form, message ? PEAL_CONTEXT_PIECE : PEAL_CONTEXT_BOX, out);
    else
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, form->at,
                           message
                               ? "write {b: [[first, end]]}, {u: {border: [0, 1]}}"
                               : "write {u: {grow: 1}}, {u: {rim: 1}} or {u: [[0, 1], [0, ny]]}",
                           "expected a map or ranges");
}

static bool is_counted(const peal_node *map)
{
    const peal_node *count = peal_node_find(map, "count");
    return peal_node_find(map, "max") || (count && count->kind == PEAL_NODE_SCALAR);
}

void peal_reader_points(peal_reader *r, const peal_key *key, peal_node *node, void *desc)
{
    peal_points_desc *out = peal_key_member(key, desc);
    bool message = key->type == PEAL_KEY_MESSAGE;
    out->source = node->at;
    if (node->kind == PEAL_NODE_SCALAR)
        out->name = peal_reader_text(r, node);
    else if (node->kind == PEAL_NODE_LIST && !message)
        out->box = peal_reader_list(r, node);
    else if (node->kind == PEAL_NODE_LIST)
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, node->at, "write one statement for each",
                           "a message carries one buffer or region");
    else if (is_counted(node))
        peal_reader_keys(r, node, PEAL_CONTEXT_COUNTED, out);
    else if (node->count != 1)
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, node->at, "write {u: {grow: 1}}",
                           "expected one name with its form, found %d", node->count);
    else {
        out->name = peal_reader_key(r, &node->pair[0]);
        read_form(r, node->pair[0].value, message, out);
    }
}

static void read_access_form(peal_reader *r, peal_node *form, bool exchange, peal_access_desc *out)
{
    if (form->kind == PEAL_NODE_LIST && !exchange)
        out->box = peal_reader_list(r, form);
    else if (form->kind == PEAL_NODE_MAP)
        peal_reader_keys(r, form, exchange ? PEAL_CONTEXT_EXCHANGE_ITEM : PEAL_CONTEXT_ACCESS, out);
    else if (!exchange && form->kind == PEAL_NODE_SCALAR && !strcmp(form->text, "tile"))
        out->tile = true;
    else if (!exchange && form->kind == PEAL_NODE_SCALAR && !strcmp(form->text, "whole"))
        out->whole = true;
    else if (!exchange && form->kind == PEAL_NODE_SCALAR && !strcmp(form->text, "inside"))
        out->inside = true;
    else
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, form->at, NULL,
                           exchange ? "expected {star: 1} or {grow: 1}"
                                    : "expected tile, whole, inside, {star: 1}, {grow: 1}, "
                                      "{per_tile: n} or ranges");
}

static void report_excess(peal_reader *r, const peal_node *node, int most)
{
    peal_reader_report(r, PEAL_E_TOO_MANY_ITEMS, node->at, NULL, "more than %d items", most);
}

typedef struct access_list {
    peal_access_desc *item;
    int count, most;
    bool exchange;
} access_list;

static peal_access_desc *new_access(peal_reader *r, access_list *list, const peal_node *node)
{
    if (list->count < list->most) {
        list->item[list->count].source = node->at;
        return &list->item[list->count++];
    }
    if (list->count++ == list->most)
        report_excess(r, node, list->most);
    return NULL;
}

/* A name, or {name: form} (perhaps several). */
static void read_access(peal_reader *r, peal_node *node, access_list *list)
{
    if (node->kind == PEAL_NODE_LIST)
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, node->at, NULL,
                           "expected a name or {name: form}");
    else if (node->kind == PEAL_NODE_SCALAR) {
        peal_access_desc *out = new_access(r, list, node);
        if (out)
            out->name = peal_reader_text(r, node);
    } else
        for (int i = 0; i < node->count; i++) {
            peal_access_desc *out = new_access(r, list, node->pair[i].key);
            if (!out)
                return;
            out->name = peal_reader_key(r, &node->pair[i]);
            read_access_form(r, node->pair[i].value, list->exchange, out);
        }
}

void peal_reader_accesses(peal_reader *r, const peal_key *key, peal_node *node, void *out)
{
    access_list list = {.item = peal_key_member(key, out),
                        .most = peal_key_room(key),
                        .exchange = key->type == PEAL_KEY_EXCHANGE};
    if (node->kind != PEAL_NODE_LIST)
        read_access(r, node, &list);
    else
        for (int i = 0; i < node->count; i++)
            read_access(r, node->item[i], &list);
}

/* The first pair of a map that there is no room for. */
static void check_room(peal_reader *r, const peal_key *key, const peal_node *map)
{
    int most = peal_key_room(key);
    if (map->count > most)
        report_excess(r, map->pair[most].key, most);
}

void peal_reader_reductions(peal_reader *r, const peal_key *key, peal_node *node, void *out)
{
    peal_reduce_desc *reduce = peal_key_member(key, out);
    if (node->kind != PEAL_NODE_MAP) {
        const peal_node *name = node->kind == PEAL_NODE_LIST && node->count ? node->item[0] : node;
        bool named = name->kind == PEAL_NODE_SCALAR && peal_is_name(name->text);
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, node->at,
                           peal_arena_print(r->arena, "write {%s: sum}", named ? name->text : "d2"),
                           "expected a map {buffer: sum, min or max}");
        return;
    }
    for (int i = 0; i < node->count && i < peal_key_room(key); i++) {
        reduce[i].source = node->pair[i].value->at;
        reduce[i].name = peal_reader_key(r, &node->pair[i]);
        reduce[i].combine = peal_reader_text(r, node->pair[i].value);
    }
    check_room(r, key, node);
}

void peal_reader_columns(peal_reader *r, const peal_key *key, peal_node *node, void *out)
{
    peal_print_desc *column = peal_key_member(key, out);
    if (node->kind != PEAL_NODE_MAP) {
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, node->at, "write {print: {norm: sqrt(d2)}}",
                           "expected a map {column: expression}");
        return;
    }
    check_room(r, key, node);
    for (int i = 0; i < node->count && i < peal_key_room(key); i++) {
        column[i].source = node->pair[i].key->at;
        column[i].name = peal_reader_key(r, &node->pair[i]);
        column[i].value = peal_reader_text(r, node->pair[i].value);
    }
}

/* A value or list; or {along: x}, or {ranks: [0, 1]}. */
void peal_reader_peers(peal_reader *r, const peal_key *key, peal_node *node, void *out)
{
    if (node->kind == PEAL_NODE_MAP)
        peal_reader_keys(r, node, PEAL_CONTEXT_PEERS, out);
    else
        *(const char **)peal_key_member(key, out) = peal_reader_list(r, node);
}
