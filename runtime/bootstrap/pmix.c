/* The bootstrap under a launcher that serves PMIx (4.2 or later): mpirun, prterun, srun.
 *
 * What launchers say is not taken for granted: a fence always collects data and its status is
 * ignored, a get has its own clock besides PMIX_TIMEOUT and is repeated while the data is missing,
 * each round has a fresh key. Events of dead processes end a wait early where a launcher sends
 * them; nothing relies on them. */
#define _GNU_SOURCE
#include "base/backoff.h"
#include "base/clock.h"
#include "runtime/bootstrap/blocking.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/parent.h"
#include "runtime/bootstrap/pmix_request.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EVENT_CODES = 6 };

typedef struct pmix_client {
    peal_bootstrap base;
    pmix_proc_t me;
    peal_bootstrap_identity identity;
    uint64_t namespace_hash;
    int fenced_round; /* -1: none */
    int generation;
    size_t event_handler;
    bool has_event_handler;
    peal_parent parent;
    int64_t deadline_ns;
    pid_t owner; /* a forked copy of this process does not speak for it */
} pmix_client;

static void load_timeout(pmix_info_t *info, int64_t left_ns)
{
    int seconds = (int)((left_ns + 999999999) / 1000000000);
    seconds = seconds < 1 ? 1 : seconds;
    PMIX_INFO_LOAD(info, PMIX_TIMEOUT, &seconds, PMIX_INT);
}

static void print_key(const pmix_client *self, int round, char *key, size_t bytes)
{
    snprintf(key, bytes, "peal.%d.%d.%08x", self->generation, round,
             (unsigned)(self->namespace_hash & 0xffffffffu));
}

static peal_status identity(peal_bootstrap *bootstrap, peal_bootstrap_identity *out)
{
    *out = ((pmix_client *)bootstrap)->identity;
    return PEAL_STATUS_OK;
}

static peal_status put(peal_bootstrap *bootstrap, int round, const void *blob, size_t bytes)
{
    pmix_client *self = (pmix_client *)bootstrap;
    char key[64];
    void *copy = bytes <= PMIX_BLOB_LIMIT ? malloc(bytes ? bytes : 1) : NULL;
    if (!copy)
        return PEAL_STATUS_ENVIRONMENT;
    memcpy(copy, blob, bytes);
    print_key(self, round, key, sizeof(key));
    pmix_value_t value;
    memset(&value, 0, sizeof(value));
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = copy;
    value.data.bo.size = bytes;
    pmix_status_t status = PMIx_Put(PMIX_GLOBAL, key, &value);
    free(copy);
    if (status == PMIX_SUCCESS)
        status = PMIx_Commit();
    if (status == PMIX_SUCCESS)
        return PEAL_STATUS_OK;
    peal_bootstrap_log("PMIx put of %s: %s", key, PMIx_Error_string(status));
    return PEAL_STATUS_ENVIRONMENT;
}

/* With data, always: without, some launchers don't wait at all. Whatever it returns, the gets that
 * follow decide. */
