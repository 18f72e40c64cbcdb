/* The bootstrap of a job of one process: it reads back what it wrote. */
#include "runtime/bootstrap/bootstrap.h"

#include <stdlib.h>
#include <string.h>

typedef struct single {
    peal_bootstrap base;
    int round;
    void *blob;
    size_t bytes;
} single;

static peal_status identity(peal_bootstrap *bootstrap, peal_bootstrap_identity *out)
{
    (void)bootstrap;
    *out = (peal_bootstrap_identity){0, 1, 0, 1, "single"};
    return PEAL_STATUS_OK;
}

static peal_status put(peal_bootstrap *bootstrap, int round, const void *blob, size_t bytes)
{
    single *self = (single *)bootstrap;
    void *copy = malloc(bytes ? bytes : 1);
    if (!copy)
        return PEAL_STATUS_ENVIRONMENT;
    memcpy(copy, blob, bytes);
    free(self->blob);
    self->blob = copy;
    self->bytes = bytes;
    self->round = round;
    return PEAL_STATUS_OK;
}

static peal_status get(peal_bootstrap *bootstrap, int round, int process, int64_t deadline_ns,
                       void *blob, size_t capacity, size_t *bytes)
{
    single *self = (single *)bootstrap;
    (void)deadline_ns;
    if (process != 0 || !self->blob || round != self->round || self->bytes > capacity)
        return PEAL_STATUS_USAGE;
    memcpy(blob, self->blob, self->bytes);
    *bytes = self->bytes;
    return PEAL_STATUS_OK;
}

static void end_job(peal_bootstrap *bootstrap, int code, const char *message)
{
    (void)bootstrap;
    (void)code;
    (void)message;
}

static void close_single(peal_bootstrap *bootstrap)
{
    single *self = (single *)bootstrap;
    free(self->blob);
    free(self);
}

static const peal_bootstrap_ops single_ops = {
    sizeof(peal_bootstrap_ops), identity, put, get, end_job, close_single};

peal_status peal_bootstrap_single(peal_diagnostics *diagnostics, peal_bootstrap **out)
{
    single *self = calloc(1, sizeof(*self));
    if (!self)
        return peal_report(diagnostics, PEAL_E_SYSTEM_CALL_FAILED, (peal_source){0}, NULL,
                           "out of memory for the bootstrap");
    self->base.ops = &single_ops;
    *out = &self->base;
    return PEAL_STATUS_OK;
}
