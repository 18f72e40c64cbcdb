/* The builder's declarations: params, defines, kernels, arrays, the topology, the outermost loop.
 */
#include "dsl/builder.h"

#include "base/handle.h"

void peal_graph_override(peal_graph *graph, const char *assignment)
{
    raw_text text = {NULL, {0}};
    if (peal_graph_is_closed(graph, text.source) || !assignment)
        return;
    PEAL_ARENA_GUARD(graph->arena, peal_graph_out_of_memory(graph); return );
    text.text = peal_graph_keep_text(graph, assignment);
    PEAL_LIST_ADD(graph->arena, &graph->overrides, text);
}

static void add_text(peal_graph *graph, raw_texts *list, const char *text, peal_source source)
{
    raw_text own = {peal_graph_keep_text(graph, text), peal_graph_keep_source(graph, source)};
    PEAL_LIST_ADD(graph->arena, list, own);
}

void peal_graph_add_kernels(peal_graph *graph, const char *file, peal_source source)
{
    if (peal_graph_is_closed(graph, source) || !file)
        return;
    PEAL_ARENA_GUARD(graph->arena, peal_graph_out_of_memory(graph); return );
    add_text(graph, &graph->kernels, file, source);
}

void peal_graph_add_require(peal_graph *graph, const char *what, peal_source source)
{
    if (peal_graph_is_closed(graph, source) || !what)
        return;
    PEAL_ARENA_GUARD(graph->arena, peal_graph_out_of_memory(graph); return );
    add_text(graph, &graph->require, what, source);
}

void peal_graph_set_fma(peal_graph *graph, bool fma)
{
    if (peal_handle_check(graph, PEAL_HANDLE_GRAPH, "peal_graph_set_fma") && !graph->resolved)
        graph->fma = fma;
}

int peal_graph_add_param_desc(peal_graph *graph, const peal_param_desc *desc)
{
    if (!desc || peal_graph_is_closed(graph, desc->source))
        return -1;
    PEAL_ARENA_GUARD(graph->arena, return peal_graph_out_of_memory(graph));
    const peal_param_desc *own = peal_desc_copy(graph, PEAL_CONTEXT_PARAM, desc);
    if (!own)
        return -1;
    PEAL_LIST_ADD(graph->arena, &graph->params, own);
    return graph->params.count - 1;
}

int peal_graph_add_define_desc(peal_graph *graph, const peal_param_desc *desc)
{
    if (!desc || peal_graph_is_closed(graph, desc->source))
        return -1;
    PEAL_ARENA_GUARD(graph->arena, return peal_graph_out_of_memory(graph));
    const peal_param_desc *own = peal_desc_copy(graph, PEAL_CONTEXT_PARAM, desc);
    if (!own)
        return -1;
    PEAL_LIST_ADD(graph->arena, &graph->defines, own);
    return graph->defines.count - 1;
}

static int add_array(peal_graph *graph, raw_array array)
{
    if (!array.field && !array.buffer)
        return -1;
    PEAL_LIST_ADD(graph->arena, &graph->arrays, array);
    return graph->arrays.count - 1;
}

int peal_graph_add_field_desc(peal_graph *graph, const peal_field_desc *desc)
{
    if (!desc || peal_graph_is_closed(graph, desc->source))
        return -1;
    PEAL_ARENA_GUARD(graph->arena, return peal_graph_out_of_memory(graph));
    raw_array array = {.kind = PEAL_ARRAY_FIELD,
                       .field = peal_desc_copy(graph, PEAL_CONTEXT_FIELD, desc)};
    return add_array(graph, array);
}

int peal_graph_add_buffer_desc(peal_graph *graph, const peal_buffer_desc *desc)
{
    if (!desc || peal_graph_is_closed(graph, desc->source))
        return -1;
    PEAL_ARENA_GUARD(graph->arena, return peal_graph_out_of_memory(graph));
    raw_array array = {.kind = PEAL_ARRAY_BUFFER,
                       .buffer = peal_desc_copy(graph, PEAL_CONTEXT_BUFFER, desc)};
    return add_array(graph, array);
}

int peal_graph_set_topology_desc(peal_graph *graph, const peal_topology_desc *desc)
{
    if (!desc || peal_graph_is_closed(graph, desc->source))
        return -1;
    PEAL_ARENA_GUARD(graph->arena, return peal_graph_out_of_memory(graph));
    const peal_topology_desc *own = peal_desc_copy(graph, PEAL_CONTEXT_TOPOLOGY, desc);
    if (!own)
        return -1;
    if (graph->topology)
        peal_report(graph->mistakes, PEAL_E_UNBALANCED_BEGIN_END, own->source, NULL,
                    "the topology is set twice");
    graph->topology = own;
    return 0;
}

int peal_graph_set_loop_desc(peal_graph *graph, const peal_loop_desc *desc)
{
    if (!desc || peal_graph_is_closed(graph, desc->source))
        return -1;
    PEAL_ARENA_GUARD(graph->arena, return peal_graph_out_of_memory(graph));
    const peal_loop_desc *own = peal_desc_copy(graph, PEAL_CONTEXT_REPEAT, desc);
    if (!own)
        return -1;
    if (graph->loop)
        peal_report(graph->mistakes, PEAL_E_UNBALANCED_BEGIN_END, own->source, NULL,
                    "the outermost loop is set twice");
    graph->loop = own;
    return 0;
}

void peal_graph_set_alone(peal_graph *graph)
{
    graph->is_alone = true;
}

int peal_graph_set_steps(peal_graph *graph, int64_t steps)
{
    if (steps < 0 || peal_graph_is_closed(graph, (peal_source){0}))
        return -1;
    graph->has_steps = true;
    graph->steps = steps;
    return 0;
}
