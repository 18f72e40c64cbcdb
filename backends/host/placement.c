/* The order in which threads get cores. hwloc knows which processing units share a core. Two
 * threads of a job on one core, while another core is idle, would cost a third of the speed. */
#define _GNU_SOURCE
#include "backends/host/placement.h"

#include "peal_config.h"

#include <sched.h>
#include <stdbool.h>

#if PEAL_HAVE_HWLOC
#include <hwloc.h>

/* Adds one unit of each core: number `sibling` of its units that the process may use. */
static int add_siblings(hwloc_topology_t topology, const cpu_set_t *allowed, int sibling, int *cpu,
                        int count)
{
    hwloc_obj_t core = NULL;
    while ((core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)) != NULL) {
        int number = 0;
        unsigned unit;
        hwloc_bitmap_foreach_begin(unit, core->cpuset)
        {
            if (unit < CPU_SETSIZE && CPU_ISSET(unit, allowed) && number++ == sibling &&
                count < HOST_MOST_CPUS)
                cpu[count++] = (int)unit;
        }
        hwloc_bitmap_foreach_end();
    }
    return count;
}

static int list_by_core(const cpu_set_t *allowed, int *cpu, int *cores)
{
    hwloc_topology_t topology;
    int count = 0;
    if (hwloc_topology_init(&topology))
        return 0;
    if (!hwloc_topology_load(topology)) {
        int wanted = CPU_COUNT(allowed) < HOST_MOST_CPUS ? CPU_COUNT(allowed) : HOST_MOST_CPUS;
        for (int sibling = 0, before = -1; count < wanted && count != before; sibling++) {
            before = count;
            count = add_siblings(topology, allowed, sibling, cpu, count);
            if (sibling == 0)
                *cores = count;
        }
    }
    hwloc_topology_destroy(topology);
    return count == CPU_COUNT(allowed) ? count : 0;
}
#else
static int list_by_core(const cpu_set_t *allowed, int *cpu, int *cores)
{
    (void)allowed;
    (void)cpu;
    (void)cores;
    return 0;
}
#endif

int host_placement_list(int cpu[HOST_MOST_CPUS], int *cores)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof(allowed), &allowed))
        return 0;
    int count = list_by_core(&allowed, cpu, cores);
    if (count)
        return count;
    for (int unit = 0; unit < CPU_SETSIZE && count < HOST_MOST_CPUS; unit++)
        if (CPU_ISSET(unit, &allowed))
            cpu[count++] = unit;
    *cores = count;
    return count;
}
