/* ucx: puts as active messages of UCX, which goes over InfiniBand, RoCE and whatever else it knows.
 * Whoever waits makes progress; there is no thread of ours. */
#define _GNU_SOURCE
#include "runtime/network/ucx.h"
#include "base/clock.h"
#include "base/diagnostic.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TURNS = 64 };

static const int64_t patience_ns = INT64_C(200000000); /* with what is under way as a plan ends */

peal_status ucx_no_memory(peal_diagnostics *diagnostics)
{
    return peal_report(diagnostics, PEAL_E_OUT_OF_MEMORY, (peal_source){0}, NULL,
                       "no memory for messages between hosts");
}

void ucx_fail(peal_network *network, peal_status status, const char *message)
{
    bool is_first = !network->has_failed;
    network->has_failed = true;
    if (is_first)
        network->site->fail(network->site->user, status, message);
}

void ucx_lose(ucx_link *link, ucs_status_t why)
{
    char text[UCX_TEXT_BYTES];
    if (link->is_broken)
        return;
    link->is_broken = true;
    snprintf(text, sizeof(text), "the connection by UCX with process %d has ended: %s",
             link->process, link->network->library->ucs_status_string(why));
    if (!link->network->is_closing)
        ucx_fail(link->network, PEAL_STATUS_PEER_LOST, text);
}

/* ---- turns ---- */

static void turn(const peal_network *network)
{
    for (int i = 0; i < TURNS && network->library->ucp_worker_progress(network->worker); i++)
        continue;
}

/* Whether this thread has it now. */
static bool try_lock(peal_network *network)
{
    return !network->is_disowned && !pthread_mutex_trylock(&network->lock);
}

static void progress(peal_network *network)
{
    if (!try_lock(network))
        return;
    if (network->worker)
        turn(network);
    pthread_mutex_unlock(&network->lock);
}

static void sleep_until_some(peal_network *network, int64_t ns)
{
    struct timespec until = {ns / 1000000000, ns % 1000000000};
    struct pollfd event = {-1, POLLIN, 0};
    if (try_lock(network)) {
        bool is_armed =
            network->worker && network->library->ucp_worker_arm(network->worker) == UCS_OK;
        if (is_armed)
            event.fd = network->event;
        else if (network->worker) /* something has come meanwhile */
            turn(network);
        pthread_mutex_unlock(&network->lock);
        if (!is_armed)
            return;
    }
    ppoll(&event, 1, &until, NULL);
}

/* A flush ends when what was sent before it has left. */
static void look_at_flush(peal_network *network)
{
    const ucx_library *ucx = network->library;
    if (network->flush && ucx->ucp_request_check_status(network->flush) != UCS_INPROGRESS) {
        ucx->ucp_request_free(network->flush);
        network->flush = NULL;
    }
    if (network->flush || !network->has_sent)
        return;
    const ucp_request_param_t param = {0};
    network->has_sent = false;
    ucs_status_ptr_t flush = ucx->ucp_worker_flush_nbx(network->worker, &param);
    if (UCS_PTR_IS_PTR(flush))
        network->flush = flush;
}

static bool settle(peal_network *network)
{
    if (network->is_disowned)
        return true;
    if (!try_lock(network))
        return false;
    bool is_settled = true;
    if (network->worker) {
        turn(network);
        look_at_flush(network);
        is_settled = network->busy == 0 && !network->flush && !network->has_sent;
    }
    pthread_mutex_unlock(&network->lock);
    return is_settled;
}

/* ---- plans ---- */

/* The lists end with an empty item: pairs may be gone by now. */
static void free_sending(ucx_sending **sending)
{
    for (int i = 0; sending && sending[i]; i++)
        free(sending[i]);
    free(sending);
}

static void free_arrival(ucx_arrival *arrival)
{
    for (int i = 0; arrival && arrival[i].has_come; i++)
        free(arrival[i].has_come);
    free(arrival);
}

