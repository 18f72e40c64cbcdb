/* Copies of descriptors that live as long as the graph, whatever version of them the caller knows.
 *
 * Where the texts of a descriptor lie is said once, by tables of offsets. */
#include "dsl/builder.h"

#include <string.h>

enum { FIELDS = 16 };

/* Texts at these offsets; then parts with texts of their own. */
typedef struct layout {
    size_t bytes;
    int text_count;
    size_t text[FIELDS];
} layout;

#define AT(type, member) offsetof(type, member)

static const layout points_layout = {sizeof(peal_points_desc),
                                     9,
                                     {AT(peal_points_desc, name), AT(peal_points_desc, grow),
                                      AT(peal_points_desc, rim), AT(peal_points_desc, box),
                                      AT(peal_points_desc, border), AT(peal_points_desc, halo),
                                      AT(peal_points_desc, part), AT(peal_points_desc, count),
                                      AT(peal_points_desc, max)}};
static const layout access_layout = {sizeof(peal_access_desc),
                                     5,
                                     {AT(peal_access_desc, name), AT(peal_access_desc, grow),
                                      AT(peal_access_desc, star), AT(peal_access_desc, box),
                                      AT(peal_access_desc, per_tile)}};
static const layout reduce_layout = {sizeof(peal_reduce_desc),
                                     2,
                                     {AT(peal_reduce_desc, name), AT(peal_reduce_desc, combine)}};
static const layout print_layout = {sizeof(peal_print_desc),
                                    2,
                                    {AT(peal_print_desc, name), AT(peal_print_desc, value)}};
static const layout param_layout = {sizeof(peal_param_desc),
                                    4,
                                    {AT(peal_param_desc, name), AT(peal_param_desc, value),
                                     AT(peal_param_desc, min), AT(peal_param_desc, max)}};
static const layout topology_layout = {sizeof(peal_topology_desc),
                                       2,
                                       {AT(peal_topology_desc, dims),
                                        AT(peal_topology_desc, periodic)}};
static const layout field_layout = {sizeof(peal_field_desc),
                                    8,
                                    {AT(peal_field_desc, name), AT(peal_field_desc, like),
                                     AT(peal_field_desc, type), AT(peal_field_desc, size),
                                     AT(peal_field_desc, halo), AT(peal_field_desc, align),
                                     AT(peal_field_desc, stagger), AT(peal_field_desc, coarsen)}};
static const layout buffer_layout = {sizeof(peal_buffer_desc),
                                     5,
                                     {AT(peal_buffer_desc, name), AT(peal_buffer_desc, type),
                                      AT(peal_buffer_desc, count), AT(peal_buffer_desc, file),
                                      AT(peal_buffer_desc, values)}};
static const layout task_layout = {sizeof(peal_task_desc),
                                   5,
                                   {AT(peal_task_desc, name), AT(peal_task_desc, kernel),
                                    AT(peal_task_desc, tile), AT(peal_task_desc, label),
                                    AT(peal_task_desc, when)}};
static const layout exchange_layout = {
    sizeof(peal_exchange_desc), 2, {AT(peal_exchange_desc, name), AT(peal_exchange_desc, when)}};
static const layout message_layout = {sizeof(peal_message_desc),
                                      8,
                                      {AT(peal_message_desc, to), AT(peal_message_desc, from),
                                       AT(peal_message_desc, along), AT(peal_message_desc, tag),
                                       AT(peal_message_desc, offsets), AT(peal_message_desc, count),
                                       AT(peal_message_desc, name), AT(peal_message_desc, when)}};
static const layout rank_reduce_layout = {sizeof(peal_rank_reduce_desc),
                                          4,
                                          {AT(peal_rank_reduce_desc, to),
                                           AT(peal_rank_reduce_desc, along),
                                           AT(peal_rank_reduce_desc, name),
                                           AT(peal_rank_reduce_desc, when)}};
static const layout swap_layout = {sizeof(peal_swap_desc),
                                   4,
                                   {AT(peal_swap_desc, swap[0]), AT(peal_swap_desc, swap[1]),
                                    AT(peal_swap_desc, name), AT(peal_swap_desc, when)}};
