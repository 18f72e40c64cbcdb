/* File descriptors (sealed memfds) that processes hand to each other, on connections of their own.
 */
#define _GNU_SOURCE
#include "base/clock.h"
#include "runtime/control/internal.h"

#include "base/cache.h"
#include "base/patience.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

const peal_published *peal_published_find(const peal_control *control, int key)
{
    for (int i = 0; i < control->published_count; i++)
        if (control->published[i].key == key)
            return &control->published[i];
    return NULL;
}

bool peal_descriptor_send(int socket, const peal_published *published)
{
    int64_t bytes = published->bytes;
    struct iovec data = {&bytes, sizeof(bytes)};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    memset(&control, 0, sizeof(control));
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = sizeof(control.space)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &published->descriptor, sizeof(int));
    ssize_t sent;
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)sizeof(bytes);
}

/* 1: received, 0: nothing yet, -1: the other side closed. */
static int receive_descriptor(int socket, int *descriptor, int64_t *bytes)
{
    int64_t told;
    struct iovec data = {&told, sizeof(told)};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = sizeof(control.space)};
    ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    struct cmsghdr *header = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
        header->cmsg_len != CMSG_LEN(sizeof(int)))
        return -1;
    memcpy(descriptor, CMSG_DATA(header), sizeof(int));
    if (got < (ssize_t)sizeof(told)) {
        close(*descriptor);
        return -1;
    }
    *bytes = told;
    return 1;
}

peal_status peal_control_publish(peal_control *control, int key, int descriptor, int64_t bytes)
{
    peal_source nowhere = {0};
    int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        return peal_report(control->diagnostics, PEAL_E_SYSTEM_CALL_FAILED, nowhere, NULL,
                           "cannot duplicate a file descriptor: %s", strerror(errno));
    pthread_mutex_lock(&control->lock);
    int at = 0;
    while (at < control->published_count && control->published[at].key != key)
        at++;
    if (at < control->published_count)
        close(control->published[at].descriptor);
    else {
        peal_published *grown =
            realloc(control->published, (size_t)(at + 1) * sizeof(*control->published));
        if (!grown) {
            pthread_mutex_unlock(&control->lock);
            close(copy);
            return peal_report(control->diagnostics, PEAL_E_SYSTEM_CALL_FAILED, nowhere, NULL,
                               "out of memory for %d published descriptors", at + 1);
        }
        control->published = grown;
        control->published_count++;
    }
    control->published[at] = (peal_published){key, copy, bytes};
    pthread_cond_broadcast(&control->changed);
    pthread_mutex_unlock(&control->lock);
    peal_service_wake(control);
    return PEAL_STATUS_OK;
}

static peal_status late(peal_control *control, int process, int key)
{
    return peal_report(control->diagnostics, PEAL_E_MEMORY_NOT_OFFERED, (peal_source){0}, NULL,
                       "process %d has not offered its memory (number %d) within %.3g s", process,
                       key, (double)control->deadline_ns * 1e-9);
}

static peal_status fetch_own(peal_control *control, int key, int *descriptor, int64_t *bytes)
{
    peal_patience patience = peal_patience_begin(peal_clock_ns(), control->deadline_ns);
    const peal_published *own;
    bool is_over = false;
    pthread_mutex_lock(&control->lock);
    while (!(own = peal_published_find(control, key)) && !control->has_cause && !is_over) {
        int64_t now = peal_clock_ns(), next = now + peal_patience_slice(&patience, now);
        struct timespec until = peal_clock_timespec(next);
        pthread_cond_timedwait(&control->changed, &control->lock, &until);
        is_over = peal_patience_is_over(&patience, peal_clock_ns());
    }
    bool is_there = own;
    int copy = own ? fcntl(own->descriptor, F_DUPFD_CLOEXEC, 0) : -1;
    *bytes = own ? own->bytes : 0;
    pthread_mutex_unlock(&control->lock);
    if (!is_there) {
        peal_status status = peal_control_cause_status(control);
        return status != PEAL_STATUS_OK ? status : late(control, control->identity.process, key);
    }
    if (copy < 0)
        return peal_report(control->diagnostics, PEAL_E_SYSTEM_CALL_FAILED, (peal_source){0}, NULL,
                           "cannot duplicate a file descriptor");
    *descriptor = copy;
    return PEAL_STATUS_OK;
}

