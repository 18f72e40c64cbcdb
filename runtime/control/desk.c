/* Questions of a few words that another process answers at once: its service thread does, whatever
 * it computes. */
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
#include <unistd.h>

/* ---- who answers ---- */

static peal_desk *find(peal_control *control, int key)
{
    for (int i = 0; i < control->desk_count; i++)
        if (control->desk[i].key == key)
            return &control->desk[i];
    return NULL;
}

peal_status peal_control_serve(peal_control *control, int key, int askers,
                               peal_control_answer *answer, void (*release)(void *user), void *user)
{
    pthread_mutex_lock(&control->lock);
    peal_desk *more =
        realloc(control->desk, ((size_t)control->desk_count + 1) * sizeof(*control->desk));
    if (more) {
        control->desk = more;
        control->desk[control->desk_count++] = (peal_desk){key, askers, answer, release, user};
    }
    pthread_mutex_unlock(&control->lock);
    if (!more)
        return peal_report(control->diagnostics, PEAL_E_SYSTEM_CALL_FAILED, (peal_source){0}, NULL,
                           "out of memory for what other processes ask");
    peal_service_wake(control); /* somebody may have asked already */
    return PEAL_STATUS_OK;
}

/* With the lock held. */
static void leave(peal_control *control, peal_desk *desk)
{
    if (--desk->askers > 0)
        return;
    desk->release(desk->user);
    *desk = control->desk[--control->desk_count];
}

bool peal_desk_answer(peal_control *control, const peal_question *question, peal_reply *reply)
{
    memset(reply, 0, sizeof(*reply));
    pthread_mutex_lock(&control->lock);
    peal_desk *desk = find(control, question->key);
    if (desk && question->is_last)
        leave(control, desk);
    else if (desk)
        desk->answer(desk->user, question->words, reply->words);
    pthread_mutex_unlock(&control->lock);
    return desk != NULL;
}

void peal_desks_close(peal_control *control)
{
    for (int i = 0; i < control->desk_count; i++)
        control->desk[i].release(control->desk[i].user);
    free(control->desk);
    control->desk = NULL;
    control->desk_count = 0;
    for (int i = 0; i < control->line_count; i++)
        close(control->line[i].socket);
    free(control->line);
    control->line = NULL;
    control->line_count = 0;
}

/* ---- who asks ---- */

/* With the lock `asking` held. */
static peal_status open_line(peal_control *control, int process, int *socket)
{
    peal_dial_failure why = {0};
    for (int i = 0; i < control->line_count; i++)
        if (control->line[i].process == process) {
            *socket = control->line[i].socket;
            return PEAL_STATUS_OK;
        }
    peal_line *more =
        realloc(control->line, ((size_t)control->line_count + 1) * sizeof(*control->line));
    if (!more)
        return peal_report(control->diagnostics, PEAL_E_SYSTEM_CALL_FAILED, (peal_source){0}, NULL,
                           "out of memory for a line to process %d", process);
    control->line = more;
    *socket = peal_control_call(control, process, PEAL_HELLO_ASK, 0, &why);
    if (*socket < 0 && peal_is_lack_of_means(why.error))
        return peal_report(control->diagnostics, PEAL_E_SYSTEM_CALL_FAILED, (peal_source){0}, NULL,
                           "cannot ask process %d: %s", process, why.text);
    if (*socket < 0)
        return peal_control_lost_owner(control, process, "it was asked", &why);
    control->line[control->line_count++] = (peal_line){process, *socket};
    return PEAL_STATUS_OK;
}

static peal_status await_reply(peal_control *control, int process, int socket, peal_reply *reply)
{
    peal_patience patience = peal_patience_begin(peal_clock_ns(), control->deadline_ns);
    size_t have = 0;
    for (;;) {
        int got = peal_read_frame(socket, reply, sizeof(*reply), &have);
        if (got > 0)
            return PEAL_STATUS_OK;
        if (got < 0)
            return peal_control_lost_owner(control, process, "it had answered", NULL);
        peal_status status = peal_control_cause_status(control);
        if (status != PEAL_STATUS_OK)
            return status;
        if (peal_patience_is_over(&patience, peal_clock_ns()))
            return peal_report(control->diagnostics, PEAL_E_COLLECTIVE_STALLED, (peal_source){0},
                               NULL, "process %d has not answered within %.3g s", process,
                               (double)control->deadline_ns * 1e-9);
        struct pollfd events[2] = {{socket, POLLIN, 0}, {control->aborted, POLLIN, 0}};
        poll(events, 2, peal_patience_slice_ms(&patience, peal_clock_ns()));
    }
}

/* A reply that comes late would be taken for that to another question. */
static void close_line(peal_control *control, int process)
{
    for (int i = 0; i < control->line_count; i++)
        if (control->line[i].process == process) {
            close(control->line[i].socket);
            control->line[i--] = control->line[--control->line_count];
        }
}

static peal_status ask_over_line(peal_control *control, int process, const peal_question *question,
                                 peal_reply *reply)
{
    int socket = -1;
    pthread_mutex_lock(&control->asking);
    peal_status status = open_line(control, process, &socket);
    if (status == PEAL_STATUS_OK && !peal_wire_send_small(socket, question, sizeof(*question)))
        status = peal_control_lost_owner(control, process, "it was asked", NULL);
    if (status == PEAL_STATUS_OK)
        status = await_reply(control, process, socket, reply);
    if (status != PEAL_STATUS_OK)
        close_line(control, process);
    pthread_mutex_unlock(&control->asking);
    return status;
}

static peal_status ask(peal_control *control, int process, const peal_question *question,
                       peal_reply *reply)
{
    peal_status status = peal_control_cause_status(control);
    if (status != PEAL_STATUS_OK)
        return status;
    if (process != control->identity.process)
        return ask_over_line(control, process, question, reply);
    return peal_desk_answer(control, question, reply)
               ? PEAL_STATUS_OK
               : peal_report(control->diagnostics, PEAL_E_COLLECTIVE_MISMATCH, (peal_source){0},
                             NULL, "nobody answers number %d here", question->key);
}

peal_status peal_control_ask(peal_control *control, int process, int key,
                             const uint64_t words[PEAL_QUESTION_WORDS],
                             uint64_t answer[PEAL_QUESTION_WORDS])
{
    peal_question question = {.key = key};
    peal_reply reply;
    memcpy(question.words, words, sizeof(question.words));
    peal_status status = ask(control, process, &question, &reply);
    if (status == PEAL_STATUS_OK)
        memcpy(answer, reply.words, sizeof(reply.words));
    return status;
}

void peal_control_ask_no_more(peal_control *control, int process, int key)
{
    const peal_question question = {.key = key, .is_last = 1};
    peal_reply reply;
    if (process == control->identity.process)
        peal_desk_answer(control, &question, &reply);
    else if (peal_control_cause_status(control) == PEAL_STATUS_OK)
        ask_over_line(control, process, &question, &reply);
}
