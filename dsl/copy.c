/* Copies of descriptors that live as long as the graph, whatever version of them the caller knows.
 *
 * Where the texts of a descriptor lie is what the table of keys says. */
#include "dsl/builder.h"

#include <string.h>

/* Copies what the key's member of desc points to. */
typedef void key_keeper(peal_graph *graph, const peal_key *key, void *desc);

static void keep_rows(peal_graph *graph, void *desc, peal_context_id id);

static void keep_text(peal_graph *graph, const char **text)
{
    *text = peal_graph_keep_text(graph, *text);
}

static void keep_texts(peal_graph *graph, const peal_key *key, void *desc)
{
    const char **text = peal_key_member(key, desc);
    const int room = peal_key_room(key);
    for (int i = 0; i < room; i++)
        keep_text(graph, &text[i]);
}

static void keep_peers(peal_graph *graph, const peal_key *key, void *desc)
{
    keep_texts(graph, key, desc);
    keep_rows(graph, desc, PEAL_CONTEXT_PEERS);
}

static void keep_points(peal_graph *graph, const peal_key *key, void *desc)
{
    void *points = peal_key_member(key, desc);
    keep_rows(graph, points, PEAL_CONTEXT_BOX);
    keep_rows(graph, points, PEAL_CONTEXT_COUNTED);
}

static void keep_accesses(peal_graph *graph, const peal_key *key, void *desc)
{
    peal_access_desc *access = peal_key_member(key, desc);
    const int room = peal_key_room(key);
    for (int i = 0; i < room && access[i].name; i++) /* the first without a name is the end */
        keep_rows(graph, &access[i], PEAL_CONTEXT_ACCESS);
}

static void keep_reductions(peal_graph *graph, const peal_key *key, void *desc)
{
    peal_reduce_desc *reduce = peal_key_member(key, desc);
    const int room = peal_key_room(key);
    for (int i = 0; i < room && reduce[i].name; i++) {
        keep_text(graph, &reduce[i].name);
        keep_text(graph, &reduce[i].combine);
    }
}

static void keep_columns(peal_graph *graph, const peal_key *key, void *desc)
{
    peal_print_desc *column = peal_key_member(key, desc);
    const int room = peal_key_room(key);
    for (int i = 0; i < room && column[i].name; i++) {
        keep_text(graph, &column[i].name);
        keep_text(graph, &column[i].value);
    }
}

/* By type; NULL: what is copied with the descriptor is all. */
static key_keeper *const keepers[PEAL_KEY_TYPE_COUNT] = {
    [PEAL_KEY_TEXT] = keep_texts,
    [PEAL_KEY_NAME] = keep_texts,
    [PEAL_KEY_NAMES] = keep_texts,
    [PEAL_KEY_PAIR] = keep_texts,
    [PEAL_KEY_BOOLEANS] = keep_texts,
    [PEAL_KEY_WORD] = keep_texts,
    [PEAL_KEY_LITERAL] = keep_texts,
    [PEAL_KEY_EXPRESSION] = keep_texts,
    [PEAL_KEY_CONDITION] = keep_texts,
    [PEAL_KEY_AXES] = keep_texts,
    [PEAL_KEY_LIST] = keep_texts,
    [PEAL_KEY_ARGUMENTS] = keep_texts,
    [PEAL_KEY_AMOUNT] = keep_texts,
    [PEAL_KEY_RANGES] = keep_texts,
    [PEAL_KEY_CUTS] = keep_texts,
    [PEAL_KEY_DIRECTION] = keep_texts,
    [PEAL_KEY_PART] = keep_texts,
    [PEAL_KEY_PEERS] = keep_peers,
    [PEAL_KEY_POINTS] = keep_points,
    [PEAL_KEY_MESSAGE] = keep_points,
    [PEAL_KEY_ACCESSES] = keep_accesses,
    [PEAL_KEY_EXCHANGE] = keep_accesses,
    [PEAL_KEY_REDUCTIONS] = keep_reductions,
    [PEAL_KEY_PRINT] = keep_columns,
};

static void keep_row(peal_graph *graph, const peal_key *key, void *desc)
{
    if (key->at.bytes > 0 && keepers[key->type])
        keepers[key->type](graph, key, desc);
}

static void keep_rows(peal_graph *graph, void *desc, peal_context_id id)
{
    const peal_context *context = peal_context_at(id);
    if (context->named.bytes > 0)
        keep_text(graph, (const char **)(void *)((char *)desc + context->named.offset));
    for (int i = 0; i < context->key_count; i++)
        keep_row(graph, &context->key[i], desc);
}

static bool fills(const peal_context *context, size_t offset)
{
    for (int i = 0; i < context->key_count; i++)
        if (context->key[i].at.bytes > 0 && context->key[i].at.offset == offset)
            return true;
    return false;
}

/* What only the other statement that has this descriptor may say, and resolve refuses here. */
static void keep_rows_of_twin(peal_graph *graph, void *desc, const peal_context *context)
{
    const peal_context *twin = peal_context_at(context->twin);
    for (int i = 0; i < twin->key_count; i++)
        if (!fills(context, twin->key[i].at.offset))
            keep_row(graph, &twin->key[i], desc);
}

void *peal_desc_copy(peal_graph *graph, peal_context_id id, const void *desc)
{
    const peal_context *context = peal_context_at(id);
    size_t known = desc ? *(const size_t *)desc : 0;
    if (known < sizeof(size_t) + sizeof(peal_source))
        return NULL;
    void *own = peal_arena_allocate(graph->arena, context->bytes);
    memcpy(own, desc, known < context->bytes ? known : context->bytes);
    peal_source *source = peal_desc_source(own);
    source->file = peal_graph_keep_text(graph, source->file);
    keep_rows(graph, own, id);
    if (context->twin)
        keep_rows_of_twin(graph, own, context);
    return own;
}
