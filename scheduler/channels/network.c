/* tcp, ucx, verbs, mlx5: processes of different hosts. Neither maps the other's memory: a message
 * is packed into a slot here, and a network puts it into the same slot there. Nothing is stored in
 * place. */
#include "scheduler/channels/transports.h"

static bool goes_by(peal_transport_kind kind, const peal_machine *machine, int from, int to)
{
    bool is_chosen = machine->network == kind ||
                     (kind == PEAL_TRANSPORT_TCP && !peal_transport_is_network(machine->network));
    return is_chosen && from >= 0 && to >= 0 && from < machine->ranks && to < machine->ranks &&
           !peal_machine_share_host(machine, from, to);
}

static bool by_tcp(const peal_machine *machine, int from, int to)
{
    return goes_by(PEAL_TRANSPORT_TCP, machine, from, to);
}

static bool by_ucx(const peal_machine *machine, int from, int to)
{
    return goes_by(PEAL_TRANSPORT_UCX, machine, from, to);
}

static bool by_verbs(const peal_machine *machine, int from, int to)
{
    return goes_by(PEAL_TRANSPORT_VERBS, machine, from, to);
}

static bool by_mlx5(const peal_machine *machine, int from, int to)
{
    return goes_by(PEAL_TRANSPORT_MLX5, machine, from, to);
}

const channel_transport channel_tcp = {PEAL_TRANSPORT_TCP, by_tcp, INT64_MAX};
const channel_transport channel_ucx = {PEAL_TRANSPORT_UCX, by_ucx, INT64_MAX};
const channel_transport channel_verbs = {PEAL_TRANSPORT_VERBS, by_verbs, INT64_MAX};
const channel_transport channel_mlx5 = {PEAL_TRANSPORT_MLX5, by_mlx5, INT64_MAX};
