/* Measures what the kernels of a graph take on this machine's cores, in the place and at the sizes
 * that they have in a run: a machine file's `kernels`. */
#ifndef PEAL_RUNTIME_CALIBRATE_H
#define PEAL_RUNTIME_CALIBRATE_H

#include "runtime/plan.h"

#include <peal/plugin/times.h>

/* Collective. Runs steps of the graph on the host backend in mode sync, whose tiles run in their
 * usual order, and times each call of a kernel; `ranks` 0: one a process. The kernels of the steps
 * are added to `times`, or take the place of those of their names; the rest stays. */
peal_status peal_calibrate(peal_session *session, peal_graph *graph, int ranks,
                           peal_machine_times *times);

#endif
