/* The binomial tree over processes: who is whose neighbour, and how they find each other.
 *
 * The parent of p is p without its lowest set bit, so a subtree is a range of processes. What the
 * bootstrap returns is checked and asked for again until it is right: fences and gets of launchers
 * may succeed too early. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "runtime/control/internal.h"

#include "base/cache.h"
#include "base/patience.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int peal_tree_size(int process, int processes)
{
    int size = process ? process & -process : processes;
    return size < processes - process ? size : processes - process;
}

void peal_tree_init(peal_control *control)
{
    int me = control->identity.process, processes = control->identity.processes;
    int64_t below = me ? me & -me : INT64_C(1) << 31;
    int count = 0;
    if (me)
        control->link[count++].process = me & (me - 1);
    for (int64_t bit = 1; bit < below && me + bit < processes; bit *= 2)
        control->link[count++].process = (int)(me + bit);
    for (int i = 0; i < count; i++)
        control->link[i].data = control->link[i].watch = control->link[i].pidfd = -1;
    control->link_count = count;
}

/* A failure of this process before the tree stands: kept as the cause, so that neighbours can be
 * told. */
static peal_status refuse(peal_control *control, peal_code code, const char *hint,
                          const char *message)
{
    peal_status status = peal_code_status(code);
    if (peal_control_set_cause(control, status, control->identity.process, message, -1))
        return peal_report(control->diagnostics, code, (peal_source){0}, hint, "%s", message);
    return peal_control_cause_status(control);
}

/* Whether the two can call each other: each has to know an address of the other. */
static peal_status check_far(peal_control *control, const peal_control_blob *blob)
{
    char message[PEAL_MESSAGE_BYTES];
    const peal_control_blob *mine = &control->mine;
    bool expected = control->far_listener >= 0; /* or the bootstrap says that all are on one host */
    const peal_control_blob *without = !mine->endpoint.address[0].version   ? mine
                                       : !blob->endpoint.address[0].version ? blob
                                                                            : NULL;
    if (!without)
        return PEAL_STATUS_OK;
    int at =
        snprintf(message, sizeof(message),
                 "processes %d and %d run on different hosts (%.*s, %.*s)", mine->process,
                 blob->process, PEAL_NODE_BYTES - 1, mine->node, PEAL_NODE_BYTES - 1, blob->node);
    if (expected)
        snprintf(message + at, sizeof(message) - (size_t)at,
                 ", and that of process %d has no network address but the loopback's",
                 without->process);
    else
        snprintf(message + at, sizeof(message) - (size_t)at,
                 ", but the %s bootstrap counts all processes to one", control->identity.name);
    return refuse(control, PEAL_E_SEVERAL_HOSTS,
                  expected ? "give it an address that the other hosts reach"
                           : "let containers of one host share its network",
                  message);
}

/* Whether `blob` is that of `process` in this job and can be talked to. */
static peal_status check_blob(peal_control *control, const peal_control_blob *blob, int process)
{
    char message[PEAL_MESSAGE_BYTES];
    const peal_control_blob *mine = &control->mine;
    if (blob->wire_version != PEAL_WIRE_VERSION) {
        snprintf(
            message, sizeof(message),
            "process %d speaks version %u of peal's control plane, process %d version %d (peal "
            "%s)",
            process, blob->wire_version, mine->process, PEAL_WIRE_VERSION, mine->version);
        return refuse(control, PEAL_E_PEAL_VERSIONS_DIFFER, "start the same peal everywhere",
                      message);
    }
    if (blob->processes != mine->processes) {
        snprintf(message, sizeof(message), "process %d counts %d processes, process %d counts %d",
                 process, blob->processes, mine->process, mine->processes);
        return refuse(control, PEAL_E_BOOTSTRAP_FAILED, NULL, message);
    }
    return peal_control_is_near(control, blob) ? PEAL_STATUS_OK : check_far(control, blob);
}

/* Of another wire version only the first two members are understood. */
static bool is_blob_of(const peal_control_blob *blob, size_t bytes, int process)
{
    if (bytes < sizeof(blob->magic) + sizeof(blob->wire_version) || blob->magic != PEAL_BLOB_MAGIC)
        return false;
    return blob->wire_version != PEAL_WIRE_VERSION ||
           (bytes == sizeof(*blob) && blob->process == process);
}

