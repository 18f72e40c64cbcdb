/* p2p: accelerators of one host. A neighbour's segment is device memory whose handle its process
 * passes over the control plane as a file descriptor; it is mapped here with access for this
 * process's device and stays valid when that process dies. */
#include "runtime/transports/transports.h"

static const char *refuses(const peal_transport_site *site, int process)
{
    if (!site->same_host(site->user, process))
        return "the processes run on different hosts";
    if (!site->device_refuses)
        return "there is no accelerator";
    return site->device_refuses(site->user, process);
}

static peal_status attach(const peal_transport_site *site, int process, int rank, int64_t bytes,
                          unsigned char **base)
{
    return site->import(site->user, process, rank, bytes, base);
}

const peal_transport_ops peal_transport_p2p = {
    .size = sizeof(peal_transport_ops),
    .kind = PEAL_TRANSPORT_P2P,
    .refuses = refuses,
    .attach = attach,
};
