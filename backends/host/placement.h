/* The order in which threads are bound to cores. */
#ifndef PEAL_HOST_PLACEMENT_H
#define PEAL_HOST_PLACEMENT_H

enum { HOST_MOST_CPUS = 1024 };

/* Lists the processing units that this process may use: first one of each core, in the order of the
 * machine's topology, then the second ones of cores that have more. Returns their number, at most
 * HOST_MOST_CPUS; *cores is the number of different cores. Without hwloc every unit counts as one.
 */
int host_placement_list(int cpu[HOST_MOST_CPUS], int *cores);

#endif
