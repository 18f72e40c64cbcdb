/* tcp: puts over a stream socket for each pair of processes. Whoever waits makes progress; there is
 * no thread. Bytes go from the slot here into the slot there.
 *
 * Frames of a plan that has ended here may still arrive: they are skipped by their size. So what
 * has been read of a frame belongs to the stream, not to a plan. */
#define _GNU_SOURCE
#include "runtime/network/tcp.h"
#include "base/diagnostic.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_POLLED = 64 };

static peal_status no_memory(peal_diagnostics *diagnostics)
{
    return peal_report(diagnostics, PEAL_E_OUT_OF_MEMORY, (peal_source){0}, NULL,
                       "no memory for messages between hosts");
}

void tcp_fail(peal_network *network, peal_status status, const char *message)
{
    if (!atomic_exchange(&network->has_failed, true))
        network->site->fail(network->site->user, status, message);
}

void tcp_lose(peal_network *network, tcp_link *link, int error)
{
    char text[TCP_TEXT_BYTES];
    if (atomic_exchange(&link->is_broken, true))
        return;
    snprintf(text, sizeof(text), "the stream of messages with process %d has ended: %s",
             link->process, error ? strerror(error) : "it was closed");
    tcp_fail(network, PEAL_STATUS_PEER_LOST, text);
}

/* ---- turns ---- */

static void progress(peal_network *network)
{
    for (int p = 0; p < network->site->processes; p++) {
        tcp_link *link = network->link[p];
        if (!link)
            continue;
        if (atomic_load(&link->has_queue) && !pthread_mutex_trylock(&link->sending)) {
            tcp_flush(network, link);
            pthread_mutex_unlock(&link->sending);
        }
        if (!pthread_mutex_trylock(&link->receiving)) {
            tcp_receive(network, link);
            pthread_mutex_unlock(&link->receiving);
        }
    }
}

static void sleep_until_some(peal_network *network, int64_t ns)
{
    struct timespec until = {ns / 1000000000, ns % 1000000000};
    struct pollfd event[MOST_POLLED];
    nfds_t count = 0;
    for (int p = 0; p < network->site->processes && count < MOST_POLLED; p++) {
        const tcp_link *link = network->link[p];
        if (!link || atomic_load(&link->is_broken))
            continue;
        short wanted = atomic_load(&link->has_queue) ? POLLIN | POLLOUT : POLLIN;
        event[count++] = (struct pollfd){link->socket, wanted, 0};
    }
    ppoll(event, count, &until, NULL);
}

static bool settle(peal_network *network)
{
    bool settled = true;
    progress(network);
    for (int p = 0; p < network->site->processes; p++) {
        const tcp_link *link = network->link[p];
        settled &= !link || !atomic_load(&link->has_queue) || atomic_load(&link->is_broken);
    }
    return settled;
}

/* ---- plans ---- */

static void free_plan(peal_network_plan *plan)
{
    for (int i = 0; i < plan->count; i++) {
        free(plan->sent ? plan->sent[i] : NULL);
        free(plan->received ? plan->received[i] : NULL);
        free(plan->expected ? plan->expected[i] : NULL);
    }
    free(plan->sent);
    free(plan->received);
    free(plan->expected);
    free(plan->frames);
    free(plan->link);
    free(plan);
}

/* Who receives has the plan until its link's lock is free. */
static void detach(peal_network_plan *plan)
{
    peal_network *network = plan->network;
    pthread_mutex_lock(&network->lock);
    peal_network_plan **at = &network->plan;
    while (*at && *at != plan)
        at = &(*at)->next;
    if (*at)
        *at = plan->next;
    pthread_mutex_unlock(&network->lock);
    for (int i = 0; plan->link && i < plan->count; i++) {
        tcp_link *link = plan->link[i];
        if (!link) /* attach has not come so far */
            continue;
        pthread_mutex_lock(&link->receiving);
        if (link->in.plan == plan) {
            link->in.plan = NULL;
            link->in.to = NULL;
        }
        pthread_mutex_unlock(&link->receiving);
        tcp_drop(link, plan, plan->frames[i]);
    }
    free_plan(plan);
}

static tcp_link *new_link(int process)
{
    tcp_link *link = calloc(1, sizeof(*link));
    unsigned char *buffer = malloc(TCP_READ_BYTES);
    if (!link || !buffer) {
        free(link);
        free(buffer);
        return NULL;
    }
    link->process = process;
    link->socket = -1;
    link->in.buffer = buffer;
    pthread_mutex_init(&link->sending, NULL);
    pthread_mutex_init(&link->receiving, NULL);
    return link;
}

static void free_link(tcp_link *link)
{
    if (!link)
        return;
    if (link->socket >= 0)
        close(link->socket);
    pthread_mutex_destroy(&link->sending);
    pthread_mutex_destroy(&link->receiving);
    free(link->queue.item);
    free(link->in.buffer);
    free(link);
}

