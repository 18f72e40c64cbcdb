/* verbs: puts as RDMA writes of an adapter, by libibverbs: InfiniBand, RoCE. A message is its bytes
 * and then its word, in one queue, which keeps their order. Nothing is received: the adapter writes
 * into slots and words. Whoever waits makes progress, which is to take completions and to post what
 * had no room; there is no thread. */
#define _GNU_SOURCE
#include "base/backoff.h"
#include "base/clock.h"
#include "base/diagnostic.h"
#include "runtime/network/mlx5.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_POLLED = 64, RARELY = 256 /* turns */, NAP_NS = 50000 };

/* Between looks at what rarely comes, where turns are few. */
static const int64_t longest_unheard_ns = 100000000;

static const int64_t patience_ns = INT64_C(2000000000); /* with what is under way as a plan ends */

peal_status verbs_no_memory(peal_diagnostics *diagnostics)
{
    return peal_report(diagnostics, PEAL_E_OUT_OF_MEMORY, (peal_source){0}, NULL,
                       "no memory for messages between hosts");
}

void verbs_fail(peal_network *network, peal_status status, const char *message)
{
    if (!atomic_exchange(&network->has_failed, true))
        network->site->fail(network->site->user, status, message);
}

void verbs_lose(verbs_link *link, const char *what, const char *why)
{
    char text[VERBS_TEXT_BYTES];
    if (atomic_exchange(&link->is_broken, true))
        return;
    snprintf(text, sizeof(text), "the RDMA connection with process %d has ended: %s: %s",
             link->process, what, why);
    verbs_fail(link->network, PEAL_STATUS_PEER_LOST, text);
}

void verbs_give_up(verbs_link *link)
{
    verbs_lose(link, "a plan cannot begin", "no memory");
    shutdown(link->stream, SHUT_RDWR);
}

/* ---- turns ---- */

/* Forgets plans that both ends have ended. */
static void free_ended(verbs_link *link)
{
    for (verbs_end **at = &link->end; *at;) {
        verbs_end *end = *at;
        if (end->pair || !end->has_farewell) {
            at = &end->next;
            continue;
        }
        *at = end->next;
        verbs_free_end(end);
    }
}

void verbs_note_farewell(verbs_link *link, uint32_t number)
{
    for (verbs_end *end = link->end; end; end = end->next)
        if (end->number == number)
            end->has_farewell = true;
    free_ended(link);
}

/* What the other end says of plans; that it has closed the stream. */
static void listen_to(verbs_link *link)
{
    while (!atomic_load(&link->is_broken) && link->heard_bytes < sizeof(link->heard)) {
        ssize_t now = recv(link->stream, (char *)&link->heard + link->heard_bytes,
                           sizeof(link->heard) - link->heard_bytes, MSG_DONTWAIT);
        if (now == 0)
            verbs_lose(link, "its stream", "it was closed");
        else if (now < 0 && errno != EAGAIN && errno != EINTR)
            verbs_lose(link, "its stream", strerror(errno));
        if (now <= 0)
            return;
        link->heard_bytes += (size_t)now;
        if (link->heard_bytes < sizeof(link->heard))
            continue;
        if (link->heard.bytes) {
            atomic_store(&link->is_begun, true);
            return;
        }
        link->heard_bytes = 0;
        verbs_note_farewell(link, link->heard.number);
    }
}

/* A queue that has failed is told by its completions, too, if it has entries; a port that has gone
 * down by this alone. */
static void look_at_events(peal_network *network)
{
    struct ibv_async_event event;
    char text[VERBS_TEXT_BYTES];
    if (!network->device.context ||
        network->library->ibv_get_async_event(network->device.context, &event))
        return;
    bool ends =
        event.event_type == IBV_EVENT_DEVICE_FATAL ||
        (event.event_type == IBV_EVENT_PORT_ERR && event.element.port_num == network->device.port);
    snprintf(text, sizeof(text), "RDMA adapter %s: %s", network->device.name,
             network->library->ibv_event_type_str(event.event_type));
    network->library->ibv_ack_async_event(&event);
    if (ends)
        verbs_fail(network, PEAL_STATUS_PEER_LOST, text);
}

static void turn(verbs_link *link)
{
    if (link->posted != link->done)
        verbs_reap(link);
    for (verbs_end *end = link->end; end; end = end->next)
        if (end->ring)
            mlx5_reap(end);
    verbs_post_pending(link);
    const int64_t now_ns = peal_clock_ns();
    if (link->turns++ % RARELY && now_ns - link->listened_ns < longest_unheard_ns)
        return;
    link->listened_ns = now_ns;
    listen_to(link);
    look_at_events(link->network);
}

static bool is_usable(const peal_network *network, const verbs_link *link)
{
    return link && !network->is_disowned && !atomic_load(&link->is_broken);
}

static void progress(peal_network *network)
{
    for (int p = 0; p < network->site->processes; p++) {
        verbs_link *link = network->link[p];
        if (!is_usable(network, link) || pthread_mutex_trylock(&link->lock))
            continue;
        turn(link);
        pthread_mutex_unlock(&link->lock);
    }
}

