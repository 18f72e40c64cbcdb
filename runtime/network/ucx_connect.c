/* Connections of the UCX engine: addresses and tokens are exchanged on the control plane's streams,
 * which know who is at the other end. Who cannot go on says so on them, and why: then nobody waits
 * for it. After that the network is of no use to this session, and says the same again. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/diagnostic.h"
#include "runtime/network/ucx.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

enum { MOST_ADDRESS_BYTES = 1 << 16 };

/* What one end of a stream says to the other: the token to send with, and an address of so many
 * bytes follows; 0: why there is none. */
typedef struct ucx_card {
    uint64_t token;
    uint32_t bytes, reserved;
    char reason[UCX_TEXT_BYTES];
} ucx_card;

/* Says it again, where it was said before. */
static peal_status tell_reason(const peal_network *network, peal_diagnostics *diagnostics)
{
    return peal_report(
        diagnostics, PEAL_E_NO_NETWORK_ENGINE, (peal_source){0},
        "see what `ucx_info -d` lists; UCX_NET_DEVICES and UCX_TLS choose other ways", "%s",
        network->reason);
}

static peal_status cannot(peal_network *network, peal_diagnostics *diagnostics, const char *what,
                          ucs_status_t why)
{
    snprintf(network->reason, sizeof(network->reason), "UCX cannot %s: %s", what,
             network->library->ucs_status_string(why));
    return tell_reason(network, diagnostics);
}

static void endpoint_has_ended(void *link, ucp_ep_h endpoint, ucs_status_t why)
{
    (void)endpoint;
    ucx_lose(link, why);
}

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
    pthread_mutex_lock(&network->lock);
    network->link[process] = link;
    pthread_mutex_unlock(&network->lock);
    return PEAL_STATUS_OK;
}

/* What a thread of its own does: where no port of a range is free UCX tries for ever. */
typedef struct worker_creation {
    const ucx_library *library;
    ucp_context_h context;
    ucp_worker_h worker;
    ucs_status_t status;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_done, is_abandoned;
} worker_creation;

static worker_creation *begin_creation(const peal_network *network)
{
    worker_creation *c = calloc(1, sizeof(*c));
    pthread_condattr_t attributes;
    if (!c)
        return NULL;
    c->library = network->library;
    c->context = network->context;
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&c->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return c;
}

static void end_creation(worker_creation *c)
{
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

static void *create_worker(void *argument)
{
    worker_creation *c = argument;
    const ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                        .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    c->status = c->library->ucp_worker_create(c->context, &params, &c->worker);
    pthread_mutex_lock(&c->lock);
    c->is_done = true;
    bool is_abandoned = c->is_abandoned;
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
    if (!is_abandoned)
        return NULL;
    if (c->status == UCS_OK)
        c->library->ucp_worker_destroy(c->worker);
    c->library->ucp_cleanup(c->context);
    end_creation(c);
    return NULL;
}

static ucs_status_t create_in_time(peal_network *network)
{
    const int64_t limit_ns = INT64_C(5000000000);
    worker_creation *c = begin_creation(network);
    pthread_t thread;
    int error = 0;
    if (!c)
        return UCS_ERR_NO_MEMORY;
    if (pthread_create(&thread, NULL, create_worker, c)) {
        end_creation(c);
        return UCS_ERR_NO_MEMORY;
    }
    struct timespec until = peal_clock_timespec(peal_clock_ns() + limit_ns);
    pthread_mutex_lock(&c->lock);
    while (!c->is_done && !error)
        error = pthread_cond_timedwait(&c->changed, &c->lock, &until);
    bool is_late = c->is_abandoned = !c->is_done;
    pthread_mutex_unlock(&c->lock);
    if (is_late) { /* the context and what it was given are the thread's now */
        pthread_detach(thread);
        network->context = NULL;
        return UCS_ERR_TIMED_OUT;
    }
    pthread_join(thread, NULL);
    ucs_status_t status = c->status;
    network->worker = status == UCS_OK ? c->worker : NULL;
    end_creation(c);
    return status;
}

static ucs_status_t open_worker(peal_network *network)
{
    const ucx_library *ucx = network->library;
    ucs_status_t status = create_in_time(network);
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
    if (network->worker)
        return PEAL_STATUS_OK;
    int *stream = calloc((size_t)count + 1, sizeof(*stream));
    if (!stream)
        return ucx_no_memory(diagnostics);
    for (int i = 0; i < count; i++)
        stream[i] = network->link[pair[i].process]->stream;
    ucs_status_t status = ucx_open_context(network->site, stream, count, &network->context);
    free(stream);
    if (status != UCS_OK) {
        network->context = NULL;
        return cannot(network, diagnostics, "open a way to other hosts", status);
    }
    pthread_mutex_lock(&network->lock);
    status = open_worker(network);
    pthread_mutex_unlock(&network->lock);
    if (status == UCS_OK)
        return PEAL_STATUS_OK;
    return cannot(network, diagnostics,
                  network->site->first_port || status == UCS_ERR_TIMED_OUT
                      ? "listen for messages (of --network-ports each process needs one more for "
                        "it, and one that was used stays taken for a minute)"
                      : "listen for messages",
                  status);
}

/* reason: empty where there is an address. */
static bool give_card(const peal_network *network, const ucx_link *link, const void *address,
                      size_t bytes)
{
    ucx_card card = {.token = link->own_token, .bytes = (uint32_t)bytes};
    memcpy(card.reason, network->reason, sizeof(card.reason));
    return peal_network_give(link->stream, &card, sizeof(card)) &&
           peal_network_give(link->stream, address, bytes);
}

static peal_status read_card(const peal_network *network, ucx_link *link,
                             peal_diagnostics *diagnostics, void **address)
{
    const peal_network_site *site = network->site;
    ucx_card card;
    peal_status status = site->read(site->user, link->process, link->stream, &card, sizeof(card));
    if (status)
        return status;
    card.reason[sizeof(card.reason) - 1] = 0;
    if (!card.bytes)
        return peal_report(diagnostics, PEAL_E_NO_NETWORK_ENGINE, (peal_source){0}, NULL,
                           "process %d: %s", link->process, card.reason);
    if (card.bytes > MOST_ADDRESS_BYTES)
        return peal_report(diagnostics, PEAL_E_COLLECTIVE_MISMATCH, (peal_source){0}, NULL,
                           "process %d says that its address for UCX has %u bytes", link->process,
                           card.bytes);
    *address = malloc(card.bytes);
    if (!*address)
        return ucx_no_memory(diagnostics);
    link->their_token = card.token;
    return site->read(site->user, link->process, link->stream, *address, card.bytes);
}

static peal_status take_card(peal_network *network, ucx_link *link, peal_diagnostics *diagnostics)
{
    void *address = NULL;
    peal_status status = read_card(network, link, diagnostics, &address);
    ucs_status_t made = UCS_OK;
    if (!status) {
        const ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                                      UCP_EP_PARAM_FIELD_ERR_HANDLER,
                                        .address = address,
                                        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                                        .err_handler = {endpoint_has_ended, link}};
        pthread_mutex_lock(&network->lock);
        made = network->library->ucp_ep_create(network->worker, &params, &link->endpoint);
        if (made != UCS_OK)
            link->endpoint = NULL;
        pthread_mutex_unlock(&network->lock);
    }
    free(address);
    if (made != UCS_OK) {
        char what[64];
        snprintf(what, sizeof(what), "connect to process %d", link->process);
        return cannot(network, diagnostics, what, made);
    }
    return status;
}

