/* Connections that somebody has opened to this process and that have not (yet) become a tree edge:
 * who they are, and what they want. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/hmac.h"
#include "runtime/control/service.h"
#include "runtime/control/wire_tcp.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* For the proof of one of another host while others wait: a stranger gets no longer then. */
static const int64_t crowded_ns = INT64_C(200000000);

static void drop(service *self, guest_socket *guest)
{
    (void)self;
    if (guest->socket >= 0)
        close(guest->socket);
    guest->socket = -1;
    guest->state = GUEST_GONE;
}

static bool say(guest_socket *guest)
{
    size_t bytes;
    const void *said = peal_handshake_say(&guest->frame.handshake, &bytes);
    return !said || peal_wire_send_small(guest->socket, said, bytes);
}

/* A guest of another host is asked for its proof. */
static bool challenge(const service *self, guest_socket *guest)
{
    unsigned char nonce[PEAL_NONCE_BYTES];
    if (!peal_random_bytes(nonce, sizeof(nonce)))
        return false;
    peal_wire_be_prompt(guest->socket);
    guest->state = GUEST_HANDSHAKE;
    peal_handshake_called(&guest->frame.handshake, self->control->mine.endpoint.secret, nonce);
    return say(guest);
}

/* -1: there is nobody, or no means to take them. */
static int accept_one(service *self, guest_side side)
{
    int listener = side == NEAR ? self->control->listener : self->control->far_listener;
    int socket;
    do
        socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    while (socket < 0 && (errno == EINTR || errno == ECONNABORTED));
    self->is_starved |= socket < 0 && errno != EAGAIN && errno != EWOULDBLOCK;
    return socket;
}

bool peal_guests_are_full(const service *self, guest_side side)
{
    return self->half_open[side] >= HALF_OPEN_LIMIT || self->guest_count >= GUEST_LIMIT;
}

/* Where all the room for guests of other hosts is taken, who has proved nothing for a while leaves:
 * a process comes again. */
static void make_room(service *self)
{
    int64_t now = peal_clock_ns();
    for (int i = 0; i < self->guest_count; i++) {
        guest_socket *guest = &self->guest[i];
        if (guest->state != GUEST_HANDSHAKE || now - guest->since_ns <= crowded_ns)
            continue;
        drop(self, guest);
        self->half_open[FAR]--;
    }
}

/* No more at a time than may be half open: who closes at once and comes again does not keep the
 * thread from its links. */
static void accept_guests_of(service *self, guest_side side)
{
    int socket, taken = 0;
    if (side == FAR && peal_guests_are_full(self, FAR)) {
        peal_guests_serve(self); /* whose proof has come stays */
        make_room(self);
    }
    while (taken++ < HALF_OPEN_LIMIT && !peal_guests_are_full(self, side) &&
           (socket = accept_one(self, side)) >= 0) {
        guest_socket *guest = &self->guest[self->guest_count];
        memset(guest, 0, sizeof(*guest));
        guest->socket = socket;
        guest->side = side;
        guest->since_ns = peal_clock_ns();
        if (side == NEAR ? peal_wire_same_user(socket) : challenge(self, guest)) {
            self->guest_count++;
            self->half_open[side]++;
        } else
            close(socket);
    }
}

void peal_guests_accept(service *self)
{
    self->is_starved = false;
    accept_guests_of(self, NEAR);
    if (self->control->far_listener >= 0)
        accept_guests_of(self, FAR);
    self->is_crowded = self->control->far_listener >= 0 && peal_guests_are_full(self, FAR);
}

static bool is_ours(const peal_control *control, const peal_hello *hello)
{
    return hello->magic == PEAL_HELLO_MAGIC && hello->wire_version == PEAL_WIRE_VERSION &&
           peal_hmac_equal(hello->secret, control->mine.endpoint.secret, PEAL_SECRET_BYTES);
}

/* The connection becomes an edge of the tree. */
static bool adopt(peal_control *control, int process, bool data, const guest_socket *guest)
{
    bool taken = false;
    if (!data && guest->side == FAR)
        peal_wire_be_watched(guest->socket, PEAL_WATCHED_MS);
    pthread_mutex_lock(&control->lock);
    for (int i = peal_control_has_parent(control); i < control->link_count; i++) {
        peal_link *link = &control->link[i];
        int *slot = data ? &link->data : &link->watch;
        if (link->process == process && *slot < 0) {
            *slot = guest->socket;
            link->is_far = guest->side == FAR;
            if (data && link->is_far)
                peal_tree_begin_try(link);
            if (!data && !link->is_far)
                link->pidfd = peal_wire_pidfd(guest->socket);
            taken = true;
            pthread_cond_broadcast(&control->changed);
        }
    }
    pthread_mutex_unlock(&control->lock);
    return taken;
}

