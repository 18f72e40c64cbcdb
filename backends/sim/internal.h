/* What the files of the `sim` backend share: programs, places, the state of a simulation. */
#ifndef PEAL_BACKENDS_SIM_INTERNAL_H
#define PEAL_BACKENDS_SIM_INTERNAL_H

#include "backends/sim/queue.h"
#include "backends/sim/sim.h"
#include "base/arena.h"

enum { NO_ITEM = -1, NO_LANE = -1 };

/* One instance of an op. A program lists them in the walk's order, all steps one after the other.
 */
typedef struct sim_item {
    int32_t op;
    int32_t step;     /* -1: setup; as many as there are: finish */
    int32_t next;     /* on the same lane */
    int32_t need;     /* the first of the program's needs that it has */
    int32_t epoch;    /* verdicts that the CPU has waited for before */
    uint32_t message; /* of the op's channel, from 1 */
    int16_t lane, need_count;
} sim_item;

/* An item that must have ended; its lane has passed it then. */
typedef struct sim_need {
    int32_t lane, item;
} sim_need;

/* What an op takes. */
typedef struct sim_cost {
    double lane_s;   /* of its lane */
    double device_s; /* before that, of a device or core, which does one thing at a time */
    int64_t bytes;   /* SEND: that go over the link */
} sim_cost;

typedef struct sim_channel {
    uint64_t name;  /* of the edge, without its ranks: equal at both ends */
    int64_t offset; /* of the peer's rank from mine */
    bool outgoing;
    bool is_used; /* by some op */
    bool credit;
    int slots, staged;
    int64_t bytes;
    int first_write; /* in write_item; message m is the m-th from there */
    int write_count;
} sim_channel;

/* What ranks that are alike do. */
typedef struct sim_program {
    const peal_schedule *schedule;
    int lanes;
    int apart; /* the last of them: one a channel */
    const sim_item *item;
    int item_count;
    int32_t *first; /* by lane */
    const sim_need *need;
    const double *posted; /* by item: the CPU has put it onto its lane, in seconds since the latest
                             verdict that it waited for; NULL: at once */
    const sim_cost *cost; /* by op */
    const sim_channel *channel;
    const int32_t *write_item; /* WRITEs by channel: of flags if it is outgoing, else of credits */
    const int32_t *is_verdict; /* by item: the epoch that begins with it; 0: none */
    const double *epoch_post;  /* by epoch: what the CPU puts onto lanes in it takes */
    int step_ops;              /* of the first step */
    int64_t all_steps;
} sim_program;

/* Where ranks are. What shares a device is a slot: the ranks of a process on a GPU, a rank on
 * cores. Nodes are filled with slots one after the other, their devices numbered on. */
typedef struct sim_places {
    const peal_machine_times *times;
    int ranks, slots;
    int slots_a_node, nodes, devices;
    int cores;   /* that a slot has; 1 of GPUs */
    bool one;    /* serial: everything is done one after the other */
    bool staged; /* messages between GPUs go through host memory */
} sim_places;

static inline int sim_slot_of(const sim_places *p, int rank)
{
    return (int)((int64_t)rank * p->slots / p->ranks);
}

static inline int sim_node_of(const sim_places *p, int rank)
{
    return sim_slot_of(p, rank) / p->slots_a_node;
}

/* The device (or core) that does what a lane of a rank does. */
static inline int sim_device_of(const sim_places *p, int rank, int lane)
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

/* places.c */
void sim_places_init(sim_places *places, const sim_desc *desc);
/* What lies between two ranks; a class that the machine lacks is replaced by one that is slower. */
peal_link_class sim_link_between(const sim_places *places, int a, int b);

/* program.c: unrolls a schedule for so many steps. */
/* PEAL_E_OUT_OF_MEMORY. */
peal_status sim_no_memory(const sim_desc *desc);
peal_status sim_program_create(const sim_desc *desc, const sim_places *places,
                               const peal_schedule *schedule, int64_t steps, peal_arena *arena,
                               sim_program *out);
