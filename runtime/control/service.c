/* The service thread of a process: takes connections, watches the neighbours, hands out
 * descriptors.
 *
 * It blocks in poll() and costs nothing while nothing happens. A neighbour that dies is an end of
 * file here within the time that the kernel needs to close its sockets. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/hmac.h"
#include "runtime/control/internal.h"
#include "runtime/control/wire_tcp.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    HALF_OPEN_LIMIT = 64,
    GUEST_LIMIT = 4096,
    FIRST_LINK = 4, /* in the poll list */
    POLL_LIMIT = FIRST_LINK + 2 * PEAL_TREE_LINKS + GUEST_LIMIT
};
static const int64_t half_open_ns = INT64_C(5000000000);
/* For the proof of one of another host while others wait: a stranger gets no longer then. */
static const int64_t crowded_ns = INT64_C(200000000);

typedef enum guest_state {
    GUEST_HELLO,
    GUEST_HANDSHAKE, /* of another host, in place of a hello */
    GUEST_NOTICE,
    GUEST_FETCH,
    GUEST_GONE
} guest_state;

/* On which listener: each has room of its own, so that strangers of other hosts keep nobody of this
 * one waiting. */
typedef enum guest_side { NEAR, FAR, SIDES } guest_side;

/* A connection that somebody opened to us and that has not (yet) become a tree edge. */
typedef struct guest_socket {
    int socket;
    guest_state state;
    guest_side side;
    int64_t since_ns;
    size_t have; /* bytes of the frame being read */
    int key;
    union {
        peal_hello hello;
        peal_handshake handshake;
        peal_notice notice;
    } frame;
} guest_socket;

typedef struct service {
    peal_control *control;
    guest_socket guest[GUEST_LIMIT];
    int guest_count, half_open[SIDES];
    bool is_starved; /* no descriptor was left for a guest: look again a little later */
    bool is_crowded; /* there was no room for one of another host: likewise */
    struct pollfd poll[POLL_LIMIT];
    int polled_link[PEAL_TREE_LINKS];
} service;

static void drop(service *self, guest_socket *guest)
{
    (void)self;
    if (guest->socket >= 0)
        close(guest->socket);
    guest->socket = -1;
    guest->state = GUEST_GONE;
}

