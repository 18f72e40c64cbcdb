/* The sending half of the socket engine: frames wait in a ring, and their bytes in their slots,
 * until the socket takes them. */
#define _GNU_SOURCE
#include "base/backoff.h"
#include "runtime/network/tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum {
    FRAMES = 32, /* of a call */
    PARTS = 2 * FRAMES,
    TOGETHER = 1024, /* bytes */
    LONG = 8192,     /* bytes of a message from which on others do not wait with it */
};

static bool grow(tcp_ring *ring, size_t room)
{
    tcp_entry *item = calloc(room, sizeof(*item));
    if (!item)
        return false;
    for (size_t i = 0; i < ring->count; i++)
        item[i] = ring->item[(ring->first + i) % ring->room];
    free(ring->item);
    ring->item = item;
    ring->first = 0;
    ring->room = room;
    return true;
}

bool tcp_add_room(tcp_link *link, size_t frames)
{
    tcp_ring *ring = &link->queue;
    pthread_mutex_lock(&link->sending);
    size_t needed = ring->promised + frames;
    bool has_room = needed <= ring->room || grow(ring, needed);
    ring->promised = has_room ? needed : ring->promised;
    pthread_mutex_unlock(&link->sending);
    return has_room;
}

static tcp_entry *entry_at(const tcp_ring *ring, size_t index)
{
    return &ring->item[(ring->first + index) % ring->room];
}

/* Head and data of frames, as far as they are not sent; returns their number. */
static size_t list_parts(const tcp_ring *ring, peal_put_frame head[FRAMES],
                         struct iovec part[PARTS], size_t *parts)
{
    size_t count = 0;
    *parts = 0;
    for (; count < ring->count && count < FRAMES; count++) {
        const tcp_entry *e = entry_at(ring, count);
        uint64_t done = e->done;
        head[count] = e->head;
        if (done < sizeof(e->head))
            part[(*parts)++] = (struct iovec){(char *)&head[count] + done, sizeof(e->head) - done};
        done = done > sizeof(e->head) ? done - sizeof(e->head) : 0;
        if (e->head.bytes > done)
            part[(*parts)++] =
                (struct iovec){(void *)(uintptr_t)(e->data + done), e->head.bytes - done};
    }
    return count;
}

static void take_sent(tcp_ring *ring, size_t sent)
{
    while (sent > 0) {
        tcp_entry *e = entry_at(ring, 0);
        uint64_t left = sizeof(e->head) + e->head.bytes - e->done;
        uint64_t now = left < sent ? left : sent;
        e->done += now;
        sent -= now;
        if (now < left)
            return;
        ring->first = (ring->first + 1) % ring->room;
        ring->count--;
    }
}

