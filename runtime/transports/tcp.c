/* tcp: processes of different hosts. Its schedules are made (scheduler/channels/network.c, puts.c),
 * but nobody carries the puts yet. */
#include "runtime/transports/transports.h"

static const char *refuses(const peal_transport_site *site, int process)
{
    (void)site;
    (void)process;
    return "this version sends no messages over sockets";
}

static peal_status attach(const peal_transport_site *site, int process, int rank, int64_t bytes,
                          unsigned char **base)
{
    (void)site;
    (void)process;
    (void)rank;
    (void)bytes;
    *base = NULL;
    return PEAL_STATUS_INTERNAL;
}

const peal_transport_ops peal_transport_tcp = {
    .size = sizeof(peal_transport_ops),
    .kind = PEAL_TRANSPORT_TCP,
    .refuses = refuses,
    .attach = attach,
};
