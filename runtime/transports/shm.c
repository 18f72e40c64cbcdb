/* shm: processes of one host. A neighbour's segment is a sealed memfd that its process passes over
 * the control plane; it is mapped here and stays valid when that process dies. */
#include "runtime/transports/transports.h"

static const char *refuses(const peal_transport_site *site, int process)
{
    return site->same_host(site->user, process) ? NULL : "the processes run on different hosts";
}

static peal_status attach(const peal_transport_site *site, int process, int rank, int64_t bytes,
                          unsigned char **base)
{
    return site->import(site->user, process, rank, bytes, base);
}

const peal_transport_ops peal_transport_shm = {
    .size = sizeof(peal_transport_ops),
    .kind = PEAL_TRANSPORT_SHM,
    .refuses = refuses,
    .attach = attach,
};
