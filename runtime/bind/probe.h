/* Before the first messages go: that each new connection carries as much as a message may need,
 * both ways. Small packets may get through where large ones do not, which a run would see as a
 * hang. */
#ifndef PEAL_RUNTIME_BIND_PROBE_H
#define PEAL_RUNTIME_BIND_PROBE_H

#include "runtime/session/session.h"

typedef struct peal_probe peal_probe;

/* For the pairs whose processes have not been tried yet; edge: by pair, a message's that goes
 * between them. *out: NULL, all have been. `number` is no plan's, and the same in all processes. */
peal_status peal_probe_create(peal_session_network *network, uint32_t number, const peal_pair *pair,
                              const char *const *edge, int count, peal_probe **out);
/* Once all processes have created theirs: PEAL_E_NO_PATH_TO_HOST where nothing comes within
 * deadline_ns, or something else. NULL is fine. */
peal_status peal_probe_run(peal_probe *probe, int64_t deadline_ns);
/* NULL is fine. */
void peal_probe_destroy(peal_probe *probe);

#endif