/* Nobody is woken by what an adapter writes: naps are short. Who has closed a stream is heard at
 * once. */
static void sleep_until_some(peal_network *network, int64_t ns)
{
    struct timespec until = {0, ns < NAP_NS ? ns : NAP_NS};
    struct pollfd event[MOST_POLLED];
    nfds_t count = 0;
    for (int p = 0; p < network->site->processes && count < MOST_POLLED; p++) {
        const verbs_link *link = network->link[p];
        if (is_usable(network, link) && !atomic_load(&link->is_begun))
            event[count++] = (struct pollfd){link->stream, POLLIN, 0};
    }
    if (ppoll(event, count, &until, NULL) <= 0)
        return;
    for (int p = 0; p < network->site->processes; p++) {
        verbs_link *link = network->link[p];
        if (!is_usable(network, link) || pthread_mutex_trylock(&link->lock))
            continue;
        listen_to(link);
        pthread_mutex_unlock(&link->lock);
    }
}

static bool settle(peal_network *network)
{
    bool is_settled = true;
    for (int p = 0; p < network->site->processes; p++) {
        verbs_link *link = network->link[p];
        if (!is_usable(network, link))
            continue;
        if (pthread_mutex_trylock(&link->lock)) {
            is_settled = false;
            continue;
        }
        turn(link);
        is_settled &= verbs_has_arrived(link) && !atomic_load(&link->has_pending);
        pthread_mutex_unlock(&link->lock);
    }
    return is_settled;
}

/* ---- messages ---- */

static void due(peal_network_plan *plan, int pair, int number, uint64_t value)
{
    verbs_end *end = plan->end[pair];
    const peal_put *put = &end->pair->out[number];
    pthread_mutex_lock(&end->link->lock);
    verbs_put *to = &end->out[number];
    uint64_t behind = value - to->due;
    if (behind % put->quantum || behind / put->quantum > (uint64_t)put->slots + 1) {
        verbs_fail(plan->network, PEAL_STATUS_INTERNAL, "a message is due that no slot is for");
    } else {
        to->due = value;
        if (end->ring)
            mlx5_post(end, number, behind / put->quantum);
        else
            verbs_post(end, number);
    }
    pthread_mutex_unlock(&end->link->lock);
}

/* ---- messages that others ring for ---- */

static peal_status doorbell(peal_network_plan *plan, int pair, int number,
                            peal_network_doorbell *out)
{
    verbs_end *end = plan->end[pair];
    pthread_mutex_lock(&end->link->lock);
    mlx5_doorbell_of(end, number, out);
    pthread_mutex_unlock(&end->link->lock);
    return PEAL_STATUS_OK;
}

static bool ahead(peal_network_plan *plan, int pair, int number, uint64_t message)
{
    verbs_end *end = plan->end[pair];
    pthread_mutex_lock(&end->link->lock);
    bool is_written = mlx5_write_ahead(end, number, message);
    pthread_mutex_unlock(&end->link->lock);
    return is_written;
}

static int stores(peal_network_plan *plan, int pair, int number, uint64_t message,
                  peal_network_store out[PEAL_NETWORK_STORES])
{
    verbs_end *end = plan->end[pair];
    pthread_mutex_lock(&end->link->lock);
    int count = mlx5_stores(end, number, message, out);
    pthread_mutex_unlock(&end->link->lock);
    return count;
}

static void silence(peal_network_plan *plan)
{
    for (int i = 0; i < plan->count; i++) {
        verbs_end *end = plan->end[i];
        if (!end)
            continue;
        pthread_mutex_lock(&end->link->lock);
        mlx5_silence(end);
        pthread_mutex_unlock(&end->link->lock);
    }
}

/* ---- plans ---- */

/* Whether what was posted up to `entries`, and in the plan's own rings, has arrived. */
static bool part_has_arrived(verbs_end *end, uint64_t entries)
{
    verbs_link *link = end->link;
    if (link->queue)
        verbs_reap(link);
    bool all = (!end->ring || mlx5_reap(end)) && link->done >= entries;
    return all || atomic_load(&link->is_broken);
}

