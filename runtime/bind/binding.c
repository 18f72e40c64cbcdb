/* Binds schedules to memory: segments of the ranks here, mappings of their peers. */
#define _GNU_SOURCE
#include "runtime/bind/binding.h"
#include "runtime/bind/puts.h"
#include "runtime/session/device.h"
#include "runtime/transports/transports.h"

#include <peal/plugin/transport.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void peal_machine_ranks(const peal_machine *machine, int process, int *first, int *end)
{
    int64_t ranks = machine->ranks, processes = machine->processes;
    if (process < 0 || process >= machine->processes) {
        *first = *end = 0;
        return;
    }
    if (machine->process_of) {
        for (*first = 0; machine->process_of[*first] != process; ++*first)
            continue;
        *end = *first + 1;
        return;
    }
    /* the smallest r with r * processes / ranks >= process */
    *first = (int)((process * ranks + processes - 1) / processes);
    *end = (int)(((process + 1) * ranks + processes - 1) / processes);
}

static peal_status no_memory(peal_session *session)
{
    return peal_report(session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                       "no memory for the tables of a plan");
}

/* Initial contents of constant arrays; everything else is zero already. */
static peal_status fill_constants(const peal_binding *binding, peal_bound_rank *rank)
{
    peal_status status = PEAL_STATUS_OK;
    for (int a = 0; !status && a < rank->schedule->array_count; a++) {
        const peal_schedule_array *array = &rank->schedule->array[a];
        if (array->constant && array->layout.offset >= 0 && array->layout.bytes > 0)
            status = peal_space_write(&binding->space, rank->segment.base + array->layout.offset,
                                      array->constant, array->layout.bytes,
                                      binding->session->diagnostics);
    }
    return status;
}

/* Another process of this host, which maps the rank's memory. */
static bool has_near_peer(const peal_schedule *schedule, int process)
{
    for (int i = 0; i < schedule->peer_count; i++)
        if (schedule->peer[i].process != process &&
            peal_machine_share_host(schedule->machine, schedule->rank, schedule->peer[i].rank))
            return true;
    return false;
}

static bool has_far_peer(const peal_schedule *schedule)
{
    for (int i = 0; i < schedule->peer_count; i++)
        if (!peal_machine_share_host(schedule->machine, schedule->rank, schedule->peer[i].rank))
            return true;
    return false;
}

/* Ranks on devices that don't reach each other's memory meet in the host's. */
static bool is_staged(const peal_binding *binding)
{
    return binding->space.memory && binding->space.path == PEAL_PATH_STAGED;
}

/* In the host's memory, also where those of this host meet in the device's: what comes from others
 * is put there by the host. */
static peal_status allocate_mailbox(const peal_binding *binding, peal_bound_rank *rank)
{
    const peal_schedule *schedule = rank->schedule;
    peal_status status =
        peal_storage_create_pinned(&binding->space,
                                   schedule->segment_bytes - schedule->mailbox_offset,
                                   binding->session->diagnostics, &rank->mailbox);
    if (!status)
        rank->words = rank->mailbox.segment.base - schedule->mailbox_offset;
    return status;
}

static bool allocate_tables(peal_bound_rank *rank)
{
    size_t peers = (size_t)rank->schedule->peer_count + 1;
    rank->peer_segment = calloc(peers, sizeof(*rank->peer_segment));
    rank->peer_mailbox = calloc(peers, sizeof(*rank->peer_mailbox));
    rank->peer_words = calloc(peers, sizeof(*rank->peer_words));
    return rank->peer_segment && rank->peer_mailbox && rank->peer_words;
}

