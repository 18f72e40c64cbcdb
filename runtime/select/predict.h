/* What a step of a graph will take in a mode, on a machine whose times are known: by the `sim`
 * backend, and by the equations of scheduler/model.h from the same numbers. Nothing is run. */
#ifndef PEAL_RUNTIME_SELECT_PREDICT_H
#define PEAL_RUNTIME_SELECT_PREDICT_H

#include "backends/sim/sim.h"
#include "scheduler/model/model.h"
#include "scheduler/scheduler.h"

#include <peal/plugin/times.h>

/* The schedules of all ranks: those that differ, by number, owned by their compilation. */
typedef struct peal_schedule_set {
    int ranks;
    int *number; /* by rank */
    const peal_schedule **schedule;
    int count;
    bool alike; /* else each rank has its own */
} peal_schedule_set;

/* PEAL_STATUS_SPEC (PEAL_E_SIMULATION_TOO_LARGE) if they take more than most_bytes. */
peal_status peal_schedule_set_create(peal_compilation *compilation, int ranks, int64_t most_bytes,
                                     peal_diagnostics *diagnostics, peal_schedule_set *out);
void peal_schedule_set_release(peal_schedule_set *set);

typedef struct peal_prediction_desc {
    size_t size; /* sizeof(peal_prediction_desc) */
    const peal_graph_data *graph;
    /* Ranks, processes, workers, whether they are on accelerators, and the path between these; as
     * the plan that it is about has them. */
    const peal_machine *machine;
    const peal_machine_times *times;
    peal_mode mode;   /* that can run the graph (peal_graph_refuses, the backend's refuses) */
    int64_t most_ops; /* that are simulated, at least one step; 0: enough for a tenth of a second */
    int64_t deadline_ns;           /* of a compile: peal_compilation_limit(); 0: none */
    peal_diagnostics *diagnostics; /* NULL: nobody wants to know what is missing */
} peal_prediction_desc;

typedef struct peal_prediction {
    double step_s;         /* a step, once the first ones are over; `until` never ends it */
    double without_s;      /* the same with messages that take no time and that nobody awaits */
    double kernel_s;       /* of a step: what kernels take of a rank's device or core */
    int64_t steps;         /* simulated */
    bool kernels_are_told; /* every task has times of its own in `times`: its name, or its kernel's;
                              else `default` stands for some */
    peal_period period;    /* of the rank for which the model says the most */
    peal_model model;      /* what the equations say; step_s is the simulation's */
} peal_prediction;

/* The same input gives the same bits, in every process. PEAL_STATUS_SPEC: the ranks don't fit, or
 * times->mode[mode] (or a link, or kernels) are not given, PEAL_E_MACHINE_TIME_MISSING. */
peal_status peal_predict(const peal_prediction_desc *desc, peal_prediction *out);

/* Of steps in seconds by mode (0: no prediction), the first of those that are about as fast as the
 * fastest. On CPUs within 2 %: stream, graph, fused, the simplest one. On GPUs of fused and graph,
 * within 5 % in this order, since only recorded steps are predicted, and reports, the start and
 * single steps cost least in that order; but graph first above 100 us, where messages are little
 * and it is faster in large ranks, and with one rank, which has no messages, below 30 us; stream
 * where neither is predicted: it was never the fastest there, whatever predictions said. sync only
 * where none of them is, since it leaves the caller nothing to do while steps run; serial never.
 * PEAL_MODE_COUNT: none. */
peal_mode peal_prediction_fastest(const peal_machine *machine,
                                  const double step_s[PEAL_MODE_COUNT]);

#endif
