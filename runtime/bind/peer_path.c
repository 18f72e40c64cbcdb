/* Paths between processes with devices. Every process says by which paths its device reaches those
 * of the others, then a path is tried out: each process makes a little memory, and maps that of the
 * next one. What is found out is kept in the session. */
#include "runtime/bind/peer_path.h"
#include "runtime/network/network.h"
#include "runtime/session/device.h"

#include <stdlib.h>
#include <string.h>

enum { TRIAL_BYTES = 4096 };

peal_status peal_transport_check(const char *name, peal_diagnostics *diagnostics)
{
    if (peal_transport_is_known(name)) {
        const char *reason = peal_network_refuses(peal_transport_between_hosts(name));
        if (!reason)
            return PEAL_STATUS_OK;
        return peal_report(
            diagnostics, PEAL_E_NO_NETWORK_ENGINE, PEAL_NO_SOURCE,
            "install it (ucx: libucx0, to build libucx-dev; verbs, mlx5: libibverbs1 and "
            "ibverbs-providers, "
            "to build libibverbs-dev), or use tcp",
            "transport %s was asked for: %s", name, reason);
    }
    return peal_report(diagnostics, PEAL_E_UNKNOWN_TRANSPORT, PEAL_NO_SOURCE,
                       "auto, p2p, p2p:vmm, p2p:ipc or shm, with +tcp, +ucx or +verbs after it, or "
                       "tcp, ucx or verbs",
                       "there is no transport '%s'", name);
}

peal_status peal_transport_check_host(const char *name, peal_diagnostics *diagnostics)
{
    if (peal_transport_allows(name, PEAL_PATH_STAGED) || peal_transport_sets_apart(name))
        return PEAL_STATUS_OK;
    return peal_report(
        diagnostics, PEAL_E_NO_GPU_TRANSPORT, PEAL_NO_SOURCE,
        "processes reach each other's host memory by shm, or over a network by tcp, ucx, verbs or "
        "mlx5",
        "transport %s was asked for, but the ranks run on the CPU", name);
}

peal_status peal_transport_check_reach(const peal_session *session, const char *name)
{
    bool reaches =
        !name || !strcmp(name, "auto") || strchr(name, '+') || peal_transport_sets_apart(name);
    if (reaches || !peal_session_spans_hosts(session))
        return PEAL_STATUS_OK;
    return peal_report(session->diagnostics, PEAL_E_SEVERAL_HOSTS, PEAL_NO_SOURCE,
                       "leave the transport to auto, say what goes between hosts (shm+tcp, "
                       "shm+ucx, shm+verbs), or start all "
                       "processes on one host",
                       "transport %s was asked for, but the processes run on several hosts", name);
}

/* ---- trying ---- */

static void keep_reason(const peal_diagnostics *found, char *reason)
{
    bool any = found && peal_diagnostics_count(found) > 0;
    snprintf(reason, PEAL_REASON_BYTES, "%s",
             any ? peal_diagnostics_at(found, 0)->message : "no memory");
}

const char *peal_path_try(const peal_memory_space *space, char reason[PEAL_REASON_BYTES])
{
    peal_storage own = {.descriptor = -1};
    peal_diagnostics *found = peal_diagnostics_create();
    peal_status status = peal_storage_create_mailbox(space, TRIAL_BYTES, found, &own);
    if (status)
        keep_reason(found, reason);
    peal_storage_release(&own);
    peal_diagnostics_destroy(found);
    return status ? reason : NULL;
}

/* Collective: the first reason that a process has, with its number, in all of them. */
static peal_status collect(peal_session *session, const char *mine, char *out)
{
    int processes = session->identity.processes;
    char own[PEAL_REASON_BYTES] = "", *all = calloc((size_t)processes, PEAL_REASON_BYTES);
    snprintf(own, sizeof(own), "%s", mine);
    peal_status status =
        all ? peal_control_allgather(session->control, own, sizeof(own), all)
            : peal_report(session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                          "no memory for what %d processes say", processes);
    *out = 0;
    for (int p = 0; !status && p < processes && !*out; p++)
        if (all[(size_t)p * PEAL_REASON_BYTES])
            snprintf(out, PEAL_REASON_BYTES, "process %d: %.*s", p, PEAL_REASON_BYTES - 24,
                     all + (size_t)p * PEAL_REASON_BYTES);
    free(all);
    return status;
}

/* The memory of the next process of this host, if there is one. */
static peal_status import_next(peal_session *session, const peal_memory_space *space, int key,
                               peal_diagnostics *found, peal_storage *out)
{
    int descriptor, own = session->identity.process, next = own;
    do
        next = (next + 1) % session->identity.processes;
    while (!peal_session_is_near(session, next));
    if (next == own)
        return PEAL_STATUS_OK;
    peal_status status = peal_control_fetch(session->control, next, key, &descriptor, NULL);
    return status ? status : peal_storage_import(space, descriptor, TRIAL_BYTES, found, out);
}