static peal_status no_blob(peal_control *control, peal_status status, int process, bool garbage)
{
    char message[PEAL_MESSAGE_BYTES];
    double seconds = (double)control->deadline_ns * 0.7e-9; /* see peal_tree_connect() */
    if (garbage) {
        snprintf(message, sizeof(message),
                 "the %s bootstrap says that process %d has joined, but gave nothing of peal's "
                 "within %.3g s",
                 control->identity.name, process, seconds);
        return refuse(control, PEAL_E_BOOTSTRAP_FAILED, NULL, message);
    }
    if (status == PEAL_STATUS_PEER_LOST) {
        snprintf(message, sizeof(message),
                 "the launcher says that a process died before process "
                 "%d had joined",
                 process);
        return refuse(control, PEAL_E_PROCESS_LOST, NULL, message);
    }
    if (status == PEAL_STATUS_DEADLINE) {
        snprintf(message, sizeof(message), "process %d has not joined the job within %.3g s",
                 process, seconds);
        return refuse(control, PEAL_E_PROCESS_DID_NOT_JOIN, NULL, message);
    }
    snprintf(message, sizeof(message), "the %s bootstrap failed to find process %d",
             control->identity.name, process);
    return refuse(control, PEAL_E_BOOTSTRAP_FAILED, NULL, message);
}

/* Asks the bootstrap until it gives what can be the blob of link->process. */
static peal_status get_blob(peal_control *control, peal_bootstrap *bootstrap, peal_link *link,
                            int64_t until_ns)
{
    bool garbage = false;
    for (;;) {
        peal_control_blob blob;
        size_t bytes = 0;
        int64_t left = until_ns - peal_clock_ns();
        peal_status cause = peal_control_cause_status(control);
        if (cause != PEAL_STATUS_OK)
            return cause;
        memset(&blob, 0, sizeof(blob));
        peal_status status = left > 0 ? bootstrap->ops->get(bootstrap, 0, link->process, left,
                                                            &blob, sizeof(blob), &bytes)
                                      : PEAL_STATUS_DEADLINE;
        if (status != PEAL_STATUS_OK)
            return no_blob(control, status, link->process,
                           garbage && status == PEAL_STATUS_DEADLINE);
        if (is_blob_of(&blob, bytes, link->process)) {
            pthread_mutex_lock(&control->lock);
            link->blob = blob;
            link->is_known = blob.wire_version == PEAL_WIRE_VERSION;
            pthread_mutex_unlock(&control->lock);
            return check_blob(control, &blob, link->process);
        }
        garbage = bytes > 0;
        struct pollfd event = {control->aborted, POLLIN, 0};
        poll(&event, 1, 1);
    }
}

static bool has_secret(const peal_control_blob *blob)
{
    static const unsigned char none[PEAL_SECRET_BYTES];
    return memcmp(blob->endpoint.secret, none, sizeof(none)) != 0;
}

peal_control_blob *peal_control_find(peal_control *control, int process, int64_t until_ns)
{
    peal_control_blob blob, *peer = &control->peer[process];
    size_t bytes = 0;
    int64_t left = until_ns - peal_clock_ns();
    if (has_secret(peer))
        return peer;
    memset(&blob, 0, sizeof(blob));
    if (left <= 0 || control->bootstrap->ops->get(control->bootstrap, 0, process, left, &blob,
                                                  sizeof(blob), &bytes) != PEAL_STATUS_OK)
        return NULL;
    if (!is_blob_of(&blob, bytes, process) || blob.wire_version != PEAL_WIRE_VERSION)
        return NULL;
    *peer = blob;
    return peer;
}

