/* The bootstrap of a process that `peal run` has started: blobs go by the launcher, on the socket
 * that the process has inherited.
 *
 * A get is answered once the other has put; an answer to a get that was given up is passed over. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/channel.h"
#include "runtime/bootstrap/parent.h"

#include "base/patience.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS_OF_A_SESSION = 1 << 16 };

typedef struct launched {
    peal_bootstrap base;
    peal_bootstrap_identity identity;
    peal_parent parent;
    int socket;
    int first_round;
    pid_t owner; /* a forked copy of this process does not speak for it */
} launched;

/* Sessions of one process follow each other on one socket: each has its own rounds. */
static _Atomic int sessions;

static peal_status identity(peal_bootstrap *bootstrap, peal_bootstrap_identity *out)
{
    *out = ((launched *)bootstrap)->identity;
    return PEAL_STATUS_OK;
}

static peal_status put(peal_bootstrap *bootstrap, int round, const void *blob, size_t bytes)
{
    const launched *self = (const launched *)bootstrap;
    if (bytes > PEAL_CHANNEL_BLOB_LIMIT)
        return PEAL_STATUS_USAGE;
    peal_packet packet = {
        PEAL_CHANNEL_MAGIC, PEAL_PACKET_PUT, self->identity.process, self->first_round + round, 0,
        (uint32_t)bytes};
    return peal_channel_send(self->socket, &packet, blob) ? PEAL_STATUS_OK
                                                          : PEAL_STATUS_ENVIRONMENT;
}

static void wait_for_packet(const launched *self, const peal_patience *patience)
{
    struct pollfd event = {self->socket, POLLIN, 0};
    poll(&event, 1, peal_patience_slice_ms(patience, peal_clock_ns()));
}

/* The answer for (process, round), past those that were given up. */
static peal_status await(const launched *self, int round, int process, int64_t deadline_ns,
                         void *blob, size_t capacity, size_t *bytes)
{
    peal_patience patience = peal_patience_begin(peal_clock_ns(), deadline_ns);
    peal_packet packet;
    unsigned char *data = malloc(PEAL_CHANNEL_BLOB_LIMIT);
    peal_status status = data ? PEAL_STATUS_DEADLINE : PEAL_STATUS_ENVIRONMENT;
    while (data) {
        int got = peal_channel_receive(self->socket, &packet, data, PEAL_CHANNEL_BLOB_LIMIT);
        bool ours = got > 0 && packet.round == round && packet.process == process;
        if (got < 0)
            status = PEAL_STATUS_PEER_LOST;
        else if (ours && packet.kind == PEAL_PACKET_LOST)
            status = PEAL_STATUS_PEER_LOST;
        else if (ours && packet.kind == PEAL_PACKET_BLOB)
            status = packet.bytes <= capacity ? PEAL_STATUS_OK : PEAL_STATUS_USAGE;
        if (got < 0 || status != PEAL_STATUS_DEADLINE)
            break;
        if (got > 0)
            continue;
        if (peal_patience_is_over(&patience, peal_clock_ns()))
            break;
        wait_for_packet(self, &patience);
    }
    if (status == PEAL_STATUS_OK) {
        memcpy(blob, data, packet.bytes);
        *bytes = packet.bytes;
    }
    free(data);
    return status;
}

static peal_status get(peal_bootstrap *bootstrap, int round, int process, int64_t deadline_ns,
                       void *blob, size_t capacity, size_t *bytes)
{
    const launched *self = (const launched *)bootstrap;
    peal_packet packet = {
        PEAL_CHANNEL_MAGIC, PEAL_PACKET_GET, process, self->first_round + round, 0, 0};
    if (process < 0 || process >= self->identity.processes)
        return PEAL_STATUS_USAGE;
    if (!peal_channel_send(self->socket, &packet, NULL))
        return PEAL_STATUS_PEER_LOST;
    return await(self, packet.round, process, deadline_ns, blob, capacity, bytes);
}

static void end_job(peal_bootstrap *bootstrap, int code, const char *message)
{
    const launched *self = (const launched *)bootstrap;
    size_t bytes = message ? strnlen(message, PEAL_CHANNEL_BLOB_LIMIT) : 0;
    peal_packet packet = {PEAL_CHANNEL_MAGIC, PEAL_PACKET_ABORT, self->identity.process, 0, code,
                          (uint32_t)bytes};
    peal_channel_send(self->socket, &packet, message);
}

static void close_launched(peal_bootstrap *bootstrap)
{
    launched *self = (launched *)bootstrap;
    peal_packet packet = {PEAL_CHANNEL_MAGIC, PEAL_PACKET_LEAVE, self->identity.process, 0, 0, 0};
    if (getpid() == self->owner)
        peal_channel_send(self->socket, &packet, NULL);
    peal_parent_close(&self->parent);
    free(self); /* the socket stays: a later session uses it, and the launcher sees our end by it */
}

static int launcher(peal_bootstrap *bootstrap)
{
    return ((launched *)bootstrap)->parent.watch;
}

static const peal_bootstrap_ops launched_ops = {
    sizeof(peal_bootstrap_ops), identity, put, get, end_job, close_launched, launcher};

peal_status peal_bootstrap_launched(peal_diagnostics *diagnostics, peal_bootstrap **out)
{
    int process = 0, processes = 0, local = 0, locals = 0, socket = peal_channel_inherited();
    if (socket < 0 || !peal_channel_identity(&process, &processes, &local, &locals))
        return peal_report(diagnostics, PEAL_E_BOOTSTRAP_FAILED, (peal_source){0}, NULL,
                           "the variables %s and %s make no sense", PEAL_CHANNEL_SOCKET,
                           PEAL_CHANNEL_PROCESS);
    launched *self = calloc(1, sizeof(*self));
    if (!self)
        return peal_report(diagnostics, PEAL_E_SYSTEM_CALL_FAILED, (peal_source){0}, NULL,
                           "out of memory for the bootstrap");
    self->base.ops = &launched_ops;
    self->socket = socket;
    self->identity = (peal_bootstrap_identity){process, processes, local,
                                               locals,  "peal",    getenv(PEAL_CHANNEL_NODE)};
    self->first_round = atomic_fetch_add(&sessions, 1) * ROUNDS_OF_A_SESSION;
    self->owner = getpid();
    peal_parent_open(socket, &self->parent);
    peal_packet packet = {PEAL_CHANNEL_MAGIC, PEAL_PACKET_JOIN, process, 0, 0, 0};
    if (!peal_channel_send(socket, &packet, NULL))
        peal_bootstrap_log("the launcher takes no packets");
    *out = &self->base;
    return PEAL_STATUS_OK;
}
