/* The session: how a process joins a job, and leaves it. */
#include "runtime/session/session.h"
#include "base/handle.h"
#include "base/originals.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/session/cores.h"
#include "runtime/session/device.h"
#include "runtime/session/network.h"

#include <math.h>
#include <peal/bootstrap.h>
#include <peal/peal.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_DEADLINE_S = 30 };

static peal_network_choice choice_of(const peal_session_desc *desc)
{
    return desc ? (peal_network_choice){desc->network_interface, desc->network_ports[0],
                                        desc->network_ports[1]}
                : (peal_network_choice){0};
}

static peal_status check_desc(const peal_session_desc *desc, peal_diagnostics *diagnostics)
{
    if (!desc)
        return PEAL_STATUS_OK;
    if (desc->size_bytes != sizeof(*desc))
        return peal_report(
            diagnostics, PEAL_E_INVALID_DESCRIPTOR, PEAL_NO_SOURCE,
            "set .size_bytes = sizeof(peal_session_desc) and build against this version",
            "peal_session_desc has %zu bytes here, the caller's has %zu", sizeof(*desc),
            desc->size_bytes);
    if (!(desc->deadline_s >= 0) || desc->deadline_s > 1e9)
        return peal_report(diagnostics, PEAL_E_INVALID_DESCRIPTOR, PEAL_NO_SOURCE,
                           "seconds; 0 means 30", "the deadline of a session is %g",
                           desc->deadline_s);
    const peal_network_choice choice = choice_of(desc);
    if (!peal_network_choice_makes_sense(&choice))
        return peal_report(diagnostics, PEAL_E_INVALID_DESCRIPTOR, PEAL_NO_SOURCE,
                           "an interface's name or a network such as 10.1.0.0/16, and ports of 1 "
                           "to 65535, the lower one first",
                           "the network of a session is '%s', its ports %d to %d",
                           choice.interface ? choice.interface : "", choice.first_port,
                           choice.last_port);
    return PEAL_STATUS_OK;
}

static peal_status open_board(peal_session *session)
{
    int64_t bytes = (int64_t)sizeof(peal_barrier_slot) * (session->identity.processes + 1);
    if (peal_session_spans_hosts(session)) /* see runtime/session/barrier.c */
        return PEAL_STATUS_OK;
    int key = session->next_key++, from = peal_diagnostics_count(session->diagnostics);
    peal_status status = PEAL_STATUS_OK;
    bool first = session->identity.process == 0, several = session->identity.processes > 1;
    if (first || !several) {
        status = peal_segment_create(bytes, several, session->diagnostics, &session->board);
        if (!status && several)
            status = peal_control_publish(session->control, key, session->board.descriptor, bytes);
    }
    if (several)
        status = peal_session_agree(session, status, from);
    if (status || first)
        return status;
    int descriptor;
    status = peal_control_fetch(session->control, 0, key, &descriptor, NULL);
    return status ? status
                  : peal_segment_import(descriptor, bytes, session->diagnostics, &session->board);
}

/* The shares of the processes of this host come first; returns how many they are. */
static int keep_own_host(const peal_session *session, peal_core_share *all)
{
    const int *host = peal_control_hosts(session->control);
    int kept = 0;
    for (int p = 0; p < session->identity.processes; p++)
        if (!host || host[p] == host[session->identity.process])
            all[kept++] = all[p];
    return kept;
}

/* Alone, a process knows; else all tell each other. */
static peal_status count_cores(peal_session *session)
{
    int processes = session->identity.processes;
    peal_core_share mine, *all = &mine;
    peal_cores_ask("", &mine);
    peal_status status = PEAL_STATUS_OK;
    if (processes > 1) {
        all = calloc((size_t)processes, sizeof(*all));
        if (!all) { /* the others wait for this process already */
            int from = peal_diagnostics_count(session->diagnostics);
            return peal_session_fail(session,
                                     peal_report(session->diagnostics, PEAL_E_OUT_OF_MEMORY,
                                                 PEAL_NO_SOURCE, NULL,
                                                 "no memory to compare %d processes", processes),
                                     from);
        }
        status = peal_control_allgather(session->control, &mine, sizeof(mine), all);
    }
    if (!status)
        session->cores = peal_cores_of(all, keep_own_host(session, all));
    if (all != &mine)
        free(all);
    return status;
}

/* A barrier at the end: nobody is told of a session that another process could not open. */
static peal_status finish_joining(peal_session *session)
{
    int from = peal_diagnostics_count(session->diagnostics);
    peal_status status = peal_session_agree(session, open_board(session), from);
    if (!status)
        status = count_cores(session);
    session->joined = !status;
    return status;
}