static void fence(int64_t until_ns)
{
    pending *request = calloc(1, sizeof(*request));
    bool collect = true;
    if (!request)
        return;
    PMIX_INFO_LOAD(&request->info[0], PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    load_timeout(&request->info[1], until_ns - peal_clock_ns());
    pmix_status_t status = PMIx_Fence_nb(NULL, 0, request->info, 2, peal_pmix_done, request);
    if (status == PMIX_OPERATION_SUCCEEDED || status != PMIX_SUCCESS) {
        peal_bootstrap_log("PMIx fence: %s", PMIx_Error_string(status));
        free(request);
        return;
    }
    if (!peal_pmix_await(request, until_ns)) {
        peal_bootstrap_log("PMIx fence: not complete in time");
        return;
    }
    if (request->status != PMIX_SUCCESS)
        peal_bootstrap_log("PMIx fence: %s", PMIx_Error_string(request->status));
    free(request);
}

/* One attempt; OK with bytes set, or DEADLINE (no answer), or USAGE (an answer without data). */
static peal_status get_once(pmix_client *self, const char *key, int process, int64_t until_ns,
                            bool refresh, void *blob, size_t capacity, size_t *bytes)
{
    pending *request = calloc(1, sizeof(*request));
    if (!request)
        return PEAL_STATUS_ENVIRONMENT;
    snprintf(request->key, sizeof(request->key), "%s", key);
    PMIX_LOAD_PROCID(&request->peer, self->me.nspace, (pmix_rank_t)process);
    load_timeout(&request->info[0], until_ns - peal_clock_ns());
    PMIX_INFO_LOAD(&request->info[1], PMIX_GET_REFRESH_CACHE, &refresh, PMIX_BOOL);
    pmix_status_t status = PMIx_Get_nb(&request->peer, request->key, request->info, refresh ? 2 : 1,
                                       peal_pmix_value, request);
    if (status != PMIX_SUCCESS) {
        free(request);
        return PEAL_STATUS_USAGE;
    }
    if (!peal_pmix_await(request, until_ns))
        return peal_pmix_peer_is_lost() ? PEAL_STATUS_PEER_LOST : PEAL_STATUS_DEADLINE;
    peal_status result = PEAL_STATUS_USAGE;
    if (request->status == PMIX_SUCCESS && request->bytes <= capacity && request->bytes) {
        memcpy(blob, request->blob, request->bytes);
        *bytes = request->bytes;
        result = PEAL_STATUS_OK;
    }
    free(request);
    return result;
}

static peal_status get(peal_bootstrap *bootstrap, int round, int process, int64_t deadline_ns,
                       void *blob, size_t capacity, size_t *bytes)
{
    const int64_t first_ns = 1000000;
    pmix_client *self = (pmix_client *)bootstrap;
    int64_t start = peal_clock_ns(), until = start + deadline_ns;
    char key[64];
    print_key(self, round, key, sizeof(key));
    if (self->fenced_round != round) {
        fence(start + deadline_ns / 2);
        self->fenced_round = round;
    }
    for (peal_backoff backoff = {.sleep_ns = first_ns, .most_ns = 50000000, .growth = 1};;) {
        peal_status status =
            get_once(self, key, process, until, backoff.sleep_ns > first_ns, blob, capacity, bytes);
        if (status != PEAL_STATUS_USAGE)
            return status;
        if (peal_clock_ns() + backoff.sleep_ns >= until)
            return PEAL_STATUS_DEADLINE;
        peal_backoff_wait(&backoff);
    }
}

static void end_job(peal_bootstrap *bootstrap, int code, const char *message)
{
    (void)bootstrap;
    fflush(stderr);
    PMIx_Abort(code, message, NULL, 0);
}

static void forget(void *user)
{
    (void)user; /* the library may still use it */
}

static void finalize(void *user)
{
    pmix_client *self = user;
    if (self->has_event_handler)
        PMIx_Deregister_event_handler(self->event_handler, NULL, NULL);
    PMIx_Finalize(NULL, 0); /* else launchers call it an abnormal end */
}

static void close_pmix(peal_bootstrap *bootstrap)
{
    pmix_client *self = (pmix_client *)bootstrap;
    peal_pmix_silence();
    bool is_ours = getpid() == self->owner && !peal_parent_is_gone(&self->parent);
    bool closed = is_ours && peal_call_within(finalize, forget, self, self->deadline_ns);
    if (is_ours && !closed)
        peal_bootstrap_log("PMIx finalize: the server does not answer");
    peal_pmix_end(closed);
    peal_parent_close(&self->parent);
    if (closed || !is_ours)
        free(self);
}

static int launcher(peal_bootstrap *bootstrap)
{
    return ((pmix_client *)bootstrap)->parent.watch;
}

static const peal_bootstrap_ops pmix_ops = {
    sizeof(peal_bootstrap_ops), identity, put, get, end_job, close_pmix, launcher};

/* Explicit codes: a handler for all codes is told nothing by the launchers that were tried. */
static void register_events(pmix_client *self)
{
    static pmix_status_t codes[EVENT_CODES] = {PMIX_ERR_PROC_ABORTED_BY_SIG,
                                               PMIX_ERR_PROC_TERM_WO_SYNC,
                                               PMIX_ERR_JOB_ABORTED,
                                               PMIX_ERR_LOST_CONNECTION,
                                               PMIX_ERR_EXIT_NONZERO_TERM,
                                               -7 /* PMIX_ERR_PROC_ABORTED of earlier versions */};
    pending *request = calloc(1, sizeof(*request));
    if (!request)
        return;
    pmix_status_t status = PMIx_Register_event_handler(codes, EVENT_CODES, NULL, 0, peal_pmix_event,
                                                       peal_pmix_registered, request);
    if (status < 0) {
        free(request);
        return;
    }
    if (!peal_pmix_await(request, peal_clock_ns() + 1000000000))
        return;
    self->has_event_handler = request->status == PMIX_SUCCESS;
    self->event_handler = request->reference;
    free(request);
}

static bool get_number(const pmix_proc_t *process, const char *key, int64_t *out)
{
    pmix_value_t *value = NULL;
    pmix_info_t info[1];
    memset(info, 0, sizeof(info));
    load_timeout(info, INT64_C(5000000000));
    if (PMIx_Get(process, key, info, 1, &value) != PMIX_SUCCESS || !value)
        return false;
    bool found = true;
    if (value->type == PMIX_UINT32)
        *out = value->data.uint32;
    else if (value->type == PMIX_UINT16)
        *out = value->data.uint16;
    else if (value->type == PMIX_INT)
        *out = value->data.integer;
    else
        found = false;
    PMIX_VALUE_RELEASE(value);
    return found;
}

static peal_status ask_identity(pmix_client *self, peal_diagnostics *diagnostics)
{
    pmix_proc_t job;
    int64_t processes = 0, local_processes, local_process;
    PMIX_LOAD_PROCID(&job, self->me.nspace, PMIX_RANK_WILDCARD);
    if (!get_number(&job, PMIX_JOB_SIZE, &processes) || processes < 1 || processes > INT32_MAX ||
        self->me.rank >= (uint64_t)processes)
        return peal_report(diagnostics, PEAL_E_BOOTSTRAP_FAILED, (peal_source){0}, NULL,
                           "the launcher's PMIx server says rank %u of %d processes",
                           (unsigned)self->me.rank, (int)processes);
    if (!get_number(&job, PMIX_LOCAL_SIZE, &local_processes) || local_processes < 1 ||
        local_processes > processes)
        local_processes = processes; /* a hint only: the control plane proves who is where */
    if (!get_number(&self->me, PMIX_LOCAL_RANK, &local_process) || local_process < 0 ||
        local_process >= local_processes)
        local_process = (int64_t)self->me.rank % local_processes;
    self->identity =
        (peal_bootstrap_identity){(int)self->me.rank,   (int)processes, (int)local_process,
                                  (int)local_processes, "pmix",         NULL};
    return PEAL_STATUS_OK;
}

/* Namespaces hold characters that names may not: only their hash is used (FNV-1a). */
static uint64_t hash_text(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

static peal_status refuse(peal_diagnostics *diagnostics, pmix_status_t result)
{
    static const char *const hint = "check that the launcher's PMIx is 4.2 or later, or unset "
                                    "PMIX_NAMESPACE to run as one process";
    if (result == PMIX_ERR_UNREACH)
        return peal_report(
            diagnostics, PEAL_E_NO_PMIX_SERVER, (peal_source){0},
            "is the launcher still there? unset PMIX_NAMESPACE to run as one process",
            "no PMIx server answers for PMIX_NAMESPACE=%s", getenv("PMIX_NAMESPACE"));
    return peal_report(diagnostics, PEAL_E_BOOTSTRAP_FAILED, (peal_source){0}, hint,
                       "the launcher's PMIx server was not usable: %s", PMIx_Error_string(result));
}

/* What joining takes, and what it finds: by a thread that may outlive who asked. */
typedef struct joining {
    pmix_client *client;
    peal_diagnostics *diagnostics;
    bool has_joined;
    peal_status status;
} joining;

static void join(void *user)
{
    joining *self = user;
    pmix_client *client = self->client;
    pmix_status_t result = PMIx_Init(&client->me, NULL, 0);
    self->has_joined = result == PMIX_SUCCESS;
    self->status = self->has_joined ? ask_identity(client, self->diagnostics)
                                    : refuse(self->diagnostics, result);
    if (self->status == PEAL_STATUS_OK)
        register_events(client);
}

static void free_joining(void *user)
{
    joining *self = user;
    peal_diagnostics_destroy(self->diagnostics);
    free(self);
}

static void take_reports(peal_diagnostics *to, const peal_diagnostics *from)
{
    for (int i = 0; i < peal_diagnostics_count(from); i++) {
        const peal_diagnostic *d = peal_diagnostics_at(from, i);
        peal_report(to, d->code, d->source, d->hint, "%s", d->message);
    }
}

static void take_part(pmix_client *self)
{
    self->namespace_hash = hash_text(self->me.nspace);
    self->generation = peal_pmix_begin(&self->parent);
}

/* Ends with the client, or without it. */
static peal_status join_within(pmix_client *self, joining *call, peal_diagnostics *diagnostics)
{
    if (!peal_call_within(join, free_joining, call, self->deadline_ns))
        return peal_report(diagnostics, PEAL_E_PMIX_SERVER_SILENT, (peal_source){0},
                           "is the launcher stopped or overloaded? --deadline sets the limit",
                           "the PMIx server of PMIX_NAMESPACE=%s has not answered within %.3g s",
                           getenv("PMIX_NAMESPACE"), (double)self->deadline_ns * 1e-9);
    peal_status status = call->status;
    take_reports(diagnostics, call->diagnostics);
    if (call->has_joined)
        take_part(self);
    if (status != PEAL_STATUS_OK && call->has_joined) {
        close_pmix(&self->base);
    } else if (status != PEAL_STATUS_OK) {
        peal_parent_close(&self->parent);
        free(self);
    }
    free_joining(call);
    return status;
}

peal_status peal_bootstrap_pmix(int64_t deadline_ns, peal_diagnostics *diagnostics,
                                peal_bootstrap **out)
{
    pmix_client *self = calloc(1, sizeof(*self));
    joining *call = calloc(1, sizeof(*call));
    peal_diagnostics *own = peal_diagnostics_create();
    if (!self || !call || !own) {
        free(self);
        free(call);
        peal_diagnostics_destroy(own);
        return peal_report(diagnostics, PEAL_E_SYSTEM_CALL_FAILED, (peal_source){0}, NULL,
                           "out of memory for the bootstrap");
    }
    *self = (pmix_client){.base = {&pmix_ops},
                          .fenced_round = -1,
                          .deadline_ns = deadline_ns,
                          .owner = getpid()};
    *call = (joining){.client = self, .diagnostics = own};
    peal_parent_open(-1, &self->parent);
    peal_status status = join_within(self, call, diagnostics);
    if (status == PEAL_STATUS_OK)
        *out = &self->base;
    return status;
}
