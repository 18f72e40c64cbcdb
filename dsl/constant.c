/* Constant buffers: which they are, and their contents on a rank, read or evaluated when asked for.
 */
#include "base/expression.h"
#include "base/npy.h"
#include "dsl/resolve.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void peal_body_walk(const peal_body *body, void (*visit)(void *user, const peal_statement *),
                    void *user)
{
    for (int i = 0; i < body->count; i++) {
        visit(user, body->statement[i]);
        if (body->statement[i]->kind == PEAL_STATEMENT_REPEAT)
            peal_body_walk(&body->statement[i]->u.loop.body, visit, user);
    }
}

static void mark_written(void *user, int array)
{
    peal_parser *parser = user;
    if (array >= 0)
        parser->arrays[array].is_constant = false;
}

static void mark_writes(void *user, const peal_statement *statement)
{
    peal_statement_writes(statement, mark_written, user);
}

static void check_list(peal_parser *parser, int array, peal_source source, const char *what)
{
    const peal_array *a = array >= 0 ? &parser->arrays[array] : NULL;
    if (!a)
        return;
    bool integer = a->type == PEAL_I32 || a->type == PEAL_I64;
    if (!a->is_constant)
        peal_parser_report(parser, PEAL_E_WRONG_ARRAY_KIND, NULL, source,
                           "a list comes from `file` or `values`, and nothing writes it",
                           "`%s` is not constant: it cannot be a list of %s", a->name, what);
    else if (!integer)
        peal_parser_report(parser, PEAL_E_WRONG_ARRAY_KIND, NULL, source, "say type: i32",
                           "`%s` has type %s: a list of %s is i32 or i64", a->name,
                           peal_type_name(a->type), what);
}

static void check_lists(void *user, const peal_statement *statement)
{
    if (statement->kind != PEAL_STATEMENT_SEND && statement->kind != PEAL_STATEMENT_RECV)
        return;
    const peal_message_statement *message = &statement->u.message;
    if (message->peers.kind == PEAL_PEER_LIST)
        check_list(user, message->peers.list, message->peers.source, "ranks");
    check_list(user, message->offsets, statement->source, "offsets");
}

static void walk_all(peal_parser *parser, void (*visit)(void *user, const peal_statement *))
{
    peal_body_walk(&parser->data->setup, visit, parser);
    peal_body_walk(&parser->data->step.body, visit, parser);
    peal_body_walk(&parser->data->finish, visit, parser);
}

void peal_resolve_constants(peal_parser *parser)
{
    for (int i = 0; i < parser->data->array_count; i++)
        parser->arrays[i].is_constant = parser->arrays[i].file || parser->arrays[i].values;
    walk_all(parser, mark_writes);
    walk_all(parser, check_lists);
}

static peal_status store_integer(peal_type type, int64_t value, void *data, int64_t index)
{
    if ((type == PEAL_I32 && value != (int32_t)value) ||
        (type == PEAL_U8 && value != (uint8_t)value))
        return PEAL_STATUS_SPEC;
    if (type == PEAL_I32)
        ((int32_t *)data)[index] = (int32_t)value;
    else if (type == PEAL_U8)
        ((uint8_t *)data)[index] = (uint8_t)value;
    else
        ((int64_t *)data)[index] = value;
    return PEAL_STATUS_OK;
}

static peal_status evaluate_value(const peal_array *array, int index, const peal_scope *scope,
                                  void *data, peal_diagnostics *diagnostics)
{
    const peal_expr *expr = array->values[index];
    if (array->type == PEAL_F64 || array->type == PEAL_F32) {
        double real;
        peal_status status = peal_expr_real(expr, scope, 0, &real, diagnostics);
        if (status)
            return status;
        if (array->type == PEAL_F64)
            ((double *)data)[index] = real;
        else
            ((float *)data)[index] = (float)real;
        return PEAL_STATUS_OK;
    }
    int64_t integer;
    peal_status status = peal_expr_integer(expr, scope, 0, &integer, diagnostics);
    if (!status && store_integer(array->type, integer, data, index))
        status =
            peal_report(diagnostics, PEAL_E_VALUE_OUT_OF_RANGE, expr->source, NULL,
                        "%" PRId64 " does not fit type %s", integer, peal_type_name(array->type));
    return status;
}

static peal_status evaluate_values(peal_graph *graph, const peal_array *array,
                                   const peal_scope *scope, void *data, peal_constant *out)
{
    for (int i = 0; i < array->value_count; i++) {
        peal_status status = evaluate_value(array, i, scope, data, graph->report_to);
        if (status)
            return status;
    }
    *out = (peal_constant){array->value_count, data};
    return PEAL_STATUS_OK;
}

static peal_status find_file(const peal_graph *graph, const peal_array *array,
                             const peal_scope *scope, peal_arena *arena, const char **out)
{
    PEAL_ARENA_GUARD(arena, return peal_graph_no_memory(graph, graph->report_to));
    peal_status status =
        peal_template_expand(array->file, scope, NULL, array->source, arena, out, graph->report_to);
    if (!status && **out != '/' && strcmp(graph->folder, ".") != 0)
        *out = peal_arena_print(arena, "%s/%s", graph->folder, *out);
    return status;
}

