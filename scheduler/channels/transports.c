/* The list of transports, best first. */
#include "scheduler/channels/transports.h"

static const channel_transport *const transports[] = {&channel_self,   &channel_p2p, &channel_shm,
                                                      &channel_staged, &channel_tcp, &channel_ucx,
                                                      &channel_verbs,  &channel_mlx5};

const channel_transport *channel_transport_between(const peal_machine *machine, int from, int to)
{
    for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++)
        if (transports[i]->reaches(machine, from, to))
            return transports[i];
    return NULL;
}
