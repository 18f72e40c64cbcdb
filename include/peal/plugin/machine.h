/* The machine a schedule is made for, as plain data: which process hosts which rank, and with what.
 */
#ifndef PEAL_PLUGIN_MACHINE_H
#define PEAL_PLUGIN_MACHINE_H

#include <peal/types.h>

typedef struct peal_machine {
    int ranks;
    int processes;       /* rank r lives in process r * processes / ranks (blocks of ranks) */
    int workers;         /* threads that execute one rank's tiles; at least 1 */
    int64_t cache_bytes; /* of one core: what a tile's data should fit in */
    bool accelerator;    /* ranks run on GPUs: processes reach each other's device memory */
    bool shares_device;  /* some GPU is used by more than one process */
} peal_machine;

/* The process that hosts a rank. */
static inline int peal_machine_process(const peal_machine *machine, int rank)
{
    return (int)((int64_t)rank * machine->processes / machine->ranks);
}

#endif
