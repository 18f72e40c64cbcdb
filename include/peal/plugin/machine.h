/* The machine a schedule is made for, as plain data: which process hosts which rank, and with what.
 */
#ifndef PEAL_PLUGIN_MACHINE_H
#define PEAL_PLUGIN_MACHINE_H

#include <peal/types.h>

/* How processes of one host reach each other's ranks where these are on accelerators: the rungs of
 * a ladder, the best first. */
typedef enum peal_path {
    PEAL_PATH_NONE,   /* no accelerator, or nobody to reach */
    PEAL_PATH_VMM,    /* p2p: device memory by handles that are passed on as file descriptors */
    PEAL_PATH_IPC,    /* p2p: device memory by the driver's IPC handles */
    PEAL_PATH_STAGED, /* shm: host memory that the devices of both have mapped */
    PEAL_PATH_COUNT
} peal_path;

/* "none", "p2p:vmm", "p2p:ipc", "shm". */
const char *peal_path_name(peal_path path);

/* What `--transport` takes: "auto" (also NULL), "p2p" (either of its paths), or a path's name; and
 * whether it allows a path. */
bool peal_transport_is_known(const char *name);
bool peal_transport_allows(const char *name, peal_path path);

/* What a word "tile=POINTS" among those of `--lower` says; 0: there is none. */
int64_t peal_lowering_tile(const char *words);

/* Most ranks of a process for which a kernel that stays on a device (fused) has room. */
enum { PEAL_KERNEL_RANKS = 26 };

typedef struct peal_machine {
    int ranks;
    int processes;       /* rank r lives in process r * processes / ranks (blocks of ranks) */
    int workers;         /* threads that execute one rank's tiles; at least 1 */
    int64_t cache_bytes; /* of one core: what a tile's data should fit in */
    int64_t tile_points; /* of a tile whose shape nothing depends on, where the spec gives none; 0:
                            the scheduler's own */
    bool accelerator;    /* ranks run on GPUs: processes reach each other's device memory */
    bool shares_device;  /* some GPU is used by more than one process */
    peal_path path;      /* between processes that have accelerators */
} peal_machine;

/* The process that hosts a rank. */
static inline int peal_machine_process(const peal_machine *machine, int rank)
{
    return (int)((int64_t)rank * machine->processes / machine->ranks);
}

#endif
