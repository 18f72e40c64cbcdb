/* The list of engines, by transport, and what they share. */
#define _GNU_SOURCE
#include "runtime/network/network.h"

#include "peal_config.h"

#if PEAL_HAVE_UCX
#include "runtime/network/ucx.h"
#endif

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

const peal_network_ops *peal_network_of(peal_transport_kind kind)
{
#if PEAL_HAVE_UCX
    if (kind == PEAL_TRANSPORT_UCX)
        return &peal_network_ucx;
#endif
#if PEAL_HAVE_VERBS
    if (kind == PEAL_TRANSPORT_VERBS)
        return &peal_network_verbs;
    if (kind == PEAL_TRANSPORT_MLX5)
        return &peal_network_mlx5;
#endif
    return kind == PEAL_TRANSPORT_TCP ? &peal_network_tcp : NULL;
}

static const char *ucx_refuses(void)
{
#if PEAL_HAVE_UCX
    return ucx_get()->reason;
#else
    return "peal was built without UCX's headers";
#endif
}

static const char *verbs_refuses(bool has_own_rings)
{
#if PEAL_HAVE_VERBS
    return has_own_rings ? peal_network_mlx5_refuses() : peal_network_verbs_refuses();
#else
    (void)has_own_rings;
    return "peal was built without rdma-core's headers";
#endif
}

const char *peal_network_refuses(peal_transport_kind kind)
{
    if (kind == PEAL_TRANSPORT_UCX)
        return ucx_refuses();
    if (kind == PEAL_TRANSPORT_VERBS || kind == PEAL_TRANSPORT_MLX5)
        return verbs_refuses(kind == PEAL_TRANSPORT_MLX5);
    return NULL;
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
    else if (kind == PEAL_TRANSPORT_TCP)
        snprintf(text, bytes, "sockets between hosts");
    else
        snprintf(text, bytes, "between hosts with --transport auto+%s: %s%s",
                 peal_transport_name(kind),
                 kind == PEAL_TRANSPORT_UCX     ? "UCX "
                 : kind == PEAL_TRANSPORT_VERBS ? "an RDMA adapter, by libibverbs"
                                                : "an mlx5 adapter, by rings of peal's own",
                 version);
    return !reason;
}

bool peal_network_give(int stream, const void *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t now = send(stream, (const char *)data + done, bytes - done, MSG_NOSIGNAL);
        if (now < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        done += now > 0 ? (size_t)now : 0;
        if (now < 0)
            poll(&(struct pollfd){stream, POLLOUT, 0}, 1, 100);
    }
    return true;
}
