/* The `sim` backend: executes the schedules of any number of ranks in virtual time.
 *
 * Ranks, their lanes and the links between them are simulated event by event, in the order of time.
 * Nothing is computed and no clock is read, so the same input gives the same result. Ranks that are
 * alike share a schedule. A rank itself has the positions of its lanes and how many messages have
 * come: some hundred bytes.
 *
 * The model:
 * - A lane does one op after the other. An op starts when the ops that it depends on have ended,
 * its message has come and, where the CPU drives, the CPU has enqueued it. Dependences between
 * tiles count as dependences between their launches.
 * - Kernels of one device or core run one after the other, in the order in which they could begin.
 *   A GPU begins and ends the border of a task and the rest of it once, as one launch. In modes
 *   stream and graph all of its blocks run at the same time, so messages of the border leave when
 *   the launch has ended; in mode fused those of the border come first.
 * - A copy takes the link's time from its lane. On a network the node's adapter does it, and the
 *   lane goes on. Messages that share a link pass one after the other.
 * - Run-time conditions are true, and `until` never ends a loop. */
#ifndef PEAL_BACKENDS_SIM_SIM_H
#define PEAL_BACKENDS_SIM_SIM_H

#include "base/diagnostic.h"

#include <peal/plugin/schedule.h>
#include <peal/plugin/times.h>

/* An op that has been executed. */
typedef struct sim_event {
    int rank, op;
    uint64_t flag; /* WRITE, WAIT: the value that is written or waited for; 0: the credit need not
                      be waited for */
    double begin_s, end_s;
} sim_event;

typedef struct sim_desc {
    size_t size; /* sizeof(sim_desc) */
    int ranks;
    /* By rank: the number of its schedule. A schedule was made for one rank. Other ranks that have
     * it have their peers at the same distances. */
    const int *number;
    const peal_schedule *const *schedule; /* by number */
    int schedule_count;
    const peal_machine_times *times;
    int64_t steps;      /* the most steps; -1: as many as the spec says, within most_ops */
    int64_t most_ops;   /* if steps is -1: the most ops, but at least one step; 0: any number */
    int64_t most_bytes; /* the most memory; a simulation that needs more is refused; 0: no limit */
    double jitter;      /* ops and links take up to so much longer, as a fraction; 0: none */
    uint64_t seed;      /* of the jitter */
    bool free_messages; /* ops of messages take no time, and nobody waits for messages */
    bool path;          /* find the critical path */
    int64_t path_bytes; /* the most memory for that: as many of the last steps as fit */
    /* NULL; or called for each op when it ends, in the order of time. */
    void (*observe)(void *user, const sim_event *event);
    void *user;
    peal_diagnostics *diagnostics;
} sim_desc;

/* A piece of the critical path, latest first. */
typedef struct sim_piece {
    int rank;
    int op;       /* of its schedule; link: the WRITE */
    bool link;    /* the way of a word from `rank` to `to` */
    int to;       /* link */
    int64_t step; /* -1: setup; steps: finish */
    double begin_s, end_s;
} sim_piece;

typedef struct sim_traffic {
    int64_t messages, bytes; /* of the steps; credits are not messages */
} sim_traffic;

typedef struct sim_result {
    int64_t steps;       /* that were simulated */
    int64_t all_steps;   /* that the spec says */
    double seconds;      /* from the first op to the last */
    double step_s;       /* a step's time: the average of all but the first, or of the later half if
                            not all steps were simulated */
    double kernel_s;     /* kernels' time of a device or core in a step, a rank's average */
    double task_s;       /* the same with the time to launch, begin and end kernels */
    int64_t first_timed; /* the first step that counts in step_s */
    sim_traffic traffic[PEAL_LINK_COUNT];
    int64_t credits;     /* of the steps */
    int64_t ops;         /* that were executed */
    size_t memory_bytes; /* that the simulation took */
    size_t rank_bytes;   /* of these for a rank's state, on average */
    int devices, nodes;
    sim_piece *piece; /* NULL without path */
    int64_t piece_count;
    int64_t path_steps; /* how far back the path was followed */
} sim_result;

/* Simulates. What fails has been reported: the machine file lacks a time
 * (PEAL_E_MACHINE_TIME_MISSING), ranks wait for each other (PEAL_E_DEADLOCK_IN_SIMULATION), or the
 * simulation is too large (PEAL_E_SIMULATION_TOO_LARGE, PEAL_E_OUT_OF_MEMORY). *out is released by
 * sim_result_release. */
peal_status sim_run(const sim_desc *desc, sim_result *out);
void sim_result_release(sim_result *result);

/* The points that the tiles of a LAUNCH cover. */
double sim_launch_points(const peal_schedule *schedule, const peal_op *op);
/* The name by which a mode's times have an op: the name of its task; or "send exchange u", "unpack
 * ..." and "local ..." of copies and the writes that belong to them; in mode sync, in which waits
 * are launched, "wait ..." as well. "": it has none. */
void sim_times_name(const peal_schedule *schedule, const peal_op *op,
                    char name[PEAL_TASK_NAME_BYTES]);

/* How long an op takes in a simulation. */
typedef struct sim_op_times {
    double count;    /* instances in a step, on average */
    int lane;        /* the lane that does it; -1: a lane of its own */
    double cpu_s;    /* of the CPU: to launch a kernel and learn of its end, or to enqueue the op */
    double lane_s;   /* of its lane; without cpu_s where the CPU is the lane */
    double device_s; /* before that: of the device or core, which does one thing at a time */
    double way_s;    /* WRITE: until the word arrives, behind bytes that a network still carries */
} sim_op_times;

typedef struct sim_description {
    int sharers; /* ranks that share a device or core */
    int lanes;
    sim_op_times *op; /* by op of the schedule */
} sim_description;

/* The times of the ops of schedule `number`, on the first rank that has it, in so many steps. What
 * fails has been reported. *out is released by free(out->op). */
peal_status sim_describe(const sim_desc *desc, int number, int64_t steps, sim_description *out);

#endif
