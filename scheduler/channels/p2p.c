/* p2p: accelerators of one host, by device memory that both have mapped. */
#include "scheduler/channels/transports.h"

static bool reaches(const peal_machine *machine, int from, int to)
{
    return machine->accelerator && machine->path != PEAL_PATH_STAGED && from >= 0 && to >= 0 &&
           from < machine->ranks && to < machine->ranks &&
           peal_machine_share_host(machine, from, to);
}

const channel_transport channel_p2p = {PEAL_TRANSPORT_P2P, reaches, 256, 1 << 14};
