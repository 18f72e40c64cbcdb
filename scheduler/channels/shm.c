/* shm: processes of one host, by memory that both have mapped. Between accelerators it is the last
 * rung: flags, credits and staging are in host memory, arrays are not, so nothing is stored in
 * place. */
#include "scheduler/channels/transports.h"

static bool are_ranks(const peal_machine *machine, int from, int to)
{
    return from >= 0 && to >= 0 && from < machine->ranks && to < machine->ranks &&
           peal_machine_share_host(machine, from, to);
}

static bool reaches(const peal_machine *machine, int from, int to)
{
    return !machine->accelerator && are_ranks(machine, from, to);
}

static bool reaches_staged(const peal_machine *machine, int from, int to)
{
    return machine->accelerator && machine->path == PEAL_PATH_STAGED &&
           are_ranks(machine, from, to);
}

const channel_transport channel_shm = {PEAL_TRANSPORT_SHM, reaches, 256};
const channel_transport channel_staged = {PEAL_TRANSPORT_SHM, reaches_staged, INT64_MAX};
