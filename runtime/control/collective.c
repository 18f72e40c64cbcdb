/* Collective calls over the tree: up to process 0, down again, by the calling thread itself.
 *
 * A call ends early, with the first cause's status, once the abort event is set; a deadline that
 * passes is a cause. After either the sockets may hold half a frame, so the job is over. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "runtime/control/internal.h"

#include "base/patience.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

typedef enum operation_kind { ALLGATHER = 1, BARRIER, BROADCAST, GATHER } operation_kind;

static const char *const operation_names[] = {"?", "an allgather", "a barrier", "a broadcast",
                                              "a gather"};

typedef struct round_trip {
    peal_control *control;
    operation_kind operation;
    /* Who waits for a child gives up before who waits for a parent, deeper ones first: so the one
     * that is next to the culprit names it. */
    int64_t up_until_ns, down_until_ns;
    /* Both are later by as much as this process was stopped, and begin anew where another is busy.
     */
    peal_patience patience;
} round_trip;

static round_trip begin(peal_control *control, operation_kind operation)
{
    int64_t now = peal_clock_ns(), deadline = control->deadline_ns;
    int depth = __builtin_popcount((unsigned)control->identity.process);
    control->sequence++;
    atomic_store(&control->waits, true);
    return (round_trip){control, operation, now + deadline / 8 * 7 - deadline / 64 * depth,
                        now + deadline, peal_patience_begin(now, deadline)};
}

static peal_status end(const round_trip *call, peal_status status)
{
    atomic_store(&call->control->waits, false);
    return status;
}

/* Somebody who comes later is busy until then: the time starts anew. */
static void wait_for_busy(round_trip *call)
{
    int64_t heard = atomic_load(&call->control->busy_heard_ns);
    int64_t later = heard - call->patience.since_ns;
    if (later <= 0)
        return;
    call->up_until_ns += later;
    call->down_until_ns += later;
    call->patience.since_ns = heard;
}

static bool is_parent(const round_trip *call, int process)
{
    return process < call->control->identity.process;
}

static int64_t limit_of(const round_trip *call, const peal_link *link)
{
    return is_parent(call, link->process) ? call->down_until_ns : call->up_until_ns;
}

static peal_status deadline_passed(const round_trip *call, int process)
{
    char message[PEAL_MESSAGE_BYTES];
    peal_control *control = call->control;
    int me = control->identity.process;
    int behind = peal_tree_size(process, control->identity.processes);
    double seconds = (double)control->deadline_ns * 1e-9;
    const char *name = operation_names[call->operation];
    if (is_parent(call, process))
        snprintf(message, sizeof(message),
                 "process %d waited %.3g s for others (by way of process %d) in %s", me, seconds,
                 process, name);
    else if (behind > 1) /* which of them, only it knows */
        snprintf(
            message, sizeof(message),
            "process %d, or one of %d to %d that it waits for, took no part in %s within %.3g s "
            "(process %d waited)",
            process, process + 1, process + behind - 1, name, seconds, me);
    else
        snprintf(message, sizeof(message),
                 "process %d took no part in %s within %.3g s (process %d waited)", process, name,
                 seconds, me);
    if (peal_control_set_cause(control, PEAL_STATUS_DEADLINE, me, message, -1))
        peal_report(control->diagnostics, PEAL_E_COLLECTIVE_STALLED, (peal_source){0}, NULL, "%s",
                    message);
    return peal_control_cause_status(control);
}

/* The other end closed its data socket: its watch socket tells the service thread why. */
static peal_status closed(const round_trip *call, int process)
{
    struct pollfd event = {call->control->aborted, POLLIN, 0};
    while (poll(&event, 1, 1000) < 0 && errno == EINTR) {
    }
    peal_control_lost(call->control, process, 0);
    return peal_control_cause_status(call->control);
}

static peal_status wait_for(round_trip *call, const peal_link *link, short events)
{
    const int64_t turn_ns = 1000000;
    const peal_control *control = call->control;
    struct pollfd event[2] = {{link->data, events, 0}, {control->aborted, POLLIN, 0}};
    if (control->turn)
        control->turn(control->turn_user);
    int64_t begin = peal_clock_ns(), left = limit_of(call, link) - begin;
    int64_t slice = control->turn ? turn_ns : peal_patience_slice(&call->patience, begin);
    int ready = poll(event, 2, peal_poll_milliseconds(begin + (slice < left ? slice : left)));
    int64_t jump = peal_patience_jumped(&call->patience, peal_clock_ns());
    call->up_until_ns += jump;
    call->down_until_ns += jump;
    wait_for_busy(call);
    int64_t until = limit_of(call, link);
    if (ready > 0 && event[1].revents)
        return peal_control_cause_status(call->control);
    if (ready == 0 && peal_clock_ns() >= until)
        return deadline_passed(call, link->process);
    return PEAL_STATUS_OK;
}

