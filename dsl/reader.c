/* The YAML reader: a client of the builder. The document's top level, its sections, and the calls
 * of dsl.h. */
#include "dsl/reader.h"
#include "dsl/parser.h"

#include <string.h>

/* A map of names, such as fields; `what` they are. */
static bool expect_map(peal_reader *r, const peal_key *key, const peal_node *node)
{
    if (node->kind == PEAL_NODE_MAP)
        return true;
    peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, node->at,
                       node->kind == PEAL_NODE_LIST ? "write `name: ...` a line, without `- `"
                                                    : NULL,
                       "expected a map of %s", key->name);
    r->trapped = true; /* all that uses their names would be told, too */
    return false;
}

/* What such a name stands for: a map of the context's keys. */
static bool expect_keys(peal_reader *r, const peal_node *node, peal_context_id id, const char *hint)
{
    if (node->kind == PEAL_NODE_MAP)
        return true;
    peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, node->at, hint,
                       "expected a map with the keys of %s", peal_context_at(id)->title);
    r->trapped = true;
    return false;
}

void peal_reader_params(peal_reader *r, const peal_key *key, peal_node *map, void *out)
{
    (void)out;
    for (int i = 0; expect_map(r, key, map) && i < map->count; i++) {
        peal_node *value = map->pair[i].value;
        peal_param_desc desc = {.size_bytes = sizeof(desc), .source = map->pair[i].key->at};
        desc.name = peal_reader_key(r, &map->pair[i]);
        if (value->kind == PEAL_NODE_MAP) {
            peal_reader_keys(r, value, PEAL_CONTEXT_PARAM, &desc);
            value = peal_node_find(value, "value");
        } else
            desc.value = peal_reader_text(r, value);
        desc.text = value && value->quoted;
        if (desc.value)
            peal_graph_add_param_desc(r->graph, &desc);
    }
}

void peal_reader_defines(peal_reader *r, const peal_key *key, peal_node *map, void *out)
{
    (void)out;
    for (int i = 0; expect_map(r, key, map) && i < map->count; i++) {
        peal_param_desc desc = {.size_bytes = sizeof(desc), .source = map->pair[i].key->at};
        desc.name = peal_reader_key(r, &map->pair[i]);
        desc.value = peal_reader_text(r, map->pair[i].value);
        if (desc.value)
            peal_graph_add_define_desc(r->graph, &desc);
    }
}

void peal_reader_topology(peal_reader *r, const peal_key *key, peal_node *map, void *out)
{
    (void)key;
    (void)out;
    peal_topology_desc desc = {.size_bytes = sizeof(desc), .source = map->at};
    if (map->kind != PEAL_NODE_MAP) {
        peal_reader_report(r, PEAL_E_WRONG_VALUE_SHAPE, map->at,
                           "write topology: {dims: [2, auto]}",
                           "expected a map with dims and periodic");
        return;
    }
    peal_reader_keys(r, map, PEAL_CONTEXT_TOPOLOGY, &desc);
    peal_graph_set_topology_desc(r->graph, &desc);
}

void peal_reader_fields(peal_reader *r, const peal_key *key, peal_node *map, void *out)
{
    (void)out;
    for (int i = 0; expect_map(r, key, map) && i < map->count; i++) {
        const peal_node *name = map->pair[i].key, *keys = map->pair[i].value;
        peal_field_desc desc = {.size_bytes = sizeof(desc), .source = name->at};
        desc.name = peal_reader_key(r, &map->pair[i]);
        bool like = keys->kind == PEAL_NODE_SCALAR && peal_is_name(keys->text);
        if (!expect_keys(r, keys, PEAL_CONTEXT_FIELD,
                         like ? peal_arena_print(r->arena, "write %s: {like: %s}", name->text,
                                                 keys->text)
                              : "write u: {size: [nx, ny], halo: 1}"))
            continue;
        peal_reader_keys(r, keys, PEAL_CONTEXT_FIELD, &desc);
        peal_graph_add_field_desc(r->graph, &desc);
    }
}

void peal_reader_buffers(peal_reader *r, const peal_key *key, peal_node *map, void *out)
{
    (void)out;
    for (int i = 0; expect_map(r, key, map) && i < map->count; i++) {
        const peal_node *keys = map->pair[i].value;
        peal_buffer_desc desc = {.size_bytes = sizeof(desc), .source = map->pair[i].key->at};
        desc.name = peal_reader_key(r, &map->pair[i]);
        if (!expect_keys(r, keys, PEAL_CONTEXT_BUFFER, "write b: {count: 8}, or b: {}"))
            continue;
        peal_reader_keys(r, keys, PEAL_CONTEXT_BUFFER, &desc);
        peal_graph_add_buffer_desc(r->graph, &desc);
    }
}

static void read_texts(peal_reader *r, peal_node *node,
                       void (*add)(peal_graph *graph, const char *text, peal_source source))
{
    bool is_list = node->kind == PEAL_NODE_LIST;
    for (int i = 0; i < (is_list ? node->count : 1); i++) {
        peal_node *item = is_list ? node->item[i] : node;
        const char *text = peal_reader_text(r, item);
        if (text)
            add(r->graph, text, item->at);
    }
}

void peal_reader_kernel_files(peal_reader *r, const peal_key *key, peal_node *node, void *out)
{
    (void)key;
    (void)out;
    read_texts(r, node, peal_graph_add_kernels);
}

