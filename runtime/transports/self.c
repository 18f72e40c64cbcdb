/* self: ranks of one process. A neighbour's segment is where it is; nothing is set up. */
#include "runtime/transports/transports.h"

static const char *refuses(const peal_transport_site *site, int process)
{
    return process == site->process ? NULL : "the ranks live in different processes";
}

static peal_status attach(const peal_transport_site *site, int process, int rank, int64_t bytes,
                          unsigned char **base)
{
    (void)process;
    (void)bytes;
    unsigned char *segment = site->hosted(site->user, rank);
    if (!segment)
        return PEAL_STATUS_INTERNAL;
    *base = segment;
    return PEAL_STATUS_OK;
}

const peal_transport_ops peal_transport_self = {
    .size = sizeof(peal_transport_ops),
    .kind = PEAL_TRANSPORT_SELF,
    .refuses = refuses,
    .attach = attach,
};
