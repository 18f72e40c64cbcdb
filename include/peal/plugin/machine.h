/* The machine a schedule is made for, as plain data: which process hosts which rank, and with what.
 */
#ifndef PEAL_PLUGIN_MACHINE_H
#define PEAL_PLUGIN_MACHINE_H

#include <peal/types.h>

/* How messages of a channel travel. */
typedef enum peal_transport_kind {
    PEAL_TRANSPORT_SELF,
    PEAL_TRANSPORT_SHM,
    PEAL_TRANSPORT_P2P,
    PEAL_TRANSPORT_TCP,   /* between hosts, by sockets */
    PEAL_TRANSPORT_UCX,   /* between hosts, by UCX */
    PEAL_TRANSPORT_VERBS, /* between hosts, by an RDMA adapter */
    PEAL_TRANSPORT_MLX5,  /* the same, by rings of our own on an mlx5 adapter */
    PEAL_TRANSPORT_COUNT
} peal_transport_kind;

const char *peal_transport_name(peal_transport_kind kind);

/* Whether a network carries it: neither end maps the other's memory. */
static inline bool peal_transport_is_network(peal_transport_kind kind)
{
    return kind >= PEAL_TRANSPORT_TCP && kind < PEAL_TRANSPORT_COUNT;
}

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

/* What `--transport` takes: how processes of one host reach each other, "auto" (also NULL), "p2p"
 * (either of its paths) or a path's name, and after a "+" what goes between hosts, "tcp", "ucx",
 * "verbs" or "mlx5"; or only the latter: then each process counts as a host of its own. */
bool peal_transport_is_known(const char *words);
bool peal_transport_sets_apart(const char *words);
bool peal_transport_allows(const char *words, peal_path path);
/* What goes between hosts: PEAL_TRANSPORT_TCP unless said otherwise. */
peal_transport_kind peal_transport_between_hosts(const char *words);

/* What a word "tile=POINTS" among those of `--lower` says; 0: there is none. */
int64_t peal_lowering_tile(const char *words);

/* Most ranks of a process for which a kernel that stays on a device (fused) has room. */
enum { PEAL_KERNEL_RANKS = 26 };

/* What a variant needs in order to make a difference. */
enum {
    PEAL_NEEDS_MESSAGES = 1,    /* ranks that exchange something */
    PEAL_NEEDS_UNTIL = 2,       /* the outermost loop may stop */
    PEAL_NEEDS_OWN_PROCESS = 4, /* one rank a process */
    PEAL_NEEDS_OWN_DEVICE = 8,  /* no device is used by two processes */
    PEAL_NEEDS_FREE_TILES =
        16,                   /* a task whose tiles the spec leaves open, and nothing depends on */
    PEAL_NEEDS_NO_UNTIL = 32, /* the outermost loop has no condition */
    PEAL_NEEDS_RINGS = 64     /* messages between hosts go by rings of our own (mlx5) */
};

/* Words of `--lower` that may be faster than what a backend chooses by itself: `peal tune` tries
 * them in the given modes, where all that they need is there. */
typedef struct peal_variant {
    unsigned modes; /* bit m: mode m */
    const char *words;
    unsigned needs; /* PEAL_NEEDS_ */
} peal_variant;

/* What suits the hardware that ranks run on: a backend knows, the scheduler cuts and orders by it.
 * Of two machines whose traits differ, tasks with reductions may have other tiles, so other last
 * bits. */
typedef struct peal_machine_traits {
    size_t size;         /* sizeof(peal_machine_traits) */
    int64_t tile_points; /* of a tile where the spec gives none */
    /* Tiles of tasks with reductions, which are the same in every mode, by number of axes: in boxes
     * of large_box points or more, and in smaller ones. 0: such a task is cut as others are. */
    int64_t large_box;
    int64_t large_tile[PEAL_AXES + 1][PEAL_AXES];
    int64_t small_tile[PEAL_AXES + 1][PEAL_AXES];
    int64_t wave;      /* so many small tiles run at a time: where there are more, they grow */
    int64_t most_grow; /* along the last axis, at most so many times */
    int64_t row_bytes; /* long rows begin at multiples of so many bytes; 0: they lie densely */
    /* Of mode fused: */
    /* Rows of a tile of three axes whose shape nothing depends on; 0: any. Boxes of at most
     * fused_box points have at least fused_points in a tile. */
    int64_t fused_rows, fused_box, fused_points;
    int64_t dynamic_tiles; /* a task of so many tiles is shared out as workers come; 0: never */
    int most_boxes;        /* a launch of more boxes of tiles is slow; 0: it never is */
    bool repeats_fused;    /* iterations are recorded once, and repeated as they are */
    bool folds_aside;      /* others go on while contributions of ranks are folded */

    const peal_variant *variants; /* in the order in which they are tried */
    int variant_count;
} peal_machine_traits;

/* Of CPUs; and of GPUs, as long as no backend has said more: schedules for them can be made where
 * there are none. */
extern const peal_machine_traits peal_traits_host, peal_traits_accelerator;

typedef struct peal_machine {
    int ranks;
    int processes;
    int workers;         /* threads that execute one rank's tiles; at least 1 */
    int64_t cache_bytes; /* of one core: what a tile's data should fit in */
    int64_t tile_points; /* of a tile whose shape nothing depends on, where the spec gives none; 0:
                            the traits' */
    bool accelerator;    /* ranks run on GPUs: processes reach each other's device memory */
    bool shares_device;  /* some GPU is used by more than one process */
    peal_path path;      /* between processes that have accelerators */
    const int *node;     /* by process: the number of its host; NULL: all are on one */
    bool apart;          /* each process counts as a host of its own (`--transport tcp`) */
    peal_transport_kind network;       /* between hosts; PEAL_TRANSPORT_SELF (0): by tcp */
    const peal_machine_traits *traits; /* the backend's; NULL: of accelerators or CPUs in general */
    const int *process_of;             /* by rank, one a process; NULL: rank r lives in process
                                          r * processes / ranks (blocks of ranks) */
} peal_machine;

const peal_machine_traits *peal_machine_traits_of(const peal_machine *machine);

/* The process that hosts a rank. */
static inline int peal_machine_process(const peal_machine *machine, int rank)
{
    return machine->process_of ? machine->process_of[rank]
                               : (int)((int64_t)rank * machine->processes / machine->ranks);
}

/* How many hosts there are. They are numbered as their first processes come. */
static inline int peal_machine_hosts(const peal_machine *machine)
{
    int hosts = machine->apart ? machine->processes : 1;
    for (int p = 0; machine->node && !machine->apart && p < machine->processes; p++)
        hosts = machine->node[p] >= hosts ? machine->node[p] + 1 : hosts;
    return hosts;
}

/* How many ranks share the machine of a rank: those of its host, and all where processes only count
 * as hosts. */
static inline int peal_machine_ranks_here(const peal_machine *machine, int rank)
{
    int own = peal_machine_process(machine, rank), count = 0;
    for (int r = 0; r < machine->ranks; r++)
        count += !machine->node || machine->apart ||
                 machine->node[peal_machine_process(machine, r)] == machine->node[own];
    return count;
}

/* Whether the processes of two ranks are on one host. */
static inline bool peal_machine_share_host(const peal_machine *machine, int a, int b)
{
    int here = peal_machine_process(machine, a), there = peal_machine_process(machine, b);
    if (machine->apart)
        return here == there;
    return !machine->node || machine->node[here] == machine->node[there];
}

#endif
