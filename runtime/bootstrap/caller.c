/* The bootstrap of an application that lends its own allgather (include/peal/bootstrap.h).
 *
 * The first get of a round is collective: sizes first, then all blobs at the largest size. */
#include "base/host.h"
#include "runtime/bootstrap/bootstrap.h"

#include <stdlib.h>
#include <string.h>

enum { BLOB_LIMIT = 1 << 20 };

typedef struct caller {
    peal_bootstrap base;
    peal_bootstrap_callbacks callbacks;
    peal_bootstrap_identity me; /* no processes: not asked for yet */
    int put_round, got_round;   /* -1: none yet */
    void *mine;
    int64_t mine_bytes;
    unsigned char *all; /* processes blobs of `stride` bytes, of got_round */
    int64_t *all_bytes;
    int64_t stride;
} caller;

/* How many processes are on the host of this one, and which of them it is: all tell each other. */
static peal_status ask_hosts(caller *self, peal_bootstrap_identity *me)
{
    char mine[PEAL_HOST_BYTES] = "";
    int processes = me->processes;
    me->local_process = me->local_processes = 0;
    char(*all)[PEAL_HOST_BYTES] = calloc((size_t)processes, sizeof(*all));
    if (!all)
        return PEAL_STATUS_ENVIRONMENT;
    peal_host_identity(mine, sizeof(mine)); /* where there is none, the control plane says so */
    int failed = self->callbacks.allgather(self->callbacks.user, mine, sizeof(mine), all);
    for (int p = 0; p < processes; p++)
        if (!failed && !memcmp(all[p], mine, sizeof(mine))) {
            me->local_process += p < me->process;
            me->local_processes++;
        }
    free(all);
    return failed ? PEAL_STATUS_ENVIRONMENT : PEAL_STATUS_OK;
}

/* Collective the first time. */
static peal_status identity(peal_bootstrap *bootstrap, peal_bootstrap_identity *out)
{
    caller *self = (caller *)bootstrap;
    int process = self->callbacks.process, processes = self->callbacks.processes;
    if (!self->me.processes) {
        peal_bootstrap_identity me = {process, processes, process, processes, "caller", NULL};
        peal_status status = processes > 1 ? ask_hosts(self, &me) : PEAL_STATUS_OK;
        if (status != PEAL_STATUS_OK)
            return status;
        self->me = me;
    }
    *out = self->me;
    return PEAL_STATUS_OK;
}

static peal_status put(peal_bootstrap *bootstrap, int round, const void *blob, size_t bytes)
{
    caller *self = (caller *)bootstrap;
    if (bytes > BLOB_LIMIT)
        return PEAL_STATUS_USAGE;
    void *copy = malloc(bytes ? bytes : 1);
    if (!copy)
        return PEAL_STATUS_ENVIRONMENT;
    memcpy(copy, blob, bytes);
    free(self->mine);
    self->mine = copy;
    self->mine_bytes = (int64_t)bytes;
    self->put_round = round;
    return PEAL_STATUS_OK;
}

static peal_status exchange_sizes(caller *self)
{
    int64_t largest = 0;
    if (self->callbacks.allgather(self->callbacks.user, &self->mine_bytes, sizeof(int64_t),
                                  self->all_bytes))
        return PEAL_STATUS_ENVIRONMENT;
    for (int p = 0; p < self->callbacks.processes; p++) {
        int64_t bytes = self->all_bytes[p];
        if (bytes < 0 || bytes > BLOB_LIMIT)
            return PEAL_STATUS_ENVIRONMENT;
        largest = bytes > largest ? bytes : largest;
    }
    self->stride = largest ? largest : 1;
    return PEAL_STATUS_OK;
}

