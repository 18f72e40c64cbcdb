/* Statements of a spec, each a map told apart by its first key, to calls of the builder. */
#include "dsl/reader.h"

#include <string.h>

/* Room for the descriptor of any statement. */
typedef union statement_desc {
    size_t size_bytes;
    peal_task_desc task;
    peal_exchange_desc exchange;
    peal_message_desc message;
    peal_rank_reduce_desc reduce;
    peal_swap_desc swap;
    peal_set_desc set;
    peal_print_row_desc print;
    peal_file_desc file;
    peal_loop_desc loop;
    peal_copy_desc copy;
    peal_for_desc copies;
} statement_desc;

static const char *list_statements(peal_reader *r)
{
    const char *list = r->statements ? r->statements : "a statement is one of task";
    for (int id = PEAL_CONTEXT_TASK + 1; !r->statements && id < PEAL_CONTEXT_COUNT; id++)
        list =
            peal_arena_print(r->arena, "%s, %s", list, peal_context_at((peal_context_id)id)->name);
    r->statements = list;
    return list;
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
        nearest ? peal_arena_print(r->arena, "did you mean `%s`?", nearest) : list_statements(r);
    peal_reader_report(r, PEAL_E_NOT_A_STATEMENT, place, hint, "not a statement: `%.100s`", first);
    return PEAL_CONTEXT_COUNT;
}

static void read_repeat(peal_reader *r, const peal_node *map, const peal_loop_desc *desc)
{
    peal_graph_begin_repeat_desc(r->graph, desc);
    peal_reader_body(r, peal_node_find(map, "step"));
    peal_graph_end_repeat_at(r->graph, map->at);
}

static void read_for(peal_reader *r, const peal_node *map, const peal_for_desc *desc)
{
    peal_graph_begin_for_desc(r->graph, desc);
    peal_reader_body(r, peal_node_find(map, "do"));
    peal_graph_end_for_at(r->graph, map->at);
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
    statement_desc desc;
    const size_t bytes = peal_context_at(id)->bytes;
    memset(&desc, 0, bytes);
    desc.size_bytes = bytes;
    *peal_desc_source(&desc) = map->at;
    bool complete = peal_reader_check_keys(r, map, id);
    int failures = r->failures;
    peal_reader_fill(r, map, id, &desc);
    if (id == PEAL_CONTEXT_REPEAT)
        read_repeat(r, map, &desc.loop);
    else if (id == PEAL_CONTEXT_FOR)
        read_for(r, map, &desc.copies);
    else if (complete && r->failures == failures) /* or the builder would report it again */
        peal_graph_add_statement(r->graph, id, &desc);
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
