/* Graphs of specs, for programs: read from a file or from memory, and checked. */
#include "base/handle.h"
#include "dsl/dsl.h"
#include "runtime/session/session.h"
#include "scheduler/scheduler.h"

#include <string.h>

static peal_status read_spec(peal_session *session, const peal_spec_desc *desc, peal_graph **out)
{
    peal_graph *graph = NULL;
    if (desc->size_bytes != sizeof(*desc))
        return peal_report(
            session->diagnostics, PEAL_E_INVALID_DESCRIPTOR, PEAL_NO_SOURCE,
            "set .size_bytes = sizeof(peal_spec_desc) and build against this version",
            "peal_spec_desc has %zu bytes here, the caller's has %zu", sizeof(*desc),
            desc->size_bytes);
    if (!desc->path == !desc->text || desc->set_count < 0 || (desc->set_count && !desc->set))
        return peal_report(session->diagnostics, PEAL_E_INVALID_DESCRIPTOR, PEAL_NO_SOURCE,
                           "set .path or .text, and as many of .set as .set_count says",
                           "peal_graph_read_spec: %s",
                           !desc->path == !desc->text ? "it takes either a path or a text"
                                                      : "there are no params to set");
    peal_status status =
        desc->path
            ? peal_graph_read(desc->path, desc->set, desc->set_count, session->diagnostics, &graph)
            : peal_graph_read_memory(desc->name ? desc->name : "spec", desc->text,
                                     strlen(desc->text), desc->set, desc->set_count,
                                     session->diagnostics, &graph);
    if (status)
        return status;
    if (desc->folder)
        peal_graph_set_folder(graph, desc->folder);
    *out = graph;
    return PEAL_STATUS_OK;
}

peal_status peal_graph_read_spec(peal_session *session, const peal_spec_desc *desc,
                                 peal_graph **out)
{
    if (!peal_handle_check(session, PEAL_HANDLE_SESSION, __func__) ||
        !peal_argument_check(desc, "the descriptor", __func__) ||
        !peal_argument_check(out, "where the graph goes", __func__))
        return PEAL_STATUS_USAGE;
    return peal_session_outcome(session, read_spec(session, desc, out));
}

static peal_status check(peal_graph *graph, peal_session *session, int ranks)
{
    const peal_graph_data *data;
    peal_compilation *compilation = NULL;
    const peal_machine machine = {.ranks = ranks,
                                  .processes = 1,
                                  .workers = 1,
                                  .cache_bytes = 1 << 20};
    if (ranks < 1)
        return peal_report(session->diagnostics, PEAL_E_INVALID_DESCRIPTOR, PEAL_NO_SOURCE,
                           "check on 1 rank or more", "peal_graph_check: %d ranks", ranks);
    peal_graph_report_to(graph, session->diagnostics);
    peal_status status = peal_graph_resolve(graph, session->diagnostics, &data);
    if (!status)
        status = peal_compilation_create(data, &machine, PEAL_MODE_SYNC, session->diagnostics,
                                         &compilation);
    if (!status)
        peal_compilation_limit(compilation, session->deadline_ns);
    if (!status)
        status = peal_compilation_check(compilation);
    peal_compilation_destroy(compilation);
    return status;
}

peal_status peal_graph_check(peal_graph *graph, peal_session *session, int ranks)
{
    if (!peal_handle_check(graph, PEAL_HANDLE_GRAPH, __func__) ||
        !peal_handle_check(session, PEAL_HANDLE_SESSION, __func__))
        return PEAL_STATUS_USAGE;
    return peal_session_outcome(session, check(graph, session, ranks));
}
