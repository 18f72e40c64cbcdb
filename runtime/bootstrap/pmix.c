/* The bootstrap under a launcher that serves PMIx (4.2 or later): mpirun, prterun, srun, peal run.
 *
 * What launchers say is not taken for granted: a fence always collects data and its status is
 * ignored, a get has its own clock besides PMIX_TIMEOUT and is repeated while the data is missing,
 * each round has a fresh key. Events of dead processes end a wait early where a launcher sends
 * them; nothing relies on them. */
#define _GNU_SOURCE
#include "runtime/bootstrap/bootstrap.h"

#include <pmix.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOB_LIMIT = 1 << 16, EVENT_CODES = 6 };

typedef struct pmix_client {
    peal_bootstrap base;
    pmix_proc_t me;
    peal_bootstrap_identity identity;
    uint64_t namespace_hash;
    int fenced_round; /* -1: none */
    int generation;
    size_t event_handler;
    bool has_event_handler;
} pmix_client;

/* PMIx is one per process, and so is what waits for its callbacks. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_once_t once;
    bool peer_lost;            /* an event said so */
    int generation;            /* keys of a later bootstrap of this process differ */
    int open_count;            /* of clients */
    struct pending *abandoned; /* requests that nobody waits for any more */
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static void init_shared(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&shared.changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* One request in flight. It outlives a waiter that gave up: its callback frees it, or the end of
 * the library, after which none comes. */
typedef struct pending {
    bool done, abandoned;
    struct pending *next; /* abandoned */
    pmix_status_t status;
    size_t bytes;
    size_t reference;
    /* Arguments of the call: the library may read them until it calls back. */
    pmix_proc_t peer;
    pmix_info_t info[2];
    char key[64];
    unsigned char blob[BLOB_LIMIT];
} pending;

static void complete(pending *request, pmix_status_t status, const pmix_value_t *value,
                     size_t reference)
{
    pthread_mutex_lock(&shared.lock);
    bool abandoned = request->abandoned;
    if (!abandoned) {
        request->done = true;
        request->status = status;
        request->reference = reference;
        if (status == PMIX_SUCCESS && value && value->type == PMIX_BYTE_OBJECT &&
            value->data.bo.size <= BLOB_LIMIT) {
            memcpy(request->blob, value->data.bo.bytes, value->data.bo.size);
            request->bytes = value->data.bo.size;
        }
        pthread_cond_broadcast(&shared.changed);
    } else {
        struct pending **at = &shared.abandoned;
        while (*at && *at != request)
            at = &(*at)->next;
        if (*at)
            *at = request->next;
    }
    pthread_mutex_unlock(&shared.lock);
    if (abandoned)
        free(request);
}

/* After the library's end. With the lock held. */
static void free_abandoned(void)
{
    while (shared.abandoned) {
        struct pending *next = shared.abandoned->next;
        free(shared.abandoned);
        shared.abandoned = next;
    }
}

static void on_done(pmix_status_t status, void *user)
{
    complete(user, status, NULL, 0);
}

static void on_value(pmix_status_t status, pmix_value_t *value, void *user)
{
    complete(user, status, value, 0);
}

static void on_registered(pmix_status_t status, size_t reference, void *user)
{
    complete(user, status, NULL, reference);
}

static void on_event(size_t handler, pmix_status_t code, const pmix_proc_t *source,
                     pmix_info_t info[], size_t info_count, pmix_info_t *results,
                     size_t result_count, pmix_event_notification_cbfunc_fn_t done, void *user)
{
    (void)handler, (void)code, (void)source, (void)info, (void)info_count;
    (void)results, (void)result_count;
    pthread_mutex_lock(&shared.lock);
    shared.peer_lost = true;
    pthread_cond_broadcast(&shared.changed);
    pthread_mutex_unlock(&shared.lock);
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, user);
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static struct timespec time_at(int64_t ns)
{
    return (struct timespec){ns / 1000000000, ns % 1000000000};
}

/* Waits until the request is done (true), the time is over, or a peer is known to be lost. A
 * request that isn't done belongs to its callback from then on. */
static bool await(pending *request, int64_t until_ns)
{
    struct timespec until = time_at(until_ns);
    int result = 0;
    pthread_mutex_lock(&shared.lock);
    while (!request->done && !shared.peer_lost && !result)
        result = pthread_cond_timedwait(&shared.changed, &shared.lock, &until);
    bool done = request->done;
    if (!done) {
        request->abandoned = true;
        request->next = shared.abandoned;
        shared.abandoned = request;
    }
    pthread_mutex_unlock(&shared.lock);
    return done;
}

static bool peer_is_lost(void)
{
    pthread_mutex_lock(&shared.lock);
    bool lost = shared.peer_lost;
    pthread_mutex_unlock(&shared.lock);
    return lost;
}

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
    void *copy = bytes <= BLOB_LIMIT ? malloc(bytes ? bytes : 1) : NULL;
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
    load_timeout(&request->info[1], until_ns - now_ns());
    pmix_status_t status = PMIx_Fence_nb(NULL, 0, request->info, 2, on_done, request);
    if (status == PMIX_OPERATION_SUCCEEDED || status != PMIX_SUCCESS) {
        peal_bootstrap_log("PMIx fence: %s", PMIx_Error_string(status));
        free(request);
        return;
    }
    if (!await(request, until_ns)) {
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
    load_timeout(&request->info[0], until_ns - now_ns());
    PMIX_INFO_LOAD(&request->info[1], PMIX_GET_REFRESH_CACHE, &refresh, PMIX_BOOL);
    pmix_status_t status = PMIx_Get_nb(&request->peer, request->key, request->info, refresh ? 2 : 1,
                                       on_value, request);
    if (status != PMIX_SUCCESS) {
        free(request);
        return PEAL_STATUS_USAGE;
    }
    if (!await(request, until_ns))
        return peer_is_lost() ? PEAL_STATUS_PEER_LOST : PEAL_STATUS_DEADLINE;
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
    pmix_client *self = (pmix_client *)bootstrap;
    int64_t start = now_ns(), until = start + deadline_ns;
    char key[64];
    print_key(self, round, key, sizeof(key));
    if (self->fenced_round != round) {
        fence(start + deadline_ns / 2);
        self->fenced_round = round;
    }
    for (int64_t pause_ns = 1000000;; pause_ns = pause_ns < 50000000 ? 2 * pause_ns : pause_ns) {
        peal_status status =
            get_once(self, key, process, until, pause_ns > 1000000, blob, capacity, bytes);
        if (status != PEAL_STATUS_USAGE)
            return status;
        if (now_ns() + pause_ns >= until)
            return PEAL_STATUS_DEADLINE;
        struct timespec pause = time_at(pause_ns);
        nanosleep(&pause, NULL);
    }
}

static void end_job(peal_bootstrap *bootstrap, int code, const char *message)
{
    (void)bootstrap;
    fflush(stderr);
    PMIx_Abort(code, message, NULL, 0);
}

static void close_pmix(peal_bootstrap *bootstrap)
{
    pmix_client *self = (pmix_client *)bootstrap;
    if (self->has_event_handler)
        PMIx_Deregister_event_handler(self->event_handler, NULL, NULL);
    PMIx_Finalize(NULL, 0); /* else launchers call it an abnormal end */
    pthread_mutex_lock(&shared.lock);
    if (--shared.open_count == 0)
        free_abandoned();
    pthread_mutex_unlock(&shared.lock);
    free(self);
}

static const peal_bootstrap_ops pmix_ops = {
    sizeof(peal_bootstrap_ops), identity, put, get, end_job, close_pmix};

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
    pmix_status_t status =
        PMIx_Register_event_handler(codes, EVENT_CODES, NULL, 0, on_event, on_registered, request);
    if (status < 0) {
        free(request);
        return;
    }
    if (!await(request, now_ns() + 1000000000))
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
        return peal_report(diagnostics, PEAL_E310, (peal_source){0}, NULL,
                           "the launcher's PMIx server says rank %u of %d processes",
                           (unsigned)self->me.rank, (int)processes);
    if (!get_number(&job, PMIX_LOCAL_SIZE, &local_processes) || local_processes < 1 ||
        local_processes > processes)
        local_processes = processes; /* a hint only: the control plane proves who is where */
    if (!get_number(&self->me, PMIX_LOCAL_RANK, &local_process) || local_process < 0 ||
        local_process >= local_processes)
        local_process = (int64_t)self->me.rank % local_processes;
    self->identity = (peal_bootstrap_identity){(int)self->me.rank, (int)processes,
                                               (int)local_process, (int)local_processes, "pmix"};
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

peal_status peal_bootstrap_pmix(peal_diagnostics *diagnostics, peal_bootstrap **out)
{
    pthread_once(&shared.once, init_shared);
    pmix_client *self = calloc(1, sizeof(*self));
    if (!self)
        return peal_report(diagnostics, PEAL_E302, (peal_source){0}, NULL,
                           "out of memory for the bootstrap");
    self->base.ops = &pmix_ops;
    self->fenced_round = -1;
    pmix_status_t result = PMIx_Init(&self->me, NULL, 0);
    if (result != PMIX_SUCCESS) {
        peal_bootstrap_log("PMIx init: %s", PMIx_Error_string(result));
        free(self);
        if (result == PMIX_ERR_UNREACH) {
            *out = NULL;
            return PEAL_STATUS_OK;
        }
        return peal_report(diagnostics, PEAL_E310, (peal_source){0},
                           "check that the launcher's PMIx is 4.2 or later, or unset "
                           "PMIX_NAMESPACE to run as one process",
                           "the launcher's PMIx server was not usable: %s",
                           PMIx_Error_string(result));
    }
    self->namespace_hash = hash_text(self->me.nspace);
    pthread_mutex_lock(&shared.lock);
    self->generation = shared.generation++;
    shared.open_count++;
    pthread_mutex_unlock(&shared.lock);
    peal_status status = ask_identity(self, diagnostics);
    if (status != PEAL_STATUS_OK) {
        close_pmix(&self->base);
        return status;
    }
    register_events(self);
    *out = &self->base;
    return PEAL_STATUS_OK;
}
