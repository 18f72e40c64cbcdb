/* The placement of ranks: which device and node a rank is on, and which link is between two ranks.
 */
#include "backends/sim/internal.h"

void sim_placement_init(sim_placement *out, const sim_desc *desc)
{
    const peal_machine_times *times = desc->times;
    const peal_schedule *first = desc->schedule[0];
    const peal_machine *machine = first->machine;
    int cores = first->workers > 1 ? first->workers : 1;

    *out = (sim_placement){.times = times,
                           .ranks = desc->ranks,
                           .slots = times->accelerator ? machine->processes : desc->ranks,
                           .devices = times->devices,
                           .cores = times->accelerator ? 1 : cores,
                           .one = first->mode == PEAL_MODE_SERIAL,
                           .staged = machine->path == PEAL_PATH_STAGED};
    int fit = times->devices / out->cores;
    out->slots_a_node = times->nodes ? (out->slots + times->nodes - 1) / times->nodes
                        : fit > 1    ? fit
                                     : 1;
    out->nodes = (out->slots + out->slots_a_node - 1) / out->slots_a_node;
}

peal_link_class sim_link_between(const sim_placement *p, int a, int b)
{
    const peal_link_times *link = p->times->link;

    if (!p->one && sim_node_of(p, a) != sim_node_of(p, b))
        return PEAL_LINK_NETWORK;
    if (!p->times->accelerator)
        return PEAL_LINK_HOST;
    if (sim_device_of(p, a, 0) == sim_device_of(p, b, 0) && link[PEAL_LINK_DEVICE].given)
        return PEAL_LINK_DEVICE;
    return link[PEAL_LINK_P2P].given && !p->staged ? PEAL_LINK_P2P : PEAL_LINK_HOST;
}
