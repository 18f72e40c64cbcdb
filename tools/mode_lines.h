/* Which modes can run a spec, and why not the others: what explain, plan and check say of them. */
#ifndef PEAL_TOOLS_MODE_LINES_H
#define PEAL_TOOLS_MODE_LINES_H

#include "runtime/select/rehearsal.h"
#include "tools/job.h"

typedef struct mode_line {
    bool can, bounded;
    const char *refusal;                  /* by the backend, which has no such mode; NULL */
    peal_reason reason[PEAL_REASONS + 1]; /* those that refuse first */
    int count;
    peal_rehearsal rehearsal; /* of what a device would have to hold */
} mode_line;

/* Looks at one mode: what the graph's statements say, then a rehearsal of its plan. */
peal_status mode_line_find(const peal_options *options, const peal_backend_ops *backend,
                           const peal_graph_data *graph, const peal_machine *machine,
                           peal_mode mode, peal_diagnostics *diagnostics, mode_line *out);
/* Looks at all of them. */
peal_status mode_lines_find(const peal_options *options, const peal_backend_ops *backend,
                            const peal_graph_data *graph, const peal_machine *machine,
                            peal_diagnostics *diagnostics, mode_line out[PEAL_MODE_COUNT]);
/* What stands for mode auto where nothing is predicted: as mode_automatic, but of modes whose plan
 * can be made. */
peal_mode mode_lines_automatic(const peal_backend_ops *backend,
                               const mode_line line[PEAL_MODE_COUNT]);
/* Reports that a mode cannot run the spec, with the reason's number and place. */
peal_status mode_line_report(const mode_line *line, peal_mode mode, peal_diagnostics *diagnostics);

#endif
