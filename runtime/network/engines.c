/* The list of engines, by transport. */
#include "runtime/network/network.h"

#include "peal_config.h"

#if PEAL_HAVE_UCX
#include "runtime/network/ucx.h"
#endif

#include <stdio.h>

const peal_network_ops *peal_network_of(peal_transport_kind kind)
{
#if PEAL_HAVE_UCX
    if (kind == PEAL_TRANSPORT_UCX)
        return &peal_network_ucx;
#endif
    return kind == PEAL_TRANSPORT_TCP ? &peal_network_tcp : NULL;
}

const char *peal_network_refuses(peal_transport_kind kind)
{
    if (kind == PEAL_TRANSPORT_TCP)
        return NULL;
#if PEAL_HAVE_UCX
    return ucx_get()->reason;
#else
    return "peal was built without UCX's headers";
#endif
}

bool peal_network_describe(peal_transport_kind kind, char *text, size_t bytes)
{
    const char *reason = peal_network_refuses(kind);
    const char *version = "";
#if PEAL_HAVE_UCX
    if (!reason && kind == PEAL_TRANSPORT_UCX)
        version = ucx_get()->ucp_get_version_string();
#endif
    if (reason)
        snprintf(text, bytes, "%s", reason);
    else
        snprintf(text, bytes, "%s%s",
                 kind == PEAL_TRANSPORT_TCP ? "sockets between hosts"
                                            : "between hosts with --transport auto+ucx: UCX ",
                 version);
    return !reason;
}