static peal_status connect_parent(peal_control *control, peal_link *link, int64_t until_ns)
{
    char message[PEAL_MESSAGE_BYTES];
    peal_dial_failure why = {0};
    int data = peal_control_dial(control, &link->blob, PEAL_HELLO_DATA, 0, until_ns, &why);
    int watch = data < 0
                    ? -1
                    : peal_control_dial(control, &link->blob, PEAL_HELLO_WATCH, 0, until_ns, &why);
    if (watch < 0) {
        if (data >= 0)
            close(data);
        /* It may have told us why before it closed. */
        struct pollfd event = {control->aborted, POLLIN, 0};
        poll(&event, 1, 1000);
        peal_status cause = peal_control_cause_status(control);
        if (cause != PEAL_STATUS_OK)
            return cause;
        snprintf(message, sizeof(message), "process %d (pid %u) cannot be reached: %s",
                 link->process, link->blob.pid, why.text);
        return refuse(control,
                      why.error == EACCES || why.error == EPROTO ? PEAL_E_BOOTSTRAP_FAILED
                      : peal_is_lack_of_means(why.error)         ? PEAL_E_SYSTEM_CALL_FAILED
                                                                 : PEAL_E_PROCESS_LOST,
                      NULL, message);
    }
    pthread_mutex_lock(&control->lock);
    link->data = data;
    link->watch = watch;
    link->is_far = !peal_control_is_near(control, &link->blob);
    if (link->is_far)
        peal_tree_begin_try(link);
    link->pidfd = link->is_far ? -1 : peal_wire_pidfd(watch);
    pthread_mutex_unlock(&control->lock);
    peal_service_wake(control);
    return PEAL_STATUS_OK;
}

/* The first child that has not connected, or -1. With the lock held. */
static int missing_child(const peal_control *control)
{
    for (int i = peal_control_has_parent(control); i < control->link_count; i++)
        if (control->link[i].data == -1 || control->link[i].watch == -1)
            return control->link[i].process;
    return -1;
}

/* Whether nobody listens at its socket's name any more. */
static bool is_name_gone(const peal_link *link)
{
    int probe = peal_wire_connect(link->blob.endpoint.name, 0);
    if (probe < 0)
        return errno == ECONNREFUSED;
    close(probe);
    return false;
}

/* Nothing is said on it before both of a child's connections are there: what can be read is its
 * end. */
static bool has_ended(int socket)
{
    char byte;
    ssize_t got = recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return !got || (got < 0 && errno != EAGAIN && errno != EINTR);
}

/* A child that ended after it had published will never connect: on this host its name is gone, and
 * if it ends between its two connections, the first one does. -1: none. */
static int dead_child(peal_control *control)
{
    for (int i = peal_control_has_parent(control); i < control->link_count; i++) {
        const peal_link *link = &control->link[i];
        pthread_mutex_lock(&control->lock);
        bool is_missing = link->data == -1 || link->watch == -1;
        int half = is_missing ? link->data : -1; /* only this thread closes it */
        pthread_mutex_unlock(&control->lock);
        if (is_missing && ((half >= 0 && has_ended(half)) ||
                           (peal_control_is_near(control, &link->blob) && is_name_gone(link))))
            return link->process;
    }
    return -1;
}

/* At most `limit_ns` long; the child that is still missing, or -1. */
static int await_some(peal_control *control, int64_t limit_ns)
{
    struct timespec limit = peal_clock_timespec(limit_ns);
    int error = 0, missing;
    pthread_mutex_lock(&control->lock);
    while ((missing = missing_child(control)) >= 0 && !control->has_cause && !error)
        error = pthread_cond_timedwait(&control->changed, &control->lock, &limit);
    pthread_mutex_unlock(&control->lock);
    return missing;
}

static peal_status await_children(peal_control *control, int64_t until_ns)
{
    char message[PEAL_MESSAGE_BYTES];
    int64_t begin = peal_clock_ns();
    peal_patience patience = peal_patience_begin(begin, until_ns > begin ? until_ns - begin : 1);
    for (;;) {
        int64_t now = peal_clock_ns();
        int dead = dead_child(control);
        /* It may have told us why before it closed. */
        int missing = await_some(control, now + peal_patience_slice(&patience, now));
        peal_status cause = peal_control_cause_status(control);
        if (cause != PEAL_STATUS_OK || missing < 0)
            return cause;
        if (dead >= 0) {
            snprintf(message, sizeof(message), "process %d ended before it had joined the job",
                     dead);
            return refuse(control, PEAL_E_PROCESS_LOST, NULL, message);
        }
        if (peal_patience_is_over(&patience, peal_clock_ns()))
            break;
    }
    pthread_mutex_lock(&control->lock);
    int missing = missing_child(control);
    pthread_mutex_unlock(&control->lock);
    if (missing < 0)
        return peal_control_cause_status(control);
    snprintf(message, sizeof(message), "process %d has not connected within %.3g s", missing,
             (double)control->deadline_ns * 1e-9);
    return refuse(control, PEAL_E_PROCESS_DID_NOT_JOIN, NULL, message);
}

