/* tcp, ucx, verbs, mlx5: processes of different hosts. Nobody maps a neighbour's memory: what goes
 * there is packed into a shadow of it, and put into the same place there (runtime/bind/puts.c,
 * runtime/network). */
#include "runtime/transports/transports.h"

static const char *refuses(const peal_transport_site *site, int process)
{
    if (process == site->process)
        return "it is this process";
    return site->shadow ? NULL : "messages between hosts are not carried here";
}

static peal_status attach(const peal_transport_site *site, int process, int rank, int64_t bytes,
                          unsigned char **base)
{
    (void)process;
    (void)rank;
    return site->shadow(site->user, bytes, base);
}

const peal_transport_ops peal_transport_tcp = {
    .size = sizeof(peal_transport_ops),
    .kind = PEAL_TRANSPORT_TCP,
    .refuses = refuses,
    .attach = attach,
};

const peal_transport_ops peal_transport_ucx = {
    .size = sizeof(peal_transport_ops),
    .kind = PEAL_TRANSPORT_UCX,
    .refuses = refuses,
    .attach = attach,
};

const peal_transport_ops peal_transport_verbs = {
    .size = sizeof(peal_transport_ops),
    .kind = PEAL_TRANSPORT_VERBS,
    .refuses = refuses,
    .attach = attach,
};

const peal_transport_ops peal_transport_mlx5 = {
    .size = sizeof(peal_transport_ops),
    .kind = PEAL_TRANSPORT_MLX5,
    .refuses = refuses,
    .attach = attach,
};
