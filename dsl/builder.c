/* The public builder: keeps what is added, in order, and mistakes of nesting. Nothing is looked up
 * before resolve, so that things may be added before what they name. */
#include "dsl/builder.h"

#include "base/handle.h"

#include <stdlib.h>
#include <string.h>

static const char *const section_names[] = {"setup", "step", "finish"};

void peal_list_grow(peal_arena *arena, void **item, int count, int *capacity, size_t size)
{
    if (count < *capacity)
        return;
    int larger = *capacity ? 2 * *capacity : 8;
    void *memory = peal_arena_array(arena, (size_t)larger, size);
    if (count > 0)
        memcpy(memory, *item, (size_t)count * size);
    *item = memory;
    *capacity = larger;
}

void peal_graph_lend_texts(peal_graph *graph, const char *start, const char *end)
{
    graph->pool_start = start;
    graph->pool_end = end;
}

void peal_graph_add_piece(peal_graph *graph, const char *start, peal_source source)
{
    text_piece piece = {start, source};
    PEAL_LIST_ADD(graph->arena, &graph->pieces, piece);
}

static bool is_lent(const peal_graph *graph, const char *text)
{
    return graph->pool_start && text >= graph->pool_start && text < graph->pool_end;
}

peal_source peal_graph_place(peal_graph *graph, const char *at, peal_source fallback)
{
    int low = 0, high = graph->pieces.count;
    if (!at || !is_lent(graph, at))
        return fallback;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (graph->pieces.item[middle].start <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return fallback;
    const text_piece *piece = &graph->pieces.item[low - 1];
    peal_source place = piece->source;
    const char *p = piece->start;
    if (graph->last_at && graph->last_at >= p && graph->last_at <= at) {
        p = graph->last_at; /* parsers ask in order: go on from there */
        place = graph->last_place;
    }
    for (; p < at; p++) {
        bool continues = ((unsigned char)*p & 0xc0) == 0x80; /* columns count characters */
        if (*p == '\n') {
            place.line++;
            place.column = 1;
        } else if (!continues)
            place.column++;
    }
    graph->last_at = at;
    graph->last_place = place;
    return place;
}

const char *peal_graph_keep_text(peal_graph *graph, const char *text)
{
    if (!text || is_lent(graph, text) || text == graph->file)
        return text;
    return peal_arena_copy_text(graph->arena, text);
}

peal_source peal_graph_keep_source(peal_graph *graph, peal_source source)
{
    source.file = peal_graph_keep_text(graph, source.file);
    return source;
}

int peal_graph_out_of_memory(peal_graph *graph)
{
    graph->out_of_memory = true;
    return -1;
}

peal_status peal_graph_no_memory(const peal_graph *graph, peal_diagnostics *diagnostics)
{
    return peal_report(diagnostics, PEAL_E_COMPILE_OUT_OF_MEMORY, (peal_source){0}, NULL,
                       "no memory for the graph: %zu bytes are in use, %zu more are needed",
                       peal_arena_bytes(graph->arena), peal_arena_wanted(graph->arena));
}

static bool name_graph(peal_graph *graph, const char *name)
{
    PEAL_ARENA_GUARD(graph->arena, return false);
    graph->name = peal_graph_keep_text(graph, name);
    return true;
}

peal_status peal_graph_create(const char *name, peal_graph **out)
{
    if (!peal_argument_check(out, "where the graph goes", "peal_graph_create"))
        return PEAL_STATUS_USAGE;
    peal_graph *graph = calloc(1, sizeof(*graph));
    if (!graph)
        return PEAL_STATUS_ENVIRONMENT;
    if (!peal_handle_open(graph, PEAL_HANDLE_GRAPH, NULL)) {
        free(graph);
        return PEAL_STATUS_ENVIRONMENT;
    }
    graph->users = 1;
    graph->arena = peal_arena_create();
    graph->mistakes = peal_diagnostics_create();
    if (!graph->arena || !graph->mistakes || !name_graph(graph, name ? name : "graph")) {
        peal_graph_destroy(graph);
        return PEAL_STATUS_ENVIRONMENT;
    }
    graph->folder = ".";
    graph->open_section = -1;
    *out = graph;
    return PEAL_STATUS_OK;
}

/* What was read from files; everything else of constants lies in the arena. */
static void free_constants(peal_graph *graph)
{
    for (size_t i = 0; i < graph->constant_buckets; i++)
        for (constant_entry *entry = graph->constants[i]; entry; entry = entry->next)
            if (graph->data->arrays[entry->array].file)
                free((void *)(uintptr_t)entry->value.data);
    free(graph->constants);
}

void peal_graph_keep(peal_graph *graph)
{
    graph->users++;
}

void peal_graph_drop(peal_graph *graph)
{
    if (--graph->users > 0)
        return;
    free_constants(graph);
    peal_diagnostics_destroy(graph->mistakes);
    peal_arena_destroy(graph->arena);
    peal_handle_free(graph);
}

void peal_graph_destroy(peal_graph *graph)
{
    if (!graph || !peal_handle_check(graph, PEAL_HANDLE_GRAPH, "peal_graph_destroy"))
        return;
    peal_handle_close(graph);
    peal_graph_drop(graph);
}

/* Nothing can be added to a resolved graph: its data have been handed out. */
bool peal_graph_is_closed(peal_graph *graph, peal_source source)
{
    if (!peal_handle_check(graph, PEAL_HANDLE_GRAPH, "peal_graph_add"))
        return true;
    if (graph->resolved)
        peal_report(graph->report_to, PEAL_E_STATEMENT_OUTSIDE_BODY, source, "build another graph",
                    "the graph has been compiled, nothing can be added to it");
    return graph->resolved;
}

void peal_graph_set_folder(peal_graph *graph, const char *folder)
{
    if (!peal_handle_check(graph, PEAL_HANDLE_GRAPH, "peal_graph_set_folder"))
        return;
    PEAL_ARENA_GUARD(graph->arena, peal_graph_out_of_memory(graph); return );
    if (folder)
        graph->folder = peal_graph_keep_text(graph, folder);
}

static void begin_section(peal_graph *graph, peal_graph_section section, peal_source source)
{
    source = peal_graph_keep_source(graph, source);
    if ((unsigned)section > PEAL_FINISH) {
        peal_report(graph->mistakes, PEAL_E_UNBALANCED_BEGIN_END, source, NULL,
                    "there is no section %d", (int)section);
        return;
    }
    if (graph->open_section >= 0)
        peal_report(graph->mistakes, PEAL_E_UNBALANCED_BEGIN_END, source,
                    "call peal_graph_end before", "%s begins inside %s", section_names[section],
                    section_names[graph->open_section]);
    else if (graph->begun[section])
        peal_report(graph->mistakes, PEAL_E_UNBALANCED_BEGIN_END, source, NULL, "%s begins twice",
                    section_names[section]);
    graph->open_section = (int)section;
    graph->open_loop = NULL;
    graph->open_depth = 0;
    graph->begun[section] = true;
    graph->section[section].source = source;
}

void peal_graph_begin_at(peal_graph *graph, peal_graph_section section, peal_source source)
{
    if (peal_graph_is_closed(graph, source))
        return;
    PEAL_ARENA_GUARD(graph->arena, peal_graph_out_of_memory(graph); return );
    begin_section(graph, section, source);
}

static void end_section(peal_graph *graph, peal_source source)
{
    source = peal_graph_keep_source(graph, source);
    if (graph->open_section < 0)
        peal_report(graph->mistakes, PEAL_E_UNBALANCED_BEGIN_END, source, NULL,
                    "an end without a begin");
    else if (graph->open_loop)
        peal_report(graph->mistakes, PEAL_E_UNBALANCED_BEGIN_END, source,
                    "call peal_graph_end_repeat before", "%s ends inside a loop",
                    section_names[graph->open_section]);
    graph->open_section = -1;
    graph->open_loop = NULL;
    graph->open_depth = 0;
}

void peal_graph_end_at(peal_graph *graph, peal_source source)
{
    if (peal_graph_is_closed(graph, source))
        return;
    PEAL_ARENA_GUARD(graph->arena, peal_graph_out_of_memory(graph); return );
    end_section(graph, source);
}

static const char *text_of(const peal_context *context, const char *name, const void *desc)
{
    const peal_key *key = peal_context_find(context, name);
    return key ? *(const char **)peal_key_member(key, desc) : NULL;
}

/* The statement that a descriptor, copied, describes. */
static raw_statement *new_statement(peal_graph *graph, peal_context_id id, const void *desc)
{
    const peal_context *context = peal_context_at(id);
    const peal_key *after = peal_context_find(context, "after");
    raw_statement *own = PEAL_ARENA_NEW(graph->arena, raw_statement);
    own->kind = context->kind;
    own->everyone = id == PEAL_CONTEXT_ALLREDUCE;
    own->source = *peal_desc_source(desc);
    own->name = text_of(context, "name", desc);
    own->when = text_of(context, "when", desc);
    own->copies = id == PEAL_CONTEXT_FOR;
    own->is_copy = id == PEAL_CONTEXT_COPY;
    if (after)
        memcpy(own->after, peal_key_member(after, desc), sizeof(own->after));
    own->desc = desc;
    return own;
}

int peal_graph_add_statement(peal_graph *graph, peal_context_id id, const void *desc)
{
    if (!desc || peal_graph_is_closed(graph, *peal_desc_source(desc)))
        return -1;
    PEAL_ARENA_GUARD(graph->arena, return peal_graph_out_of_memory(graph));
    const void *copy = peal_desc_copy(graph, id, desc);
    if (!copy)
        return -1;
    raw_statement *own = new_statement(graph, id, copy);
    if (graph->open_section < 0) {
        peal_report(graph->mistakes, PEAL_E_STATEMENT_OUTSIDE_BODY, own->source,
                    "call peal_graph_begin(graph, PEAL_SETUP, PEAL_STEP or PEAL_FINISH) before",
                    "a statement outside setup, step and finish");
        return graph->statement_count++;
    }
    own->parent = graph->open_loop;
    raw_body *body = own->parent ? &own->parent->body : &graph->section[graph->open_section];
    if (body->last)
        body->last->next = own;
    else
        body->first = own;
    body->last = own;
    body->count++;
    if (own->kind == PEAL_STATEMENT_REPEAT) {
        graph->open_loop = own;
        own->body.source = own->source;
        if (++graph->open_depth >= PEAL_LOOP_DEPTH)
            peal_report(graph->mistakes, PEAL_E_LOOPS_TOO_DEEP, own->source, NULL,
                        "more than %d loops inside each other", PEAL_LOOP_DEPTH);
    }
    return graph->statement_count++;
}

int peal_graph_add_task_desc(peal_graph *graph, const peal_task_desc *desc)
{
    return peal_graph_add_statement(graph, PEAL_CONTEXT_TASK, desc);
}

int peal_graph_add_exchange_desc(peal_graph *graph, const peal_exchange_desc *desc)
{
    return peal_graph_add_statement(graph, PEAL_CONTEXT_EXCHANGE, desc);
}

int peal_graph_add_send_desc(peal_graph *graph, const peal_message_desc *desc)
{
    return peal_graph_add_statement(graph, PEAL_CONTEXT_SEND, desc);
}

int peal_graph_add_recv_desc(peal_graph *graph, const peal_message_desc *desc)
{
    return peal_graph_add_statement(graph, PEAL_CONTEXT_RECV, desc);
}

int peal_graph_add_reduce_desc(peal_graph *graph, const peal_rank_reduce_desc *desc)
{
    return peal_graph_add_statement(graph, PEAL_CONTEXT_REDUCE, desc);
}

int peal_graph_add_allreduce_desc(peal_graph *graph, const peal_rank_reduce_desc *desc)
{
    return peal_graph_add_statement(graph, PEAL_CONTEXT_ALLREDUCE, desc);
}

int peal_graph_add_swap_desc(peal_graph *graph, const peal_swap_desc *desc)
{
    return peal_graph_add_statement(graph, PEAL_CONTEXT_SWAP, desc);
}

int peal_graph_add_set_desc(peal_graph *graph, const peal_set_desc *desc)
{
    return peal_graph_add_statement(graph, PEAL_CONTEXT_SET, desc);
}

int peal_graph_add_print_desc(peal_graph *graph, const peal_print_row_desc *desc)
{
    return peal_graph_add_statement(graph, PEAL_CONTEXT_PRINT, desc);
}

int peal_graph_add_load_desc(peal_graph *graph, const peal_file_desc *desc)
{
    return peal_graph_add_statement(graph, PEAL_CONTEXT_LOAD, desc);
}

int peal_graph_add_save_desc(peal_graph *graph, const peal_file_desc *desc)
{
    return peal_graph_add_statement(graph, PEAL_CONTEXT_SAVE, desc);
}

int peal_graph_add_copy_desc(peal_graph *graph, const peal_copy_desc *desc)
{
    return peal_graph_add_statement(graph, PEAL_CONTEXT_COPY, desc);
}

int peal_graph_begin_repeat_desc(peal_graph *graph, const peal_loop_desc *desc)
{
    return peal_graph_add_statement(graph, PEAL_CONTEXT_REPEAT, desc);
}

int peal_graph_begin_for_desc(peal_graph *graph, const peal_for_desc *desc)
{
    return peal_graph_add_statement(graph, PEAL_CONTEXT_FOR, desc);
}

static void end_loop(peal_graph *graph, peal_source source, bool copies)
{
    source = peal_graph_keep_source(graph, source);
    const char *what = copies ? "for" : "repeat";
    if (!graph->open_loop || graph->open_loop->copies != copies) {
        peal_report(graph->mistakes, PEAL_E_UNBALANCED_BEGIN_END, source, NULL,
                    "an end_%s without a begin_%s", what, what);
        return;
    }
    graph->open_loop = graph->open_loop->parent;
    graph->open_depth--;
}

static void close_loop(peal_graph *graph, peal_source source, bool copies)
{
    if (peal_graph_is_closed(graph, source))
        return;
    PEAL_ARENA_GUARD(graph->arena, peal_graph_out_of_memory(graph); return );
    end_loop(graph, source, copies);
}

void peal_graph_end_repeat_at(peal_graph *graph, peal_source source)
{
    close_loop(graph, source, false);
}

void peal_graph_end_for_at(peal_graph *graph, peal_source source)
{
    close_loop(graph, source, true);
}
