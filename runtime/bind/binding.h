/* A binding: schedules of the ranks that this process hosts, their memory, and the memory of the
 * ranks they talk to. What a plan runs on, and what its oracle runs on. */
#ifndef PEAL_RUNTIME_BIND_BINDING_H
#define PEAL_RUNTIME_BIND_BINDING_H

#include "runtime/memory/storage.h"
#include "runtime/session/session.h"
#include "scheduler/scheduler.h"

#include <peal/plugin/backend.h>

typedef struct peal_bound_rank {
    const peal_schedule *schedule;
    peal_storage segment;
    unsigned char **peer_segment; /* by index of schedule->peer */
    peal_storage mailbox;         /* on a device, if processes send to the rank by host memory */
    unsigned char **peer_mailbox; /* by index of schedule->peer */
    /* Where the host sees what goes between hosts, as if all of the segment were there: from
     * mailbox_offset on the rank's own, and the shadow of each peer's. */
    unsigned char *words, **peer_words;
} peal_bound_rank;

typedef struct peal_imported {
    int rank;
    peal_storage segment; /* or mailbox */
} peal_imported;

/* What stands here for memory of another host. */
typedef struct peal_bound_shadow {
    unsigned char *base;
    int64_t bytes;
    peal_storage pinned; /* if the ranks here are on a device: the same memory */
} peal_bound_shadow;

typedef struct peal_binding {
    peal_session *session;
    int process, processes;  /* of the machine the schedules were made for */
    peal_memory_space space; /* of the segments */
    int first, count;        /* ranks [first, first + count) are here */
    int key;                 /* rank r is published under key + r */
    peal_bound_rank *rank;
    peal_imported *imported;
    int imported_count;
    peal_backend_rank *backend_rank; /* the same as a backend wants it */
    peal_bound_shadow *shadow;
    int shadow_count, shadow_room;
    struct peal_bound_puts *puts; /* to other hosts; NULL: none */
    uint64_t first_message;       /* messages are counted on from here: see peal_backend_hooks */
    unsigned transports;          /* bit k: a channel of a rank here uses transport kind k */
} peal_binding;

/* Ranks [*first, *end) of a machine that `process` hosts. */
void peal_machine_ranks(const peal_machine *machine, int process, int *first, int *end);

/* Collective: whether there is room for the memory that all processes are about to take.
 * PEAL_E_NOT_ENOUGH_MEMORY, in all of them, if the machine or a control group lacks it. */
peal_status peal_binding_check_memory(peal_session *session, peal_compilation *compilation,
                                      const peal_machine *machine);
/* Takes the schedules of the ranks of this process from the compilation, allocates and fills their
 * segments and publishes those that others need. `machine` with one process binds all ranks here,
 * in private memory. Not collective, but with several processes all take as many keys. After a
 * failure peal_binding_release frees what there is. */
peal_status peal_binding_allocate(peal_binding *binding, peal_session *session,
                                  peal_compilation *compilation, const peal_machine *machine,
                                  int process);
/* Makes the segments of all peers reachable. Other processes have allocated theirs, or will. */
peal_status peal_binding_attach(peal_binding *binding);
/* Then opens the ways to other hosts, if there are any: their processes do so, too. */
peal_status peal_binding_connect(peal_binding *binding);
/* NULL and zeroed bindings are fine. */
void peal_binding_release(peal_binding *binding);

/* Bytes of the segments and mailboxes here. */
int64_t peal_binding_bytes(const peal_binding *binding);
/* First byte of `stored` of storage `storage` of hosted rank `index`: an address of the device, if
 * the binding is on one. */
unsigned char *peal_binding_array(const peal_binding *binding, int index, int storage);
/* The same where the host can read it: *data is the memory itself, or a copy (malloc'ed) that the
 * caller frees as *copy; it is NULL where there is none. */
peal_status peal_binding_read(const peal_binding *binding, int index, int storage,
                              unsigned char **copy, const unsigned char **data);

#endif
