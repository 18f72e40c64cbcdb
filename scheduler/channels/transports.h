/* The transports, as the scheduler sees them: whom each reaches and what it costs. Pure; the set-up
 * half of a transport is in runtime/transports/. A new transport is a file here, one there, and a
 * line in each list. */
#ifndef PEAL_SCHEDULER_CHANNELS_TRANSPORTS_H
#define PEAL_SCHEDULER_CHANNELS_TRANSPORTS_H

#include <peal/plugin/schedule.h>

/* Send becomes COPY into the receiver's memory and WRITE of its flag, receive a WAIT, credit a
 * WRITE into the sender's: so it is with every transport that maps the peer's memory. */
typedef struct channel_transport {
    peal_transport_kind kind;
    /* Whether messages can go from one rank to another. */
    bool (*reaches)(const peal_machine *machine, int from, int to);
    /* Contiguous bytes from which on a face is stored in place; shorter runs are packed, since each
     * would fetch a cache line of the receiver for a few bytes. */
    int64_t in_place_bytes;
    /* So many shorter runs are stored in place all the same where ranks have accelerators: a launch
     * that unpacks takes longer (NVLink: than some 30 000 runs of one element,
     * bench/results/2026-11-29-gpu-strided-faces.txt). */
    int64_t in_place_runs;
} channel_transport;

extern const channel_transport channel_self, channel_p2p, channel_shm, channel_staged, channel_tcp,
    channel_ucx, channel_verbs, channel_mlx5;

/* The first transport that reaches, in the order of the list; NULL: none. */
const channel_transport *channel_transport_between(const peal_machine *machine, int from, int to);

#endif
