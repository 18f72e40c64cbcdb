/* Connections of the engine for RDMA adapters: a queue to each process. What ends must know of each
 * other goes over the control plane's streams, which know who is there. Who cannot go on says why;
 * after that the network is of no use to the session, and says the same again. */
#define _GNU_SOURCE
#include "base/diagnostic.h"
#include "runtime/network/mlx5.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    SWAP_BYTES = 4096, /* small against any socket's buffer */
    NUMBER_BITS = 24,
    TIMEOUT = 14, /* 4.096 us * 2^14 = 67 ms before something is sent again */
    RETRIES = 6,  /* 7 is for ever with some adapters */
    SHORTEST_WAIT = 1
};

/* What one end of a stream says to the other. */
typedef struct verbs_card {
    uint32_t is_ready, queue, first_packet; /* queue 0: there is none */
    uint32_t lid, mtu;
    union ibv_gid gid;
    char reason[VERBS_TEXT_BYTES];
} verbs_card;

/* ---- streams ---- */

/* The next part of what is swapped; farewells of other plans may lie before it. */
static peal_status read_part(verbs_link *link, char *to, size_t bytes)
{
    const peal_network_site *site = link->network->site;
    while (true) {
        size_t have = link->heard_bytes;
        peal_status status = site->read(site->user, link->process, link->stream,
                                        (char *)&link->heard + have, sizeof(link->heard) - have);
        if (status)
            return status;
        link->heard_bytes = 0;
        atomic_store(&link->is_begun, false);
        if (link->heard.bytes)
            break;
        verbs_note_farewell(link, link->heard.number);
    }
    if (link->heard.bytes == bytes)
        return site->read(site->user, link->process, link->stream, to, bytes);
    verbs_fail(link->network, PEAL_STATUS_INTERNAL, "what begins a plan has another size there");
    return PEAL_STATUS_INTERNAL;
}

peal_status verbs_swap(verbs_link *link, const void *ours, size_t our_bytes, void *theirs,
                       size_t their_bytes)
{
    peal_status status = PEAL_STATUS_OK;
    for (size_t at = 0; (at < our_bytes || at < their_bytes) && !status; at += SWAP_BYTES) {
        size_t mine = at < our_bytes ? our_bytes - at : 0;
        size_t part = at < their_bytes ? their_bytes - at : 0;
        mine = mine < SWAP_BYTES ? mine : SWAP_BYTES;
        part = part < SWAP_BYTES ? part : SWAP_BYTES;
        const verbs_word head = {0, (uint32_t)mine};
        if (mine && peal_network_give(link->stream, &head,
                                      sizeof(head))) /* who has closed it: read tells */
            peal_network_give(link->stream, (const char *)ours + at, mine);
        if (part)
            status = read_part(link, (char *)theirs + at, part);
    }
    return status;
}

/* ---- queues ---- */

/* It returns errno's value, which it need not have set. */
static bool modify(const verbs_library *library, struct ibv_qp *queue, struct ibv_qp_attr *to,
                   int mask)
{
    int error = library->ibv_modify_qp(queue, to, mask);
    errno = error ? error : errno;
    return !error;
}

