/* --hosts and --agent: where the processes of a job are started; --network-interface and
 * --network-ports: how they meet. */
#ifndef PEAL_TOOLS_HOSTS_H
#define PEAL_TOOLS_HOSTS_H

#include "runtime/launch/launch.h"
#include "tools/options.h"

typedef struct job_hosts {
    peal_launch_host *host;
    int count; /* 0: all processes are on this one */
    int processes;
    char **agent;     /* ends with NULL */
    char *text, *run; /* what names and the agent's words point into */
} job_hosts;

/* What the options say; hosts_close() in any case. Without --hosts: none. */
peal_status hosts_open(const peal_options *options, peal_diagnostics *diagnostics, job_hosts *out);
void hosts_close(job_hosts *hosts);

/* "eth0" or "10.1.0.0/16"; "20000-20100" or one port. False: that is none. */
bool hosts_parse_interface(const char *text, peal_options *options);
bool hosts_parse_ports(const char *text, peal_options *options);

/* For verbs that start nothing: how many processes --hosts names (0: it isn't given), and the
 * number of each one's host (NULL: all are on one), which stays until the next call. */
peal_status hosts_described(const peal_options *options, peal_diagnostics *diagnostics,
                            int *processes, const int **node);

#endif
