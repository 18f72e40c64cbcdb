/* Which modes can run a spec: the rules of the applicability table, and rehearsals. */
#include "tools/mode_lines.h"

#include <stdio.h>
#include <string.h>

/* What refuses stands first. Where there are several processes, the one that is refused is told. */
static void add_rehearsal(mode_line *line, const peal_machine *machine)
{
    const peal_rehearsal *found = &line->rehearsal;
    peal_reason *reason = &line->reason[0];

    memmove(reason + 1, reason, (size_t)line->count * sizeof(*reason));
    *reason = (peal_reason){.code = found->code,
                            .refuses = true,
                            .change = found->change[0] ? found->change : NULL};
    if (machine->processes > 1)
        snprintf(reason->text, sizeof(reason->text), "%.210s (%s %d)", found->text,
                 machine->processes == machine->ranks ? "rank" : "process", found->process);
    else
        snprintf(reason->text, sizeof(reason->text), "%s", found->text);
    line->count++;
    line->can = false;
}

peal_status mode_line_find(const peal_options *options, const peal_backend_ops *backend,
                           const peal_graph_data *graph, const peal_machine *machine,
                           peal_mode mode, peal_diagnostics *diagnostics, mode_line *out)
{
    const peal_rehearsal_desc desc = {.size = sizeof(desc),
                                      .backend = backend,
                                      .graph = graph,
                                      .machine = machine,
                                      .mode = mode,
                                      .lowering = options->lowering,
                                      .allow_outside = options->allow_outside,
                                      .diagnostics = diagnostics};
    peal_status status = PEAL_STATUS_OK;

    *out = (mode_line){.refusal = backend->refuses(mode)};
    if (!out->refusal)
        out->count = peal_graph_reasons(graph, machine, mode, backend->open != NULL, out->reason);
    out->can = !out->refusal && !(out->count && out->reason[0].refuses);
    if (out->can)
        status = peal_rehearse(&desc, &out->rehearsal);
    if (out->rehearsal.refused)
        add_rehearsal(out, machine);
    out->bounded = out->can && out->count;
    return status;
}

peal_status mode_lines_find(const peal_options *options, const peal_backend_ops *backend,
                            const peal_graph_data *graph, const peal_machine *machine,
                            peal_diagnostics *diagnostics, mode_line out[PEAL_MODE_COUNT])
{
    peal_status status = PEAL_STATUS_OK;

    for (int mode = 0; mode < PEAL_MODE_COUNT && !status; mode++)
        status = mode_line_find(options, backend, graph, machine, (peal_mode)mode, diagnostics,
                                &out[mode]);
    return status;
}

peal_mode mode_lines_automatic(const peal_backend_ops *backend,
                               const mode_line line[PEAL_MODE_COUNT])
{
    peal_mode mode = PEAL_MODE_SYNC, next;
    for (int turn = 0; (next = mode_in_turn(backend, turn)) != PEAL_MODE_COUNT; turn++) {
        mode = next;
        if (line[mode].can)
            break;
    }
    return mode;
}

peal_status mode_line_report(const mode_line *line, peal_mode mode, peal_diagnostics *diagnostics)
{
    const peal_reason *reason = &line->reason[0];

    if (line->refusal)
        return peal_report(diagnostics, PEAL_E_MODE_CANNOT_RUN, (peal_source){0},
                           "`peal explain SPEC` shows which modes can run it", "mode %s: %s",
                           peal_mode_name(mode), line->refusal);
    return peal_report(diagnostics, reason->code, reason->source, reason->change,
                       "mode %s cannot run this: %s", peal_mode_name(mode), reason->text);
}
