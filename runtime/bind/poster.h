/* A thread that posts what a device stores for other hosts. */
#ifndef PEAL_RUNTIME_BIND_POSTER_H
#define PEAL_RUNTIME_BIND_POSTER_H

#include "runtime/session/session.h"

#include <peal/plugin/network.h>

typedef struct peal_poster peal_poster;

/* Of a plan's bound puts, which stay until destroy. NULL: no memory. */
peal_poster *peal_poster_create(const peal_session_network *network, peal_network_plan *plan,
                                const peal_pair *pair, int count);
/* Not while it runs. NULL is fine, here and below. */
void peal_poster_destroy(peal_poster *poster);
/* Before the device starts. */
peal_status peal_poster_start(peal_poster *poster);
/* Once the device stores nothing any more: what it has raised is posted and sent. */
peal_status peal_poster_end(peal_poster *poster, int64_t deadline_ns);
/* What others have rung for is sent. */
peal_status peal_poster_settle(peal_poster *poster, int64_t deadline_ns);
/* Of processors, so far. */
double peal_poster_seconds(const peal_poster *poster);

#endif
