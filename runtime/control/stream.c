/* Streams between two processes, for what carries messages: the one with the higher number
 * connects, the other's service thread takes the connection and keeps it until it is asked for. */
#define _GNU_SOURCE
#include "base/cache.h"
#include "base/clock.h"
#include "base/patience.h"
#include "runtime/control/internal.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int find(const peal_control *control, int process, int key)
{
    for (int i = 0; i < control->stream_count; i++)
        if (control->stream[i].process == process && control->stream[i].key == key)
            return i;
    return -1;
}

/* With the lock. */
static bool make_room(peal_control *control)
{
    if (control->stream_count < control->stream_room)
        return true;
    int room = 2 * control->stream_room + 16;
    peal_stream *more = realloc(control->stream, (size_t)room * sizeof(*more));
    if (!more)
        return false;
    control->stream = more;
    control->stream_room = room;
    return true;
}

bool peal_stream_keep(peal_control *control, int process, int key, int socket)
{
    pthread_mutex_lock(&control->lock);
    bool fits = process > control->identity.process && find(control, process, key) < 0 &&
                make_room(control);
    if (fits) {
        control->stream[control->stream_count++] = (peal_stream){process, key, socket};
        pthread_cond_broadcast(&control->changed);
    }
    pthread_mutex_unlock(&control->lock);
    return fits;
}

void peal_streams_close(peal_control *control)
{
    for (int i = 0; i < control->stream_count; i++)
        close(control->stream[i].socket);
    free(control->stream);
    control->stream = NULL;
    control->stream_count = control->stream_room = 0;
}

static peal_status late(peal_control *control, int process, int key)
{
    return peal_report(control->diagnostics, PEAL_E_MEMORY_NOT_OFFERED, (peal_source){0}, NULL,
                       "process %d has not opened its end of a stream (number %d) within %.3g s",
                       process, key, (double)control->deadline_ns * 1e-9);
}

/* The service thread takes it from the process that connects. */
static peal_status await(peal_control *control, int process, int key, int *stream)
{
    peal_patience patience = peal_patience_begin(peal_clock_ns(), control->deadline_ns);
    bool is_over = false;
    int at;
    pthread_mutex_lock(&control->lock);
    while ((at = find(control, process, key)) < 0 && !control->has_cause && !is_over) {
        int64_t now = peal_clock_ns(), next = now + peal_patience_slice(&patience, now);
        struct timespec until = peal_clock_timespec(next);
        pthread_cond_timedwait(&control->changed, &control->lock, &until);
        is_over = peal_patience_is_over(&patience, peal_clock_ns());
    }
    if (at >= 0) {
        *stream = control->stream[at].socket;
        control->stream[at] = control->stream[--control->stream_count];
    }
    pthread_mutex_unlock(&control->lock);
    if (at >= 0)
        return PEAL_STATUS_OK;
    peal_status status = peal_control_cause_status(control);
    return status != PEAL_STATUS_OK ? status : late(control, process, key);
}

static peal_status connect_to(peal_control *control, int process, int key, int *stream)
{
    peal_dial_failure why = {0};
    *stream = peal_control_call(control, process, PEAL_HELLO_STREAM, key, &why);
    if (*stream >= 0)
        return PEAL_STATUS_OK;
    if (peal_is_lack_of_means(why.error))
        return peal_report(control->diagnostics, PEAL_E_SYSTEM_CALL_FAILED, (peal_source){0}, NULL,
                           "cannot open a stream to process %d: %s", process, why.text);
    return peal_control_lost_owner(control, process, "a stream was open", &why);
}

peal_status peal_control_connect(peal_control *control, int process, int key, int *stream)
{
    int own = control->identity.process;
    if (process < 0 || process >= control->identity.processes || process == own)
        return peal_report(control->diagnostics, PEAL_E_COLLECTIVE_MISMATCH, (peal_source){0}, NULL,
                           "a stream from process %d to process %d asked for: there are %d", own,
                           process, control->identity.processes);
    peal_status status = peal_control_cause_status(control);
    if (status != PEAL_STATUS_OK)
        return status;
    return own > process ? connect_to(control, process, key, stream)
                         : await(control, process, key, stream);
}

peal_status peal_control_read(peal_control *control, int process, int stream, void *data,
                              size_t bytes)
{
    peal_patience patience = peal_patience_begin(peal_clock_ns(), control->deadline_ns);
    size_t have = 0;
    for (;;) {
        int got = peal_read_frame(stream, data, bytes, &have);
        if (got > 0)
            return PEAL_STATUS_OK;
        if (got < 0)
            return peal_control_lost_owner(control, process, "it had said where it is", NULL);
        peal_status status = peal_control_cause_status(control);
        if (status != PEAL_STATUS_OK)
            return status;
        if (peal_patience_is_over(&patience, peal_clock_ns()))
            return peal_report(control->diagnostics, PEAL_E_MEMORY_NOT_OFFERED, (peal_source){0},
                               NULL, "process %d has not said where it is within %.3g s", process,
                               (double)control->deadline_ns * 1e-9);
        struct pollfd events[2] = {{stream, POLLIN, 0}, {control->aborted, POLLIN, 0}};
        poll(events, 2, peal_patience_slice_ms(&patience, peal_clock_ns()));
    }
}