static void free_plan(peal_network_plan *plan)
{
    for (int i = 0; i < plan->count; i++) {
        free(plan->sent ? plan->sent[i] : NULL);
        free_sending(plan->sending ? plan->sending[i] : NULL);
        free_arrival(plan->arrival ? plan->arrival[i] : NULL);
    }
    free(plan->sent);
    free(plan->sending);
    free(plan->arrival);
    free(plan->link);
    free(plan);
}

static ucx_sending *new_sending(peal_network_plan *plan, int pair, int number)
{
    const peal_put *put = &plan->pair[pair].out[number];
    uint64_t window = ucx_window(put);
    ucx_sending *sending = calloc(window, sizeof(*sending));
    for (uint64_t k = 0; sending && k < window; k++) {
        ucx_link *link = plan->link[pair];
        sending[k] = (ucx_sending){.head = {.frame = {plan->number, (uint32_t)number, 0,
                                                      (uint64_t)put->bytes},
                                            .token = link->their_token,
                                            .from = (uint32_t)plan->network->site->process},
                                   .plan = plan,
                                   .link = link,
                                   .put = put};
    }
    return sending;
}

static bool make_room(peal_network_plan *plan, int index)
{
    const peal_pair *pair = &plan->pair[index];
    plan->sent[index] = calloc((size_t)pair->out_count + 1, sizeof(uint64_t));
    plan->sending[index] = calloc((size_t)pair->out_count + 1, sizeof(*plan->sending[index]));
    plan->arrival[index] = calloc((size_t)pair->in_count + 1, sizeof(*plan->arrival[index]));
    if (!plan->sent[index] || !plan->sending[index] || !plan->arrival[index])
        return false;
    for (int i = 0; i < pair->out_count; i++) {
        plan->sent[index][i] = pair->out[i].first;
        if (!(plan->sending[index][i] = new_sending(plan, index, i)))
            return false;
    }
    for (int i = 0; i < pair->in_count; i++) {
        ucx_arrival *arrival = &plan->arrival[index][i];
        arrival->received = pair->in[i].first;
        if (!(arrival->has_come = calloc(ucx_window(&pair->in[i]), sizeof(bool))))
            return false;
    }
    return true;
}

static void wait_for_plan(const peal_network_plan *plan)
{
    int64_t end_ns = peal_clock_ns() + patience_ns;
    while (plan->busy > 0 && peal_clock_ns() < end_ns)
        turn(plan->network);
}

static void close_endpoint(ucx_link *link)
{
    peal_network *network = link->network;
    const ucx_library *ucx = network->library;
    const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                       .flags = UCP_EP_CLOSE_FLAG_FORCE};
    if (!link->endpoint)
        return;
    ucs_status_ptr_t request = ucx->ucp_ep_close_nbx(link->endpoint, &param);
    link->endpoint = NULL;
    link->is_broken = true;
    if (!UCS_PTR_IS_PTR(request))
        return;
    int64_t end_ns = peal_clock_ns() + patience_ns;
    while (ucx->ucp_request_check_status(request) == UCS_INPROGRESS && peal_clock_ns() < end_ns)
        turn(network);
    ucx->ucp_request_free(request);
}

/* UCX has the plan's slots until nothing of it is under way any more. What does not end by itself,
 * as the other end is gone or does nothing, ends with its connection. */
static void detach(peal_network_plan *plan)
{
    peal_network *network = plan->network;
    if (network->is_disowned)
        return;
    pthread_mutex_lock(&network->lock);
    wait_for_plan(plan);
    for (int i = 0; i < plan->count && plan->busy > 0; i++) {
        ucx_lose(plan->link[i], UCS_ERR_CANCELED);
        close_endpoint(plan->link[i]);
    }
    wait_for_plan(plan);
    peal_network_plan **at = &network->plan;
    while (*at && *at != plan)
        at = &(*at)->next;
    if (*at)
        *at = plan->next;
    plan->is_dead = plan->busy > 0; /* UCX still has it: it stays, until it is closed */
    if (!plan->is_dead)
        free_plan(plan);
    else {
        plan->next = network->dead;
        network->dead = plan;
    }
    pthread_mutex_unlock(&network->lock);
}

