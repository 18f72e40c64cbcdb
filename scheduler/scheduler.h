/* The scheduler: graph and machine in, schedules out. Pure: no thread, clock, socket; same input,
 * same bytes.
 *
 * A compilation holds what the ranks share: ranks that look alike are analysed once. */
#ifndef PEAL_SCHEDULER_SCHEDULER_H
#define PEAL_SCHEDULER_SCHEDULER_H

#include "base/diagnostic.h"

#include <peal/plugin/schedule.h>

#include <stdio.h>

typedef struct peal_compilation peal_compilation;

/* Prepares to compile graph for machine in mode. graph and machine are used until destroy. Topology
 * and parts are decided here: PEAL_STATUS_SPEC when the ranks don't fit the topology. */
peal_status peal_compilation_create(const peal_graph_data *graph, const peal_machine *machine,
                                    peal_mode mode, peal_diagnostics *diagnostics,
                                    peal_compilation **out);
void peal_compilation_destroy(peal_compilation *compilation);

/* All checks of SPEC §9 over all ranks; reports everything it finds. */
peal_status peal_compilation_check(peal_compilation *compilation);

/* The schedule of one rank, owned by the compilation. It checks that rank and those it exchanges
 * messages with. */
peal_status peal_compilation_schedule(peal_compilation *compilation, int rank,
                                      const peal_schedule **out);

/* By rank: the first rank whose schedule is like its own, but that whom it exchanges messages with
 * is counted from the rank itself. False: ranks differ in more than their places; then each is like
 * itself only. */
bool peal_compilation_alike(peal_compilation *compilation, int *like);

/* How the graph's ranks are laid out: dims along x, y, z. */
void peal_compilation_dims(const peal_compilation *compilation, int dims[PEAL_RANK_AXES]);

/* Whether the graph can run in a mode, on accelerators or the host: NULL, or the reason why not, in
 * words, good until this thread asks again. */
const char *peal_graph_refuses(const peal_graph_data *graph, peal_mode mode, bool accelerated);

/* What makes the host wait until the device is idle, step after step, in a mode that else runs
 * ahead: in words, good until this thread asks again; NULL: nothing. */
const char *peal_graph_drains(const peal_graph_data *graph, peal_mode mode);

/* Bytes that a compilation has used so far. */
size_t peal_compilation_bytes(const peal_compilation *compilation);

/* The schedule as stable text (golden tests) and as a Graphviz digraph. */
void peal_schedule_print_text(const peal_schedule *schedule, FILE *stream);
void peal_schedule_print_dot(const peal_schedule *schedule, FILE *stream);

#endif
