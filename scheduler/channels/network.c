/* tcp, ucx: processes of different hosts. Neither maps the other's memory: a message is packed into
 * a slot here, and a network puts it into the same slot there. Nothing is stored in place. */
#include "scheduler/channels/transports.h"

static bool between_hosts(const peal_machine *machine, int from, int to)
{
    return from >= 0 && to >= 0 && from < machine->ranks && to < machine->ranks &&
           !peal_machine_share_host(machine, from, to);
}

static bool by_tcp(const peal_machine *machine, int from, int to)
{
    return machine->network != PEAL_TRANSPORT_UCX && between_hosts(machine, from, to);
}

static bool by_ucx(const peal_machine *machine, int from, int to)
{
    return machine->network == PEAL_TRANSPORT_UCX && between_hosts(machine, from, to);
}

const channel_transport channel_tcp = {PEAL_TRANSPORT_TCP, by_tcp, INT64_MAX};
const channel_transport channel_ucx = {PEAL_TRANSPORT_UCX, by_ucx, INT64_MAX};
