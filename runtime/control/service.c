/* The service thread of a process: takes connections, watches the neighbours, hands out
 * descriptors.
 *
 * It blocks in poll() and costs nothing while nothing happens. A neighbour that dies is an end of
 * file here within the time that the kernel needs to close its sockets. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/hmac.h"
#include "runtime/control/internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    HALF_OPEN_LIMIT = 64,
    GUEST_LIMIT = 4096,
    FIRST_LINK = 3, /* in the poll list */
    POLL_LIMIT = FIRST_LINK + 2 * PEAL_TREE_LINKS + GUEST_LIMIT
};
static const int64_t half_open_ns = INT64_C(5000000000);

typedef enum guest_state { GUEST_HELLO, GUEST_NOTICE, GUEST_FETCH, GUEST_GONE } guest_state;

/* A connection that somebody opened to us and that has not (yet) become a tree edge. */
typedef struct guest_socket {
    int socket;
    guest_state state;
    int64_t since_ns;
    size_t have; /* bytes of the frame being read */
    int key;
    union {
        peal_hello hello;
        peal_notice notice;
    } frame;
} guest_socket;

typedef struct service {
    peal_control *control;
    guest_socket guest[GUEST_LIMIT];
    int guest_count, half_open;
    bool is_starved; /* no descriptor was left for a guest: look again a little later */
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

static void accept_guests(service *self)
{
    while (self->half_open < HALF_OPEN_LIMIT && self->guest_count < GUEST_LIMIT) {
        int socket = accept4(self->control->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (socket < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        self->is_starved = socket < 0 && errno != EAGAIN && errno != EWOULDBLOCK;
        if (socket < 0)
            return;
        if (!peal_wire_same_user(socket)) {
            close(socket);
            continue;
        }
        guest_socket *guest = &self->guest[self->guest_count++];
        memset(guest, 0, sizeof(*guest));
        guest->socket = socket;
        guest->since_ns = peal_clock_ns();
        self->half_open++;
    }
}

static bool is_ours(const peal_control *control, const peal_hello *hello)
{
    return hello->magic == PEAL_HELLO_MAGIC && hello->wire_version == PEAL_WIRE_VERSION &&
           hello->process >= 0 && hello->process < control->identity.processes &&
           peal_hmac_equal(hello->secret, control->mine.endpoint.secret, PEAL_SECRET_BYTES);
}

/* The connection becomes an edge of the tree. */
static bool adopt(peal_control *control, int process, bool data, int socket)
{
    bool taken = false;
    pthread_mutex_lock(&control->lock);
    for (int i = peal_control_has_parent(control); i < control->link_count; i++) {
        peal_link *link = &control->link[i];
        int *slot = data ? &link->data : &link->watch;
        if (link->process == process && *slot < 0) {
            *slot = socket;
            if (!data)
                link->pidfd = peal_wire_pidfd(socket);
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

static void serve_hello(service *self, guest_socket *guest)
{
    const peal_hello hello = guest->frame.hello;
    if (!is_ours(self->control, &hello)) {
        drop(self, guest);
        return;
    }
    guest->have = 0;
    guest->key = hello.key;
    switch (hello.kind) {
    case PEAL_HELLO_DATA:
    case PEAL_HELLO_WATCH:
        if (adopt(self->control, hello.process, hello.kind == PEAL_HELLO_DATA, guest->socket))
            guest->socket = -1;
        drop(self, guest);
        return;
    case PEAL_HELLO_FETCH:
        guest->state = GUEST_FETCH;
        serve_fetch(self, guest);
        return;
    case PEAL_HELLO_NOTICE:
        guest->state = GUEST_NOTICE;
        return;
    case PEAL_HELLO_STREAM:
        if (peal_stream_keep(self->control, hello.process, hello.key, guest->socket))
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

static void serve_guest(service *self, guest_socket *guest)
{
    if (guest->state == GUEST_HELLO) {
        int got = read_frame(guest->socket, &guest->frame, sizeof(peal_hello), &guest->have);
        if (got < 0)
            drop(self, guest);
        else if (got > 0)
            serve_hello(self, guest);
    }
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
    self->half_open = 0;
    for (int i = 0; i < self->guest_count; i++) {
        guest_socket *guest = &self->guest[i];
        serve_guest(self, guest);
        bool half_open = guest->state == GUEST_HELLO || guest->state == GUEST_NOTICE;
        if (half_open && now - guest->since_ns > half_open_ns) {
            drop(self, guest);
            half_open = false;
        }
        self->half_open += half_open;
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
    if (!link->left && !is_explained(self))
        peal_control_lost(control, link->process);
}

static int fill_poll(service *self)
{
    peal_control *control = self->control;
    int count = 0, links = 0;
    self->poll[count++] = (struct pollfd){control->wake, POLLIN, 0};
    bool full =
        self->half_open >= HALF_OPEN_LIMIT || self->guest_count >= GUEST_LIMIT || self->is_starved;
    self->poll[count++] = (struct pollfd){full ? -1 : control->listener, POLLIN, 0};
    self->poll[count++] = (struct pollfd){control->launcher, POLLIN, 0};
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

static void *serve(void *argument)
{
    service *self = argument;
    peal_control *control = self->control;
    for (;;) {
        int count = fill_poll(self);
        int timeout = self->is_starved ? 50 : self->half_open ? (int)(half_open_ns / 1000000) : -1;
        if (poll(self->poll, (nfds_t)count, timeout) < 0 && errno != EINTR && errno != EAGAIN)
            break;
        pthread_mutex_lock(&control->lock);
        bool stopping = control->stopping;
        pthread_mutex_unlock(&control->lock);
        if (stopping)
            break;
        if (self->poll[0].revents) {
            uint64_t events;
            if (read(control->wake, &events, sizeof(events)) < 0) {
                /* nothing to read: somebody else's poll() error, looked at below */
            }
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
        if (self->poll[1].revents || self->is_starved)
            accept_guests(self);
        serve_guests(self);
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
    uint64_t one = 1;
    if (control->wake >= 0 && write(control->wake, &one, sizeof(one)) < 0) {
        /* EAGAIN: it is about to wake up anyway */
    }
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
