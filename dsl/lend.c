/* Memory lent for a field that is declared already: of a graph that a spec became. */
#include "base/handle.h"
#include "dsl/builder.h"

#include <string.h>

int peal_graph_lend(peal_graph *graph, const char *field, void *data)
{
    if (!peal_handle_check(graph, PEAL_HANDLE_GRAPH, __func__) || graph->resolved || !field)
        return -1;
    PEAL_ARENA_GUARD(graph->arena, return peal_graph_out_of_memory(graph));
    for (int i = 0; i < graph->arrays.count; i++) {
        raw_array *array = &graph->arrays.item[i];
        if (array->kind != PEAL_ARRAY_FIELD || !array->field->name ||
            strcmp(array->field->name, field))
            continue;
        peal_field_desc desc = *array->field;
        desc.data = data;
        array->field = peal_desc_copy(graph, PEAL_CONTEXT_FIELD, &desc);
        return array->field ? i : -1;
    }
    return -1;
}
