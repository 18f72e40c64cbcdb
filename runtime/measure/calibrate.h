/* Measures what the kernels of a graph take on this machine, in the place and at the sizes that
 * they have in a run: a machine file's `kernels`; and what its steps take. */
#ifndef PEAL_RUNTIME_MEASURE_CALIBRATE_H
#define PEAL_RUNTIME_MEASURE_CALIBRATE_H

#include "runtime/plan/plan.h"

#include <peal/plugin/times.h>

/* Collective. Runs steps of the graph on the host backend in mode sync, whose tiles run in their
 * usual order, and times each call of a kernel; `ranks` 0: one a process. The kernels of the steps
 * are added to `times`, or take the place of those of their names; the rest stays. */
peal_status peal_calibrate(peal_session *session, peal_graph *graph, int ranks,
                           peal_machine_times *times);

/* The same on devices, for every mode but `serial` that `times` has and that can run the graph;
 * copies, and tasks that are no user's kernels, are timed as well. Times of modes are added, or
 * take the place of what is there. */
peal_status peal_calibrate_device(peal_session *session, peal_graph *graph, const char *backend,
                                  int ranks, peal_machine_times *times);

/* Collective. A plan of one worker a rank; *out is NULL where the mode cannot run the graph, or the
 * device has no room for it. */
peal_status peal_measure_plan(peal_session *session, peal_graph *graph, const char *backend,
                              peal_mode mode, int ranks, peal_plan **out);

/* Collective. What a step takes in each mode that can run the graph (on devices without `serial`),
 * one worker a rank: the least of some samples of some plans, of all modes in turns; 0: the mode
 * cannot. */
peal_status peal_measure_graph(peal_session *session, peal_graph *graph, const char *backend,
                               int ranks, double step_s[PEAL_MODE_COUNT]);

#endif