static peal_status connect_link(peal_network *network, int process, peal_diagnostics *diagnostics)
{
    if (network->link[process])
        return PEAL_STATUS_OK;
    tcp_link *link = new_link(process);
    if (!link)
        return no_memory(diagnostics);
    peal_status status = network->site->connect(network->site->user, process, &link->socket);
    if (status)
        free_link(link);
    else
        network->link[process] = link;
    return status;
}

/* State of a pair's puts, and room for all of them that can be due at a time: twice their slots,
 * since the peer may have returned them before the thread that sends them says so. */
static bool make_room(peal_network_plan *plan, int index)
{
    const peal_pair *pair = &plan->pair[index];
    tcp_link *link = plan->link[index];
    size_t frames = 1;
    for (int i = 0; i < pair->out_count; i++)
        frames += 2 * (size_t)pair->out[i].slots + 1;
    plan->sent[index] = calloc((size_t)pair->out_count + 1, sizeof(uint64_t));
    plan->received[index] = calloc((size_t)pair->in_count + 1, sizeof(uint64_t));
    plan->expected[index] = calloc((size_t)pair->in_count + 1, sizeof(tcp_expected));
    if (!plan->sent[index] || !plan->received[index] || !plan->expected[index] ||
        !tcp_add_room(link, frames))
        return false;
    plan->frames[index] = frames;
    for (int i = 0; i < pair->out_count; i++)
        plan->sent[index][i] = pair->out[i].first;
    for (int i = 0; i < pair->in_count; i++)
        plan->received[index][i] = pair->in[i].first;
    return true;
}

static peal_status attach(peal_network *network, uint32_t number, const peal_pair *pair, int count,
                          peal_diagnostics *diagnostics, peal_network_plan **out)
{
    peal_network_plan *plan = calloc(1, sizeof(*plan));
    if (!plan)
        return no_memory(diagnostics);
    *plan = (peal_network_plan){.network = network, .number = number, .pair = pair, .count = count};
    plan->link = calloc((size_t)count + 1, sizeof(*plan->link));
    plan->sent = calloc((size_t)count + 1, sizeof(*plan->sent));
    plan->received = calloc((size_t)count + 1, sizeof(*plan->received));
    plan->expected = calloc((size_t)count + 1, sizeof(*plan->expected));
    plan->frames = calloc((size_t)count + 1, sizeof(*plan->frames));
    bool has_room = plan->link && plan->sent && plan->received && plan->expected && plan->frames;
    peal_status status = has_room ? PEAL_STATUS_OK : no_memory(diagnostics);
    for (int i = 0; i < count && !status; i++) {
        status = connect_link(network, pair[i].process, diagnostics);
        plan->link[i] = network->link[pair[i].process];
        if (!status && !make_room(plan, i))
            status = no_memory(diagnostics);
    }
    if (status) {
        detach(plan);
        return status;
    }
    pthread_mutex_lock(&network->lock);
    plan->next = network->plan;
    network->plan = plan;
    pthread_mutex_unlock(&network->lock);
    *out = plan;
    return PEAL_STATUS_OK;
}

/* ---- the session's ---- */

static peal_status open_network(const peal_network_site *site, peal_diagnostics *diagnostics,
                                peal_network **out)
{
    peal_network *network = calloc(1, sizeof(*network));
    _Atomic(tcp_link *) *link = calloc((size_t)site->processes + 1, sizeof(*link));
    if (!network || !link) {
        free(network);
        free(link);
        return no_memory(diagnostics);
    }
    network->site = site;
    network->link = link;
    pthread_mutex_init(&network->lock, NULL);
    *out = network;
    return PEAL_STATUS_OK;
}

/* No lock: in a forked copy whoever held it is not there. */
static void disown(peal_network *network)
{
    for (int p = 0; p < network->site->processes; p++) {
        tcp_link *link = network->link[p];
        if (!link)
            continue;
        if (link->socket >= 0)
            close(link->socket);
        link->socket = -1;
        atomic_store(&link->is_broken, true);
    }
}

static void close_network(peal_network *network)
{
    for (int p = 0; p < network->site->processes; p++)
        free_link(network->link[p]);
    pthread_mutex_destroy(&network->lock);
    free(network->link);
    free(network);
}

const peal_network_ops peal_network_tcp = {
    .size = sizeof(peal_network_ops),
    .kind = PEAL_TRANSPORT_TCP,
    .open = open_network,
    .attach = attach,
    .detach = detach,
    .due = tcp_due,
    .due_from = tcp_due_from,
    .expect = tcp_expect,
    .withdraw = tcp_withdraw,
    .flush = tcp_send_due,
    .progress = progress,
    .sleep = sleep_until_some,
    .settle = settle,
    .disown = disown,
    .close = close_network,
};