/* cost.c */
peal_status sim_costs_create(const sim_desc *desc, const sim_places *places,
                             const peal_schedule *schedule, peal_arena *arena, sim_cost **out);
double sim_link_seconds(const sim_places *places, peal_link_class link, int64_t bytes);
/* A copy that the mode's times have, a write beside it, or a wait: it was timed where it stands, on
 * the lane of launches. */
bool sim_is_timed_transfer(const peal_machine_times *times, const peal_schedule *schedule,
                           const peal_op *op);
/* Mode stream: what the CPU takes to put an op onto a lane. */
double sim_post_seconds(const peal_machine_times *times, const peal_schedule *schedule,
                        const peal_op *op);

/* connect.c: which channel of whom is at the other end of a channel. */
typedef struct sim_network sim_network;
peal_status sim_network_create(const sim_desc *desc, const sim_program *program,
                               const sim_places *places, peal_arena *arena, sim_network **out);
/* The peer's channel. */
int sim_network_peer(const sim_network *network, int number, int channel, int peer_number);

/* When an item ran and what enabled it last, for the critical path. */
typedef struct sim_record {
    double begin_s, end_s;
    int32_t cause; /* an item of cause_rank; or NO_ITEM, or -2 - c: a word of channel c */
    int32_t cause_rank;
} sim_record;

typedef struct sim_lane {
    int32_t head;    /* the item that it does or waits to do; past all: the program's item_count */
    int16_t waiting; /* the first lane that waits for this one to go on */
    int16_t next;    /* of those that wait for the same lane */
} sim_lane;

typedef struct sim_mail {
    uint32_t arrived; /* messages, or credits */
    int16_t waiting;  /* the lane that waits for the next */
} sim_mail;

typedef struct sim_device {
    double free_s; /* it has done all so far */
    int32_t rank, item;
} sim_device;

/* How far the CPU is that puts a rank's items onto lanes. An epoch begins once its verdict is known
 * and what came before has been put there. */
typedef struct sim_cpu {
    double epoch_s, before_s; /* the latest epoch that has begun, and the one before */
    int32_t epoch;
} sim_cpu;

typedef struct sim_state {
    const sim_desc *desc;
    const sim_program *program; /* by number */
    sim_places places;
    const sim_network *network;
    int64_t steps;
    sim_event_queue queue;
    size_t *lane_base, *mail_base; /* by rank */
    sim_lane *lane;
    sim_mail *mail;
    double *sent_s;  /* by lane: what its latest copy sends has left the node; NULL: no network */
    double *begun_s; /* by lane: when its item began; NULL: nobody asks */
    sim_device *device;
    double *leaves_s[PEAL_LINK_COUNT]; /* by device or node: it is free to send from then on */
    double *enters_s[PEAL_LINK_COUNT]; /* to receive */
    sim_cpu *cpu;                      /* by rank */
    int64_t *left;                     /* by step: items */
    double *step_end;                  /* by step */
    double setup_end;
    double device_s; /* of the steps */
    double task_s;   /* of the steps: of tasks, with what an operation takes of its lane */
    int64_t executed;
    sim_traffic traffic[PEAL_LINK_COUNT];
    int64_t credits;
    /* path.c */
    sim_record *record;
    size_t *record_base; /* by rank */
    int32_t *recorded;   /* by number: the first item that has one */
    int32_t last_rank, last_item;
    int64_t recorded_steps;
    bool no_memory;
} sim_state;

/* engine.c: to the end, or until nothing can go on. */
void sim_state_run(sim_state *state);

/* path.c */
void sim_path_follow(const sim_state *state, sim_result *out);

static inline const sim_program *sim_program_of(const sim_state *s, int rank)
{
    return &s->program[s->desc->number[rank]];
}

#endif