static peal_status send_bytes(round_trip *call, const peal_link *link, struct iovec *part,
                              size_t parts)
{
    while (parts) {
        struct msghdr message = {.msg_iov = part, .msg_iovlen = parts};
        ssize_t sent = sendmsg(link->data, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
            peal_status status = wait_for(call, link, POLLOUT);
            if (status != PEAL_STATUS_OK)
                return status;
            continue;
        }
        if (sent < 0)
            return closed(call, link->process);
        size_t done = (size_t)sent;
        while (parts && done >= part->iov_len) {
            done -= part->iov_len;
            part++;
            parts--;
        }
        if (parts) {
            part->iov_base = (char *)part->iov_base + done;
            part->iov_len -= done;
        }
    }
    return PEAL_STATUS_OK;
}

static peal_status receive_bytes(round_trip *call, const peal_link *link, void *data, size_t bytes)
{
    unsigned char *at = data;
    while (bytes) {
        ssize_t got = recv(link->data, at, bytes, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
            peal_status status = wait_for(call, link, POLLIN);
            if (status != PEAL_STATUS_OK)
                return status;
            continue;
        }
        if (got <= 0)
            return closed(call, link->process);
        at += got;
        bytes -= (size_t)got;
    }
    return PEAL_STATUS_OK;
}

static peal_status send_frame(round_trip *call, const peal_link *link, const void *data,
                              size_t bytes)
{
    peal_frame frame = {PEAL_FRAME_MAGIC, (uint32_t)call->operation, call->control->sequence,
                        bytes};
    struct iovec part[2] = {{&frame, sizeof(frame)}, {(void *)data, bytes}};
    return send_bytes(call, link, part, bytes ? 2 : 1);
}

static peal_status disagree(const round_trip *call, int process, const char *what)
{
    char message[PEAL_MESSAGE_BYTES];
    peal_control *control = call->control;
    snprintf(message, sizeof(message), "process %d is in %s, process %d in %s",
             control->identity.process, operation_names[call->operation], process, what);
    if (peal_control_set_cause(control, PEAL_STATUS_INTERNAL, control->identity.process, message,
                               -1))
        peal_report(control->diagnostics, PEAL_E_COLLECTIVE_MISMATCH, (peal_source){0}, NULL, "%s",
                    message);
    return peal_control_cause_status(control);
}

static peal_status receive_frame(round_trip *call, const peal_link *link, size_t *bytes)
{
    peal_frame frame;
    peal_status status = receive_bytes(call, link, &frame, sizeof(frame));
    if (status != PEAL_STATUS_OK)
        return status;
    if (frame.magic != PEAL_FRAME_MAGIC || frame.operation < ALLGATHER ||
        frame.operation > GATHER || frame.sequence != call->control->sequence)
        return disagree(call, link->process, "another place");
    if (frame.operation != call->operation)
        return disagree(call, link->process, operation_names[frame.operation]);
    *bytes = frame.bytes;
    return PEAL_STATUS_OK;
}

/* A frame whose size both sides know. */
static peal_status receive_exactly(round_trip *call, const peal_link *link, void *data,
                                   size_t bytes)
{
    size_t there = 0;
    peal_status status = receive_frame(call, link, &there);
    if (status != PEAL_STATUS_OK)
        return status;
    if (there != bytes) {
        char what[64];
        snprintf(what, sizeof(what), "one of %zu instead of %zu bytes", there, bytes);
        return disagree(call, link->process, what);
    }
    return receive_bytes(call, link, data, bytes);
}

static const peal_link *parent(const round_trip *call)
{
    return peal_control_has_parent(call->control) ? &call->control->link[0] : NULL;
}

/* From the parent to all children. */
static peal_status pass_down(round_trip *call, void *data, size_t bytes)
{
    peal_control *control = call->control;
    peal_status status = PEAL_STATUS_OK;
    if (parent(call))
        status = receive_exactly(call, parent(call), data, bytes);
    /* The child with the largest subtree first: it has most left to do. */
    for (int i = control->link_count - 1;
         status == PEAL_STATUS_OK && i >= peal_control_has_parent(control); i--)
        status = send_frame(call, &control->link[i], data, bytes);
    return status;
}

