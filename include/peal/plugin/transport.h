/* The contract of a transport's set-up half: how the segment of a rank of another process becomes
 * reachable. Its other half, the lowering of messages and their cost, is in scheduler/channels/. */
#ifndef PEAL_PLUGIN_TRANSPORT_H
#define PEAL_PLUGIN_TRANSPORT_H

#include <peal/plugin/schedule.h>

/* What the runtime offers a transport. */
typedef struct peal_transport_site {
    size_t size; /* sizeof(peal_transport_site) */
    int process; /* this one */
    void *user;
    bool (*same_host)(void *user, int process);
    /* The segment of a rank of this process; NULL: it is not hosted here. */
    unsigned char *(*hosted)(void *user, int rank);
    /* Maps the segment of a rank of another process of this host; the site keeps the mapping, each
     * rank once, until the plan ends. Blocks until that process has published it. */
    peal_status (*import)(void *user, int process, int rank, int64_t bytes, unsigned char **base);
    /* Memory of this process alone that stands for so much of another host's rank, zeroed; NULL: no
     * messages go to other hosts. The site keeps it until the plan ends. */
    peal_status (*shadow)(void *user, int64_t bytes, unsigned char **base);
    /* Whether the device here reaches the memory of that of `process`: NULL, or why not. NULL:
     * there are no devices. */
    const char *(*device_refuses)(void *user, int process);
} peal_transport_site;

typedef struct peal_transport_ops {
    size_t size; /* sizeof(peal_transport_ops) */
    peal_transport_kind kind;
    /* NULL: it reaches the ranks of `process` from here; else the reason why not, in words. */
    const char *(*refuses)(const peal_transport_site *site, int process);
    /* Where rank's segment of `bytes` is in this process. Reports nothing itself but what import
     * does. */
    peal_status (*attach)(const peal_transport_site *site, int process, int rank, int64_t bytes,
                          unsigned char **base);
} peal_transport_ops;

#endif
