/* Statements of a spec, each a map told apart by its first key, to calls of the builder. */
#include "dsl/parser.h"
#include "dsl/reader.h"

#include <string.h>

typedef struct statement_keys {
    bool complete; /* no required key is missing */
    int failures;  /* of the reader, before it looked into this statement */
    const char *when, *name;
    const char *after[PEAL_GRAPH_AFTER];
} statement_keys;

static const char *text_of(peal_reader *r, const peal_node *map, const char *key)
{
    return peal_reader_text(r, peal_node_find(map, key));
}

static const char *list_of(peal_reader *r, const peal_node *map, const char *key)
{
    return peal_reader_list(r, peal_node_find(map, key));
}

static statement_keys shared_keys(peal_reader *r, const peal_node *map, bool complete)
{
    statement_keys keys = {.complete = complete, .failures = r->failures};
    keys.when = text_of(r, map, "when");
    keys.name = text_of(r, map, "name");
    peal_reader_texts(r, peal_node_find(map, "after"), keys.after, PEAL_GRAPH_AFTER);
    return keys;
}

/* What was reported once is not handed on, or the builder would miss it and say so again. */
static bool is_whole(const peal_reader *r, const statement_keys *keys)
{
    return keys->complete && r->failures == keys->failures;
}

#define TAKE_SHARED(desc, keys, name_member)                                                       \
    do {                                                                                           \
        (desc).when = (keys).when;                                                                 \
        (desc).name_member = (keys).name;                                                          \
        memcpy((desc).after, (keys).after, sizeof((keys).after));                                  \
    } while (0)

/* The form of one field's or buffer's points: {u: <form>}. */
static void read_form(peal_reader *r, peal_node *form, bool message, peal_points_desc *out)
{
    if (form->kind == PEAL_NODE_LIST) {
        out->box = peal_reader_list(r, form);
        return;
    }
    if (form->kind != PEAL_NODE_MAP) {
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, form->at,
                           message
                               ? "write {b: [[first, end]]}, {u: {border: [0, 1]}}"
                               : "write {u: {grow: 1}}, {u: {rim: 1}} or {u: [[0, 1], [0, ny]]}",
                           "expected a map or ranges");
        return;
    }
    peal_reader_check_keys(r, form, message ? PEAL_CONTEXT_PIECE : PEAL_CONTEXT_BOX);
    out->border = list_of(r, form, "border");
    out->halo = list_of(r, form, "halo");
    if (message)
        return;
    out->grow = list_of(r, form, "grow");
    out->rim = list_of(r, form, "rim");
    out->box = list_of(r, form, "box");
    out->part = list_of(r, form, "part");
}

void peal_reader_points(peal_reader *r, peal_node *node, bool message, peal_points_desc *out)
{
    *out = (peal_points_desc){0};
    if (!node)
        return;
    out->source = node->at;
    if (node->kind == PEAL_NODE_SCALAR)
        out->name = peal_reader_text(r, node);
    else if (node->kind == PEAL_NODE_LIST && !message)
        out->box = peal_reader_list(r, node);
    else if (node->kind == PEAL_NODE_LIST)
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, node->at, "write one statement for each",
                           "a message carries one buffer or region");
    else if (peal_node_find(node, "max") ||
             (peal_node_find(node, "count") &&
              peal_node_find(node, "count")->kind == PEAL_NODE_SCALAR)) {
        peal_reader_check_keys(r, node, PEAL_CONTEXT_COUNTED);
        out->count = text_of(r, node, "count");
        out->max = text_of(r, node, "max");
    } else if (node->count != 1)
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, node->at, "write {u: {grow: 1}}",
                           "expected one name with its form, found %d", node->count);
    else {
        out->name = peal_reader_key(r, &node->pair[0]);
        read_form(r, node->pair[0].value, message, out);
    }
}

static void read_stale(peal_reader *r, const peal_node *form, peal_access_desc *out)
{
    const peal_node *node = peal_node_find(form, "stale");
    const char *word = text_of(r, form, "stale");
    out->stale_ok = word && !strcmp(word, "ok");
    if (word && !out->stale_ok)
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, node->at,
                           "leave `stale` out where it is not meant so", "expected `stale: ok`");
}

