/* The puts of a plan, bound: what its ranks here and those of other hosts put into each other's
 * memory, and the hook that a backend tells. */
#ifndef PEAL_RUNTIME_BIND_PUTS_H
#define PEAL_RUNTIME_BIND_PUTS_H

#include <peal/plugin/backend.h>

typedef struct peal_binding peal_binding;
typedef struct peal_bound_puts peal_bound_puts;

/* Needs the peers' segments and shadows. Connects to the processes of other hosts by a network's
 * transport: all of them do. */
peal_status peal_bound_puts_create(const peal_binding *binding, peal_transport_kind kind,
                                   peal_bound_puts **out);
/* Once all processes have connected: whose connections are new gets ready to try them. All of them
 * return before any tries: one that cannot might else be waited for. NULL is fine. */
peal_status peal_bound_puts_begin_try(peal_bound_puts *puts);
/* Once all have: tries connections that are new, both ways, for most of the
 * deadline, as a process may be stopped for a while (PEAL_E_NO_PATH_TO_HOST). NULL is fine. */
peal_status peal_bound_puts_try(peal_bound_puts *puts, int64_t deadline_ns);
/* Once all processes have come so far: who missed something has told it. NULL is fine. */
void peal_bound_puts_end_try(peal_bound_puts *puts);
/* NULL is fine. */
void peal_bound_puts_destroy(peal_bound_puts *puts);
/* Sums over the lists of puts: what all processes send is what all processes take iff the sums of
 * both over all of them are equal (by exclusive or). NULL: 0. */
void peal_bound_puts_sum(const peal_bound_puts *puts, int process, uint64_t *sent, uint64_t *taken);
/* Of ranks on a device: around each of its runs; else nothing. NULL is fine. Ends: all that was
 * stored is sent, or PEAL_STATUS_DEADLINE. (Not for runs in which nobody waits for messages, see
 * peal_backend_hooks: their words run away from each other.) */
peal_status peal_bound_puts_start(peal_bound_puts *puts);
peal_status peal_bound_puts_end(peal_bound_puts *puts, int64_t deadline_ns);
/* Whether the backend rings for messages itself: nothing is posted. NULL: false. */
bool peal_bound_puts_are_rung_for(const peal_bound_puts *puts);
/* Of processors that this took so far. */
double peal_bound_puts_seconds(const peal_bound_puts *puts);
/* NULL: there are none. */
const peal_network_hook *peal_bound_puts_hook(const peal_bound_puts *puts);

#endif