/* Nothing more is expected from a guest that waits: what is readable is its end. */
static bool still_waits(const guest_socket *guest)
{
    char byte;
    return recv(guest->socket, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 &&
           (errno == EAGAIN || errno == EINTR);
}

static void serve_fetch(service *self, guest_socket *guest)
{
    peal_control *control = self->control;
    pthread_mutex_lock(&control->lock);
    const peal_published *published = peal_published_find(control, guest->key);
    bool is_there = published;
    if (is_there)
        peal_descriptor_send(guest->socket, published);
    pthread_mutex_unlock(&control->lock);
    if (is_there || !still_waits(guest))
        drop(self, guest);
}

/* Each waits for its reply before it asks again. One whose key nobody serves yet waits for that. */
static void serve_question(service *self, guest_socket *guest)
{
    peal_question *question = &guest->frame.question;
    peal_reply reply;
    int got = guest->have == sizeof(*question)
                  ? 1
                  : peal_read_frame(guest->socket, question, sizeof(*question), &guest->have);
    if (!got)
        return;
    bool is_served = got > 0 && peal_desk_answer(self->control, question, &reply);
    if (got < 0 || (is_served && !peal_wire_send_small(guest->socket, &reply, sizeof(reply))) ||
        (!is_served && !still_waits(guest)))
        drop(self, guest);
    else if (is_served)
        guest->have = 0;
}

/* Who it is has been proved. */
static void serve_caller(service *self, guest_socket *guest, peal_caller caller)
{
    bool is_process = caller.process >= 0 && caller.process < self->control->identity.processes;
    guest->have = 0;
    guest->key = caller.key;
    switch (is_process ? caller.kind : 0) {
    case PEAL_HELLO_DATA:
    case PEAL_HELLO_WATCH:
        if (adopt(self->control, caller.process, caller.kind == PEAL_HELLO_DATA, guest))
            guest->socket = -1;
        drop(self, guest);
        return;
    case PEAL_HELLO_FETCH:
        if (guest->side == FAR) { /* a descriptor stays on its host */
            drop(self, guest);
            return;
        }
        guest->state = GUEST_FETCH;
        serve_fetch(self, guest);
        return;
    case PEAL_HELLO_NOTICE:
        guest->state = GUEST_NOTICE;
        return;
    case PEAL_HELLO_ASK:
        guest->state = GUEST_ASKS;
        serve_question(self, guest);
        return;
    case PEAL_HELLO_STREAM:
        if (peal_stream_keep(self->control, caller.process, caller.key, guest->socket))
            guest->socket = -1;
        drop(self, guest);
        return;
    default:
        drop(self, guest);
    }
}

static void serve_hello(service *self, guest_socket *guest)
{
    int got = peal_read_frame(guest->socket, &guest->frame, sizeof(peal_hello), &guest->have);
    const peal_hello hello = guest->frame.hello;
    if (got < 0 || (got > 0 && !is_ours(self->control, &hello)))
        drop(self, guest);
    else if (got > 0)
        serve_caller(self, guest, (peal_caller){hello.kind, hello.process, hello.key});
}

/* Reads nothing that comes behind it. */
static void serve_handshake(service *self, guest_socket *guest)
{
    peal_handshake *h = &guest->frame.handshake;
    unsigned char in[PEAL_CALL_BYTES];
    size_t have = 0, needs = peal_handshake_needs(h);
    int got = peal_read_frame(guest->socket, in, needs, &have);
    peal_handshake_take(h, in, have);
    if (got < 0 || !say(guest) || h->state > PEAL_HANDSHAKE_DONE)
        drop(self, guest);
    else if (h->state == PEAL_HANDSHAKE_DONE)
        serve_caller(self, guest, h->caller);
}

static void serve_guest(service *self, guest_socket *guest)
{
    if (guest->state == GUEST_HELLO)
        serve_hello(self, guest);
    if (guest->state == GUEST_HANDSHAKE)
        serve_handshake(self, guest);
    if (guest->state == GUEST_NOTICE) {
        int got = peal_read_frame(guest->socket, &guest->frame, sizeof(peal_notice), &guest->have);
        if (got > 0)
            peal_take_cause(self->control, &guest->frame.notice, -1);
        if (got)
            drop(self, guest);
    } else if (guest->state == GUEST_FETCH)
        serve_fetch(self, guest);
    else if (guest->state == GUEST_ASKS)
        serve_question(self, guest);
}

void peal_guests_serve(service *self)
{
    int kept = 0;
    int64_t now = peal_clock_ns();
    self->half_open[NEAR] = self->half_open[FAR] = 0;
    for (int i = 0; i < self->guest_count; i++) {
        guest_socket *guest = &self->guest[i];
        serve_guest(self, guest);
        bool half_open = guest->state == GUEST_HELLO || guest->state == GUEST_HANDSHAKE ||
                         guest->state == GUEST_NOTICE;
        if (half_open && now - guest->since_ns > PEAL_HALF_OPEN_NS) {
            drop(self, guest);
            half_open = false;
        }
        self->half_open[guest->side] += half_open;
        if (guest->state != GUEST_GONE)
            self->guest[kept++] = *guest;
    }
    self->guest_count = kept;
}

void peal_guests_drop(service *self)
{
    for (int i = 0; i < self->guest_count; i++)
        drop(self, &self->guest[i]);
}