static void read_access_form(peal_reader *r, peal_node *form, bool exchange, peal_access_desc *out)
{
    if (form->kind == PEAL_NODE_LIST && !exchange)
        out->box = peal_reader_list(r, form);
    else if (form->kind == PEAL_NODE_MAP) {
        peal_reader_check_keys(r, form,
                               exchange ? PEAL_CONTEXT_EXCHANGE_ITEM : PEAL_CONTEXT_ACCESS);
        out->grow = list_of(r, form, "grow");
        out->star = list_of(r, form, "star");
        if (exchange)
            return;
        out->per_tile = text_of(r, form, "per_tile");
        out->box = list_of(r, form, "box");
        out->whole = peal_reader_boolean(r, peal_node_find(form, "whole"));
        read_stale(r, form, out);
    } else if (!exchange && form->kind == PEAL_NODE_SCALAR && !strcmp(form->text, "tile"))
        out->tile = true;
    else if (!exchange && form->kind == PEAL_NODE_SCALAR && !strcmp(form->text, "whole"))
        out->whole = true;
    else
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, form->at, NULL,
                           exchange
                               ? "expected {star: 1} or {grow: 1}"
                               : "expected tile, whole, {star: 1}, {grow: 1}, {per_tile: n} or "
                                 "ranges");
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
        peal_reader_report(r, PEAL_E_TOO_MANY_ITEMS, node->at, NULL, "more than %d items",
                           list->most);
    return NULL;
}

/* A name, {name: form} (perhaps several), or a list of these. */
static void read_accesses(peal_reader *r, peal_node *node, int depth, access_list *list)
{
    if (!node)
        return;
    if (node->kind == PEAL_NODE_LIST && depth == 0) {
        for (int i = 0; i < node->count; i++)
            read_accesses(r, node->item[i], 1, list);
        return;
    }
    if (node->kind == PEAL_NODE_LIST) {
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, node->at, NULL,
                           "expected a name or {name: form}");
        return;
    }
    if (node->kind == PEAL_NODE_SCALAR) {
        peal_access_desc *out = new_access(r, list, node);
        if (out)
            out->name = peal_reader_text(r, node);
        return;
    }
    for (int i = 0; i < node->count; i++) {
        peal_access_desc *out = new_access(r, list, node->pair[i].key);
        if (!out)
            return;
        out->name = peal_reader_key(r, &node->pair[i]);
        read_access_form(r, node->pair[i].value, list->exchange, out);
    }
}

static void read_access_key(peal_reader *r, const peal_node *map, const char *key, bool exchange,
                            peal_access_desc *out, int most)
{
    access_list list = {.item = out, .most = most, .exchange = exchange};
    read_accesses(r, peal_node_find(map, key), 0, &list);
}

static void read_reductions(peal_reader *r, const peal_node *map, const char *key,
                            peal_reduce_desc *out)
{
    const peal_node *node = peal_node_find(map, key);
    if (!node)
        return;
    if (node->kind != PEAL_NODE_MAP) {
        const peal_node *name = node->kind == PEAL_NODE_LIST && node->count ? node->item[0] : node;
        bool named = name->kind == PEAL_NODE_SCALAR && peal_is_name(name->text);
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, node->at,
                           peal_arena_print(r->arena, "write {%s: sum}", named ? name->text : "d2"),
                           "expected a map {buffer: sum, min or max}");
        return;
    }
    for (int i = 0; i < node->count; i++) {
        if (i == PEAL_CALL_PARTIALS) {
            peal_reader_report(r, PEAL_E_TOO_MANY_ITEMS, node->pair[i].key->at, NULL,
                               "more than %d items", PEAL_CALL_PARTIALS);
            return;
        }
        out[i].source = node->pair[i].value->at;
        out[i].name = peal_reader_key(r, &node->pair[i]);
        out[i].combine = peal_reader_text(r, node->pair[i].value);
    }
}

static void read_task(peal_reader *r, const peal_node *map, statement_keys keys)
{
    peal_task_desc desc = {.size_bytes = sizeof(desc), .source = map->at};
    desc.name = text_of(r, map, "task");
    desc.kernel = text_of(r, map, "kernel");
    peal_reader_points(r, peal_node_find(map, "box"), false, &desc.box);
    desc.tile = list_of(r, map, "tile");
    read_access_key(r, map, "read", false, desc.read, PEAL_CALL_VIEWS);
    read_access_key(r, map, "update", false, desc.update, PEAL_CALL_VIEWS);
    read_access_key(r, map, "write", false, desc.write, PEAL_CALL_VIEWS);
    read_reductions(r, map, "reduce", desc.reduce);
    peal_reader_texts(r, peal_node_find(map, "args"), desc.args, PEAL_CALL_ARGUMENTS);
    desc.independent = peal_reader_boolean(r, peal_node_find(map, "independent"));
    TAKE_SHARED(desc, keys, label);
    if (is_whole(r, &keys))
        peal_graph_add_task_desc(r->graph, &desc);
}