static peal_status allocate_rank(peal_binding *binding, peal_compilation *compilation, int index)
{
    peal_session *session = binding->session;
    peal_bound_rank *rank = &binding->rank[index];
    int number = binding->first + index;
    peal_status status = peal_compilation_schedule(compilation, number, &rank->schedule);
    if (status)
        return status;
    bool shared = binding->processes > 1 && has_near_peer(rank->schedule, binding->process);
    bool far = binding->processes > 1 && has_far_peer(rank->schedule);
    if (!allocate_tables(rank))
        return no_memory(session);
    if (index == 0)
        binding->space =
            peal_session_memory_space(session, rank->schedule->machine, rank->schedule->mode);
    bool staged = shared && is_staged(binding);
    status = peal_storage_create_used(&binding->space, rank->schedule->segment_bytes,
                                      rank->schedule->used_bytes, shared && !staged,
                                      session->diagnostics, &rank->segment);
    rank->words = rank->segment.base;
    if (!status && (staged || (far && binding->space.memory)))
        status = allocate_mailbox(binding, rank);
    if (!status)
        status = fill_constants(binding, rank);
    if (status)
        return status;
    binding->backend_rank[index] = (peal_backend_rank){
        .schedule = rank->schedule,
        .segment = rank->segment.base,
        .peer_segment = rank->peer_segment,
        .mailbox = rank->mailbox.base,
        .peer_mailbox = rank->peer_mailbox,
    };
    if (!shared)
        return PEAL_STATUS_OK;
    const peal_storage *offered = staged ? &rank->mailbox : &rank->segment;
    return peal_control_publish(session->control, binding->key + number, offered->descriptor,
                                offered->offered);
}

peal_status peal_binding_allocate(peal_binding *binding, peal_session *session,
                                  peal_compilation *compilation, const peal_machine *machine,
                                  int process)
{
    int end;
    memset(binding, 0, sizeof(*binding));
    binding->session = session;
    binding->process = process;
    binding->processes = machine->processes;
    peal_machine_ranks(machine, process, &binding->first, &end);
    binding->key = session->next_key;
    if (machine->processes > 1)
        session->next_key += machine->ranks;
    int count = end - binding->first;
    binding->rank = calloc((size_t)count + 1, sizeof(*binding->rank));
    binding->backend_rank = calloc((size_t)count + 1, sizeof(*binding->backend_rank));
    binding->imported = calloc((size_t)machine->ranks, sizeof(*binding->imported));
    if (!binding->rank || !binding->backend_rank || !binding->imported)
        return no_memory(session);
    for (; binding->count < count; binding->count++)
        binding->rank[binding->count].segment.descriptor = -1;
    peal_status status = PEAL_STATUS_OK;
    for (int i = 0; !status && i < count; i++)
        status = allocate_rank(binding, compilation, i);
    return status;
}

/* ---- what a transport asks for ---- */

static bool same_host(void *user, int process)
{
    const peal_binding *binding = user;
    const int *host = peal_control_hosts(binding->session->control);
    return !host || host[process] == host[binding->process];
}

static unsigned char *hosted(void *user, int rank)
{
    const peal_binding *binding = user;
    int index = rank - binding->first;
    return index >= 0 && index < binding->count ? binding->rank[index].segment.base : NULL;
}

static peal_status import(void *user, int process, int rank, int64_t bytes, unsigned char **base)
{
    peal_binding *binding = user;
    for (int i = 0; i < binding->imported_count; i++)
        if (binding->imported[i].rank == rank) {
            *base = binding->imported[i].segment.base;
            return PEAL_STATUS_OK;
        }
    int descriptor;
    int64_t offered;
    peal_imported *imported = &binding->imported[binding->imported_count];
    peal_status status = peal_control_fetch(binding->session->control, process, binding->key + rank,
                                            &descriptor, &offered);
    if (status)
        return status;
    /* Nobody touches what lies behind that. */
    bool is_part = offered > 0 && offered < bytes;
    status = peal_storage_import(&binding->space, descriptor, is_part ? offered : bytes,
                                 binding->session->diagnostics, &imported->segment);
    if (status)
        return status;
    imported->rank = rank;
    binding->imported_count++;
    *base = imported->segment.base;
    return PEAL_STATUS_OK;
}

