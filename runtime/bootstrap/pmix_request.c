/* Requests to libpmix: its callbacks come from its own thread, at any time. */
#define _GNU_SOURCE
#include "runtime/bootstrap/pmix_request.h"
#include "base/clock.h"

#include "base/patience.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* PMIx is one per process, and so is what waits for its callbacks. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_once_t once;
    bool peer_lost;            /* an event said so */
    int generation;            /* keys of a later bootstrap of this process differ */
    int open_count;            /* of clients */
    peal_parent *parent;       /* who is told that the server is gone; NULL: nobody */
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
            value->data.bo.size <= PMIX_BLOB_LIMIT) {
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

void peal_pmix_done(pmix_status_t status, void *user)
{
    complete(user, status, NULL, 0);
}

void peal_pmix_value(pmix_status_t status, pmix_value_t *value, void *user)
{
    complete(user, status, value, 0);
}

void peal_pmix_registered(pmix_status_t status, size_t reference, void *user)
{
    complete(user, status, NULL, reference);
}

void peal_pmix_event(size_t handler, pmix_status_t code, const pmix_proc_t *source,
                     pmix_info_t info[], size_t info_count, pmix_info_t *results,
                     size_t result_count, pmix_event_notification_cbfunc_fn_t done, void *user)
{
    (void)handler, (void)source, (void)info, (void)info_count;
    (void)results, (void)result_count;
    pthread_mutex_lock(&shared.lock);
    shared.peer_lost = true;
    if (code == PMIX_ERR_LOST_CONNECTION && shared.parent)
        peal_parent_lose(shared.parent);
    pthread_cond_broadcast(&shared.changed);
    pthread_mutex_unlock(&shared.lock);
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, user);
}

/* Waits until the request is done (true), the time is over, or a peer is known to be lost. A
 * request that isn't done belongs to its callback from then on. In slices: one that takes much
 * longer says that this process was stopped. */
bool peal_pmix_await(pending *request, int64_t until_ns)
{
    pthread_once(&shared.once, init_shared);
    peal_patience patience = peal_patience_begin(peal_clock_ns(), until_ns - peal_clock_ns());
    bool is_over = patience.limit_ns <= 0;
    pthread_mutex_lock(&shared.lock);
    while (!request->done && !shared.peer_lost && !is_over) {
        int64_t now = peal_clock_ns();
        struct timespec until = peal_clock_timespec(now + peal_patience_slice(&patience, now));
        pthread_cond_timedwait(&shared.changed, &shared.lock, &until);
        is_over = peal_patience_is_over(&patience, peal_clock_ns());
    }
    bool done = request->done;
    if (!done) {
        request->abandoned = true;
        request->next = shared.abandoned;
        shared.abandoned = request;
    }
    pthread_mutex_unlock(&shared.lock);
    return done;
}

bool peal_pmix_peer_is_lost(void)
{
    pthread_mutex_lock(&shared.lock);
    bool lost = shared.peer_lost;
    pthread_mutex_unlock(&shared.lock);
    return lost;
}

int peal_pmix_begin(peal_parent *parent)
{
    pthread_once(&shared.once, init_shared);
    pthread_mutex_lock(&shared.lock);
    int generation = shared.generation++;
    shared.open_count++;
    shared.parent = parent;
    pthread_mutex_unlock(&shared.lock);
    return generation;
}

void peal_pmix_silence(void)
{
    pthread_mutex_lock(&shared.lock);
    shared.parent = NULL;
    pthread_mutex_unlock(&shared.lock);
}

void peal_pmix_end(bool is_closed)
{
    pthread_mutex_lock(&shared.lock);
    if (--shared.open_count == 0 && is_closed)
        free_abandoned();
    pthread_mutex_unlock(&shared.lock);
}
