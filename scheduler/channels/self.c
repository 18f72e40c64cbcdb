/* self: ranks of one process. The peer's memory is my memory. */
#include "scheduler/channels/transports.h"

static bool reaches(const peal_machine *machine, int from, int to)
{
    return peal_machine_process(machine, from) == peal_machine_process(machine, to);
}

const channel_transport channel_self = {PEAL_TRANSPORT_SELF, reaches, 256, 1 << 14};
