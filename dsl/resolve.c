/* Finishing a graph: the steps in order. */
#include "dsl/resolve.h"

#include <inttypes.h>
#include <string.h>

static const char *const requirable[] = {"serial", "sync", "stream", "graph", "fused", "self",
                                         "shm",    "p2p",  "tcp",    "ucx",   "verbs", "mlx5"};

static void hand_over_mistakes(peal_parser *parser)
{
    const peal_diagnostics *mistakes = parser->graph->mistakes;
    for (int i = 0; i < peal_diagnostics_count(mistakes); i++) {
        const peal_diagnostic *d = peal_diagnostics_at(mistakes, i);
        peal_report(parser->diagnostics, d->code, d->source, d->hint, "%s",
                    d->message ? d->message : "");
        parser->failures++;
    }
    if (parser->graph->open_section >= 0)
        peal_parser_report(parser, PEAL_E_UNBALANCED_BEGIN_END, NULL,
                           parser->graph->section[parser->graph->open_section].source,
                           "call peal_graph_end", "the graph's last section has no end");
}

static void resolve_kernels(peal_parser *parser)
{
    peal_graph *graph = parser->graph;
    const char **files = PEAL_ARENA_ARRAY(graph->arena, const char *, graph->kernels.count);
    for (int i = 0; i < graph->kernels.count; i++) {
        files[i] = graph->kernels.item[i].text;
        if (!*files[i])
            peal_parser_report(parser, PEAL_E_INCOMPLETE_DEFINITION, NULL,
                               graph->kernels.item[i].source, NULL, "a kernel file without a name");
    }
    parser->data->kernels = files;
    parser->data->kernel_count = graph->kernels.count;
    if (graph->kernels.count > 0)
        parser->data->kernels_source = graph->kernels.item[0].source;
}

static void resolve_require(peal_parser *parser)
{
    peal_graph *graph = parser->graph;
    const char **words = PEAL_ARENA_ARRAY(graph->arena, const char *, graph->require.count);
    int count = 0;
    for (int i = 0; i < graph->require.count; i++) {
        int index = peal_parse_word(parser, graph->require.item[i].text,
                                    graph->require.item[i].source, "mode or transport", requirable,
                                    sizeof(requirable) / sizeof(requirable[0]));
        if (index >= 0)
            words[count++] = requirable[index];
    }
    parser->data->require = words;
    parser->data->require_count = count;
}

/* A run of another number of steps than `repeat` is checked as such. */
static void replace_repeat(peal_parser *parser)
{
    const peal_graph *graph = parser->graph;
    peal_loop *step = &parser->data->step;
    const char *text = peal_arena_print(graph->arena, "%" PRId64, graph->steps);
    peal_source source = step->repeat ? step->repeat->source : (peal_source){0};
    step->repeat = peal_parse_expression(parser, text, source, 0);
}

static void resolve(peal_parser *parser)
{
    hand_over_mistakes(parser);
    peal_resolve_params(parser);
    peal_resolve_arrays(parser);
    peal_resolve_topology(parser);
    resolve_kernels(parser);
    resolve_require(parser);
    peal_resolve_statements(parser);
    peal_resolve_constants(parser);
    if (parser->failures == 0)
        peal_check_uniform(parser);
    if (parser->failures == 0)
        parser->data->hash = peal_hash_graph(parser->data);
    if (parser->failures == 0 && parser->graph->has_steps)
        replace_repeat(parser);
}

static peal_status resolve_graph(peal_graph *graph, peal_diagnostics *diagnostics)
{
    peal_graph_data *data = PEAL_ARENA_NEW(graph->arena, peal_graph_data);
    peal_parser parser = {.graph = graph, .data = data, .diagnostics = diagnostics};
    data->name = graph->name;
    data->file = graph->file;
    data->folder = graph->folder;
    data->fma = graph->fma;
    data->is_alone = graph->is_alone;
    data->constant = peal_constant_contents;
    data->owner = graph;
    resolve(&parser);
    graph->data = data;
    return parser.failures ? PEAL_STATUS_SPEC : PEAL_STATUS_OK;
}

static peal_status try_to_resolve(peal_graph *graph, peal_diagnostics *diagnostics)
{
    if (graph->out_of_memory)
        return peal_graph_no_memory(graph, diagnostics);
    PEAL_ARENA_GUARD(graph->arena, return peal_graph_no_memory(graph, diagnostics));
    return resolve_graph(graph, diagnostics);
}

peal_status peal_graph_resolve(peal_graph *graph, peal_diagnostics *diagnostics,
                               const peal_graph_data **out)
{
    if (!graph)
        return PEAL_STATUS_USAGE;
    if (!graph->resolved) {
        graph->status = try_to_resolve(graph, diagnostics);
        graph->report_to = diagnostics;
        graph->resolved = true;
    }
    if (graph->status == PEAL_STATUS_OK)
        *out = graph->data;
    return graph->status;
}

void peal_graph_report_to(peal_graph *graph, peal_diagnostics *diagnostics)
{
    if (graph)
        graph->report_to = diagnostics;
}