static peal_status exchange_round(caller *self)
{
    size_t processes = (size_t)self->callbacks.processes;
    peal_status status = exchange_sizes(self);
    if (status != PEAL_STATUS_OK)
        return status;
    unsigned char *padded = calloc(1, (size_t)self->stride);
    unsigned char *all = calloc(processes, (size_t)self->stride);
    if (!padded || !all)
        status = PEAL_STATUS_ENVIRONMENT;
    else {
        size_t bytes = (size_t)(self->mine_bytes < self->stride ? self->mine_bytes : self->stride);
        memcpy(padded, self->mine, bytes);
        if (self->callbacks.allgather(self->callbacks.user, padded, (size_t)self->stride, all))
            status = PEAL_STATUS_ENVIRONMENT;
    }
    free(padded);
    if (status != PEAL_STATUS_OK) {
        free(all);
        return status;
    }
    free(self->all);
    self->all = all;
    self->got_round = self->put_round;
    return PEAL_STATUS_OK;
}

static peal_status get(peal_bootstrap *bootstrap, int round, int process, int64_t deadline_ns,
                       void *blob, size_t capacity, size_t *bytes)
{
    caller *self = (caller *)bootstrap;
    (void)deadline_ns; /* the application's allgather returns when it returns */
    if (round != self->put_round || process < 0 || process >= self->callbacks.processes)
        return PEAL_STATUS_USAGE;
    if (self->got_round != round) {
        peal_status status = exchange_round(self);
        if (status != PEAL_STATUS_OK)
            return status;
    }
    size_t there = (size_t)self->all_bytes[process];
    if (there > capacity)
        return PEAL_STATUS_USAGE;
    memcpy(blob, self->all + process * self->stride, there);
    *bytes = there;
    return PEAL_STATUS_OK;
}

static void end_job(peal_bootstrap *bootstrap, int code, const char *message)
{
    const caller *self = (const caller *)bootstrap;
    if (self->callbacks.abort)
        self->callbacks.abort(self->callbacks.user, code, message);
}

static void close_caller(peal_bootstrap *bootstrap)
{
    caller *self = (caller *)bootstrap;
    free(self->mine);
    free(self->all);
    free(self->all_bytes);
    free(self);
}

static const peal_bootstrap_ops caller_ops = {
    sizeof(peal_bootstrap_ops), identity, put, get, end_job, close_caller};

peal_status peal_bootstrap_caller(const peal_bootstrap_callbacks *callbacks,
                                  peal_diagnostics *diagnostics, peal_bootstrap **out)
{
    peal_source nowhere = {0};
    if (callbacks->size_bytes != sizeof(*callbacks))
        return peal_report(diagnostics, PEAL_E_BOOTSTRAP_FAILED, nowhere,
                           "set .size_bytes = sizeof(peal_bootstrap_callbacks)",
                           "the callbacks' size is %zu, expected %zu", callbacks->size_bytes,
                           sizeof(*callbacks));
    if (callbacks->processes < 1 || callbacks->process < 0 ||
        callbacks->process >= callbacks->processes)
        return peal_report(diagnostics, PEAL_E_BOOTSTRAP_FAILED, nowhere, NULL,
                           "the callbacks say process %d of %d", callbacks->process,
                           callbacks->processes);
    if (callbacks->processes > 1 && !callbacks->allgather)
        return peal_report(diagnostics, PEAL_E_BOOTSTRAP_FAILED, nowhere, NULL,
                           "%d processes need an allgather callback", callbacks->processes);
    caller *self = calloc(1, sizeof(*self));
    int64_t *sizes = calloc((size_t)callbacks->processes, sizeof(*sizes));
    if (!self || !sizes) {
        free(self);
        free(sizes);
        return peal_report(diagnostics, PEAL_E_SYSTEM_CALL_FAILED, nowhere, NULL,
                           "out of memory for the bootstrap of %d processes", callbacks->processes);
    }
    *self = (caller){.base = {&caller_ops},
                     .callbacks = *callbacks,
                     .put_round = -1,
                     .got_round = -1,
                     .all_bytes = sizes};
    *out = &self->base;
    return PEAL_STATUS_OK;
}