/* Nothing comes behind the farewell: what has been posted arrives first, unless the job is over. */
static void end_part(verbs_end *end, int64_t until_ns)
{
    verbs_link *link = end->link;
    peal_backoff backoff = peal_backoff_of_processes();
    pthread_mutex_lock(&link->lock);
    const uint64_t entries = link->posted;
    verbs_sign(link);
    bool has_arrived = part_has_arrived(end, entries);
    while (!has_arrived && !atomic_load(&link->network->has_failed) && peal_clock_ns() < until_ns) {
        pthread_mutex_unlock(&link->lock);
        peal_backoff_wait(&backoff);
        pthread_mutex_lock(&link->lock);
        verbs_sign(link); /* where there was no room before */
        has_arrived = part_has_arrived(end, entries);
    }
    if (!has_arrived)
        verbs_lose(link, "a plan ends", "what was sent of it has not arrived within 2 s");
    end->pair = NULL;
    verbs_word farewell = {end->number, 0};
    if (!atomic_load(&link->is_broken) && send(link->stream, &farewell, sizeof(farewell),
                                               MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(farewell))
        verbs_lose(link, "its stream", "it takes no more words");
    listen_to(link); /* which frees the end, if the other one has said its farewell */
    for (end = link->end; end && atomic_load(&link->is_broken); end = end->next)
        end->has_farewell |= !end->pair;
    free_ended(link);
    pthread_mutex_unlock(&link->lock);
}

/* In a copy of the process that was forked the adapter's objects are the first one's. */
static void detach(peal_network_plan *plan)
{
    const int64_t until_ns = peal_clock_ns() + patience_ns; /* for all parts together */
    for (int i = 0; plan->end && i < plan->count && !plan->network->is_disowned; i++)
        if (plan->end[i])
            end_part(plan->end[i], until_ns);
    free(plan->end);
    free(plan);
}

/* `status`: an error before. Then the other end, which waits for what is said here, is told so. */
static peal_status begin_part(peal_network_plan *plan, int index, uint32_t number,
                              const peal_pair *pair, peal_status status,
                              peal_diagnostics *diagnostics)
{
    verbs_link *link = plan->network->link[pair->process];
    if (!link || atomic_load(&link->is_broken))
        return status ? status
                      : peal_report(diagnostics, PEAL_E_NO_NETWORK_ENGINE, (peal_source){0}, NULL,
                                    "the connection with process %d has ended", pair->process);
    verbs_end *end = calloc(1, sizeof(*end));
    if (!end) {
        verbs_give_up(link);
        return status ? status : verbs_no_memory(diagnostics);
    }
    *end = (verbs_end){.link = link, .pair = pair, .number = number};
    pthread_mutex_lock(&link->lock);
    status = verbs_enroll(end, status, diagnostics);
    if (!status && plan->network->has_own_rings)
        status = mlx5_make_rings(end, diagnostics);
    if (status) {
        verbs_free_end(end);
    } else {
        end->next = link->end;
        link->end = end;
        plan->end[index] = end;
    }
    pthread_mutex_unlock(&link->lock);
    return status;
}

static peal_status attach(peal_network *network, uint32_t number, const peal_pair *pair, int count,
                          peal_diagnostics *diagnostics, peal_network_plan **out)
{
    peal_network_plan *plan = calloc(1, sizeof(*plan));
    if (!plan)
        return verbs_no_memory(diagnostics);
    *plan = (peal_network_plan){.network = network, .count = count};
    plan->end = calloc((size_t)count + 1, sizeof(*plan->end));
    peal_status status =
        plan->end ? verbs_connect(network, pair, count, diagnostics) : verbs_no_memory(diagnostics);
    for (int i = 0; plan->end && i < count; i++)
        status = begin_part(plan, i, number, &pair[i], status, diagnostics);
    if (status)
        detach(plan);
    else
        *out = plan;
    return status;
}

/* ---- the session's ---- */

static peal_status open_any(const peal_network_site *site, bool has_own_rings,
                            peal_diagnostics *diagnostics, peal_network **out)
{
    peal_network *network = calloc(1, sizeof(*network));
    _Atomic(verbs_link *) *link = calloc((size_t)site->processes + 1, sizeof(*link));
    if (!network || !link) {
        free(network);
        free(link);
        return verbs_no_memory(diagnostics);
    }
    network->site = site;
    network->library = verbs_get();
    network->link = link;
    network->has_own_rings = has_own_rings;
    *out = network;
    return PEAL_STATUS_OK;
}

static peal_status open_network(const peal_network_site *site, peal_diagnostics *diagnostics,
                                peal_network **out)
{
    return open_any(site, false, diagnostics, out);
}

static peal_status open_rings(const peal_network_site *site, peal_diagnostics *diagnostics,
                              peal_network **out)
{
    return open_any(site, true, diagnostics, out);
}

/* The adapter's objects are the first process's: a copy lets go of the streams alone. */
static void disown(peal_network *network)
{
    network->is_disowned = true;
    for (int p = 0; p < network->site->processes; p++) {
        verbs_link *link = network->link[p];
        if (!link)
            continue;
        if (link->stream >= 0)
            close(link->stream);
        link->stream = -1;
        atomic_store(&link->is_broken, true);
    }
}

static void close_network(peal_network *network)
{
    if (!network->is_disowned) {
        for (int p = 0; p < network->site->processes; p++)
            verbs_free_link(network->link[p]);
        verbs_close_device(network);
    }
    free(network->link);
    free(network);
}

const peal_network_ops peal_network_verbs = {
    .size = sizeof(peal_network_ops),
    .kind = PEAL_TRANSPORT_VERBS,
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

const peal_network_ops peal_network_mlx5 = {
    .size = sizeof(peal_network_ops),
    .kind = PEAL_TRANSPORT_MLX5,
    .open = open_rings,
    .attach = attach,
    .detach = detach,
    .due = due,
    .progress = progress,
    .sleep = sleep_until_some,
    .settle = settle,
    .disown = disown,
    .close = close_network,
    .doorbell = doorbell,
    .ahead = ahead,
    .stores = stores,
    .silence = silence,
};
