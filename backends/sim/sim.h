/* The `sim` backend: executes the schedules of any number of ranks in virtual time.
 *
 * Ranks, their lanes and the links between them are simulated event by event, in the order of time;
 * nothing is computed and no clock is read, so the same input gives the same result. Ranks that are
 * alike share a schedule: a rank itself is where each of its lanes stands and how many messages
 * have come, some hundred bytes.
 *
 * What stands for what: a lane does one op after the other; an op starts once the ops that it
 * depends on have ended (dependences between tiles are taken for such between launches), its
 * message has come and, where the CPU drives, the CPU has put it there. Kernels of one device or
 * core run one after the other, in the order in which they could begin; a copy takes its link's
 * time from the lane that does it, but on a network, where the node's adapter does it; messages
 * that share a link pass one after the other. Run-time conditions hold, `until` never stops. */
#ifndef PEAL_BACKENDS_SIM_SIM_H
#define PEAL_BACKENDS_SIM_SIM_H

#include "base/diagnostic.h"

#include <peal/plugin/schedule.h>
#include <peal/plugin/times.h>

/* An op that has been executed. */
typedef struct sim_event {
    int rank, op;
    uint64_t flag; /* WRITE, WAIT: the value that is written or waited for; 0: of a credit that
                      need not be waited for */
    double begin_s, end_s;
} sim_event;

typedef struct sim_desc {
    size_t size; /* sizeof(sim_desc) */
    int ranks;
    /* By rank: the number of its schedule; ranks of one schedule differ in whom they name, which
     * lies as far from each as from the rank that the schedule was made for. */
    const int *number;
    const peal_schedule *const *schedule; /* by number */
    int schedule_count;
    const peal_machine_times *times;
    int64_t steps;      /* at most; -1: as many as the spec says, if it takes no more ops than: */
    int64_t most_ops;   /* that are simulated if steps is -1; at least one step is; 0: any number */
    int64_t most_bytes; /* of memory; a simulation that needs more is refused; 0: no limit */
    double jitter;      /* each op and link takes up to so much longer, as a fraction; 0: none */
    uint64_t seed;      /* of that */
    bool free_messages; /* ops of messages take no time, and nobody waits for any */
    bool path;          /* look for the critical path */
    int64_t path_bytes; /* that this may take: it is followed back as many steps as fit */
    /* NULL, or called for each op at its end, in the order of these times. */
    void (*observe)(void *user, const sim_event *event);
    void *user;
    peal_diagnostics *diagnostics;
} sim_desc;

/* A piece of the critical path, latest first. */
typedef struct sim_piece {
    int rank;
    int op;       /* of its schedule; of a link: the WRITE */
    bool link;    /* what lies between rank and `to`, after the write */
    int to;       /* link */
    int64_t step; /* -1: setup; steps: finish */
    double begin_s, end_s;
} sim_piece;

typedef struct sim_traffic {
    int64_t messages, bytes; /* of the steps; credits are not messages */
} sim_traffic;

typedef struct sim_result {
    int64_t steps;       /* simulated */
    int64_t all_steps;   /* that the spec says */
    double seconds;      /* from the first op to the last */
    double step_s;       /* of all steps but the first, or of the later half if there are more */
    double kernel_s;     /* of a step: that kernels take of a device or core, on average */
    double task_s;       /* the same with what launching, beginning and ending them takes */
    int64_t first_timed; /* the first step that counts in step_s */
    sim_traffic traffic[PEAL_LINK_COUNT];
    int64_t credits;     /* of the steps */
    int64_t ops;         /* executed */
    size_t memory_bytes; /* that the simulation took */
    size_t rank_bytes;   /* of which for a rank's state, on average */
    int devices, nodes;
    sim_piece *piece; /* NULL without path */
    int64_t piece_count;
    int64_t path_steps; /* how far back the path was followed */
} sim_result;

/* PEAL_STATUS_SPEC after a diagnostic: the machine has no times for what the schedules do, ranks
 * wait for each other, or it is too much. *out is released by sim_result_release. */
peal_status sim_run(const sim_desc *desc, sim_result *out);
void sim_result_release(sim_result *result);

/* The points that the tiles of a LAUNCH cover. */
double sim_launch_points(const peal_schedule *schedule, const peal_op *op);
/* The name by which times of a mode have what an op takes: of its task, or "send exchange u",
 * "unpack ..." and "local ...", with the writes that belong to it; in mode sync, where waits are
 * launched, "wait ..." as well. "": it has none. */
void sim_times_name(const peal_schedule *schedule, const peal_op *op,
                    char name[PEAL_TASK_NAME_BYTES]);

/* What an op takes, as simulations reckon with it. */
typedef struct sim_op_times {
    double count;    /* in a step, on average */
    int lane;        /* of those that do one thing after the other; -1: one of its own */
    double cpu_s;    /* of the CPU: it launches the kernel and learns of its end, or posts the op */
    double lane_s;   /* of its lane, beside cpu_s where the CPU is the lane */
    double device_s; /* before that, of the device or core, which does one thing at a time */
    double way_s;    /* WRITE: until the word is there, behind bytes that a network still carries */
} sim_op_times;

typedef struct sim_description {
    int sharers; /* ranks that a device or core has */
    int lanes;
    sim_op_times *op; /* by op of the schedule */
} sim_description;

/* Those of schedule `number` on the first rank that has it, in so many steps. *out is released by
 * free(out->op). */
peal_status sim_describe(const sim_desc *desc, int number, int64_t steps, sim_description *out);

#endif