static const layout set_layout = {sizeof(peal_set_desc),
                                  4,
                                  {AT(peal_set_desc, set), AT(peal_set_desc, value),
                                   AT(peal_set_desc, name), AT(peal_set_desc, when)}};
static const layout print_row_layout = {
    sizeof(peal_print_row_desc), 2, {AT(peal_print_row_desc, name), AT(peal_print_row_desc, when)}};
static const layout file_layout = {sizeof(peal_file_desc),
                                   5,
                                   {AT(peal_file_desc, load), AT(peal_file_desc, save),
                                    AT(peal_file_desc, file), AT(peal_file_desc, name),
                                    AT(peal_file_desc, when)}};
static const layout loop_layout = {sizeof(peal_loop_desc),
                                   7,
                                   {AT(peal_loop_desc, repeat), AT(peal_loop_desc, as),
                                    AT(peal_loop_desc, until), AT(peal_loop_desc, every),
                                    AT(peal_loop_desc, lag), AT(peal_loop_desc, name),
                                    AT(peal_loop_desc, when)}};

static void keep_texts(peal_graph *graph, void *memory, const layout *of)
{
    for (int i = 0; i < of->text_count; i++) {
        const char **text = (const char **)(void *)((char *)memory + of->text[i]);
        *text = peal_graph_keep_text(graph, *text);
    }
}

static void keep_parts(peal_graph *graph, void *part, size_t count, const layout *of)
{
    for (size_t i = 0; i < count; i++)
        keep_texts(graph, (char *)part + i * of->bytes, of);
}

static void keep_names(peal_graph *graph, const char **name, size_t count)
{
    for (size_t i = 0; i < count; i++)
        name[i] = peal_graph_keep_text(graph, name[i]);
}

/* A zeroed descriptor with what the caller knows of it; NULL if he doesn't say how much that is.
 * Every descriptor begins with size_bytes. */
static void *copy(peal_graph *graph, const void *desc, const layout *of)
{
    size_t known = desc ? *(const size_t *)desc : 0;
    if (known < sizeof(size_t) + sizeof(peal_source))
        return NULL;
    void *memory = peal_arena_allocate(graph->arena, of->bytes);
    memcpy(memory, desc, known < of->bytes ? known : of->bytes);
    keep_texts(graph, memory, of);
    peal_source *source = (peal_source *)(void *)((char *)memory + sizeof(size_t));
    source->file = peal_graph_keep_text(graph, source->file);
    return memory;
}

const void *peal_desc_copy_param(peal_graph *graph, const peal_param_desc *desc)
{
    return copy(graph, desc, &param_layout);
}

const void *peal_desc_copy_topology(peal_graph *graph, const peal_topology_desc *desc)
{
    return copy(graph, desc, &topology_layout);
}

const void *peal_desc_copy_field(peal_graph *graph, const peal_field_desc *desc)
{
    return copy(graph, desc, &field_layout);
}

const void *peal_desc_copy_buffer(peal_graph *graph, const peal_buffer_desc *desc)
{
    peal_buffer_desc *buffer = copy(graph, desc, &buffer_layout);
    if (buffer)
        keep_parts(graph, &buffer->box, 1, &points_layout);
    return buffer;
}

const void *peal_desc_copy_loop(peal_graph *graph, const peal_loop_desc *desc)
{
    return copy(graph, desc, &loop_layout);
}

static void keep_task(peal_graph *graph, peal_task_desc *task)
{
    keep_parts(graph, &task->box, 1, &points_layout);
    keep_parts(graph, task->read, PEAL_CALL_VIEWS, &access_layout);
    keep_parts(graph, task->update, PEAL_CALL_VIEWS, &access_layout);
    keep_parts(graph, task->write, PEAL_CALL_VIEWS, &access_layout);
    keep_parts(graph, task->reduce, PEAL_CALL_PARTIALS, &reduce_layout);
    keep_names(graph, task->args, PEAL_CALL_ARGUMENTS);
}

