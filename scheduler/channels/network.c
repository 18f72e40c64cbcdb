/* tcp: processes of different hosts. Neither maps the other's memory: a message is packed into a
 * slot here, and a network puts it into the same slot there. Nothing is stored in place. */
#include "scheduler/channels/transports.h"

static bool reaches(const peal_machine *machine, int from, int to)
{
    return from >= 0 && to >= 0 && from < machine->ranks && to < machine->ranks &&
           !peal_machine_share_host(machine, from, to);
}

const channel_transport channel_network = {PEAL_TRANSPORT_TCP, reaches, INT64_MAX};