void peal_reader_requirements(peal_reader *r, const peal_key *key, peal_node *node, void *out)
{
    (void)key;
    (void)out;
    read_texts(r, node, peal_graph_add_require);
}

static void read_section(peal_reader *r, const peal_node *map, const char *key,
                         peal_graph_section section)
{
    const peal_node *node = peal_node_find(map, key);
    if (!node)
        return;
    peal_graph_begin_at(r->graph, section, node->at);
    peal_reader_body(r, node);
    peal_graph_end_at(r->graph, node->at);
}

static void read_spec(peal_reader *r, const peal_node *root)
{
    if (root->kind != PEAL_NODE_MAP) {
        peal_reader_report(r, PEAL_E_NOT_A_SPEC, root->at, "a spec begins with `peal: 1`",
                           "a spec is a map of keys");
        return;
    }
    peal_spec spec = {.loop = {.size_bytes = sizeof(spec.loop), .source = root->at}};
    peal_reader_keys(r, root, PEAL_CONTEXT_SPEC, &spec);
    if (spec.name)
        r->graph->name = spec.name;
    peal_graph_set_fma(r->graph, spec.fma);
    if (spec.loop.repeat || spec.loop.until || spec.loop.every || spec.loop.lag)
        peal_graph_set_loop_desc(r->graph, &spec.loop);
    read_section(r, root, "setup", PEAL_SETUP);
    read_section(r, root, "step", PEAL_STEP);
    read_section(r, root, "finish", PEAL_FINISH);
}

/* "dir/jacobi2d.yaml": name jacobi2d, folder dir. */
static void name_graph(peal_graph *graph, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    size_t length = strlen(base);
    const char *dot = strrchr(base, '.');
    if (dot && dot > base)
        length = (size_t)(dot - base);
    graph->name = peal_arena_copy_bytes(graph->arena, base, length);
    graph->file = peal_arena_copy_text(graph->arena, path);
    graph->folder = ".";
    if (slash)
        graph->folder =
            slash == path ? "/" : peal_arena_copy_bytes(graph->arena, path, (size_t)(slash - path));
}

/* After mistakes in the document what was built is looked at, too, so that all is reported at once.
 */
static void report_the_rest(peal_reader *r)
{
    const peal_graph_data *data;
    if (!r->trapped)
        peal_graph_resolve(r->graph, r->diagnostics, &data);
}

static peal_status read_graph(peal_graph *graph, const char *bytes, size_t count,
                              peal_diagnostics *diagnostics)
{
    peal_node *root;
    int node_count;
    peal_status status = peal_document_parse(graph->file, bytes, count, graph->arena, diagnostics,
                                             &root, &node_count);
    if (status)
        return status;
    peal_reader r = {.graph = graph, .arena = graph->arena, .diagnostics = diagnostics};
    /* decoded, a text has at most 3/2 of its bytes in the file, and may be wanted alone and in a
     * list */
    size_t room = 4 * count + 16 * (size_t)node_count + 64;
    r.pool = peal_arena_allocate(graph->arena, room);
    r.pool_end = r.pool + room;
    peal_graph_lend_texts(graph, r.pool, r.pool_end);
    read_spec(&r, root);
    if (!r.failures)
        return PEAL_STATUS_OK;
    report_the_rest(&r);
    return PEAL_STATUS_SPEC;
}

static peal_status try_to_read(peal_graph *graph, const char *name, const char *bytes, size_t count,
                               peal_diagnostics *diagnostics)
{
    PEAL_ARENA_GUARD(graph->arena, return peal_graph_no_memory(graph, diagnostics));
    name_graph(graph, name);
    return read_graph(graph, bytes, count, diagnostics);
}

peal_status peal_graph_read_memory(const char *name, const char *bytes, size_t count,
                                   const char *const *overrides, int override_count,
                                   peal_diagnostics *diagnostics, peal_graph **out)
{
    peal_graph *graph = NULL;
    peal_status status = peal_graph_create(NULL, &graph);
    if (status)
        return peal_report(diagnostics, PEAL_E_COMPILE_OUT_OF_MEMORY, (peal_source){0}, NULL,
                           "no memory for the graph");
    for (int i = 0; i < override_count; i++)
        peal_graph_override(graph, overrides[i]);
    status = try_to_read(graph, name, bytes, count, diagnostics);
    if (status)
        peal_graph_destroy(graph);
    else
        *out = graph;
    return status;
}

static peal_status try_to_load(const char *path, peal_arena *arena, peal_diagnostics *diagnostics,
                               const char **bytes, size_t *count)
{
    PEAL_ARENA_GUARD(arena, return peal_document_no_memory(path, arena, diagnostics));
    return peal_document_load(path, arena, diagnostics, bytes, count);
}

peal_status peal_graph_read(const char *path, const char *const *overrides, int override_count,
                            peal_diagnostics *diagnostics, peal_graph **out)
{
    peal_arena *arena = peal_arena_create();
    const char *bytes;
    size_t count;
    if (!arena)
        return peal_report(diagnostics, PEAL_E_COMPILE_OUT_OF_MEMORY, (peal_source){path, 0, 0},
                           NULL, "no memory to read it");
    peal_status status = try_to_load(path, arena, diagnostics, &bytes, &count);
    if (!status)
        status = peal_graph_read_memory(strcmp(path, "-") ? path : "<stdin>", bytes, count,
                                        overrides, override_count, diagnostics, out);
    peal_arena_destroy(arena);
    return status;
}
