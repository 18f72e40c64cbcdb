/* What the host backend does for messages to other hosts. */
#ifndef PEAL_BACKENDS_HOST_NETWORK_H
#define PEAL_BACKENDS_HOST_NETWORK_H

#include "backends/host/execute.h"
#include "base/backoff.h"

/* The word of a WRITE and, of a flag, the message's bytes are in the shadow: they are due. They
 * leave with others, at the latest by host_network_send_told(). */
void host_network_tell(host_context *context, const host_op *op, const peal_walk_frame *frame);
/* What was told leaves, now or by the next turn of who waits. */
void host_network_send_told(const host_plan *plan);
/* The same where this thread has told something: before it runs tiles. */
void host_network_before_work(host_context *context);
/* Whether the message of a SEND can leave from where it lies, by the SEND itself: its WRITE follows
 * at once, and it is long and in one piece, so that packing it would take as long as sending it. */
bool host_network_leaves(const host_rank *rank, int index);
/* Sends it. Who may overwrite it waits for the SEND, not for the WRITE. */
void host_network_send(const host_context *context, const host_op *op,
                       const peal_walk_frame *frame);
/* Whether the message of a WAIT can land where the UNPACK behind it would put it. */
bool host_network_lands(const host_rank *rank, int index);
/* Around that wait. Who runs it has also waited for what the UNPACK depends on: nobody reads any
 * more what the message overwrites. */
bool host_network_expect(const host_context *context, const host_op *op,
                         const peal_walk_frame *frame, uint64_t value);
void host_network_withdraw(host_context *context, const host_op *op);

/* A wait of a plan with a network. One thread of a plan makes turns for messages at a time: several
 * at one socket are in each other's way, and each message would wake all of them. */
typedef struct host_turn {
    bool idle;      /* it waits for no message: others go before it */
    int missed;     /* sleeps in a row in which nobody made turns */
    int to_a_yield; /* turns */
} host_turn;

/* A round, in which messages may come: as peal_backoff_wait(). */
void host_network_pause(host_plan *plan, host_turn *turn, peal_backoff *backoff, int64_t most_ns);
/* The wait is over. */
void host_network_leave(host_plan *plan, host_turn *turn);
/* At the end: until all is sent, at most the deadline. What has no room in a peer's socket yet gets
 * it while that process waits for the others. */
peal_status host_network_settle(host_plan *plan);

#endif