/* Only what this process's own messages need is ever touched; on a device all of it is pinned. */
static peal_status shadow(void *user, int64_t bytes, unsigned char **base)
{
    peal_binding *binding = user;
    if (binding->shadow_count == binding->shadow_room) {
        int room = 2 * binding->shadow_room + 16;
        peal_bound_shadow *more = realloc(binding->shadow, (size_t)room * sizeof(*more));
        if (!more)
            return no_memory(binding->session);
        binding->shadow = more;
        binding->shadow_room = room;
    }
    peal_bound_shadow *made = &binding->shadow[binding->shadow_count];
    *made = (peal_bound_shadow){.bytes = bytes};
    if (binding->space.memory) {
        peal_status status =
            peal_storage_create_pinned(&binding->space, bytes, binding->session->diagnostics,
                                       &made->pinned);
        if (status)
            return status;
        made->base = made->pinned.segment.base;
    } else {
        void *memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            return no_memory(binding->session);
        made->base = memory;
    }
    binding->shadow_count++;
    *base = made->base;
    return PEAL_STATUS_OK;
}

/* As if all of the peer's segment were there. */
static void place_shadow(const peal_binding *binding, peal_bound_rank *rank, int peer)
{
    const peal_bound_shadow *made = &binding->shadow[binding->shadow_count - 1];
    rank->peer_words[peer] = made->base - rank->schedule->peer[peer].mailbox_offset;
    rank->peer_segment[peer] = binding->space.memory ? NULL : rank->peer_words[peer];
    rank->peer_mailbox[peer] = binding->space.memory ? made->pinned.base : NULL;
}

static const char *device_refuses(void *user, int process)
{
    const peal_binding *binding = user;
    const peal_memory_space *space = &binding->space;
    const peal_device_identity *neighbours = binding->session->neighbours;
    if (!space->memory)
        return "the ranks are in the host's memory";
    return neighbours
               ? space->memory->refuses_path(space->device, space->path, &neighbours[process])
               : NULL;
}

/* The transport of the channels with a peer; none: the nearest. */
static peal_transport_kind transport_with(peal_binding *binding, const peal_schedule *schedule,
                                          int peer)
{
    int process = schedule->peer[peer].process;
    for (int c = 0; c < schedule->channel_count; c++)
        if (schedule->channel[c].peer_index == peer)
            return schedule->channel[c].transport;
    if (process == binding->process)
        return PEAL_TRANSPORT_SELF;
    if (!same_host(binding, process))
        return peal_transport_is_network(schedule->machine->network) ? schedule->machine->network
                                                                     : PEAL_TRANSPORT_TCP;
    return schedule->machine->accelerator && schedule->machine->path != PEAL_PATH_STAGED
               ? PEAL_TRANSPORT_P2P
               : PEAL_TRANSPORT_SHM;
}

static peal_status attach_rank(peal_binding *binding, peal_bound_rank *rank)
{
    const peal_transport_site site = {
        .size = sizeof(site),
        .process = binding->process,
        .user = binding,
        .same_host = same_host,
        .hosted = hosted,
        .import = import,
        .shadow = shadow,
        .device_refuses = device_refuses,
    };
    const peal_schedule *schedule = rank->schedule;
    for (int i = 0; i < schedule->peer_count; i++) {
        const peal_peer *peer = &schedule->peer[i];
        peal_transport_kind kind = transport_with(binding, schedule, i);
        const peal_transport_ops *transport = peal_transport_of(kind);
        const char *reason =
            transport ? transport->refuses(&site, peer->process) : "it is not part of this build";
        if (reason)
            return peal_report(binding->session->diagnostics, PEAL_E_NO_PATH_TO_NEIGHBOUR,
                               PEAL_NO_SOURCE, NULL,
                               "rank %d (process %d) cannot reach rank %d (process %d) by %s: %s",
                               schedule->rank, binding->process, peer->rank, peer->process,
                               peal_transport_name(kind), reason);
        bool mailbox = kind == PEAL_TRANSPORT_SHM && is_staged(binding);
        bool behind_arrays = mailbox || peal_transport_is_network(kind);
        unsigned char **base = mailbox ? &rank->peer_mailbox[i] : &rank->peer_segment[i];
        peal_status status =
            transport->attach(&site, peer->process, peer->rank,
                              peer->segment_bytes - (behind_arrays ? peer->mailbox_offset : 0),
                              base);
        if (status)
            return status;
        if (peal_transport_is_network(kind))
            place_shadow(binding, rank, i);
    }
    for (int c = 0; c < schedule->channel_count; c++)
        binding->transports |= 1u << schedule->channel[c].transport;
    return PEAL_STATUS_OK;
}

