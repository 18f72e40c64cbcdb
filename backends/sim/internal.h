/* The data that the files of the `sim` backend share: programs, the placement of ranks, the state
 * of a simulation. */
#ifndef PEAL_BACKENDS_SIM_INTERNAL_H
#define PEAL_BACKENDS_SIM_INTERNAL_H

#include "backends/sim/queue.h"
#include "backends/sim/sim.h"
#include "base/arena.h"

enum { NO_ITEM = -1, NO_LANE = -1 };

/* One instance of an op. A program lists the items in walk order, step after step. */
typedef struct sim_item {
    int32_t op;
    int32_t step;     /* -1: setup; the number of steps: finish */
    int32_t next;     /* the next item on the same lane */
    int32_t need;     /* its first one in the program's list of needs */
    int32_t epoch;    /* how many verdicts the CPU has waited for before */
    uint32_t message; /* its number in the op's channel, from 1 */
    int16_t lane, need_count;
} sim_item;

/* What an item needs: that an item of another lane has ended, so that the lane has passed it. */
typedef struct sim_need {
    int32_t lane, item;
} sim_need;

/* How long an op takes. */
typedef struct sim_cost {
    double lane_s;   /* the time of its lane */
    double device_s; /* before that: of its device or core, which does one thing at a time */
    int64_t bytes;   /* SEND: bytes that go over the link */
} sim_cost;

typedef struct sim_channel {
    uint64_t name;  /* hash of the edge without its ranks: equal at both ends */
    int64_t offset; /* the peer's rank less this rank */
    bool outgoing;
    bool is_used; /* some op uses it */
    bool credit;
    int slots, staged;
    int64_t bytes;
    int first_write; /* its first one in write_item; message m is the m-th from there */
    int write_count;
} sim_channel;

/* By name, offset and direction: of two ends of one message only these are opposite. */
int sim_compare_ends(const sim_channel *a, const sim_channel *b);

/* A schedule unrolled, once for all ranks that are alike. */
typedef struct sim_program {
    const peal_schedule *schedule;
    int lanes;
    int apart; /* how many of the last ones have the messages of one channel each */
    const sim_item *item;
    int item_count;
    int32_t *first; /* by lane */
    const sim_need *need;
    const double *posted; /* by item: when the CPU has enqueued it, in seconds since the latest
                             verdict that the CPU waited for; NULL: at once */
    const sim_cost *cost; /* by op */
    const sim_channel *channel;
    const sim_channel **by_end; /* by what sim_compare_ends() compares */
    const int32_t *write_item;  /* WRITEs by channel: of flags if it is outgoing, else of credits */
    const int32_t *is_verdict;  /* by item: the epoch that begins with its verdict; 0: none */
    const double *epoch_post;   /* by epoch: how long the CPU takes to enqueue its items */
    int step_ops;               /* items of the first step */
    int64_t all_steps;
} sim_program;

/* Which devices and nodes ranks are on. Ranks that share a device by design make a slot: on GPUs
 * those of a process, on cores a single rank. Slots fill one node after the other. Devices are
 * numbered throughout all nodes. */
typedef struct sim_placement {
    const peal_machine_times *times;
    int ranks, slots;
    int slots_a_node, nodes, devices;
    int cores;   /* of a slot; GPUs: 1 */
    bool one;    /* mode serial: everything is done one after the other */
    bool staged; /* messages between GPUs go through host memory */
} sim_placement;

static inline int sim_slot_of(const sim_placement *p, int rank)
{
    return (int)((int64_t)rank * p->slots / p->ranks);
}

static inline int sim_node_of(const sim_placement *p, int rank)
{
    return sim_slot_of(p, rank) / p->slots_a_node;
}

/* The device (or core) that does what a lane of a rank does. */
static inline int sim_device_of(const sim_placement *p, int rank, int lane)
{
    int slot = sim_slot_of(p, rank), node = slot / p->slots_a_node;
    int local = slot % p->slots_a_node, within = local;

    if (p->one)
        return 0;
    if (!p->times->accelerator)
        within = (local * p->cores + lane % p->cores) % p->devices;
    else if (p->slots_a_node > p->devices)
        within = (int)((int64_t)local * p->devices / p->slots_a_node);
    return node * p->devices + within;
}

static inline bool sim_is_of_message(const peal_op *op)
{
    return op->kind == PEAL_OP_WRITE || op->kind == PEAL_OP_WAIT ||
           (op->kind == PEAL_OP_COPY && op->copy != PEAL_COPY_LOCAL);
}

/* placement.c */
void sim_placement_init(sim_placement *placement, const sim_desc *desc);
/* The class of the link between two ranks. A class that the machine lacks is replaced by a slower
 * one. */
peal_link_class sim_link_between(const sim_placement *placement, int a, int b);

