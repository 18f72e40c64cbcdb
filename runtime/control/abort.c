/* Why a job ends: the first cause that reaches a process is kept, and told to its neighbours. */
#define _GNU_SOURCE
#include "runtime/control/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void tell_neighbours(peal_control *control, int from)
{
    peal_notice notice;
    memset(&notice, 0, sizeof(notice));
    notice.kind = PEAL_NOTICE_ABORT;
    notice.status = control->cause_status;
    notice.process = control->cause_process;
    memcpy(notice.message, control->cause_message, sizeof(notice.message));
    for (int i = 0; i < control->link_count; i++) {
        const peal_link *link = &control->link[i];
        if (link->watch >= 0 && link->process != from)
            peal_wire_send_small(link->watch, &notice, sizeof(notice));
    }
}

bool peal_control_tell_cause(peal_control *control, peal_status status, int process,
                             const char *message, int from, peal_cause_report *report)
{
    pthread_mutex_lock(&control->lock);
    bool first = !control->has_cause;
    if (first) {
        int none = 0;
        uint64_t one = 1;
        control->has_cause = true;
        control->cause_status = status;
        control->cause_process = process;
        snprintf(control->cause_message, sizeof(control->cause_message), "%s",
                 message ? message : "");
        if (report)
            report(control);
        atomic_compare_exchange_strong(control->abort_word, &none, (int)status);
        if (control->aborted >= 0 && write(control->aborted, &one, sizeof(one)) < 0) {
            /* cannot be: the counter of an eventfd is far from full */
        }
        tell_neighbours(control, from);
        pthread_cond_broadcast(&control->changed);
    }
    pthread_mutex_unlock(&control->lock);
    return first;
}

bool peal_control_set_cause(peal_control *control, peal_status status, int process,
                            const char *message, int from)
{
    return peal_control_tell_cause(control, status, process, message, from, NULL);
}

peal_status peal_control_cause_status(const peal_control *control)
{
    return peal_control_cause(control, NULL, NULL, 0);
}

static void report_lost(const peal_control *control)
{
    peal_report(control->diagnostics, PEAL_E_PROCESS_LOST, (peal_source){0}, NULL, "%s",
                control->cause_message);
}

/* Between hosts a connection can also end because the network, or the whole host, is gone. */
static bool is_silence(int error)
{
    return error && error != ECONNRESET && error != EPIPE;
}

void peal_control_lost(peal_control *control, int process, int error)
{
    char message[PEAL_MESSAGE_BYTES];
    peal_control_blob blob = {.pid = 0};
    pthread_mutex_lock(&control->lock);
    for (int i = 0; i < control->link_count; i++)
        if (control->link[i].process == process)
            blob = control->link[i].blob;
    bool among_hosts = control->host != NULL;
    pthread_mutex_unlock(&control->lock);
    if (is_silence(error))
        snprintf(message, sizeof(message),
                 "process %d (pid %u on %.*s) does not answer any more: its host or the network is "
                 "gone (%s)",
                 process, blob.pid, PEAL_NODE_BYTES - 1, blob.node, strerror(error));
    else
        snprintf(message, sizeof(message),
                 "process %d (pid %u%s%.*s) is gone: its connection closed", process, blob.pid,
                 among_hosts ? " on " : "", among_hosts ? PEAL_NODE_BYTES - 1 : 0, blob.node);
    peal_control_tell_cause(control, PEAL_STATUS_PEER_LOST, control->identity.process, message,
                            process, report_lost);
}

static void report_orphaned(const peal_control *control)
{
    peal_report(control->diagnostics, PEAL_E_LAUNCHER_LOST, (peal_source){0}, NULL, "%s",
                control->cause_message);
}

/* All processes find it out at once: process 0 says so. */
void peal_control_orphaned(peal_control *control)
{
    peal_control_tell_cause(control, PEAL_STATUS_PEER_LOST, 0, PEAL_LAUNCHER_GONE, -1,
                            report_orphaned);
}

void peal_control_abort(peal_control *control, peal_status status, const char *message)
{
    if (status == PEAL_STATUS_OK)
        status = PEAL_STATUS_INTERNAL;
    peal_control_set_cause(control, status, control->identity.process, message, -1);
}

peal_status peal_control_cause(const peal_control *control, int *process, char *message,
                               size_t bytes)
{
    peal_control *mutable = (peal_control *)control;
    peal_status status = PEAL_STATUS_OK;
    pthread_mutex_lock(&mutable->lock);
    if (control->has_cause)
        status = control->cause_status;
    if (process)
        *process = control->has_cause ? control->cause_process : -1;
    if (message && bytes)
        snprintf(message, bytes, "%s", control->cause_message);
    pthread_mutex_unlock(&mutable->lock);
    return status;
}