/* What takes less time to copy than the system takes to look at single parts goes in one. */
static ssize_t send_parts(int socket, struct iovec *part, size_t count)
{
    unsigned char together[TOGETHER];
    size_t bytes = 0;
    for (size_t i = 0; i < count && bytes <= TOGETHER; i++) {
        if (part[i].iov_len <= TOGETHER - bytes)
            memcpy(together + bytes, part[i].iov_base, part[i].iov_len);
        bytes += part[i].iov_len;
    }
    if (bytes <= TOGETHER)
        return send(socket, together, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    struct msghdr message = {.msg_iov = part, .msg_iovlen = count};
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void tcp_flush(peal_network *network, tcp_link *link)
{
    peal_put_frame head[FRAMES];
    struct iovec part[PARTS];
    size_t parts;
    bool is_full = link->in_flight > 0;
    while (link->queue.count > 0 && !is_full && !atomic_load(&link->is_broken)) {
        link->in_flight = list_parts(&link->queue, head, part, &parts);
        pthread_mutex_unlock(&link->sending);
        ssize_t sent = send_parts(link->socket, part, parts);
        int error = sent < 0 ? errno : 0;
        pthread_mutex_lock(&link->sending);
        link->in_flight = 0;
        if (sent >= 0)
            take_sent(&link->queue, (size_t)sent);
        is_full = error == EAGAIN || error == EWOULDBLOCK;
        if (error && error != EINTR && !is_full)
            tcp_lose(network, link, error);
    }
    atomic_store(&link->has_queue, link->queue.count > 0);
}

static bool queue_frame(peal_network_plan *plan, tcp_link *link, const peal_put *put, int number,
                        uint64_t value)
{
    if (link->queue.count == link->queue.room) {
        tcp_fail(plan->network, PEAL_STATUS_INTERNAL, "more messages are due than there are slots");
        return false;
    }
    *entry_at(&link->queue, link->queue.count++) =
        (tcp_entry){.plan = plan,
                    .put = put,
                    .head = {plan->number, (uint32_t)number, value, (uint64_t)put->bytes},
                    .data = put->bytes ? peal_put_slot(put, value) : NULL};
    return true;
}

/* Of credits that wait the latest says all. */
static bool replaces_waiting(tcp_link *link, const peal_network_plan *plan, const peal_put *put,
                             uint64_t value)
{
    for (size_t i = link->queue.count; put->credit && i-- > link->in_flight;) {
        tcp_entry *e = entry_at(&link->queue, i);
        if (e->plan == plan && e->put == put && !e->done) {
            e->head.value = value;
            return true;
        }
    }
    return false;
}

void tcp_due(peal_network_plan *plan, int pair, int number, uint64_t value)
{
    tcp_link *link = plan->link[pair];
    const peal_put *put = &plan->pair[pair].out[number];
    pthread_mutex_lock(&link->sending);
    uint64_t *sent = &plan->sent[pair][number], behind = value - *sent;
    if (behind % put->quantum || behind / put->quantum > (uint64_t)put->slots + 1)
        tcp_fail(plan->network, PEAL_STATUS_INTERNAL, "a message is due that no slot is for");
    else if (put->credit && !replaces_waiting(link, plan, put, value))
        queue_frame(plan, link, put, number, value);
    else if (!put->credit) {
        for (uint64_t next = *sent + put->quantum; next != value + put->quantum;
             next += put->quantum)
            queue_frame(plan, link, put, number, next);
    }
    *sent = value;
    atomic_store(&link->has_queue, link->queue.count > 0);
    if (put->bytes >= LONG || link->queue.count >= FRAMES)
        tcp_flush(plan->network, link);
    pthread_mutex_unlock(&link->sending);
}

static tcp_entry *find_frame(const tcp_link *link, const peal_network_plan *plan,
                             const peal_put *put, uint64_t value)
{
    for (size_t i = link->queue.count; i-- > 0;) {
        tcp_entry *e = entry_at(&link->queue, i);
        if (e->plan == plan && e->put == put && e->head.value == value)
            return e;
    }
    return NULL;
}

/* What the socket does not take at once goes into the slot. */
void tcp_due_from(peal_network_plan *plan, int pair, int number, uint64_t value,
                  const unsigned char *from)
{
    tcp_link *link = plan->link[pair];
    const peal_put *put = &plan->pair[pair].out[number];
    pthread_mutex_lock(&link->sending);
    if (value - plan->sent[pair][number] != put->quantum)
        tcp_fail(plan->network, PEAL_STATUS_INTERNAL, "a message is due that no slot is for");
    else if (queue_frame(plan, link, put, number, value)) {
        tcp_entry *e = entry_at(&link->queue, link->queue.count - 1);
        unsigned char *slot = (unsigned char *)(uintptr_t)e->data;
        e->data = from;
        tcp_flush(plan->network, link);
        e = find_frame(link, plan, put, value);
        if (e) {
            uint64_t done = e->done > sizeof(e->head) ? e->done - sizeof(e->head) : 0;
            memcpy(slot + done, from + done, e->head.bytes - done);
            e->data = slot;
        }
    }
    plan->sent[pair][number] = value;
    atomic_store(&link->has_queue, link->queue.count > 0);
    pthread_mutex_unlock(&link->sending);
}

void tcp_send_due(peal_network_plan *plan)
{
    for (int i = 0; i < plan->count; i++) {
        tcp_link *link = plan->link[i];
        if (!atomic_load(&link->has_queue))
            continue;
        pthread_mutex_lock(&link->sending);
        tcp_flush(plan->network, link);
        pthread_mutex_unlock(&link->sending);
    }
}

/* Drops what is not sent; of a frame that has begun nothing sensible can follow. */
void tcp_drop(tcp_link *link, const peal_network_plan *plan, size_t frames)
{
    tcp_ring *ring = &link->queue;
    size_t kept = 0;
    pthread_mutex_lock(&link->sending);
    while (link->in_flight > 0) { /* it may be this plan's */
        pthread_mutex_unlock(&link->sending);
        peal_backoff_wait(&(peal_backoff){.yields = 1});
        pthread_mutex_lock(&link->sending);
    }
    for (size_t i = 0; i < ring->count; i++) {
        tcp_entry *e = entry_at(ring, i);
        if (e->plan != plan)
            *entry_at(ring, kept++) = *e;
        else if (e->done)
            atomic_store(&link->is_broken, true);
    }
    ring->count = kept;
    ring->promised -= frames;
    atomic_store(&link->has_queue, kept > 0);
    pthread_mutex_unlock(&link->sending);
}