static const layout *layout_of(peal_statement_kind kind)
{
    switch (kind) {
    case PEAL_STATEMENT_TASK:
        return &task_layout;
    case PEAL_STATEMENT_EXCHANGE:
        return &exchange_layout;
    case PEAL_STATEMENT_SEND:
    case PEAL_STATEMENT_RECV:
        return &message_layout;
    case PEAL_STATEMENT_REDUCE:
        return &rank_reduce_layout;
    case PEAL_STATEMENT_SWAP:
        return &swap_layout;
    case PEAL_STATEMENT_SET:
        return &set_layout;
    case PEAL_STATEMENT_PRINT:
        return &print_row_layout;
    case PEAL_STATEMENT_LOAD:
    case PEAL_STATEMENT_SAVE:
        return &file_layout;
    case PEAL_STATEMENT_REPEAT:
        break;
    }
    return &loop_layout;
}

static void keep_statement_parts(peal_graph *graph, peal_statement_kind kind, void *desc)
{
    if (kind == PEAL_STATEMENT_TASK)
        keep_task(graph, desc);
    else if (kind == PEAL_STATEMENT_EXCHANGE)
        keep_parts(graph, ((peal_exchange_desc *)desc)->exchange, PEAL_GRAPH_EXCHANGE,
                   &access_layout);
    else if (kind == PEAL_STATEMENT_SEND || kind == PEAL_STATEMENT_RECV) {
        keep_parts(graph, &((peal_message_desc *)desc)->send, 1, &points_layout);
        keep_parts(graph, &((peal_message_desc *)desc)->recv, 1, &points_layout);
    } else if (kind == PEAL_STATEMENT_REDUCE)
        keep_parts(graph, ((peal_rank_reduce_desc *)desc)->reduce, PEAL_CALL_PARTIALS,
                   &reduce_layout);
    else if (kind == PEAL_STATEMENT_PRINT)
        keep_parts(graph, ((peal_print_row_desc *)desc)->print, PEAL_GRAPH_PRINT, &print_layout);
}

/* The members that all statements share, by kind. */
#define SHARED(type, label_member)                                                                 \
    do {                                                                                           \
        const type *d = desc;                                                                      \
        statement->name = d->label_member;                                                         \
        statement->when = d->when;                                                                 \
        memcpy(statement->after, d->after, sizeof(statement->after));                              \
    } while (0)

static void take_shared(raw_statement *statement, const void *desc)
{
    switch (statement->kind) {
    case PEAL_STATEMENT_TASK:
        SHARED(peal_task_desc, label);
        break;
    case PEAL_STATEMENT_EXCHANGE:
        SHARED(peal_exchange_desc, name);
        break;
    case PEAL_STATEMENT_SEND:
    case PEAL_STATEMENT_RECV:
        SHARED(peal_message_desc, name);
        break;
    case PEAL_STATEMENT_REDUCE:
        SHARED(peal_rank_reduce_desc, name);
        break;
    case PEAL_STATEMENT_SWAP:
        SHARED(peal_swap_desc, name);
        break;
    case PEAL_STATEMENT_SET:
        SHARED(peal_set_desc, name);
        break;
    case PEAL_STATEMENT_PRINT:
        SHARED(peal_print_row_desc, name);
        break;
    case PEAL_STATEMENT_LOAD:
    case PEAL_STATEMENT_SAVE:
        SHARED(peal_file_desc, name);
        break;
    case PEAL_STATEMENT_REPEAT:
        SHARED(peal_loop_desc, name);
        break;
    }
}

bool peal_desc_copy_statement(peal_graph *graph, const void *desc, raw_statement *statement)
{
    void *own = copy(graph, desc, layout_of(statement->kind));
    if (!own)
        return false;
    keep_statement_parts(graph, statement->kind, own);
    take_shared(statement, own);
    keep_names(graph, statement->after, PEAL_GRAPH_AFTER);
    statement->desc = own;
    statement->source = *(const peal_source *)(const void *)((char *)own + sizeof(size_t));
    return true;
}