/* Why a process has ended comes by another connection than this one, perhaps a moment later. */
static void await_cause(peal_control *control)
{
    const int64_t moment_ns = 1000000000;
    struct timespec until = peal_clock_timespec(peal_clock_ns() + moment_ns);
    int late = 0;
    pthread_mutex_lock(&control->lock);
    while (!control->has_cause && !late)
        late = pthread_cond_timedwait(&control->changed, &control->lock, &until);
    pthread_mutex_unlock(&control->lock);
}

/* Not simply gone. */
static bool is_out_of_reach(const peal_dial_failure *why)
{
    static const int all[] = {ETIMEDOUT,    EPROTO,      EACCES,    ENOENT,
                              EHOSTUNREACH, ENETUNREACH, ECONNRESET};
    for (size_t i = 0; why && i < sizeof(all) / sizeof(all[0]); i++)
        if (why->error == all[i])
            return true;
    return false;
}

peal_status peal_control_lost_owner(peal_control *control, int process, const char *before,
                                    const peal_dial_failure *why)
{
    await_cause(control);
    peal_status status = peal_control_cause_status(control);
    if (status != PEAL_STATUS_OK)
        return status;
    return is_out_of_reach(why)
               ? peal_report(control->diagnostics, PEAL_E_PROCESS_LOST, (peal_source){0}, NULL,
                             "process %d cannot be reached: %s", process, why->text)
               : peal_report(control->diagnostics, PEAL_E_PROCESS_LOST, (peal_source){0}, NULL,
                             "process %d closed before %s", process, before);
}

static peal_status lost_owner(peal_control *control, int process, const peal_dial_failure *why)
{
    return peal_control_lost_owner(control, process, "it had offered its memory", why);
}

static peal_status await_descriptor(peal_control *control, int socket, int process, int key,
                                    int *descriptor, int64_t *bytes)
{
    peal_patience patience = peal_patience_begin(peal_clock_ns(), control->deadline_ns);
    for (;;) {
        int got = receive_descriptor(socket, descriptor, bytes);
        if (got > 0)
            return PEAL_STATUS_OK;
        if (got < 0)
            return lost_owner(control, process, NULL);
        peal_status status = peal_control_cause_status(control);
        if (status != PEAL_STATUS_OK)
            return status;
        if (peal_patience_is_over(&patience, peal_clock_ns()))
            return late(control, process, key);
        struct pollfd events[2] = {{socket, POLLIN, 0}, {control->aborted, POLLIN, 0}};
        poll(events, 2, peal_patience_slice_ms(&patience, peal_clock_ns()));
    }
}

void peal_control_withdraw(peal_control *control, int key)
{
    pthread_mutex_lock(&control->lock);
    for (int i = 0; i < control->published_count; i++)
        if (control->published[i].key == key) {
            close(control->published[i].descriptor);
            control->published[i--] = control->published[--control->published_count];
        }
    pthread_mutex_unlock(&control->lock);
}

peal_status peal_control_fetch(peal_control *control, int process, int key, int *descriptor,
                               int64_t *bytes)
{
    int64_t unasked;
    peal_source nowhere = {0};
    if (process < 0 || process >= control->identity.processes)
        return peal_report(control->diagnostics, PEAL_E_COLLECTIVE_MISMATCH, nowhere, NULL,
                           "memory of process %d asked for: there are %d", process,
                           control->identity.processes);
    if (control->host && control->host[process] != control->host[control->identity.process])
        return peal_report(control->diagnostics, PEAL_E_COLLECTIVE_MISMATCH, nowhere, NULL,
                           "memory of process %d asked for: it is on another host", process);
    if (process == control->identity.process)
        return fetch_own(control, key, descriptor, bytes ? bytes : &unasked);
    peal_dial_failure why = {0};
    int socket = peal_control_call(control, process, PEAL_HELLO_FETCH, key, &why);
    if (socket < 0 && peal_is_lack_of_means(why.error))
        return peal_report(control->diagnostics, PEAL_E_SYSTEM_CALL_FAILED, nowhere, NULL,
                           "cannot ask process %d for its memory: %s", process, why.text);
    if (socket < 0)
        return lost_owner(control, process, &why);
    peal_status status =
        await_descriptor(control, socket, process, key, descriptor, bytes ? bytes : &unasked);
    close(socket);
    return status;
}
