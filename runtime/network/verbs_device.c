/* An RDMA adapter that is used: which, by which port, under which address. */
#include "base/diagnostic.h"
#include "runtime/network/mlx5.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

peal_status verbs_tell_reason(const peal_network *network, peal_diagnostics *diagnostics)
{
    return peal_report(diagnostics, PEAL_E_NO_NETWORK_ENGINE, (peal_source){0},
                       "see what `ibv_devinfo` lists, or use tcp", "%s", network->reason);
}

peal_status verbs_cannot(peal_network *network, peal_diagnostics *diagnostics, const char *what)
{
    snprintf(network->reason, sizeof(network->reason), "RDMA adapter %s: cannot %s: %s",
             network->device.name, what, strerror(errno));
    return verbs_tell_reason(network, diagnostics);
}

/* Which of the user's adapters, and which port and address of it. Empty and 0, -1: peal chooses. */
typedef struct wish {
    char name[64];
    unsigned port;
    int gid;
    bool makes_no_sense;
} wish;

/* What stands behind a colon at *text; -1: nothing does. */
static int read_number(const char **text, wish *w)
{
    char *end;
    if (**text != ':')
        return -1;
    long number = strtol(*text + 1, &end, 10);
    w->makes_no_sense |= end == *text + 1 || number < 0 || number > UINT8_MAX;
    *text = end;
    return (int)number;
}

/* PEAL_RDMA=mlx5_1, mlx5_1:2 or mlx5_1:2:3. */
static wish read_wish(void)
{
    wish w = {.gid = -1};
    const char *text = getenv("PEAL_RDMA");
    size_t length = text ? strcspn(text, ":") : 0;
    if (!text)
        return w;
    snprintf(w.name, sizeof(w.name), "%.*s", (int)length, text);
    text += length;
    int port = read_number(&text, &w);
    w.gid = read_number(&text, &w);
    w.port = port < 0 ? 0 : (unsigned)port;
    w.makes_no_sense |= *text || port == 0;
    return w;
}

/* Ports of Ethernet: RoCE's second version goes over IPv4, whose addresses are mapped into GIDs. */
static bool choose_gid(const verbs_library *library, const wish *w, verbs_device *d)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    if (w->gid >= 0) {
        d->gid_index = (uint8_t)w->gid;
        return w->gid < d->at.gid_tbl_len &&
               !library->ibv_query_gid(d->context, d->port, w->gid, &d->gid);
    }
    library->ibv_query_gid(d->context, d->port, 0, &d->gid);
    for (int i = 0; i < d->at.gid_tbl_len && d->by_gid; i++) {
        union ibv_gid gid;
        if (library->ibv_query_gid(d->context, d->port, i, &gid) ||
            memcmp(gid.raw, mapped, sizeof(mapped)) != 0)
            continue;
        d->gid = gid; /* version 1 and 2 of an address follow each other: the last is version 2 */
        d->gid_index = (uint8_t)i;
    }
    return true;
}

/* A port of the opened device that is up; the library's function fills in the part of its structure
 * that all versions have. */
static bool find_port(const verbs_library *library, const wish *w, verbs_device *d)
{
    uint8_t first = w->port ? (uint8_t)w->port : 1, last = w->port ? (uint8_t)w->port : 2;
    for (d->port = first; d->port <= last; d->port++) {
        memset(&d->at, 0, sizeof(d->at));
        if (!library->ibv_query_port(d->context, d->port, (void *)&d->at) &&
            d->at.state == IBV_PORT_ACTIVE && d->at.max_msg_sz > 0)
            return true;
    }
    return false;
}

static void try_device(const verbs_library *library, struct ibv_device *from, bool has_own_rings,
                       const wish *w, verbs_device *d)
{
    const char *name = library->ibv_get_device_name(from);
    if ((*w->name && strcmp(w->name, name) != 0) ||
        (has_own_rings && !mlx5_get()->mlx5dv_is_supported(from)))
        return;
    d->context = library->ibv_open_device(from);
    if (!d->context)
        return;
    snprintf(d->name, sizeof(d->name), "%s", name);
    if (find_port(library, w, d))
        return;
    library->ibv_close_device(d->context);
    d->context = NULL;
}

static bool serve_rings(peal_network *network)
{
    network->arena = mlx5_arena_open();
    return network->arena && mlx5_arena_serves(network->arena, network->device.context);
}

peal_status verbs_open_device(peal_network *network, peal_diagnostics *diagnostics)
{
    const verbs_library *library = network->library;
    verbs_device *d = &network->device;
    const wish w = read_wish();
    int count = 0;
    if (d->domain)
        return PEAL_STATUS_OK;
    if (w.makes_no_sense) {
        snprintf(network->reason, sizeof(network->reason),
                 "PEAL_RDMA is neither NAME, NAME:PORT nor NAME:PORT:GID: %.100s",
                 getenv("PEAL_RDMA"));
        return verbs_tell_reason(network, diagnostics);
    }
    struct ibv_device **list = library->ibv_get_device_list(&count);
    for (int i = 0; list && i < count && !d->context; i++)
        try_device(library, list[i], network->has_own_rings, &w, d);
    if (list)
        library->ibv_free_device_list(list);
    if (!d->context) {
        snprintf(network->reason, sizeof(network->reason),
                 "none of %d RDMA adapters%s%s %s a port that is up", count,
                 *w.name ? ", by PEAL_RDMA only " : "", w.name,
                 network->has_own_rings ? "is an mlx5 with" : "has");
        return verbs_tell_reason(network, diagnostics);
    }
    fcntl(d->context->async_fd, F_SETFL, O_NONBLOCK);
    d->by_gid = d->at.link_layer == IBV_LINK_LAYER_ETHERNET;
    if (!choose_gid(library, &w, d)) {
        errno = ENOENT;
        return verbs_cannot(network, diagnostics, "find the GID that PEAL_RDMA names");
    }
    if (network->has_own_rings && !serve_rings(network))
        return verbs_cannot(network, diagnostics, "have its rings in memory of ours");
    d->domain = library->ibv_alloc_pd(d->context);
    return d->domain ? PEAL_STATUS_OK
                     : verbs_cannot(network, diagnostics, "make a protection domain");
}

void verbs_close_device(peal_network *network)
{
    verbs_device *d = &network->device;
    if (d->domain)
        network->library->ibv_dealloc_pd(d->domain);
    if (d->context)
        network->library->ibv_close_device(d->context);
    mlx5_arena_close(network->arena);
    network->arena = NULL;
    *d = (verbs_device){0};
}
