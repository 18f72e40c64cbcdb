/* What run, check, plan and explain share: the spec, the machine, the modes. */
#ifndef PEAL_TOOLS_JOB_H
#define PEAL_TOOLS_JOB_H

#include "dsl/dsl.h"
#include "scheduler/scheduler.h"
#include "tools/options.h"

#include <peal/plugin/backend.h>
#include <peal/plugin/machine.h>

/* A spec that was read and resolved. */
typedef struct peal_spec {
    char *path; /* of the file; "-" standard input */
    peal_graph *graph;
    const peal_graph_data *data;
} peal_spec;

/* Finds, reads and resolves options->subject, reporting everything that is wrong. On failure the
 * spec still has to be closed. */
peal_status spec_open(const peal_options *options, peal_diagnostics *diagnostics, peal_spec *out);
void spec_close(peal_spec *spec);

/* The machine of --machine and -n, --processes, --threads; what they leave open is this machine. */
peal_status machine_of(const peal_options *options, peal_diagnostics *diagnostics,
                       peal_machine *out);
/* The same with what takes how long there; without a file it is not given. */
peal_status machine_and_times_of(const peal_options *options, peal_diagnostics *diagnostics,
                                 peal_machine *out, peal_machine_times *times);

/* The backend that a verb which runs nothing describes: the host's, unless --backend cuda names the
 * GPUs' (whether there are any or not: the same input gives the same output everywhere). NULL: this
 * build lacks it (reported). */
const peal_backend_ops *backend_described(const peal_options *options,
                                          peal_diagnostics *diagnostics);
/* The backend that a run of a spec takes, if nothing speaks against it. */
const peal_backend_ops *backend_expected(const peal_options *options);

/* NULL: the graph can run in the mode on the backend; else why not. */
const char *mode_refusal(const peal_backend_ops *backend, const peal_graph_data *graph,
                         peal_mode mode);
/* What stands for mode auto where nothing is predicted, best first: fused (on the host), graph (on
 * accelerators), stream, sync; PEAL_MODE_COUNT: no more. */
peal_mode mode_in_turn(const peal_backend_ops *backend, int turn);
/* The first of them that nothing in the graph speaks against. */
peal_mode mode_automatic(const peal_backend_ops *backend, const peal_graph_data *graph);

/* Bytes of the cache of one core; 1 MiB if unknown. Cores that this process may use. */
int64_t machine_cache_bytes(void);
int machine_cores(void);

/* The part of `peal explain` that is about a spec. */
peal_status explain_spec(const peal_options *options, peal_diagnostics *diagnostics);

#endif