/* Collective: reason[0] is 0 if the path works. */
static peal_status try_out(peal_session *session, const peal_memory_space *space, char *reason)
{
    peal_storage own = {.descriptor = -1}, theirs = {.descriptor = -1};
    peal_diagnostics *found = peal_diagnostics_create();
    char mine[PEAL_REASON_BYTES] = "";
    int key = session->next_key++;
    peal_status status = PEAL_STATUS_OK;
    if (peal_storage_create_mailbox(space, TRIAL_BYTES, found, &own))
        keep_reason(found, mine);
    else
        status = peal_control_publish(session->control, key, own.descriptor, TRIAL_BYTES);
    if (!status)
        status = collect(session, mine, reason); /* whether all have published */
    if (!status && !*reason) {
        if (import_next(session, space, key, found, &theirs))
            keep_reason(found, mine);
        peal_storage_release(&theirs);
        status = collect(session, mine, reason);
    }
    peal_control_withdraw(session->control, key);
    peal_storage_release(&own);
    peal_diagnostics_destroy(found);
    return status;
}

/* Collective: fills the session's peer_paths at `path`. */
static peal_status look(peal_session *session, peal_path path)
{
    const peal_memory_ops *memory = peal_backend_accelerated()->memory;
    const peal_memory_space space = {.memory = memory,
                                     .device = session->device,
                                     .mode = PEAL_MODE_STREAM,
                                     .path = path};
    const char *mine = NULL;
    char *reason = session->peer_paths->reason[path];
    for (int p = 0; p < session->identity.processes && !mine; p++)
        if (p != session->identity.process && peal_session_is_near(session, p))
            mine = memory->refuses_path(session->device, path, &session->neighbours[p]);
    peal_status status = collect(session, mine ? mine : "", reason);
    if (!status && !*reason)
        status = try_out(session, &space, reason);
    session->peer_paths->asked[path] = !status;
    return status;
}

/* ---- taking ---- */

static peal_status none_left(peal_session *session, const char *name, const char *tried)
{
    bool forced = name && strcmp(name, "auto") != 0;
    return peal_report(session->diagnostics, PEAL_E_NO_GPU_TRANSPORT, PEAL_NO_SOURCE,
                       forced ? "--transport auto takes the first that works; `peal doctor` lists "
                                "them all"
                              : "host all ranks in one process (--processes 1) or on the CPU "
                                "(--backend host)",
                       "%s between the GPUs of %d processes: %s",
                       forced ? "the transport that was asked for cannot be used"
                              : "there is no transport",
                       session->identity.processes, tried);
}

static peal_status check_network(peal_session *session)
{
    char reason[PEAL_REASON_BYTES];
    const char *mine = peal_backend_accelerated()->memory->refuses_path(
        session->device, PEAL_PATH_STAGED, &session->neighbours[session->identity.process]);
    peal_status status = collect(session, mine ? mine : "", reason);
    if (status || !*reason)
        return status;
    return peal_report(session->diagnostics, PEAL_E_NO_GPU_TRANSPORT, PEAL_NO_SOURCE,
                       "run on the CPU (--backend host)",
                       "messages of GPUs cannot go to other hosts: %s", reason);
}

static peal_status choose(peal_session *session, const char *name, peal_path *out, char *note,
                          size_t bytes)
{
    char tried[PEAL_PATH_COUNT * (PEAL_REASON_BYTES + 24)] = "";
    size_t used = 0;
    if (!session->peer_paths)
        session->peer_paths = calloc(1, sizeof(*session->peer_paths));
    if (!session->peer_paths)
        return peal_report(session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                           "no memory for the paths between processes");
    for (int path = PEAL_PATH_VMM; path < PEAL_PATH_COUNT; path++) {
        if (!peal_transport_allows(name, (peal_path)path))
            continue;
        peal_status status =
            session->peer_paths->asked[path] ? PEAL_STATUS_OK : look(session, (peal_path)path);
        if (status)
            return status;
        const char *reason = session->peer_paths->reason[path];
        if (!*reason) {
            *out = (peal_path)path;
            snprintf(note, bytes, "%s", tried);
            return PEAL_STATUS_OK;
        }
        used += (size_t)snprintf(tried + used, sizeof(tried) - used, "%snot %s: %s",
                                 used ? "; " : "", peal_path_name((peal_path)path), reason);
    }
    return none_left(session, name, tried);
}

peal_status peal_peer_path_settle(peal_session *session, const char *name, peal_machine *machine,
                                  char *note, size_t bytes)
{
    int hosts = peal_machine_hosts(machine);
    peal_status status = hosts > 1 ? check_network(session) : PEAL_STATUS_OK;
    machine->path = PEAL_PATH_NONE;
    *note = 0;
    return status || hosts == machine->processes
               ? status
               : choose(session, name, &machine->path, note, bytes);
}
