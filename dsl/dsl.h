/* What dsl/ offers to the other layers: graphs from YAML or from the builder, finished as plain
 * data; and the language described by itself (schema, reference). */
#ifndef PEAL_DSL_DSL_H
#define PEAL_DSL_DSL_H

#include "base/diagnostic.h"

#include <peal/graph.h>
#include <peal/plugin/graph.h>
#include <peal/plugin/machine.h>
#include <peal/plugin/times.h>

#include <stdio.h>

/* Finishes a graph: names resolved, keys checked, everything reported at once. *out belongs to the
 * graph and stays valid until peal_graph_destroy. Nothing can be added afterwards. A second call
 * gives the same result, but does not report again. `diagnostics` is also where peal_graph_data's
 * `constant` reports: it must live as long as that is called (see peal_graph_report_to). `constant`
 * keeps what it has read: one thread at a time may call it. */
peal_status peal_graph_resolve(peal_graph *graph, peal_diagnostics *diagnostics,
                               const peal_graph_data **out);

/* Before it is resolved: nobody but the graph's statements will read what it computes. */
void peal_graph_set_alone(peal_graph *graph);

/* A plan uses the graph: it stays, though destroyed, until the last one has dropped it. */
void peal_graph_keep(peal_graph *graph);
void peal_graph_drop(peal_graph *graph);

/* Where `constant` of a resolved graph reports from now on; NULL: nowhere. */
void peal_graph_report_to(peal_graph *graph, peal_diagnostics *diagnostics);

/* Reads a spec into *out (set on success; the caller destroys it). path "-" is standard input,
 * whose relative names start in the current folder. overrides are texts like "n=512". On an error
 * everything that was found has been reported, PEAL_STATUS_SPEC (or _USAGE if the file cannot be
 * read) is returned. The graph is not resolved yet. */
peal_status peal_graph_read(const char *path, const char *const *overrides, int override_count,
                            peal_diagnostics *diagnostics, peal_graph **out);

/* The same from memory; name stands for the file in diagnostics. bytes may hold anything. */
peal_status peal_graph_read_memory(const char *name, const char *bytes, size_t count,
                                   const char *const *overrides, int override_count,
                                   peal_diagnostics *diagnostics, peal_graph **out);

/* Prints the document at path as JSON, as peal understands YAML's scalars: `peal check
 * --print-json`. Only what cannot be read is reported; keys are not checked. */
peal_status peal_document_print_json(const char *path, FILE *stream, peal_diagnostics *diagnostics);

/* Reads a machine file. Members that it leaves open are 0. *out and *times are set on success only.
 */
peal_status peal_machine_read(const char *path, peal_diagnostics *diagnostics, peal_machine *out,
                              peal_machine_times *times);
/* The same from memory; name stands for the file in diagnostics. */
peal_status peal_machine_read_memory(const char *name, const char *bytes, size_t count,
                                     peal_diagnostics *diagnostics, peal_machine *out,
                                     peal_machine_times *times);

/* The JSON Schemas (draft 7) of the language and of machine files: `peal schema [machine]`. */
peal_status peal_schema_print(FILE *stream);
peal_status peal_schema_print_machine(FILE *stream);

/* The reference page of the language, in Markdown: docs/spec-reference.md. */
void peal_reference_print(FILE *stream);

#endif