bool verbs_begin_queue(const peal_network *network, struct ibv_qp *queue)
{
    struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT,
                             .port_num = network->device.port,
                             .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    return modify(network->library, queue, &to,
                  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

bool verbs_join_queue(const verbs_link *link, struct ibv_qp *queue, uint32_t first_packet,
                      uint32_t other, uint32_t other_first_packet)
{
    const verbs_library *library = link->network->library;
    const verbs_device *d = &link->network->device;
    struct ibv_qp_attr to = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = link->mtu,
        .dest_qp_num = other,
        .rq_psn = other_first_packet,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = SHORTEST_WAIT,
        .ah_attr = {.dlid = link->lid,
                    .port_num = d->port,
                    .is_global = d->by_gid,
                    .grh = {.dgid = link->gid, .sgid_index = d->gid_index, .hop_limit = 64}}};
    if (!modify(library, queue, &to,
                IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
        return false;
    to = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                              .timeout = TIMEOUT,
                              .retry_cnt = RETRIES,
                              .rnr_retry = RETRIES,
                              .sq_psn = first_packet,
                              .max_rd_atomic = 1};
    return modify(library, queue, &to,
                  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

/* The queue that all plans' messages to a process share. */
static peal_status make_queue(verbs_link *link, peal_diagnostics *diagnostics)
{
    peal_network *network = link->network;
    const verbs_library *library = network->library;
    link->ring = library->ibv_create_cq(network->device.context, VERBS_DEPTH, NULL, NULL, 0);
    if (!link->ring)
        return verbs_cannot(network, diagnostics, "make a completion queue");
    struct ibv_qp_init_attr asked = {.send_cq = link->ring,
                                     .recv_cq = link->ring,
                                     .qp_type = IBV_QPT_RC,
                                     .cap = {.max_send_wr = VERBS_DEPTH,
                                             .max_recv_wr = 1,
                                             .max_send_sge = 1,
                                             .max_recv_sge = 1,
                                             .max_inline_data = VERBS_INLINE_BYTES}};
    link->queue = library->ibv_create_qp(network->device.domain, &asked);
    link->depth = asked.cap.max_send_wr < VERBS_DEPTH ? asked.cap.max_send_wr : VERBS_DEPTH;
    return link->queue && verbs_begin_queue(network, link->queue)
               ? PEAL_STATUS_OK
               : verbs_cannot(network, diagnostics, "make a queue");
}

void verbs_stop_queue(const verbs_link *link, struct ibv_qp *queue)
{
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    link->network->library->ibv_modify_qp(queue, &error, IBV_QP_STATE);
}

void verbs_end_queue(const verbs_link *link, struct ibv_qp *queue)
{
    if (atomic_load(&link->is_broken))
        verbs_stop_queue(link, queue);
    link->network->library->ibv_destroy_qp(queue);
}

/* ---- links ---- */

void verbs_free_link(verbs_link *link)
{
    if (!link)
        return;
    const verbs_library *library = link->network->library;
    if (link->queue)
        verbs_end_queue(link, link->queue);
    if (link->ring)
        library->ibv_destroy_cq(link->ring);
    while (link->end) {
        verbs_end *end = link->end;
        link->end = end->next;
        verbs_free_end(end);
    }
    if (link->stream >= 0)
        close(link->stream);
    pthread_mutex_destroy(&link->lock);
    free(link);
}

static peal_status open_stream(peal_network *network, int process, peal_diagnostics *diagnostics)
{
    verbs_link *link = calloc(1, sizeof(*link));
    if (!link)
        return verbs_no_memory(diagnostics);
    *link = (verbs_link){.network = network, .process = process, .stream = -1};
    pthread_mutex_init(&link->lock, NULL);
    atomic_init(&link->is_broken, true); /* until its queue is connected */
    peal_status status = network->site->connect(network->site->user, process, &link->stream);
    if (status)
        verbs_free_link(link);
    else
        network->link[process] = link;
    return status;
}

/* `status`: what has gone wrong here before, which the other end is told then. */
static peal_status open_link(verbs_link *link, peal_status status, peal_diagnostics *diagnostics)
{
    peal_network *network = link->network;
    verbs_card own = {.lid = network->device.at.lid,
                      .mtu = network->device.at.active_mtu,
                      .gid = network->device.gid};
    verbs_card other = {0};
    if (!status && !network->has_own_rings)
        status = make_queue(link, diagnostics);
    if (!status && getrandom(&own.first_packet, sizeof(own.first_packet), 0) !=
                       (ssize_t)sizeof(own.first_packet))
        status = verbs_cannot(network, diagnostics, "have a random number");
    own.first_packet &= (1U << NUMBER_BITS) - 1;
    own.queue = link->queue ? link->queue->qp_num : 0;
    own.is_ready = !status;
    if (status && !*network->reason)
        snprintf(network->reason, sizeof(network->reason), "it is not ready for RDMA");
    memcpy(own.reason, network->reason, sizeof(own.reason));
    peal_status swapped = verbs_swap(link, &own, sizeof(own), &other, sizeof(other));
    status = status ? status : swapped;
    other.reason[sizeof(other.reason) - 1] = 0;
    if (!status && !other.is_ready)
        status = peal_report(diagnostics, PEAL_E_NO_NETWORK_ENGINE, (peal_source){0}, NULL,
                             "process %d: %s", link->process, other.reason);
    link->lid = (uint16_t)other.lid;
    link->mtu = own.mtu < other.mtu ? own.mtu : other.mtu;
    link->gid = other.gid;
    if (!status && link->queue &&
        !verbs_join_queue(link, link->queue, own.first_packet, other.queue, other.first_packet))
        status = verbs_cannot(network, diagnostics, "connect a queue");
    atomic_store(&link->is_broken, status != PEAL_STATUS_OK);
    if (status) /* the other end may take it for good, and wait for more */
        shutdown(link->stream, SHUT_RDWR);
    return status;
}

peal_status verbs_connect(peal_network *network, const peal_pair *pair, int count,
                          peal_diagnostics *diagnostics)
{
    verbs_link **fresh = calloc((size_t)count + 1, sizeof(*fresh));
    int opened = 0;
    peal_status status = *network->reason ? verbs_tell_reason(network, diagnostics)
                         : fresh          ? PEAL_STATUS_OK
                                          : verbs_no_memory(diagnostics);
    for (int i = 0; i < count && !status; i++) {
        const verbs_link *link = network->link[pair[i].process];
        if (link && atomic_load(&link->is_broken))
            status = peal_report(diagnostics, PEAL_E_NO_NETWORK_ENGINE, (peal_source){0}, NULL,
                                 "the connection with process %d has ended before", link->process);
        if (link || status)
            continue;
        status = open_stream(network, pair[i].process, diagnostics);
        if (!status)
            fresh[opened++] = network->link[pair[i].process];
    }
    if (!status)
        status = verbs_open_device(network, diagnostics);
    for (int i = 0; i < opened; i++)
        status = open_link(fresh[i], status, diagnostics);
    if (status && !*network->reason)
        snprintf(network->reason, sizeof(network->reason),
                 "a connection over RDMA could not be made before");
    free(fresh);
    return status;
}