/* all: the bytes of the processes of my subtree, mine first. */
static peal_status collect_up(round_trip *call, unsigned char *all, size_t bytes)
{
    peal_control *control = call->control;
    int me = control->identity.process;
    peal_status status = PEAL_STATUS_OK;
    for (int i = peal_control_has_parent(control);
         status == PEAL_STATUS_OK && i < control->link_count; i++) {
        int child = control->link[i].process;
        size_t part = bytes * (size_t)peal_tree_size(child, control->identity.processes);
        status = receive_exactly(call, &control->link[i], all + bytes * (size_t)(child - me), part);
    }
    size_t mine = bytes * (size_t)peal_tree_size(me, control->identity.processes);
    if (status == PEAL_STATUS_OK && parent(call))
        status = send_frame(call, parent(call), all, mine);
    return status;
}

peal_status peal_control_allgather(peal_control *control, const void *mine, size_t bytes, void *all)
{
    size_t me = (size_t)control->identity.process;
    unsigned char *start = (unsigned char *)all + bytes * me;
    peal_status status = peal_control_cause_status(control);
    if (status != PEAL_STATUS_OK)
        return status;
    round_trip call = begin(control, ALLGATHER);
    if (bytes && start != mine)
        memmove(start, mine, bytes);
    status = collect_up(&call, start, bytes);
    if (status == PEAL_STATUS_OK)
        status = pass_down(&call, all, bytes * (size_t)control->identity.processes);
    return end(&call, status);
}

peal_status peal_control_barrier(peal_control *control)
{
    unsigned char none[1];
    peal_status status = peal_control_cause_status(control);
    if (status != PEAL_STATUS_OK)
        return status;
    round_trip call = begin(control, BARRIER);
    status = collect_up(&call, none, 0);
    if (status == PEAL_STATUS_OK)
        status = pass_down(&call, none, 0);
    return end(&call, status);
}

peal_status peal_control_broadcast(peal_control *control, int root, void *data, size_t bytes)
{
    int me = control->identity.process, processes = control->identity.processes;
    peal_status status = peal_control_cause_status(control);
    if (status != PEAL_STATUS_OK)
        return status;
    if (root < 0 || root >= processes)
        return peal_report(control->diagnostics, PEAL_E_COLLECTIVE_MISMATCH, (peal_source){0}, NULL,
                           "broadcast from process %d: there are %d", root, processes);
    round_trip call = begin(control, BROADCAST);
    /* Up the path from root to process 0 ... */
    for (int i = peal_control_has_parent(control);
         status == PEAL_STATUS_OK && i < control->link_count; i++) {
        int child = control->link[i].process;
        if (root >= child && root < child + peal_tree_size(child, processes))
            status = receive_exactly(&call, &control->link[i], data, bytes);
    }
    if (status == PEAL_STATUS_OK && parent(&call) && root >= me &&
        root < me + peal_tree_size(me, processes))
        status = send_frame(&call, parent(&call), data, bytes);
    /* ... then down to all; whoever has it already gets the same once more. */
    return end(&call, status == PEAL_STATUS_OK ? pass_down(&call, data, bytes) : status);
}

/* The blobs of a subtree: `count` sizes, then the bytes one after the other. */
typedef struct subtree_blobs {
    unsigned char *data;
    size_t bytes;
} subtree_blobs;

static peal_status out_of_memory(const round_trip *call, size_t bytes)
{
    char message[PEAL_MESSAGE_BYTES];
    peal_control *control = call->control;
    snprintf(message, sizeof(message), "process %d has no memory for a gather of %zu bytes",
             control->identity.process, bytes);
    if (peal_control_set_cause(control, PEAL_STATUS_ENVIRONMENT, control->identity.process, message,
                               -1))
        peal_report(control->diagnostics, PEAL_E_SYSTEM_CALL_FAILED, (peal_source){0}, NULL, "%s",
                    message);
    return peal_control_cause_status(control);
}

static uint64_t size_at(const subtree_blobs *bundle, int index)
{
    uint64_t size;
    memcpy(&size, bundle->data + sizeof(size) * (size_t)index, sizeof(size));
    return size;
}

/* Whether the sizes add up to the bytes that came. */
static bool is_consistent(const subtree_blobs *bundle, int count)
{
    size_t left = bundle->bytes, table = sizeof(uint64_t) * (size_t)count;
    if (left < table)
        return false;
    left -= table;
    for (int i = 0; i < count; i++) {
        if (size_at(bundle, i) > left)
            return false;
        left -= size_at(bundle, i);
    }
    return left == 0;
}

