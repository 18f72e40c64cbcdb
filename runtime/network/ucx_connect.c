/* Connections of the UCX engine: addresses and tokens are exchanged on the control plane's streams,
 * which know who is at the other end. */
#define _GNU_SOURCE
#include "base/diagnostic.h"
#include "runtime/network/ucx.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>

enum { MOST_ADDRESS_BYTES = 1 << 16 };

static peal_status cannot(peal_diagnostics *diagnostics, const char *what, ucs_status_t why)
{
    return peal_report(
        diagnostics, PEAL_E_NO_NETWORK_ENGINE, (peal_source){0},
        "see what `ucx_info -d` lists; UCX_NET_DEVICES and UCX_TLS choose other ways",
        "UCX cannot %s: %s", what, ucx_get()->ucs_status_string(why));
}

static void endpoint_has_ended(void *link, ucp_ep_h endpoint, ucs_status_t why)
{
    (void)endpoint;
    ucx_lose(link, why);
}

static bool give(int stream, const void *data, size_t bytes)
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

/* What one end of a stream says to the other: the token to send with, and where it is. */
typedef struct ucx_card {
    uint64_t token;
    uint32_t bytes, reserved;
} ucx_card;

static peal_status open_stream(peal_network *network, int process, peal_diagnostics *diagnostics)
{
    ucx_link *link = calloc(1, sizeof(*link));
    if (!link)
        return ucx_no_memory(diagnostics);
    *link = (ucx_link){.process = process, .stream = -1, .network = network};
    bool is_random =
        getrandom(&link->own_token, sizeof(link->own_token), 0) == (ssize_t)sizeof(link->own_token);
    peal_status status = is_random
                             ? network->site->connect(network->site->user, process, &link->stream)
                             : peal_report(diagnostics, PEAL_E_SYSTEM_CALL_FAILED, (peal_source){0},
                                           NULL, "the system gives no random numbers");
    if (status) {
        free(link);
        return status;
    }
    network->link[process] = link;
    return PEAL_STATUS_OK;
}

static ucs_status_t open_worker(peal_network *network)
{
    const ucx_library *ucx = network->library;
    const ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                        .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    ucs_status_t status = ucx->ucp_worker_create(network->context, &params, &network->worker);
    if (status != UCS_OK)
        return status;
    const ucp_am_handler_param_t handler = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                                                          UCP_AM_HANDLER_PARAM_FIELD_CB |
                                                          UCP_AM_HANDLER_PARAM_FIELD_ARG |
                                                          UCP_AM_HANDLER_PARAM_FIELD_FLAGS,
                                            .id = UCX_MESSAGE,
                                            .flags = UCP_AM_FLAG_WHOLE_MSG,
                                            .cb = ucx_take,
                                            .arg = network};
    status = ucx->ucp_worker_set_am_recv_handler(network->worker, &handler);
    return status == UCS_OK ? ucx->ucp_worker_get_efd(network->worker, &network->event) : status;
}

/* The first plan's streams say over which interfaces the others are reached. */
static peal_status open_ucx(peal_network *network, const peal_pair *pair, int count,
                            peal_diagnostics *diagnostics)
{
    if (network->context)
        return PEAL_STATUS_OK;
    int *stream = calloc((size_t)count + 1, sizeof(*stream));
    if (!stream)
        return ucx_no_memory(diagnostics);
    for (int i = 0; i < count; i++)
        stream[i] = network->link[pair[i].process]->stream;
    ucs_status_t status = ucx_open_context(stream, count, &network->context);
    free(stream);
    if (status != UCS_OK)
        return cannot(diagnostics, "open a way to other hosts", status);
    status = open_worker(network);
    return status == UCS_OK ? PEAL_STATUS_OK : cannot(diagnostics, "listen for messages", status);
}

static peal_status give_card(const ucx_link *link, const ucp_address_t *address, size_t bytes,
                             peal_diagnostics *diagnostics)
{
    const ucx_card card = {.token = link->own_token, .bytes = (uint32_t)bytes};
    if (give(link->stream, &card, sizeof(card)) && give(link->stream, address, bytes))
        return PEAL_STATUS_OK;
    return peal_report(diagnostics, PEAL_E_PROCESS_LOST, (peal_source){0}, NULL,
                       "process %d has closed its stream", link->process);
}

static peal_status take_card(const peal_network *network, ucx_link *link,
                             peal_diagnostics *diagnostics)
{
    const peal_network_site *site = network->site;
    const ucx_library *ucx = network->library;
    ucx_card card;
    peal_status status = site->read(site->user, link->process, link->stream, &card, sizeof(card));
    if (status)
        return status;
    if (!card.bytes || card.bytes > MOST_ADDRESS_BYTES)
        return peal_report(diagnostics, PEAL_E_COLLECTIVE_MISMATCH, (peal_source){0}, NULL,
                           "process %d says that its address for UCX has %u bytes", link->process,
                           card.bytes);
    void *address = malloc(card.bytes);
    if (!address)
        return ucx_no_memory(diagnostics);
    status = site->read(site->user, link->process, link->stream, address, card.bytes);
    link->their_token = card.token;
    const ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                                  UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                                  UCP_EP_PARAM_FIELD_ERR_HANDLER,
                                    .address = address,
                                    .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                                    .err_handler = {endpoint_has_ended, link}};
    ucs_status_t made =
        status ? UCS_OK : ucx->ucp_ep_create(network->worker, &params, &link->endpoint);
    free(address);
    if (made != UCS_OK) {
        char what[64];
        snprintf(what, sizeof(what), "connect to process %d", link->process);
        return cannot(diagnostics, what, made);
    }
    return status;
}

static bool is_connected(const ucx_link *link)
{
    return link && link->endpoint;
}

/* Nobody waits for another's card before all have got one's own, so no ring of waits closes. */
peal_status ucx_connect(peal_network *network, const peal_pair *pair, int count,
                        peal_diagnostics *diagnostics)
{
    ucp_address_t *address = NULL;
    size_t bytes = 0;
    peal_status status = PEAL_STATUS_OK;
    for (int i = 0; i < count && !status; i++)
        if (!network->link[pair[i].process])
            status = open_stream(network, pair[i].process, diagnostics);
    if (!status)
        status = open_ucx(network, pair, count, diagnostics);
    if (status)
        return status;
    ucs_status_t got = network->library->ucp_worker_get_address(network->worker, &address, &bytes);
    if (got != UCS_OK)
        return cannot(diagnostics, "say its address", got);
    for (int i = 0; i < count && !status; i++)
        if (!is_connected(network->link[pair[i].process]))
            status = give_card(network->link[pair[i].process], address, bytes, diagnostics);
    network->library->ucp_worker_release_address(network->worker, address);
    for (int i = 0; i < count && !status; i++)
        if (!is_connected(network->link[pair[i].process]))
            status = take_card(network, network->link[pair[i].process], diagnostics);
    return status;
}
