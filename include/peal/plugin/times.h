/* What takes how long on a machine, as plain data: the part of a machine file that simulations and
 * predictions work with. Times are in seconds, rates in bytes a second.
 *
 * A machine is made of equal nodes, a node of equal devices (GPUs of a job are equal, so are
 * cores): GPUs, of which a rank has one, or cores, of which a rank has one a worker. */
#ifndef PEAL_PLUGIN_TIMES_H
#define PEAL_PLUGIN_TIMES_H

#include <peal/types.h>

enum { PEAL_KERNEL_TIMES = 512, PEAL_TASK_NAME_BYTES = 64 };

/* What an op of a schedule takes in a mode beside the points and bytes that it works on. */
typedef struct peal_mode_times {
    bool given;
    double launch_s; /* the CPU puts a kernel onto a lane; graph: a step; fused: the whole run */
    double post_s;   /* the CPU puts a copy, write or wait onto a lane (stream) */
    double kernel_s; /* a kernel begins and ends on its lane */
    double copy_s;   /* so does a copy */
    double write_s;  /* the lane is through with a write */
    double wait_s;   /* a wait lets its lane go on, once the word has come */
    double synchronize_s; /* sync: the CPU knows that a kernel has ended */
    double stretch;       /* what kernels do with points and bytes takes so many times as long as
                             peal_kernel_times say; 0: as long */
    bool apart; /* messages don't wait for each other's ops: blocks of a kernel do them side by
                   side; else they stand on the schedule's lanes */
} peal_mode_times;

/* A kernel takes fixed_s + points * per_point_s + bytes * per_byte_s, with all of a device. Its
 * bytes are those of the elements that its accesses touch, twice for `update`. Times of a mode are
 * all that a launch takes there: neither its beginning and ending nor `stretch` is added. */
typedef struct peal_kernel_times {
    char task[PEAL_TASK_NAME_BYTES]; /* "default": those of tasks that have none of their own */
    bool of_mode;                    /* in `mode` alone, before those of all modes */
    peal_mode mode;
    double fixed_s, per_point_s, per_byte_s;
    double launch_s; /* of_mode, stream: the CPU puts it onto a lane, in place of the mode's */
} peal_kernel_times;

/* What lies between two ranks. */
typedef enum peal_link_class {
    PEAL_LINK_DEVICE,  /* nothing: they are on one device */
    PEAL_LINK_P2P,     /* a link between devices of a node */
    PEAL_LINK_HOST,    /* the memory of the node that both are on */
    PEAL_LINK_NETWORK, /* a network between nodes */
    PEAL_LINK_COUNT
} peal_link_class;

/* "device", "p2p", "host", "network". */
const char *peal_link_name(peal_link_class link);

/* Whose messages pass one after the other: in each direction those of one device, or of all the
 * node's. */
typedef enum peal_link_share {
    PEAL_SHARE_NONE,
    PEAL_SHARE_DEVICE,
    PEAL_SHARE_NODE
} peal_link_share;

typedef struct peal_link_times {
    bool given;
    double latency_s; /* from the end of a write to the arrival of its word */
    double bytes_per_s;
    peal_link_share shared;
} peal_link_times;

typedef struct peal_machine_times {
    bool given;       /* the file has times at all */
    int nodes;        /* 0: as many as the ranks need, each device being used by one rank */
    int devices;      /* of a node */
    bool accelerator; /* devices are GPUs */
    peal_mode_times mode[PEAL_MODE_COUNT]; /* serial: those of sync, unless given */
    peal_kernel_times kernel[PEAL_KERNEL_TIMES];
    int kernel_count;
    peal_link_times link[PEAL_LINK_COUNT];
} peal_machine_times;

#endif
