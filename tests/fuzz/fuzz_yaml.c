/* Fuzzes the YAML reader and the resolver behind it: whatever the bytes, no crash, no leak, and the
 * same answer twice. */
#include "dsl/dsl.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The hash of the graph that the bytes describe; 0: they describe none. */
static uint64_t read_once(const char *bytes, size_t size, int *messages)
{
    static const char *const overrides[] = {"n=9"};
    peal_diagnostics *list = peal_diagnostics_create();
    peal_graph *graph = NULL;
    const peal_graph_data *data = NULL;
    uint64_t hash = 0;
    int count = size % 7 == 0; /* sometimes with a --set */
    if (!peal_graph_read_memory("fuzz.yaml", bytes, size, overrides, count, list, &graph)) {
        if (!peal_graph_resolve(graph, list, &data))
            hash = data->hash;
        else if (peal_diagnostics_errors(list) == 0)
            abort(); /* refused, and nobody was told why */
    } else if (peal_diagnostics_errors(list) == 0)
        abort();
    if (data && peal_diagnostics_errors(list) > 0)
        abort(); /* accepted with errors */
    *messages = peal_diagnostics_count(list);
    peal_graph_destroy(graph);
    peal_diagnostics_destroy(list);
    return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int first, second;
    uint64_t hash = read_once((const char *)data, size, &first);
    if (hash != read_once((const char *)data, size, &second) || first != second)
        abort();
    return 0;
}