/* Both ends give and take once. Nobody waits for another's card before all have got one's own, so
 * no ring of waits closes. `status`: what has gone wrong here before. */
static peal_status exchange_cards(peal_network *network, ucx_link **link, int count,
                                  peal_status status, peal_diagnostics *diagnostics)
{
    ucp_address_t *address = NULL;
    size_t bytes = 0;
    if (!status) {
        pthread_mutex_lock(&network->lock);
        ucs_status_t got =
            network->library->ucp_worker_get_address(network->worker, &address, &bytes);
        pthread_mutex_unlock(&network->lock);
        if (got != UCS_OK)
            status = cannot(network, diagnostics, "say its address", got);
    }
    if (status && !*network->reason)
        snprintf(network->reason, sizeof(network->reason), "it is not ready for UCX");
    for (int i = 0; i < count; i++) /* who has closed its end is told by read_card */
        give_card(network, link[i], address, status ? 0 : bytes);
    if (address) {
        pthread_mutex_lock(&network->lock);
        network->library->ucp_worker_release_address(network->worker, address);
        pthread_mutex_unlock(&network->lock);
    }
    for (int i = 0; i < count && !status; i++)
        status = take_card(network, link[i], diagnostics);
    return status;
}

/* Plans do not begin over what has ended. */
static peal_status check_links(const peal_network *network, const peal_pair *pair, int count,
                               peal_diagnostics *diagnostics)
{
    for (int i = 0; i < count; i++) {
        const ucx_link *link = network->link[pair[i].process];
        if (link && link->is_broken)
            return peal_report(diagnostics, PEAL_E_NO_NETWORK_ENGINE, (peal_source){0}, NULL,
                               "the connection by UCX with process %d has ended before",
                               link->process);
    }
    return PEAL_STATUS_OK;
}

peal_status ucx_connect(peal_network *network, const peal_pair *pair, int count,
                        peal_diagnostics *diagnostics)
{
    if (*network->reason)
        return tell_reason(network, diagnostics);
    ucx_link **fresh = calloc((size_t)count + 1, sizeof(*fresh));
    int opened = 0;
    peal_status status =
        fresh ? check_links(network, pair, count, diagnostics) : ucx_no_memory(diagnostics);
    for (int i = 0; i < count && !status; i++)
        if (!network->link[pair[i].process]) {
            status = open_stream(network, pair[i].process, diagnostics);
            if (!status)
                fresh[opened++] = network->link[pair[i].process];
        }
    if (!status)
        status = open_ucx(network, pair, count, diagnostics);
    if (opened)
        status = exchange_cards(network, fresh, opened, status, diagnostics);
    if (status && !*network->reason)
        snprintf(network->reason, sizeof(network->reason),
                 "UCX was not opened, as a connection could not be made before");
    free(fresh);
    return status;
}