/* Of a neighbour that this process had not come to ask for. */
static void learn_late(peal_control *control, peal_bootstrap *bootstrap, peal_link *link)
{
    const int64_t patience_ns = 200000000;
    peal_control_blob blob;
    size_t bytes = 0;
    memset(&blob, 0, sizeof(blob));
    if (bootstrap->ops->get(bootstrap, 0, link->process, patience_ns, &blob, sizeof(blob),
                            &bytes) != PEAL_STATUS_OK ||
        !is_blob_of(&blob, bytes, link->process) || blob.wire_version != PEAL_WIRE_VERSION)
        return;
    pthread_mutex_lock(&control->lock);
    link->blob = blob;
    link->is_known = true;
    pthread_mutex_unlock(&control->lock);
}

static int64_t notice_until(const peal_control *control, const peal_link *link, int64_t near_ns,
                            int64_t far_ns, int64_t far_until)
{
    int64_t now = peal_clock_ns();
    if (peal_control_is_near(control, &link->blob))
        return now + near_ns;
    return now + far_ns < far_until ? now + far_ns : far_until;
}

/* Tells all neighbours that can be reached; some may hear it twice. */
static void spread_cause(peal_control *control, peal_bootstrap *bootstrap)
{
    peal_notice notice;
    memset(&notice, 0, sizeof(notice));
    /* Near ones answer at once or not at all; one that is far takes a handshake, and several that
     * do not answer take the time of one. */
    const int64_t near_ns = 100000000, far_ns = 700000000, far_until = peal_clock_ns() + 3 * far_ns;
    peal_dial_failure why = {0};
    notice.kind = PEAL_NOTICE_ABORT;
    notice.status =
        peal_control_cause(control, &notice.process, notice.message, sizeof(notice.message));
    for (int i = 0; i < control->link_count; i++) {
        peal_link *link = &control->link[i];
        if (!link->is_known)
            learn_late(control, bootstrap, link);
        pthread_mutex_lock(&control->lock);
        bool told = link->watch >= 0 && peal_wire_send_small(link->watch, &notice, sizeof(notice));
        pthread_mutex_unlock(&control->lock);
        int socket = -1;
        if (!told && link->is_known)
            socket =
                peal_control_dial(control, &link->blob, PEAL_HELLO_NOTICE, 0,
                                  notice_until(control, link, near_ns, far_ns, far_until), &why);
        if (socket < 0)
            continue;
        peal_wire_send_small(socket, &notice, sizeof(notice));
        close(socket);
    }
}

peal_status peal_tree_connect(peal_control *control, peal_bootstrap *bootstrap)
{
    int64_t start = peal_clock_ns(), deadline = control->deadline_ns;
    /* Who misses a neighbour gives up first and tells the others, who still wait: so all name the
     * same process. */
    int64_t join = start + deadline / 10 * 7, meet = start + deadline / 10 * 9;
    peal_status status = bootstrap->ops->put(bootstrap, 0, &control->mine, sizeof(control->mine));
    if (status != PEAL_STATUS_OK)
        status = refuse(control, PEAL_E_BOOTSTRAP_FAILED, NULL,
                        "the bootstrap took no blob of this process");
    for (int i = 0; status == PEAL_STATUS_OK && i < control->link_count; i++) {
        status = get_blob(control, bootstrap, &control->link[i], join);
        int64_t late = peal_clock_ns() - join;
        if (status == PEAL_STATUS_OK && late > 0) { /* it saw that this process was stopped */
            join += late + deadline / 10 * 7;
            meet += late + deadline / 10 * 7;
        }
    }
    if (status == PEAL_STATUS_OK && peal_control_has_parent(control))
        status = connect_parent(control, &control->link[0], meet);
    if (status == PEAL_STATUS_OK)
        status = await_children(control, meet);
    if (status != PEAL_STATUS_OK)
        spread_cause(control, bootstrap); /* before anything is closed: see is_explained() */
    return status;
}