static void read_exchange(peal_reader *r, const peal_node *map, statement_keys keys)
{
    peal_exchange_desc desc = {.size_bytes = sizeof(desc), .source = map->at};
    read_access_key(r, map, "exchange", true, desc.exchange, PEAL_GRAPH_EXCHANGE);
    TAKE_SHARED(desc, keys, name);
    if (is_whole(r, &keys))
        peal_graph_add_exchange_desc(r->graph, &desc);
}

/* to, from: a value or list; or {along: x}. */
static const char *read_peers(peal_reader *r, const peal_node *map, const char *key,
                              const char **along)
{
    peal_node *node = peal_node_find(map, key);
    if (!node || node->kind != PEAL_NODE_MAP)
        return peal_reader_list(r, node);
    peal_reader_check_keys(r, node, PEAL_CONTEXT_PEERS);
    *along = text_of(r, node, "along");
    return NULL;
}

static void read_message(peal_reader *r, const peal_node *map, statement_keys keys, bool is_send)
{
    peal_message_desc desc = {.size_bytes = sizeof(desc), .source = map->at};
    peal_reader_points(r, peal_node_find(map, is_send ? "send" : "recv"), true,
                       is_send ? &desc.send : &desc.recv);
    if (is_send)
        desc.to = read_peers(r, map, "to", &desc.along);
    else
        desc.from = read_peers(r, map, "from", &desc.along);
    desc.tag = text_of(r, map, "tag");
    desc.offsets = text_of(r, map, "offsets");
    desc.count = text_of(r, map, "count");
    TAKE_SHARED(desc, keys, name);
    if (!is_whole(r, &keys))
        return;
    if (is_send)
        peal_graph_add_send_desc(r->graph, &desc);
    else
        peal_graph_add_recv_desc(r->graph, &desc);
}

static void read_rank_reduce(peal_reader *r, const peal_node *map, statement_keys keys,
                             bool everyone)
{
    peal_rank_reduce_desc desc = {.size_bytes = sizeof(desc), .source = map->at};
    read_reductions(r, map, everyone ? "allreduce" : "reduce", desc.reduce);
    desc.along = text_of(r, map, "along");
    desc.to = everyone ? NULL : text_of(r, map, "to");
    TAKE_SHARED(desc, keys, name);
    if (!is_whole(r, &keys))
        return;
    if (everyone)
        peal_graph_add_allreduce_desc(r->graph, &desc);
    else
        peal_graph_add_reduce_desc(r->graph, &desc);
}

static void read_swap(peal_reader *r, const peal_node *map, statement_keys keys)
{
    peal_swap_desc desc = {.size_bytes = sizeof(desc), .source = map->at};
    peal_node *node = peal_node_find(map, "swap");
    if (node->kind != PEAL_NODE_LIST || node->count != 2)
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, node->at, "write {swap: [a, b]}",
                           "expected a list of two names");
    else
        peal_reader_texts(r, node, desc.swap, 2);
    TAKE_SHARED(desc, keys, name);
    if (is_whole(r, &keys))
        peal_graph_add_swap_desc(r->graph, &desc);
}

static void read_set(peal_reader *r, const peal_node *map, statement_keys keys)
{
    peal_set_desc desc = {.size_bytes = sizeof(desc), .source = map->at};
    desc.set = text_of(r, map, "set");
    desc.value = text_of(r, map, "value");
    TAKE_SHARED(desc, keys, name);
    if (is_whole(r, &keys))
        peal_graph_add_set_desc(r->graph, &desc);
}

static void read_print(peal_reader *r, const peal_node *map, statement_keys keys)
{
    peal_print_row_desc desc = {.size_bytes = sizeof(desc), .source = map->at};
    const peal_node *node = peal_node_find(map, "print");
    int count = node->kind == PEAL_NODE_MAP ? node->count : 0;
    if (node->kind != PEAL_NODE_MAP)
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, node->at, "write {print: {norm: sqrt(d2)}}",
                           "expected a map {column: expression}");
    if (count > PEAL_GRAPH_PRINT) {
        peal_reader_report(r, PEAL_E_TOO_MANY_ITEMS, node->pair[PEAL_GRAPH_PRINT].key->at, NULL,
                           "more than %d items", PEAL_GRAPH_PRINT);
        count = PEAL_GRAPH_PRINT;
    }
    for (int i = 0; i < count; i++) {
        desc.print[i].source = node->pair[i].key->at;
        desc.print[i].name = peal_reader_key(r, &node->pair[i]);
        desc.print[i].value = peal_reader_text(r, node->pair[i].value);
    }
    TAKE_SHARED(desc, keys, name);
    if (is_whole(r, &keys))
        peal_graph_add_print_desc(r->graph, &desc);
}