static peal_status receive_bundle(round_trip *call, const peal_link *link, int count,
                                  subtree_blobs *out)
{
    size_t bytes = 0;
    peal_status status = receive_frame(call, link, &bytes);
    if (status != PEAL_STATUS_OK)
        return status;
    out->data = malloc(bytes ? bytes : 1);
    out->bytes = bytes;
    if (!out->data)
        return out_of_memory(call, bytes);
    status = receive_bytes(call, link, out->data, bytes);
    if (status == PEAL_STATUS_OK && !is_consistent(out, count))
        status = disagree(call, link->process, "one whose sizes don't add up");
    return status;
}

/* Mine and those of the children as one frame to the parent. */
static peal_status send_bundles(round_trip *call, const void *mine, size_t bytes,
                                const subtree_blobs *child)
{
    const peal_control *control = call->control;
    int processes = control->identity.processes;
    int count = peal_tree_size(control->identity.process, processes), entry = 0, parts = 2;
    struct iovec part[2 * PEAL_TREE_LINKS + 2];
    uint64_t *table = malloc(sizeof(*table) * (size_t)count);
    peal_frame frame = {PEAL_FRAME_MAGIC, (uint32_t)call->operation, control->sequence,
                        sizeof(*table) * (size_t)count + bytes};
    if (!table)
        return out_of_memory(call, sizeof(*table) * (size_t)count);
    part[0] = (struct iovec){&frame, sizeof(frame)};
    part[1] = (struct iovec){table, sizeof(*table) * (size_t)count};
    part[parts++] = (struct iovec){(void *)mine, bytes};
    table[entry++] = bytes;
    for (int i = 1; i < control->link_count; i++) {
        int under = peal_tree_size(control->link[i].process, processes);
        size_t skip = sizeof(*table) * (size_t)under;
        memcpy(table + entry, child[i].data, skip);
        entry += under;
        part[parts++] = (struct iovec){child[i].data + skip, child[i].bytes - skip};
        frame.bytes += child[i].bytes - skip;
    }
    peal_status status = send_bytes(call, parent(call), part, (size_t)parts);
    free(table);
    return status;
}

static peal_status unpack(const round_trip *call, const subtree_blobs *bundle, int first, int count,
                          void **blob, size_t *size)
{
    const unsigned char *at = bundle->data + sizeof(uint64_t) * (size_t)count;
    for (int i = 0; i < count; i++) {
        size_t bytes = size_at(bundle, i);
        blob[first + i] = malloc(bytes ? bytes : 1);
        if (!blob[first + i])
            return out_of_memory(call, bytes);
        memcpy(blob[first + i], at, bytes);
        size[first + i] = bytes;
        at += bytes;
    }
    return PEAL_STATUS_OK;
}

/* At process 0. On failure nothing is handed out. */
static peal_status unpack_all(const round_trip *call, const void *mine, size_t bytes,
                              const subtree_blobs *child, void **blob, size_t *size)
{
    const peal_control *control = call->control;
    int processes = control->identity.processes;
    memset(blob, 0, sizeof(*blob) * (size_t)processes);
    uint64_t own_size = bytes;
    subtree_blobs own = {malloc(sizeof(own_size) + bytes), sizeof(own_size) + bytes};
    if (!own.data)
        return out_of_memory(call, own.bytes);
    memcpy(own.data, &own_size, sizeof(own_size));
    if (bytes)
        memcpy(own.data + sizeof(own_size), mine, bytes);
    peal_status status = unpack(call, &own, 0, 1, blob, size);
    free(own.data);
    for (int i = 0; status == PEAL_STATUS_OK && i < control->link_count; i++) {
        int process = control->link[i].process;
        status = unpack(call, &child[i], process, peal_tree_size(process, processes), blob, size);
    }
    if (status != PEAL_STATUS_OK)
        for (int p = 0; p < processes; p++) {
            free(blob[p]);
            blob[p] = NULL;
        }
    return status;
}

peal_status peal_control_gather(peal_control *control, const void *mine, size_t bytes, void **blob,
                                size_t *size)
{
    subtree_blobs child[PEAL_TREE_LINKS] = {{NULL, 0}};
    peal_status status = peal_control_cause_status(control);
    if (status != PEAL_STATUS_OK)
        return status;
    round_trip call = begin(control, GATHER);
    for (int i = peal_control_has_parent(control);
         status == PEAL_STATUS_OK && i < control->link_count; i++) {
        int count = peal_tree_size(control->link[i].process, control->identity.processes);
        status = receive_bundle(&call, &control->link[i], count, &child[i]);
    }
    if (status == PEAL_STATUS_OK)
        status = parent(&call) ? send_bundles(&call, mine, bytes, child)
                               : unpack_all(&call, mine, bytes, child, blob, size);
    for (int i = 0; i < control->link_count; i++)
        free(child[i].data);
    return end(&call, status);
}