static peal_status read_file(const peal_graph *graph, const peal_array *array,
                             const peal_scope *scope, peal_constant *out)
{
    peal_arena *arena = peal_arena_create();
    const char *path;
    void *data = NULL;
    int64_t count = 0;
    if (!arena)
        return peal_report(graph->report_to, PEAL_E_COMPILE_OUT_OF_MEMORY, array->source, NULL,
                           "no memory to read its contents");
    peal_status status = find_file(graph, array, scope, arena, &path);
    if (!status)
        status =
            peal_npy_read_vector(path, array->source, array->type, &count, &data, graph->report_to);
    if (!status)
        *out = (peal_constant){count, data};
    peal_arena_destroy(arena);
    return status;
}

static size_t bucket_of(const peal_graph *graph, int array, int rank)
{
    return ((size_t)rank * 31 + (size_t)array) & (graph->constant_buckets - 1);
}

static bool grow_table(peal_graph *graph)
{
    size_t old = graph->constant_buckets, count = old ? 4 * old : 64;
    constant_entry **from = graph->constants, **to = calloc(count, sizeof(constant_entry *));
    if (!to)
        return false;
    graph->constants = to;
    graph->constant_buckets = count;
    for (size_t i = 0; i < old; i++)
        for (constant_entry *entry = from[i], *next; entry; entry = next) {
            next = entry->next;
            size_t at = bucket_of(graph, entry->array, entry->rank);
            entry->next = to[at];
            to[at] = entry;
        }
    free(from);
    return true;
}

static const constant_entry *find_constant(peal_graph *graph, int array, int rank, int ranks)
{
    const constant_entry *entry = graph->last_constant;
    if (entry && entry->array == array && entry->rank == rank && entry->ranks == ranks)
        return entry;
    entry = graph->constant_buckets ? graph->constants[bucket_of(graph, array, rank)] : NULL;
    while (entry && !(entry->array == array && entry->rank == rank && entry->ranks == ranks))
        entry = entry->next;
    return graph->last_constant = entry;
}

static bool differs_by_rank(const peal_array *array)
{
    if (array->file)
        return strchr(array->file, '{') != NULL;
    for (int i = 0; i < array->value_count; i++)
        if (peal_expr_uses(array->values[i]) & PEAL_USES_RANK)
            return true;
    return false;
}

static size_t values_bytes(const peal_array *array)
{
    return ((size_t)array->value_count + 1) * peal_type_bytes(array->type);
}

static const constant_entry *find_brief(const peal_graph *graph, int array, int rank, int ranks)
{
    for (int i = 0; i < BRIEF_CONSTANTS; i++) {
        const constant_entry *entry = &graph->brief[i];
        if (entry->array == array && entry->rank == rank && entry->ranks == ranks)
            return entry; /* no job has 0 ranks */
    }
    return NULL;
}

/* Values that need not be kept, where earlier ones of this kind were. */
static peal_status brief_contents(peal_graph *graph, const peal_array *a, int array,
                                  const peal_scope *scope, peal_constant *out)
{
    int at = graph->brief_next++ % BRIEF_CONSTANTS;
    constant_entry *own = &graph->brief[at];
    void *data = (void *)(uintptr_t)own->value.data;
    if (graph->brief_bytes[at] < values_bytes(a)) {
        data = peal_arena_allocate(graph->arena, values_bytes(a));
        graph->brief_bytes[at] = values_bytes(a);
    }
    *own = (constant_entry){array, scope->rank, 0, {0, data}, NULL};
    peal_status status = evaluate_values(graph, a, scope, data, &own->value);
    if (!status) {
        own->ranks = scope->ranks;
        *out = own->value;
    }
    return status;
}

static peal_status find_contents(const peal_graph_data *data, int array, int rank, int ranks,
                                 bool keep, peal_constant *out)
{
    peal_graph *graph = data->owner;
    const peal_array *a = &data->arrays[array];
    const constant_entry *known = keep ? NULL : find_brief(graph, array, rank, ranks);
    if (!known)
        known = find_constant(graph, array, rank, ranks);
    if (known) {
        *out = known->value;
        return PEAL_STATUS_OK;
    }
    bool differs = differs_by_rank(a);
    if (rank && !differs)
        return find_contents(data, array, 0, ranks, keep, out);
    peal_scope scope = {.graph = data, .rank = rank, .ranks = ranks};
    if (!keep && differs && !a->file)
        return brief_contents(graph, a, array, &scope, out);
    if (graph->constant_count == graph->constant_buckets && !grow_table(graph))
        return peal_report(graph->report_to, PEAL_E_COMPILE_OUT_OF_MEMORY, a->source, NULL,
                           "no memory for its contents");
    constant_entry *own = PEAL_ARENA_NEW(graph->arena, constant_entry);
    peal_status status =
        a->file ? read_file(graph, a, &scope, &own->value)
                : evaluate_values(graph, a, &scope,
                                  peal_arena_allocate(graph->arena, values_bytes(a)), &own->value);
    if (status)
        return status;
    size_t at = bucket_of(graph, array, rank);
    own->array = array;
    own->rank = rank;
    own->ranks = ranks;
    own->next = graph->constants[at];
    graph->constants[at] = own;
    graph->last_constant = own;
    graph->constant_count++;
    *out = own->value;
    return PEAL_STATUS_OK;
}

peal_status peal_constant_contents(const peal_graph_data *data, int array, int rank, int ranks,
                                   bool keep, peal_constant *out)
{
    peal_graph *graph = data->owner;
    PEAL_ARENA_GUARD(graph->arena, return peal_graph_no_memory(graph, graph->report_to));
    return find_contents(data, array, rank, ranks, keep, out);
}
