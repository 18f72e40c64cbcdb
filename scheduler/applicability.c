/* Whether a graph can run in a mode, and if not why (DESIGN §5: the applicability table). */
#include "scheduler/scheduler.h"

const char *peal_graph_refuses(const peal_graph_data *graph, peal_mode mode)
{
    (void)graph;
    if (mode == PEAL_MODE_GRAPH)
        return "graph schedules are CUDA graphs; the host backend has none";
    return NULL;
}