peal_status peal_binding_attach(peal_binding *binding)
{
    peal_status status = PEAL_STATUS_OK;
    for (int i = 0; !status && i < binding->count; i++)
        status = attach_rank(binding, &binding->rank[i]);
    return status;
}

peal_status peal_binding_connect(peal_binding *binding)
{
    for (peal_transport_kind kind = PEAL_TRANSPORT_TCP; kind < PEAL_TRANSPORT_COUNT; kind++)
        if (binding->transports >> kind & 1) /* a plan uses one of them */
            return peal_bound_puts_create(binding, kind, &binding->puts);
    return PEAL_STATUS_OK;
}

void peal_binding_release(peal_binding *binding)
{
    if (!binding)
        return;
    peal_bound_puts_destroy(binding->puts);
    for (int i = 0; i < binding->shadow_count; i++)
        if (binding->shadow[i].pinned.base)
            peal_storage_release(&binding->shadow[i].pinned);
        else
            munmap(binding->shadow[i].base, (size_t)binding->shadow[i].bytes);
    free(binding->shadow);
    for (int i = 0; i < binding->imported_count; i++)
        peal_storage_release(&binding->imported[i].segment);
    for (int i = 0; i < binding->count; i++) {
        if (binding->processes > 1)
            peal_control_withdraw(binding->session->control, binding->key + binding->first + i);
        free(binding->rank[i].peer_segment);
        free(binding->rank[i].peer_mailbox);
        free(binding->rank[i].peer_words);
        peal_storage_release(&binding->rank[i].mailbox);
        peal_storage_release(&binding->rank[i].segment);
    }
    free(binding->imported);
    free(binding->backend_rank);
    free(binding->rank);
    memset(binding, 0, sizeof(*binding));
}

int64_t peal_binding_bytes(const peal_binding *binding)
{
    int64_t bytes = 0;
    for (int i = 0; i < binding->count; i++)
        bytes += binding->rank[i].segment.bytes + binding->rank[i].mailbox.bytes;
    return bytes;
}

unsigned char *peal_binding_array(const peal_binding *binding, int index, int storage)
{
    const peal_bound_rank *rank = &binding->rank[index];
    const peal_schedule_array *array = &rank->schedule->array[storage];
    return array->layout.offset >= 0 ? rank->segment.base + array->layout.offset : array->lent;
}

peal_status peal_binding_read(const peal_binding *binding, int index, int storage,
                              unsigned char **copy, const unsigned char **data)
{
    const peal_bound_rank *rank = &binding->rank[index];
    const peal_layout *layout = &rank->schedule->array[storage].layout;
    unsigned char *array = peal_binding_array(binding, index, storage);
    *copy = NULL;
    *data = array;
    if (!binding->space.memory || rank->segment.host_visible || !array || layout->bytes <= 0)
        return PEAL_STATUS_OK;
    *copy = malloc((size_t)layout->bytes);
    if (!*copy)
        return no_memory(binding->session);
    *data = *copy;
    peal_status status = peal_space_read(&binding->space, *copy, array, layout->bytes,
                                         binding->session->diagnostics);
    if (status) {
        free(*copy);
        *copy = NULL;
    }
    return status;
}
