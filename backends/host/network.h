/* What the host backend does for messages to other hosts. */
#ifndef PEAL_BACKENDS_HOST_NETWORK_H
#define PEAL_BACKENDS_HOST_NETWORK_H

#include "backends/host/execute.h"
#include "base/backoff.h"

/* The word of a WRITE and, of a flag, the message's bytes are in the shadow: they are due. */
void host_network_tell(const host_context *context, const host_op *op,
                       const peal_walk_frame *frame);
/* A round of a wait, in which messages may come: as peal_backoff_wait(), of a plan with a network.
 */
void host_network_pause(const host_plan *plan, peal_backoff *backoff, int64_t most_ns);
/* At the end: until all is sent, at most the deadline. What has no room in a peer's socket yet gets
 * it while that process waits for the others. */
peal_status host_network_settle(host_plan *plan);

#endif
