/* Each connection of the tree to another host carries, before anything else, PEAL_TRY_BYTES both
 * ways. Who calls and is taken
 * in by small packets may not get large ones through: that would look like a process that hangs. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/patience.h"
#include "runtime/control/internal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

enum { PIECE_BYTES = 4096 };

typedef struct attempt {
    peal_link *link;
    size_t got;
    bool is_closed;
} attempt;

static bool is_open(const attempt *a)
{
    return !a->is_closed && (a->link->tried < PEAL_TRY_BYTES || a->got < PEAL_TRY_BYTES);
}

static bool has_ended(ssize_t now)
{
    return now < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR;
}

/* The bytes are zeros: TCP's sums guard them. */
bool peal_tree_begin_try(peal_link *link)
{
    static const unsigned char zeros[PIECE_BYTES];
    ssize_t now = 1;
    while (link->tried < PEAL_TRY_BYTES && now > 0) {
        size_t left = PEAL_TRY_BYTES - link->tried;
        now = send(link->data, zeros, left < PIECE_BYTES ? left : PIECE_BYTES,
                   MSG_NOSIGNAL | MSG_DONTWAIT);
        link->tried += now > 0 ? (size_t)now : 0;
    }
    return !has_ended(now);
}

/* What goes and comes now. */
static void move(attempt *a)
{
    unsigned char piece[PIECE_BYTES];
    a->is_closed = !peal_tree_begin_try(a->link);
    for (ssize_t now = 1; a->got < PEAL_TRY_BYTES && now > 0;) {
        size_t left = PEAL_TRY_BYTES - a->got;
        now = recv(a->link->data, piece, left < PIECE_BYTES ? left : PIECE_BYTES, MSG_DONTWAIT);
        a->got += now > 0 ? (size_t)now : 0;
        a->is_closed |= now == 0 || has_ended(now);
    }
}

static peal_status no_path(peal_control *control, const attempt *a, int64_t limit_ns)
{
    char message[PEAL_MESSAGE_BYTES];
    bool comes = a->got < PEAL_TRY_BYTES;
    int own = control->identity.process, other = a->link->process;
    snprintf(message, sizeof(message),
             "no path from process %d on %.*s to process %d on %.*s: %d bytes that were sent once "
             "they were connected have not come within %.3g s",
             comes ? other : own, PEAL_NODE_BYTES - 1,
             comes ? a->link->blob.node : control->mine.node, comes ? own : other,
             PEAL_NODE_BYTES - 1, comes ? control->mine.node : a->link->blob.node, PEAL_TRY_BYTES,
             (double)limit_ns * 1e-9);
    if (peal_control_set_cause(control, PEAL_STATUS_ENVIRONMENT, own, message, -1))
        return peal_report(control->diagnostics, PEAL_E_NO_PATH_TO_HOST, (peal_source){0},
                           PEAL_NO_PATH_HINT, "%s", message);
    return peal_control_cause_status(control);
}

static peal_status closed(peal_control *control, const attempt *a)
{
    struct pollfd event = {control->aborted, POLLIN, 0};
    poll(&event, 1, 1000); /* the watch socket says why */
    peal_control_lost(control, a->link->process, 0);
    return peal_control_cause_status(control);
}

/* Both ends have begun as soon as they were connected, whomever else they wait for. */
peal_status peal_tree_try(peal_control *control)
{
    attempt list[PEAL_TREE_LINKS];
    struct pollfd event[PEAL_TREE_LINKS + 1];
    int count = 0;
    const int64_t limit_ns = control->deadline_ns / 5 * 4; /* before the others give up */
    peal_patience patience = peal_patience_begin(peal_clock_ns(), limit_ns);
    for (int i = 0; i < control->link_count; i++)
        if (control->link[i].is_far)
            list[count++] = (attempt){.link = &control->link[i]};
    for (;;) {
        nfds_t open = 0;
        const attempt *last = NULL;
        event[open++] = (struct pollfd){control->aborted, POLLIN, 0};
        for (int i = 0; i < count; i++) {
            attempt *a = &list[i];
            if (is_open(a))
                move(a);
            if (a->is_closed)
                return closed(control, a);
            if (!is_open(a))
                continue;
            last = a;
            short wanted = a->link->tried < PEAL_TRY_BYTES ? POLLIN | POLLOUT : POLLIN;
            event[open++] = (struct pollfd){a->link->data, wanted, 0};
        }
        peal_status status = peal_control_cause_status(control);
        if (status != PEAL_STATUS_OK || !last)
            return status;
        if (peal_patience_is_over(&patience, peal_clock_ns()))
            return no_path(control, last, limit_ns);
        poll(event, open, peal_patience_slice_ms(&patience, peal_clock_ns()));
    }
}