/* program.c */
/* Reports PEAL_E_OUT_OF_MEMORY. */
peal_status sim_no_memory(const sim_desc *desc);
/* Unrolls a schedule for so many steps. What fails has been reported: an expression, no memory,
 * more memory than desc->most_bytes (PEAL_E_SIMULATION_TOO_LARGE), a missing time. */
peal_status sim_program_create(const sim_desc *desc, const sim_placement *placement,
                               const peal_schedule *schedule, int64_t steps, peal_arena *arena,
                               sim_program *out);
/* cost.c */
/* Computes the costs of the schedule's ops. PEAL_E_MACHINE_TIME_MISSING: the machine file lacks a
 * time. */
peal_status sim_costs_create(const sim_desc *desc, const sim_placement *placement,
                             const peal_schedule *schedule, peal_arena *arena, sim_cost **out);
double sim_link_seconds(const sim_placement *placement, peal_link_class link, int64_t bytes);
/* Whether the mode's times have this op by name: a copy, the write that belongs to it, or a wait.
 * Such an op was timed on the lane of launches, so it is simulated there. */
bool sim_is_timed_transfer(const peal_machine_times *times, const peal_schedule *schedule,
                           const peal_op *op);
/* Mode stream: how long the CPU takes to enqueue an op. */
double sim_post_seconds(const peal_machine_times *times, const peal_schedule *schedule,
                        const peal_op *op);

/* connect.c: which channel is at the other end of a channel. */
typedef struct sim_network sim_network;
/* Connects all channels. PEAL_E_INTERNAL: the two ends differ; PEAL_E_MACHINE_TIME_MISSING: the
 * machine file lacks a link that is needed. */
peal_status sim_network_create(const sim_desc *desc, const sim_program *program,
                               const sim_placement *placement, peal_arena *arena,
                               sim_network **out);
/* The peer's channel. number, peer_number: the numbers of the two schedules. */
int sim_network_peer(const sim_network *network, int number, int channel, int peer_number);

/* When an item ran and what enabled it last, for the critical path. */
typedef struct sim_record {
    double begin_s, end_s;
    int32_t cause; /* an item of cause_rank; or NO_ITEM, or -2 - c: a word of channel c */
    int32_t cause_rank;
} sim_record;

typedef struct sim_lane {
    int32_t head; /* the item that it does or waits to do; at its end: the program's item_count */
    int16_t waiting; /* the first in the list of lanes that wait for this one to go on */
    int16_t next;    /* the next in the list that this lane is in */
} sim_lane;

typedef struct sim_mail {
    uint32_t arrived; /* messages or credits so far */
    int16_t waiting;  /* the lane that waits for the next one */
} sim_mail;

typedef struct sim_device {
    double free_s;      /* when it has done everything so far */
    int32_t rank, item; /* what it did last */
} sim_device;

/* How far the CPU is that enqueues a rank's items. An epoch begins once its verdict is known and
 * all earlier items have been enqueued. */
typedef struct sim_cpu {
    double epoch_s, before_s; /* when the latest epoch began, and the one before */
    int32_t epoch;            /* the latest that has begun */
} sim_cpu;

typedef struct sim_state {
    const sim_desc *desc;
    const sim_program *program; /* by number */
    sim_placement placement;
    const sim_network *network;
    int64_t steps;
    sim_event_queue queue;
    size_t *lane_base, *mail_base; /* by rank */
    sim_lane *lane;
    sim_mail *mail;
    double *sent_s;  /* by lane: when its latest message has left the node; NULL: no network */
    double *begun_s; /* by lane: when its item began; NULL: nobody observes */
    sim_device *device;
    double *leaves_s[PEAL_LINK_COUNT]; /* by device or node: when it is free to send */
    double *enters_s[PEAL_LINK_COUNT]; /* by device or node: when it is free to receive */
    sim_cpu *cpu;                      /* by rank */
    int64_t *left;                     /* by step: items that have not ended */
    double *step_end;                  /* by step */
    double setup_end;
    double device_s; /* sum over the steps of device times */
    double task_s;   /* sum over the steps of the tasks' times of device and lane */
    int64_t executed;
    sim_traffic traffic[PEAL_LINK_COUNT];
    int64_t credits;
    /* path.c */
    sim_record *record;
    size_t *record_base; /* by rank */
    int32_t *recorded;   /* by number: the first item that has a record */
    int32_t last_rank, last_item;
    int64_t recorded_steps;
    bool no_memory;
} sim_state;

/* engine.c: simulates to the end, or until nothing can go on. */
void sim_state_run(sim_state *state);

/* path.c: follows the critical path back from the last item of the steps. */
void sim_path_follow(const sim_state *state, sim_result *out);

static inline const sim_program *sim_program_of(const sim_state *s, int rank)
{
    return &s->program[s->desc->number[rank]];
}

#endif
