/* What messages between hosts take: a ping-pong of an engine alone, from memory to memory. */
#ifndef PEAL_RUNTIME_MEASURE_HOSTS_H
#define PEAL_RUNTIME_MEASURE_HOSTS_H

#include "runtime/session/session.h"

enum {
    PEAL_MEASURED_HOSTS = 16 /* at most: all pairs of them are measured, one after the other */
};

typedef struct peal_host_path {
    int from, to;       /* processes, each the first of its host */
    double latency_s;   /* of 8 bytes, one way: half of the median of round trips */
    double bytes_per_s; /* of 1 MiB, one way after the other */
} peal_host_path;

/* Collective: every pair of hosts by a network's transport, in all processes. *out is the caller's
 * to free; *count is 0 where all processes are on one host. */
peal_status peal_measure_hosts(peal_session *session, peal_transport_kind kind,
                               peal_host_path **out, int *count);

#endif
