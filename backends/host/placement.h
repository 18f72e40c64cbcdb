/* Which cores threads are bound to. */
#ifndef PEAL_HOST_PLACEMENT_H
#define PEAL_HOST_PLACEMENT_H

enum { HOST_MOST_CPUS = 1024 };

/* The processing units that this process may use, one of each core first, in the order of the
 * machine's topology; then the second ones of cores that have more. Returns their number, at most
 * HOST_MOST_CPUS; *cores: how many different cores. Without hwloc every unit counts as a core. */
int host_placement_list(int cpu[HOST_MOST_CPUS], int *cores);

#endif