static peal_status make_plan(peal_network *network, uint32_t number, const peal_pair *pair,
                             int count, peal_diagnostics *diagnostics, peal_network_plan **out)
{
    peal_network_plan *plan = calloc(1, sizeof(*plan));
    if (!plan)
        return ucx_no_memory(diagnostics);
    *plan = (peal_network_plan){.network = network, .number = number, .pair = pair, .count = count};
    plan->link = calloc((size_t)count + 1, sizeof(*plan->link));
    plan->sent = calloc((size_t)count + 1, sizeof(*plan->sent));
    plan->sending = calloc((size_t)count + 1, sizeof(*plan->sending));
    plan->arrival = calloc((size_t)count + 1, sizeof(*plan->arrival));
    bool fits = plan->link && plan->sent && plan->sending && plan->arrival;
    for (int i = 0; i < count && fits; i++) {
        plan->link[i] = network->link[pair[i].process];
        fits = make_room(plan, i);
    }
    if (!fits) {
        free_plan(plan);
        return ucx_no_memory(diagnostics);
    }
    plan->next = network->plan;
    network->plan = *out = plan;
    return PEAL_STATUS_OK;
}

static peal_status attach(peal_network *network, uint32_t number, const peal_pair *pair, int count,
                          peal_diagnostics *diagnostics, peal_network_plan **out)
{
    peal_status status = ucx_connect(network, pair, count, diagnostics);
    if (status)
        return status;
    pthread_mutex_lock(&network->lock);
    status = make_plan(network, number, pair, count, diagnostics, out);
    pthread_mutex_unlock(&network->lock);
    return status;
}

static void due(peal_network_plan *plan, int pair, int number, uint64_t value)
{
    if (plan->network->is_disowned)
        return;
    pthread_mutex_lock(&plan->network->lock);
    ucx_due(plan, pair, number, value);
    pthread_mutex_unlock(&plan->network->lock);
}

/* ---- the session's ---- */

static peal_status open_network(const peal_network_site *site, peal_diagnostics *diagnostics,
                                peal_network **out)
{
    peal_network *network = calloc(1, sizeof(*network));
    ucx_link **link = calloc((size_t)site->processes + 1, sizeof(*link));
    if (!network || !link) {
        free(network);
        free(link);
        return ucx_no_memory(diagnostics);
    }
    network->site = site;
    network->library = ucx_get();
    network->link = link;
    network->event = -1;
    pthread_mutex_init(&network->lock, NULL);
    *out = network;
    return PEAL_STATUS_OK;
}

/* UCX cannot be used in a forked copy of the process, nor be closed there. */
static void disown(peal_network *network)
{
    network->is_disowned = true;
    for (int p = 0; p < network->site->processes; p++)
        if (network->link[p] && network->link[p]->stream >= 0)
            close(network->link[p]->stream);
}

/* Once nothing of UCX is left that looks at links and plans. */
static void close_ucx(peal_network *network)
{
    const ucx_library *ucx = network->library;
    for (int p = 0; p < network->site->processes; p++)
        if (network->link[p])
            close_endpoint(network->link[p]);
    if (network->flush)
        ucx->ucp_request_free(network->flush);
    if (network->worker)
        ucx->ucp_worker_destroy(network->worker);
    if (network->context)
        ucx->ucp_cleanup(network->context);
}

static void close_network(peal_network *network)
{
    network->is_closing = true;
    if (!network->is_disowned)
        close_ucx(network);
    for (int p = 0; p < network->site->processes; p++) {
        if (!network->link[p])
            continue;
        if (!network->is_disowned)
            close(network->link[p]->stream);
        free(network->link[p]);
    }
    while (network->dead) {
        peal_network_plan *next = network->dead->next;
        free_plan(network->dead);
        network->dead = next;
    }
    pthread_mutex_destroy(&network->lock);
    free(network->link);
    free(network);
}

const peal_network_ops peal_network_ucx = {
    .size = sizeof(peal_network_ops),
    .kind = PEAL_TRANSPORT_UCX,
    .open = open_network,
    .attach = attach,
    .detach = detach,
    .due = due,
    .progress = progress,
    .sleep = sleep_until_some,
    .settle = settle,
    .disown = disown,
    .close = close_network,
};
