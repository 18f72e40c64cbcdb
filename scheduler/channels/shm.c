/* shm: processes of one host, by memory that both have mapped. Jobs over several hosts are refused
 * before a schedule is made (runtime/control), so it reaches everyone. */
#include "scheduler/channels/channels.h"

static bool reaches(const peal_machine *machine, int from, int to)
{
    return !machine->accelerator && from >= 0 && to >= 0 && from < machine->ranks &&
           to < machine->ranks;
}

const channel_transport channel_shm = {PEAL_TRANSPORT_SHM, reaches, 256};
