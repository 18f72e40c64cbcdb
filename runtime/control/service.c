/* The service thread of a process: takes connections, watches the neighbours, hands out
 * descriptors.
 *
 * It blocks in poll() and costs nothing while nothing happens. A neighbour that dies is an end of
 * file here within the time that the kernel needs to close its sockets. */
#define _GNU_SOURCE
#include "runtime/control/service.h"
#include "base/clock.h"
#include "runtime/control/wire_tcp.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

int peal_read_frame(int socket, void *frame, size_t bytes, size_t *have)
{
    while (*have < bytes) {
        ssize_t got = recv(socket, (char *)frame + *have, bytes - *have, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        if (!got)
            errno = 0;
        if (got <= 0)
            return -1;
        *have += (size_t)got;
    }
    return 1;
}

static void report_taken(const peal_control *control)
{
    char who[PEAL_PROCESS_TEXT];
    peal_warn(control->diagnostics, PEAL_E_JOB_ENDED_BY_PEER, (peal_source){0}, NULL,
              "%s ended the job: %s", peal_control_name(control, control->cause_process, who),
              control->cause_message);
}

void peal_take_cause(peal_control *control, peal_notice *notice, int from)
{
    notice->message[PEAL_MESSAGE_BYTES - 1] = 0;
    peal_status status = notice->status > 0 && notice->status < 256 ? (peal_status)notice->status
                                                                    : PEAL_STATUS_INTERNAL;
    peal_control_tell_cause(control, status, notice->process, notice->message, from, report_taken);
}

/* A neighbour that failed before it had taken our connections told us on one of its own, and then
 * closed: that word is in the queue and comes first. */
static bool is_explained(service *self)
{
    peal_control *control = self->control;
    peal_guests_accept(self);
    peal_guests_serve(self);
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
    int error;
    for (;;) {
        int got =
            peal_read_frame(link->watch, &link->notice, sizeof(link->notice), &link->notice_bytes);
        if (!got && !is_dead)
            return;
        if (got <= 0) {
            error = got ? errno : 0;
            break;
        }
        link->notice_bytes = 0;
        if (link->notice.kind == PEAL_NOTICE_LEAVE)
            link->left = true;
        else if (link->notice.kind == PEAL_NOTICE_BUSY)
            peal_busy_hear(control, link);
        else if (link->notice.kind == PEAL_NOTICE_HEARD)
            peal_beat_heard(control, link);
        else if (link->notice.kind == PEAL_NOTICE_BEAT)
            peal_beat_answer(control, link);
        else if (link->notice.kind == PEAL_NOTICE_ABORT)
            peal_take_cause(control, &link->notice, link->process);
    }
    pthread_mutex_lock(&control->lock);
    close(link->watch);
    link->watch = -2; /* was there, is gone */
    if (link->pidfd >= 0)
        close(link->pidfd);
    link->pidfd = -1;
    pthread_mutex_unlock(&control->lock);
    if (!link->left && !is_explained_soon(self, link))
        peal_control_lost(control, link->process, error);
}

static int fill_poll(service *self)
{
    peal_control *control = self->control;
    int count = 0, links = 0;
    self->poll[count++] = (struct pollfd){control->wake, POLLIN, 0};
    bool near_waits = peal_guests_are_full(self, NEAR) || self->is_starved;
    bool far_waits = peal_guests_are_full(self, FAR) || self->is_starved;
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
    const int soon_ms = 50, half_open_ms = (int)(PEAL_HALF_OPEN_NS / 1000000);
    int64_t busy_ns = peal_busy_interval(self->control);
    int timeout = looks_again(self)                               ? soon_ms
                  : self->half_open[NEAR] || self->half_open[FAR] ? half_open_ms
                                                                  : -1;
    int64_t often_ns = busy_ns && busy_ns < PEAL_BEAT_NS ? busy_ns : PEAL_BEAT_NS;
    int often_ms = busy_ns ? (int)(often_ns / 1000000) + 1 : -1;
    return often_ms >= 0 && (timeout < 0 || often_ms < timeout) ? often_ms : timeout;
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
            peal_guests_accept(self);
        peal_guests_serve(self);
        peal_busy_say(control);
        peal_beat(control);
    }
    peal_guests_drop(self);
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