static void read_file(peal_reader *r, const peal_node *map, statement_keys keys, bool is_load)
{
    peal_file_desc desc = {.size_bytes = sizeof(desc), .source = map->at};
    desc.load = is_load ? text_of(r, map, "load") : NULL;
    desc.save = is_load ? NULL : text_of(r, map, "save");
    desc.file = text_of(r, map, "file");
    TAKE_SHARED(desc, keys, name);
    if (!is_whole(r, &keys))
        return;
    if (is_load)
        peal_graph_add_load_desc(r->graph, &desc);
    else
        peal_graph_add_save_desc(r->graph, &desc);
}

static void read_repeat(peal_reader *r, const peal_node *map, statement_keys keys)
{
    peal_loop_desc desc = {.size_bytes = sizeof(desc), .source = map->at};
    desc.repeat = text_of(r, map, "repeat");
    desc.as = text_of(r, map, "as");
    desc.until = text_of(r, map, "until");
    desc.every = text_of(r, map, "every");
    desc.lag = text_of(r, map, "lag");
    TAKE_SHARED(desc, keys, name);
    peal_graph_begin_repeat_desc(r->graph, &desc);
    peal_reader_body(r, peal_node_find(map, "step"));
    peal_graph_end_repeat_at(r->graph, map->at);
}

/* Which statement it is, PEAL_CONTEXT_COUNT after a diagnostic. `reduce` is also a key of tasks. */
static peal_context_id recognise(peal_reader *r, const peal_node *map)
{
    const char *words[PEAL_CONTEXT_COUNT];
    size_t count = 0;
    for (int id = PEAL_CONTEXT_TASK; id < PEAL_CONTEXT_COUNT; id++) {
        words[count++] = peal_context_at((peal_context_id)id)->name;
        if (peal_node_find(map, words[count - 1]))
            return (peal_context_id)id;
    }
    const char *first = map->count > 0 ? map->pair[0].key->text : "";
    const char *nearest = peal_nearest_word(first, words, count);
    peal_source place = map->count > 0 ? map->pair[0].key->at : map->at;
    if (peal_key_is_reserved(first)) {
        peal_reader_report(r, PEAL_E_RESERVED_KEY, place, NULL,
                           "key `%s` is reserved for a later version", first);
        return PEAL_CONTEXT_COUNT;
    }
    const char *hint =
        nearest ? peal_arena_print(r->arena, "did you mean `%s`?", nearest)
                : "a statement is one of task, exchange, send, recv, allreduce, reduce, swap, set, "
                  "print, load, save, repeat";
    peal_reader_report(r, PEAL_E_NOT_A_STATEMENT, place, hint, "not a statement: `%.100s`", first);
    return PEAL_CONTEXT_COUNT;
}

static void read_statement(peal_reader *r, const peal_node *map)
{
    if (map->kind != PEAL_NODE_MAP) {
        peal_reader_report(r, PEAL_E_NOT_A_STATEMENT, map->at, "write - {exchange: u}",
                           "a statement is a map");
        return;
    }
    peal_context_id id = recognise(r, map);
    if (id == PEAL_CONTEXT_COUNT)
        return;
    bool complete = peal_reader_check_keys(r, map, id);
    statement_keys keys = shared_keys(r, map, complete);
    switch (id) {
    case PEAL_CONTEXT_TASK:
        read_task(r, map, keys);
        break;
    case PEAL_CONTEXT_EXCHANGE:
        read_exchange(r, map, keys);
        break;
    case PEAL_CONTEXT_SEND:
    case PEAL_CONTEXT_RECV:
        read_message(r, map, keys, id == PEAL_CONTEXT_SEND);
        break;
    case PEAL_CONTEXT_ALLREDUCE:
    case PEAL_CONTEXT_REDUCE:
        read_rank_reduce(r, map, keys, id == PEAL_CONTEXT_ALLREDUCE);
        break;
    case PEAL_CONTEXT_SWAP:
        read_swap(r, map, keys);
        break;
    case PEAL_CONTEXT_SET:
        read_set(r, map, keys);
        break;
    case PEAL_CONTEXT_PRINT:
        read_print(r, map, keys);
        break;
    case PEAL_CONTEXT_LOAD:
    case PEAL_CONTEXT_SAVE:
        read_file(r, map, keys, id == PEAL_CONTEXT_LOAD);
        break;
    default:
        read_repeat(r, map, keys);
        break;
    }
}

void peal_reader_body(peal_reader *r, const peal_node *node)
{
    if (!node)
        return;
    if (node->kind == PEAL_NODE_MAP)
        read_statement(r, node);
    else if (node->kind == PEAL_NODE_SCALAR)
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, node->at,
                           "write step: [{exchange: u}, ...]", "expected a list of statements");
    else
        for (int i = 0; i < node->count; i++)
            read_statement(r, node->item[i]);
}