/* If the environment asks for it, process 0 says how the job is spread: "h0 (2), h1 (2)". */
static void log_hosts(const peal_session *session)
{
    const peal_control *control = session->control;
    const int *host = peal_control_hosts(control);
    char text[400] = "";
    size_t used = 0;
    int hosts = 0, processes = session->identity.processes;
    for (int p = 0; host && p < processes; p++)
        hosts = host[p] >= hosts ? host[p] + 1 : hosts;
    if (!hosts || session->identity.process != 0)
        return;
    for (int h = 0, count = 0; h < hosts && used < sizeof(text) - 60; h++, count = 0) {
        int first = -1;
        for (int p = processes - 1; p >= 0; p--)
            if (host[p] == h) {
                first = p;
                count++;
            }
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s (%d)", h ? ", " : "",
                                 peal_control_node(control, first), count);
    }
    peal_bootstrap_log("%d processes on %d hosts: %s%s", processes, hosts, text,
                       used < sizeof(text) - 60 ? "" : ", ...");
}

static peal_status join(peal_session *session, const peal_session_desc *desc)
{
    peal_status status =
        desc && desc->bootstrap
            ? peal_bootstrap_caller(desc->bootstrap, session->diagnostics, &session->bootstrap)
            : peal_bootstrap_open(session->deadline_ns, session->diagnostics, &session->bootstrap);
    if (status)
        return status;
    const peal_network_choice choice = choice_of(desc);
    status = peal_control_open(session->bootstrap, &choice, &session->abort_word,
                               session->deadline_ns, session->diagnostics, &session->control);
    if (status)
        return status;
    peal_session_watch_forks(session);
    session->identity = *peal_control_identity(session->control);
    session->network_ports[0] = choice.first_port;
    session->network_ports[1] = choice.last_port;
    log_hosts(session);
    return finish_joining(session);
}

static void free_session(peal_session *session)
{
    peal_session_forget_forks(session);
    peal_control_close(session->control); /* nobody has memory of this process open any more */
    peal_session_close_networks(session);
    peal_session_close_device(session);
    peal_originals_destroy(session->originals);
    if (session->board.base)
        peal_segment_destroy(&session->board);
    if (session->bootstrap)
        session->bootstrap->ops->close(session->bootstrap);
    peal_diagnostics_destroy(session->diagnostics);
    peal_handle_free(session);
}

peal_status peal_session_create(const peal_session_desc *desc, peal_session **out)
{
    if (!peal_argument_check(out, "where the session goes", __func__))
        return PEAL_STATUS_USAGE;
    peal_session *session = calloc(1, sizeof(*session));
    if (!session || !(session->diagnostics = peal_diagnostics_create()) ||
        !peal_handle_open(session, PEAL_HANDLE_SESSION, NULL)) {
        if (session)
            peal_diagnostics_destroy(session->diagnostics);
        free(session);
        if (desc && desc->size_bytes == sizeof(*desc) && desc->log)
            fprintf(desc->log, "peal: error: no memory for a session [E367]\n");
        return PEAL_STATUS_ENVIRONMENT;
    }
    session->deadline_ns = (int64_t)DEFAULT_DEADLINE_S * 1000000000;
    session->board.descriptor = -1;
    session->failed_first = -1;
    peal_status status = check_desc(desc, session->diagnostics);
    if (!status && desc) {
        if (desc->deadline_s > 0)
            session->deadline_ns = (int64_t)ceil(desc->deadline_s * 1e9);
        session->log = desc->log;
        session->log_level = desc->log_level;
        session->fatal = desc->fatal;
    }
    if (!status)
        status = join(session, desc);
    if (!status) {
        *out = session;
        return PEAL_STATUS_OK;
    }
    bool tells = session->failed_first < 0 || session->failed_first == session->identity.process;
    if (desc && desc->size_bytes == sizeof(*desc) && desc->fatal)
        peal_session_fatal_start(session, desc, status, tells);
    if (desc && desc->size_bytes == sizeof(*desc) && desc->log &&
        desc->log_level >= PEAL_LOG_ERROR && tells)
        peal_diagnostics_print(session->diagnostics, desc->log, 0);
    peal_handle_close(session);
    free_session(session);
    return status;
}

/* Plans and exchanges that the application has left. */
static void destroy_owned(peal_session *session, const char *call)
{
    peal_handle_kind kind;
    for (void *left = peal_handle_owned(session, &kind); left;
         left = peal_handle_owned(session, &kind)) {
        if (kind == PEAL_HANDLE_PLAN)
            peal_plan_destroy(left);
        else if (kind == PEAL_HANDLE_EXCHANGE)
            peal_exchange_destroy(left);
        else
            peal_transfer_destroy(left);
        peal_handle_report_early(call, kind);
        if (session->log && session->log_level >= PEAL_LOG_ERROR)
            fprintf(session->log, "peal: warning: %s\n", peal_misuse());
    }
}

void peal_session_destroy(peal_session *session)
{
    if (!session || !peal_handle_check(session, PEAL_HANDLE_SESSION, __func__))
        return;
    destroy_owned(session, __func__);
    peal_handle_close(session);
    free_session(session);
}
