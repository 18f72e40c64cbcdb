/* Whether the memory that all processes of a host are about to take is there: compared before any
 * of them touches a page, since a host that runs out of memory kills somebody. */
#include "base/checked.h"
#include "runtime/bind/binding.h"
#include "runtime/memory/available.h"

#include <inttypes.h>
#include <stdlib.h>

static int64_t in_pages(int64_t bytes)
{
    const int64_t page = 4096;
    return bytes > INT64_MAX - page ? INT64_MAX : (bytes + page - 1) / page * page;
}

static void add(int64_t *sum, int64_t bytes)
{
    if (__builtin_add_overflow(*sum, in_pages(bytes), sum))
        *sum = INT64_MAX;
}

/* Slots that messages to other hosts are packed into. */
static void add_shadows(int64_t *sum, const peal_schedule *schedule)
{
    for (int i = 0; i < schedule->channel_count; i++) {
        const peal_channel *c = &schedule->channel[i];
        int64_t bytes;
        if (!c->outgoing || !peal_transport_is_network(c->transport) || !c->staged_count)
            continue;
        if (peal_multiply_overflows(c->slots, c->staging_bytes, &bytes))
            bytes = INT64_MAX / 2;
        add(sum, bytes);
    }
}

/* Of ranks on a device: the rank's own, and whole shadows of others. */
static void add_mailboxes(int64_t *sum, const peal_machine *machine, const peal_schedule *schedule)
{
    bool has_own = machine->path == PEAL_PATH_STAGED;
    for (int i = 0; i < schedule->peer_count; i++) {
        const peal_peer *peer = &schedule->peer[i];
        if (peal_machine_share_host(machine, schedule->rank, peer->rank))
            continue;
        has_own = true;
        add(sum, peer->segment_bytes - peer->mailbox_offset);
    }
    if (has_own)
        add(sum, schedule->segment_bytes - schedule->mailbox_offset);
}

/* Of the host's memory: what is on a device is asked for there. */
static peal_status need_of(const peal_session *session, peal_compilation *compilation,
                           const peal_machine *machine, int64_t *need)
{
    int first, end;
    peal_status status = PEAL_STATUS_OK;
    peal_machine_ranks(machine, session->identity.process, &first, &end);
    *need = 0;
    for (int rank = first; !status && rank < end; rank++) {
        const peal_schedule *schedule;
        status = peal_compilation_schedule(compilation, rank, &schedule);
        if (status)
            break;
        if (!machine->accelerator) {
            add(need, schedule->used_bytes);
            add_shadows(need, schedule);
        } else
            add_mailboxes(need, machine, schedule);
    }
    return status;
}

/* Limits of another host are others, whatever they are called there. */
static void keep_apart(const peal_session *session, peal_memory_room *room)
{
    const int *host = peal_control_hosts(session->control);
    for (int i = 0; host && i < room->limit_count; i++)
        room->limit[i].id ^=
            (uint64_t)host[session->identity.process] * UINT64_C(0x9e3779b97f4a7c15);
}

static peal_status judge(peal_session *session, const peal_memory_room *all)
{
    int64_t need, have;
    int sharers, processes = session->identity.processes;
    const char *name;
    if (!peal_memory_room_exceeded(all, processes, &need, &have, &sharers, &name))
        return PEAL_STATUS_OK;
    return peal_report(session->diagnostics, PEAL_E_NOT_ENOUGH_MEMORY, PEAL_NO_SOURCE,
                       "use smaller fields, fewer ranks on this host, or a larger memory limit",
                       "the ranks of %d process%s of this host need %" PRId64
                       " bytes of memory together, they can have %" PRId64 " (%s)",
                       sharers, sharers == 1 ? "" : "es", need, have, name);
}

peal_status peal_binding_check_memory(peal_session *session, peal_compilation *compilation,
                                      const peal_machine *machine)
{
    int processes = session->identity.processes,
        from = peal_diagnostics_count(session->diagnostics);
    int64_t need = 0;
    peal_session_running(session, true); /* schedules are made: the others wait for it */
    peal_status status = need_of(session, compilation, machine, &need);
    peal_session_running(session, false);
    peal_memory_room *all = calloc((size_t)processes, sizeof(*all)), own;
    if (!status && !all)
        status = peal_report(session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                             "no memory for the needs of %d processes", processes);
    status = peal_session_agree(session, status, from);
    if (!status) {
        peal_memory_room_ask("", need, &own);
        keep_apart(session, &own);
        if (processes == 1)
            all[0] = own;
        else
            status = peal_control_allgather(session->control, &own, sizeof(own), all);
    }
    if (!status)
        status = judge(session, all); /* alike in all processes */
    else if (peal_session_status(session))
        status = peal_session_cause(session);
    free(all);
    return status;
}
