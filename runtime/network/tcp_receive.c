/* The receiving half of the socket engine: each header is compared with what may come now, bytes go
 * into their slot, then the word is raised. */
#define _GNU_SOURCE
#include "runtime/network/tcp.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static void refuse(peal_network *network, tcp_link *link, const char *what, uint64_t is,
                   uint64_t expected)
{
    char text[TCP_TEXT_BYTES];
    const peal_put_frame *head = &link->in.head;
    snprintf(text, sizeof(text),
             "a frame from process %d (plan %" PRIu32 ", put %" PRIu32 ") has %s %" PRIu64
             ", expected %" PRIu64,
             link->process, head->plan, head->put, what, is, expected);
    atomic_store(&link->is_broken, true);
    tcp_fail(network, PEAL_STATUS_INTERNAL, text);
}

static peal_network_plan *find_plan(peal_network *network, const tcp_link *link, uint32_t number,
                                    int *pair)
{
    pthread_mutex_lock(&network->lock);
    peal_network_plan *plan = network->plan;
    while (plan && plan->number != number)
        plan = plan->next;
    pthread_mutex_unlock(&network->lock);
    for (*pair = 0; plan && *pair < plan->count; ++*pair)
        if (plan->link[*pair] == link)
            return plan;
    return NULL;
}

/* Whether a header says what may come now; where its bytes go. */
static bool begin_frame(peal_network *network, tcp_link *link)
{
    tcp_arriving *in = &link->in;
    in->got = 0;
    in->to = NULL;
    in->plan = find_plan(network, link, in->head.plan, &in->pair);
    if (!in->plan)
        return true;
    const peal_pair *pair = &in->plan->pair[in->pair];
    if (in->head.put >= (uint32_t)pair->in_count) {
        refuse(network, link, "the number", in->head.put, (uint64_t)pair->in_count);
        return false;
    }
    const peal_put *put = &pair->in[in->head.put];
    if (in->head.bytes != (uint64_t)put->bytes) {
        refuse(network, link, "a size of", in->head.bytes, (uint64_t)put->bytes);
        return false;
    }
    uint64_t last = in->plan->received[in->pair][in->head.put], step = in->head.value - last;
    uint64_t most = put->credit ? (uint64_t)(put->slots + 1) * put->quantum : put->quantum;
    if (step == 0 || step > most || step % put->quantum != 0) {
        refuse(network, link, "the value", in->head.value, last + put->quantum);
        return false;
    }
    const tcp_expected *expected = &in->plan->expected[in->pair][in->head.put];
    if (expected->to && expected->value == in->head.value)
        in->to = expected->to;
    else
        in->to = put->bytes ? peal_put_slot(put, in->head.value) : NULL;
    return true;
}

/* Whether the frame that comes in is this put's message. */
static bool is_coming(const tcp_link *link, const peal_network_plan *plan, int pair, int number,
                      uint64_t value)
{
    const tcp_arriving *in = &link->in;
    return in->to && in->have == sizeof(in->head) && in->plan == plan && in->pair == pair &&
           in->head.put == (uint32_t)number && in->head.value == value;
}

/* Who holds the lock may be at it for long, with messages of others: those land in their slots. */
bool tcp_expect(peal_network_plan *plan, int pair, int number, uint64_t value, unsigned char *to)
{
    tcp_link *link = plan->link[pair];
    tcp_arriving *in = &link->in;
    tcp_expected *expected = &plan->expected[pair][number];
    if (pthread_mutex_trylock(&link->receiving))
        return false;
    expected->value = value;
    expected->to = to;
    if (is_coming(link, plan, pair, number, value)) {
        memcpy(to, in->to, in->got);
        in->to = to;
    }
    pthread_mutex_unlock(&link->receiving);
    return true;
}

bool tcp_withdraw(peal_network_plan *plan, int pair, int number)
{
    tcp_link *link = plan->link[pair];
    tcp_arriving *in = &link->in;
    tcp_expected *expected = &plan->expected[pair][number];
    if (atomic_exchange(&expected->landed, false))
        return true;
    pthread_mutex_lock(&link->receiving);
    bool landed = atomic_exchange(&expected->landed, false);
    if (!landed && is_coming(link, plan, pair, number, expected->value)) { /* it was given up */
        in->to = peal_put_slot(&plan->pair[pair].in[number], expected->value);
        memcpy(in->to, expected->to, in->got);
    }
    expected->to = NULL;
    pthread_mutex_unlock(&link->receiving);
    return landed;
}

/* All bytes are in the slot: the word may be seen. */
static void end_frame(tcp_link *link)
{
    tcp_arriving *in = &link->in;
    in->have = 0;
    if (!in->plan)
        return;
    tcp_expected *expected = &in->plan->expected[in->pair][in->head.put];
    if (expected->to && expected->value == in->head.value) {
        expected->to = NULL;
        atomic_store(&expected->landed, true);
    }
    in->plan->received[in->pair][in->head.put] = in->head.value;
    atomic_store_explicit(in->plan->pair[in->pair].in[in->head.put].at, in->head.value,
                          memory_order_release);
}

/* Looks at what is in the buffer; false: the stream makes no sense. */
static bool take_bytes(peal_network *network, tcp_link *link)
{
    tcp_arriving *in = &link->in;
    while (in->begin < in->end) {
        size_t there = in->end - in->begin;
        if (in->have < sizeof(in->head)) {
            size_t count =
                sizeof(in->head) - in->have < there ? sizeof(in->head) - in->have : there;
            memcpy((char *)&in->head + in->have, in->buffer + in->begin, count);
            in->have += count;
            in->begin += count;
            if (in->have < sizeof(in->head))
                return true;
            if (!begin_frame(network, link))
                return false;
            there = in->end - in->begin;
        }
        uint64_t left = in->head.bytes - in->got;
        size_t count = left < there ? (size_t)left : there;
        if (in->to && count)
            memcpy(in->to + in->got, in->buffer + in->begin, count);
        in->got += count;
        in->begin += count;
        if (in->got == in->head.bytes)
            end_frame(link);
    }
    return true;
}

/* Long messages go into their slots without the buffer. */
static ssize_t read_some(tcp_link *link, bool *in_place)
{
    tcp_arriving *in = &link->in;
    uint64_t left = in->have == sizeof(in->head) ? in->head.bytes - in->got : 0;
    *in_place = in->to && left >= TCP_READ_BYTES / 4;
    if (*in_place)
        return recv(link->socket, in->to + in->got, (size_t)left, MSG_DONTWAIT);
    return recv(link->socket, in->buffer, TCP_READ_BYTES, MSG_DONTWAIT);
}

void tcp_receive(peal_network *network, tcp_link *link)
{
    while (!atomic_load(&link->is_broken)) {
        bool in_place;
        ssize_t count = read_some(link, &in_place);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (count <= 0) {
            tcp_lose(network, link, count < 0 ? errno : 0);
            return;
        }
        if (in_place) {
            link->in.got += (uint64_t)count;
            if (link->in.got == link->in.head.bytes)
                end_frame(link);
            continue;
        }
        link->in.begin = 0;
        link->in.end = (size_t)count;
        if (!take_bytes(network, link) || count < TCP_READ_BYTES)
            return; /* a socket that has no more need not be asked again */
    }
}
