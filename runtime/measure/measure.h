/* Measures what a machine file says: small specs of its own run in every mode, in turns, and what
 * ops, kernels and links take follows from their differences. */
#ifndef PEAL_RUNTIME_MEASURE_MEASURE_H
#define PEAL_RUNTIME_MEASURE_MEASURE_H

#include "base/diagnostic.h"

#include <peal/plan.h>
#include <peal/plugin/times.h>

/* What runs on two ranks, one above the other; a step computes b from a by 5 points. */
typedef enum peal_measure_case {
    PEAL_MEASURE_TASK,         /* one task of few points, nothing else */
    PEAL_MEASURE_TASKS,        /* PEAL_MEASURE_CHAIN of them, one after the other */
    PEAL_MEASURE_LOCAL,        /* one, and a copy of a few points within the rank */
    PEAL_MEASURE_MESSAGE,      /* one, and a message of a few points each way */
    PEAL_MEASURE_WIDE,         /* one of a long row, nothing else */
    PEAL_MEASURE_WIDE_MESSAGE, /* one of a long row, and a message of that row each way */
    PEAL_MEASURE_SMALL,        /* one, whose arrays fit a cache */
    PEAL_MEASURE_LARGE,        /* one, whose arrays fit none */
    PEAL_MEASURE_UNAWAITED,    /* of a device: as MESSAGE, but nobody waits for it */
    PEAL_MEASURE_CASES
} peal_measure_case;

enum { PEAL_MEASURE_CHAIN = 5 };

typedef struct peal_measure_size {
    int64_t points; /* of a rank's task */
    int64_t bytes;  /* that it touches, as predictions count them */
    int64_t message_bytes;
} peal_measure_size;

typedef struct peal_measure_table {
    bool accelerator;
    bool apart; /* each rank has a device of its own */
    bool given[PEAL_MODE_COUNT];
    double step_s[PEAL_MODE_COUNT][PEAL_MEASURE_CASES]; /* the least of all rounds */
    double cpu_s[PEAL_MODE_COUNT][PEAL_MEASURE_CASES];  /* of it, of the CPU that drives a device */
    double line_s; /* a cache line on its way from one core to another; 0: not measured */
} peal_measure_table;

peal_measure_size peal_measure_size_of(peal_measure_case which, bool accelerator);

/* Collective. backend: "host" or "cuda". Runs every case in every mode that can, `rounds` times. */
peal_status peal_measure(peal_session *session, const char *backend, int rounds,
                         peal_measure_table *out);

/* fit.c: the times with which predictions of the cases are what was measured. Pure. */
void peal_measure_fit(const peal_measure_table *table, peal_machine_times *out);

/* judge.c: PEAL_E_MEASURED_NO_TIME for each difference that is no time, so that no zeros
 * are written. Pure. */
peal_status peal_measure_judge(const peal_measure_table *table, const peal_machine_times *times,
                               peal_diagnostics *diagnostics);
/* The same of the kernels of a spec. */
peal_status peal_measure_judge_kernels(const peal_machine_times *times,
                                       peal_diagnostics *diagnostics);

/* line.c: half a ping-pong between two of the cores that this process has, the fastest of
 * some; 0: there is only one, or no thread could be started. */
double peal_measure_line(void);

#endif
