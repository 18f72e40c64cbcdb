/* The sending half of the socket engine: frames wait in a ring, and their bytes in their slots,
 * until the socket takes them. */
#define _GNU_SOURCE
#include "runtime/network/tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum {
    PARTS = 64,
    LONG = 8192, /* bytes of a message from which on others do not wait with it */
    MANY = PARTS / 2
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

/* Head and data of frames, as far as they are not sent. */
static int list_parts(const tcp_ring *ring, struct iovec part[PARTS])
{
    int count = 0;
    for (size_t i = 0; i < ring->count && count + 2 <= PARTS; i++) {
        tcp_entry *e = entry_at(ring, i);
        uint64_t done = e->done;
        if (done < sizeof(e->head))
            part[count++] = (struct iovec){(char *)&e->head + done, sizeof(e->head) - done};
        done = done > sizeof(e->head) ? done - sizeof(e->head) : 0;
        if (e->head.bytes > done)
            part[count++] =
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

/* With the lock. */
void tcp_flush(peal_network *network, tcp_link *link)
{
    while (link->queue.count > 0 && !atomic_load(&link->is_broken)) {
        struct iovec part[PARTS];
        struct msghdr message = {.msg_iov = part,
                                 .msg_iovlen = (size_t)list_parts(&link->queue, part)};
        ssize_t sent = sendmsg(link->socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (sent < 0)
            tcp_lose(network, link, errno);
        else
            take_sent(&link->queue, (size_t)sent);
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
    for (size_t i = link->queue.count; put->credit && i-- > 0;) {
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
    if (put->bytes >= LONG || link->queue.count >= MANY)
        tcp_flush(plan->network, link);
    pthread_mutex_unlock(&link->sending);
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
        tcp_entry *last = entry_at(&link->queue, link->queue.count - 1);
        unsigned char *slot = (unsigned char *)(uintptr_t)last->data;
        last->data = from;
        tcp_flush(plan->network, link);
        if (link->queue.count > 0) { /* `last` is still the last one */
            uint64_t done = last->done > sizeof(last->head) ? last->done - sizeof(last->head) : 0;
            memcpy(slot + done, from + done, last->head.bytes - done);
            last->data = slot;
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
