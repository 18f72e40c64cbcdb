/* The performance model of GPU-driven communication (Agostini, Rossetti, Potluri: GPUDirect Async,
 * JPDC 114, 2018): equations (1) to (3), conditions C1 to C3. Seconds, of one step of one rank.
 *
 * A period is a step: tasks A, each before a send S; B, which touch no communication; C, each after
 * a wait W. In the paper the overlap O of (3) is left open. Here a device takes at least `busy_s`,
 * what it does one thing after the other, and at least `chain_s`, from A by way of the messages to
 * C; the greater of them is what (2) and (3) take, and O what the sum has beyond it. */
#ifndef PEAL_SCHEDULER_MODEL_MODEL_H
#define PEAL_SCHEDULER_MODEL_MODEL_H

#include <peal/plugin/schedule.h>

#include <stdbool.h>

/* What an op of a schedule takes; the backend that knows fills it. */
typedef struct peal_op_times {
    double count;    /* in a step, on average */
    int lane;        /* of those that do one thing after the other; -1: one of its own */
    double cpu_s;    /* of the CPU that launches it, waits for its end or posts it */
    double lane_s;   /* of its lane */
    double device_s; /* of the device or core, which does one thing at a time */
    double way_s;    /* WRITE: until its word is at the peer */
} peal_op_times;

typedef struct peal_period {
    double periods;               /* R: steps that can be enqueued without knowing a result */
    double before, inside, after; /* X, Y, Z: how many tasks A, B and C; one of A may be one of C */
    double launch_s;              /* sum of LA, LB, LC, and TH where the CPU waits for tasks */
    double post_s;                /* sum of LS, LW */
    double task_s;                /* sum of A, B, C */
    double copy_s;                /* of S and W, and copies within the rank: what bytes take */
    double signal_s;              /* of S and W: what flags take */
    double way_s;                 /* messages under way, those of a statement side by side */
    double busy_s, chain_s;
} peal_period;

/* The period of a rank, whose ops take these times. */
peal_status peal_period_init(peal_period *period, const peal_schedule *schedule,
                             const peal_op_times *times, int lanes);

typedef struct peal_model {
    double cpu_s;     /* T_cpu; of a step that the CPU does not drive: what it spends on it */
    double device_s;  /* T_gpu */
    double idle_s;    /* T_idle: the device waits for the CPU, or for another rank on it */
    double overlap_s; /* O */
    double step_s;    /* T */
} peal_model;

/* (1) for sync and serial, (2) for stream and graph, (3) for fused. sharers: ranks that have the
 * device. */
void peal_model_evaluate(const peal_period *period, peal_mode mode, int sharers, peal_model *out);

/* The conditions for a mode that runs ahead of the CPU, against the synchronous version. */
typedef struct peal_conditions {
    bool asynchronous; /* C1: the CPU is done before the device */
    bool gains;        /* C2: what messages add is at most what was idle */
    bool fragmented;   /* C3: there are periods, and a task before a send or after a wait */
    double message_s; /* C2: T_gpu beyond the synchronous version's tasks: S and W, less O, and what
                         tasks take longer */
    double sync_idle_s;
} peal_conditions;

void peal_conditions_evaluate(const peal_period *period, const peal_model *model,
                              const peal_period *sync_period, const peal_model *sync_model,
                              peal_conditions *out);

#endif
