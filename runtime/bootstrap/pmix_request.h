/* Requests to libpmix that are under way, and what waits for their callbacks. */
#ifndef PEAL_RUNTIME_BOOTSTRAP_PMIX_REQUEST_H
#define PEAL_RUNTIME_BOOTSTRAP_PMIX_REQUEST_H

#include "runtime/bootstrap/parent.h"

#include <pmix.h>
#include <stdbool.h>
#include <stdint.h>

enum { PMIX_BLOB_LIMIT = 1 << 16 };

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
    unsigned char blob[PMIX_BLOB_LIMIT];
} pending;

/* A client begins (its number: keys of a later one differ), and ends. `parent` is told when the
 * server is gone. is_closed: the library has ended, so no callback comes any more. */
int peal_pmix_begin(peal_parent *parent);
void peal_pmix_silence(void);
void peal_pmix_end(bool is_closed);

/* Callbacks; `user` is the request. */
void peal_pmix_done(pmix_status_t status, void *user);
void peal_pmix_value(pmix_status_t status, pmix_value_t *value, void *user);
void peal_pmix_registered(pmix_status_t status, size_t reference, void *user);
/* Of events that tell of dead peers, or of a lost server. */
void peal_pmix_event(size_t handler, pmix_status_t code, const pmix_proc_t *source,
                     pmix_info_t info[], size_t info_count, pmix_info_t *results,
                     size_t result_count, pmix_event_notification_cbfunc_fn_t done, void *user);

/* Waits until the request is done (true), the time is over, or a peer is known to be lost. A
 * request that isn't done belongs to its callback from then on. */
bool peal_pmix_await(pending *request, int64_t until_ns);
bool peal_pmix_peer_is_lost(void);

#endif