/* 1: complete, 0: not yet, -1: closed or broken. */
static int read_frame(int socket, void *frame, size_t bytes, size_t *have)
{
    while (*have < bytes) {
        ssize_t got = recv(socket, (char *)frame + *have, bytes - *have, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        if (got <= 0)
            return -1;
        *have += (size_t)got;
    }
    return 1;
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

static bool is_full(const service *self, guest_side side)
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
    if (side == FAR && is_full(self, FAR))
        make_room(self);
    while (taken++ < HALF_OPEN_LIMIT && !is_full(self, side) &&
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

static void accept_guests(service *self)
{
    self->is_starved = false;
    accept_guests_of(self, NEAR);
    if (self->control->far_listener >= 0)
        accept_guests_of(self, FAR);
    self->is_crowded = self->control->far_listener >= 0 && is_full(self, FAR);
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
        peal_wire_be_watched(guest->socket);
    pthread_mutex_lock(&control->lock);
    for (int i = peal_control_has_parent(control); i < control->link_count; i++) {
        peal_link *link = &control->link[i];
        int *slot = data ? &link->data : &link->watch;
        if (link->process == process && *slot < 0) {
            *slot = guest->socket;
            link->is_far = guest->side == FAR;
            if (!data && !link->is_far)
                link->pidfd = peal_wire_pidfd(guest->socket);
            taken = true;
            pthread_cond_broadcast(&control->changed);
        }
    }
    pthread_mutex_unlock(&control->lock);
    return taken;
}

static void serve_fetch(service *self, guest_socket *guest)
{
    peal_control *control = self->control;
    char byte;
    pthread_mutex_lock(&control->lock);
    const peal_published *published = peal_published_find(control, guest->key);
    bool is_there = published;
    if (is_there)
        peal_descriptor_send(guest->socket, published);
    pthread_mutex_unlock(&control->lock);
    /* Nothing more is expected from a guest that waits: what is readable is its end. */
    if (is_there || recv(guest->socket, &byte, 1, MSG_DONTWAIT | MSG_PEEK) >= 0 ||
        (errno != EAGAIN && errno != EINTR))
        drop(self, guest);
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
    case PEAL_HELLO_STREAM:
        if (peal_stream_keep(self->control, caller.process, caller.key, guest->socket))
            guest->socket = -1;
        drop(self, guest);
        return;
    default:
        drop(self, guest);
    }
}

static void report_taken(const peal_control *control)
{
    peal_warn(control->diagnostics, PEAL_E_JOB_ENDED_BY_PEER, (peal_source){0}, NULL,
              "process %d ended the job: %s", control->cause_process, control->cause_message);
}

static void take_cause(peal_control *control, peal_notice *notice, int from)
{
    notice->message[PEAL_MESSAGE_BYTES - 1] = 0;
    peal_status status = notice->status > 0 && notice->status < 256 ? (peal_status)notice->status
                                                                    : PEAL_STATUS_INTERNAL;
    peal_control_tell_cause(control, status, notice->process, notice->message, from, report_taken);
}

static void serve_hello(service *self, guest_socket *guest)
{
    int got = read_frame(guest->socket, &guest->frame, sizeof(peal_hello), &guest->have);
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
    int got = read_frame(guest->socket, in, needs, &have);
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
        int got = read_frame(guest->socket, &guest->frame, sizeof(peal_notice), &guest->have);
        if (got > 0)
            take_cause(self->control, &guest->frame.notice, -1);
        if (got)
            drop(self, guest);
    } else if (guest->state == GUEST_FETCH)
        serve_fetch(self, guest);
}

static void serve_guests(service *self)
{
    int kept = 0;
    int64_t now = peal_clock_ns();
    self->half_open[NEAR] = self->half_open[FAR] = 0;
    for (int i = 0; i < self->guest_count; i++) {
        guest_socket *guest = &self->guest[i];
        serve_guest(self, guest);
        bool half_open = guest->state == GUEST_HELLO || guest->state == GUEST_HANDSHAKE ||
                         guest->state == GUEST_NOTICE;
        if (half_open && now - guest->since_ns > half_open_ns) {
            drop(self, guest);
            half_open = false;
        }
        self->half_open[guest->side] += half_open;
        if (guest->state != GUEST_GONE)
            self->guest[kept++] = *guest;
    }
    self->guest_count = kept;
}

/* A neighbour that failed before it had taken our connections told us on one of its own, and then
 * closed: that word is in the queue and comes first. */
static bool is_explained(service *self)
{
    peal_control *control = self->control;
    accept_guests(self);
    serve_guests(self);
    pthread_mutex_lock(&control->lock);
    bool explained = control->leaving || control->has_cause;
    pthread_mutex_unlock(&control->lock);
    return explained;
}

/* Between hosts that word may be on its way, and takes a handshake. */
static bool is_explained_soon(service *self, const peal_link *link)
{
    const int64_t moment_ns = 200000000;
    int64_t until = peal_clock_ns() + moment_ns;
    bool explained;
    while (!(explained = is_explained(self)) && link->is_far && peal_clock_ns() < until)
        poll(NULL, 0, 1);
    return explained;
}

/* Reads all that a neighbour said, then its end of file if there is one. is_dead: its process has
 * ended, so no more will come. */
static void serve_link(service *self, peal_link *link, bool is_dead)
{
    peal_control *control = self->control;
    for (;;) {
        int got = read_frame(link->watch, &link->notice, sizeof(link->notice), &link->notice_bytes);
        if (!got && !is_dead)
            return;
        if (got <= 0)
            break;
        link->notice_bytes = 0;
        if (link->notice.kind == PEAL_NOTICE_LEAVE)
            link->left = true;
        else if (link->notice.kind == PEAL_NOTICE_BUSY)
            peal_busy_hear(control, link);
        else
            take_cause(control, &link->notice, link->process);
    }
    pthread_mutex_lock(&control->lock);
    close(link->watch);
    link->watch = -2; /* was there, is gone */
    if (link->pidfd >= 0)
        close(link->pidfd);
    link->pidfd = -1;
    pthread_mutex_unlock(&control->lock);
    if (!link->left && !is_explained_soon(self, link))
        peal_control_lost(control, link->process);
}

static int fill_poll(service *self)
{
    peal_control *control = self->control;
    int count = 0, links = 0;
    self->poll[count++] = (struct pollfd){control->wake, POLLIN, 0};
    bool near_waits = is_full(self, NEAR) || self->is_starved;
    bool far_waits = is_full(self, FAR) || self->is_starved;
    self->poll[count++] = (struct pollfd){near_waits ? -1 : control->listener, POLLIN, 0};
    self->poll[count++] = (struct pollfd){control->launcher, POLLIN, 0};
    self->poll[count++] = (struct pollfd){far_waits ? -1 : control->far_listener, POLLIN, 0};
    pthread_mutex_lock(&control->lock);
    for (int i = 0; i < control->link_count; i++)
        if (control->link[i].watch >= 0) {
            self->polled_link[links++] = i;
            self->poll[count++] = (struct pollfd){control->link[i].watch, POLLIN, 0};
            self->poll[count++] = (struct pollfd){control->link[i].pidfd, POLLIN, 0};
        }
    pthread_mutex_unlock(&control->lock);
    for (int i = links; i < PEAL_TREE_LINKS; i++)
        self->polled_link[i] = -1;
    for (int i = 0; i < self->guest_count; i++)
        self->poll[count++] = (struct pollfd){self->guest[i].socket, POLLIN, 0};
    return count;
}

static bool looks_again(const service *self)
{
    return self->is_starved || self->is_crowded;
}

static int poll_timeout(const service *self)
{
    const int soon_ms = 50, half_open_ms = (int)(half_open_ns / 1000000);
    int64_t busy_ns = peal_busy_interval(self->control);
    int timeout = looks_again(self)                               ? soon_ms
                  : self->half_open[NEAR] || self->half_open[FAR] ? half_open_ms
                                                                  : -1;
    int busy_ms = busy_ns ? (int)(busy_ns / 1000000) + 1 : -1;
    return busy_ms >= 0 && (timeout < 0 || busy_ms < timeout) ? busy_ms : timeout;
}

static void *serve(void *argument)
{
    service *self = argument;
    peal_control *control = self->control;
    for (;;) {
        int count = fill_poll(self);
        int timeout = poll_timeout(self);
        if (poll(self->poll, (nfds_t)count, timeout) < 0 && errno != EINTR && errno != EAGAIN)
            break;
        pthread_mutex_lock(&control->lock);
        bool stopping = control->stopping;
        pthread_mutex_unlock(&control->lock);
        if (stopping)
            break;
        if (self->poll[0].revents) {
            eventfd_t events;
            eventfd_read(control->wake, &events); /* nothing: an error, looked at below */
        }
        if (self->poll[2].revents) {
            control->launcher = -1; /* of this thread, once it runs */
            peal_control_orphaned(control);
        }
        for (int i = 0; i < PEAL_TREE_LINKS && self->polled_link[i] >= 0; i++)
            if (self->poll[FIRST_LINK + 2 * i].revents ||
                self->poll[FIRST_LINK + 1 + 2 * i].revents)
                serve_link(self, &control->link[self->polled_link[i]],
                           self->poll[FIRST_LINK + 1 + 2 * i].revents != 0);
        if (self->poll[1].revents || self->poll[3].revents || looks_again(self))
            accept_guests(self);
        serve_guests(self);
        peal_busy_say(control);
    }
    for (int i = 0; i < self->guest_count; i++)
        drop(self, &self->guest[i]);
    free(self);
    return NULL;
}

peal_status peal_service_start(peal_control *control)
{
    service *self = calloc(1, sizeof(*self));
    sigset_t all, before;
    if (!self)
        return peal_report(control->diagnostics, PEAL_E_SYSTEM_CALL_FAILED, (peal_source){0}, NULL,
                           "out of memory for the control plane");
    self->control = control;
    /* The application's signals are for its own threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&control->thread, NULL, serve, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        free(self);
        return peal_report(control->diagnostics, PEAL_E_SYSTEM_CALL_FAILED, (peal_source){0}, NULL,
                           "cannot start the control plane's thread: %s", strerror(error));
    }
    control->has_thread = true;
    return PEAL_STATUS_OK;
}

void peal_service_wake(peal_control *control)
{
    if (control->wake >= 0)
        eventfd_write(control->wake, 1); /* EAGAIN: it is about to wake up anyway */
}

void peal_service_stop(peal_control *control)
{
    if (!control->has_thread)
        return;
    pthread_mutex_lock(&control->lock);
    control->stopping = true;
    pthread_mutex_unlock(&control->lock);
    peal_service_wake(control);
    pthread_join(control->thread, NULL);
    control->has_thread = false;
}
