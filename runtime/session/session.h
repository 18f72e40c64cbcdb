/* The session as the other files of runtime/ see it. */
#ifndef PEAL_RUNTIME_SESSION_SESSION_H
#define PEAL_RUNTIME_SESSION_SESSION_H

#include "base/backoff.h"
#include "base/diagnostic.h"
#include "base/handle.h"
#include "runtime/control/control.h"
#include "runtime/memory/segment.h"

#include <peal/plugin/backend.h>
#include <peal/plugin/network.h>
#include <peal/session.h>

#include <stdatomic.h>

#define PEAL_NO_SOURCE ((peal_source){0})

/* What a process says at a barrier. */
typedef struct peal_claim {
    uint64_t hash; /* of what must be equal */
    int64_t count; /* steps or exchanges: must be equal too */
    int32_t kind;  /* which call */
    int32_t reserved;
} peal_claim;

/* The same on the board. One cache line pair, so that pollers don't disturb writers. */
typedef struct peal_barrier_claim {
    _Alignas(128) _Atomic uint64_t round; /* store: release; load: acquire */
    peal_claim said;
} peal_barrier_claim;

/* A process's slot on the board that all processes of the job map. */
typedef struct peal_barrier_slot {
    peal_barrier_claim claim[2];           /* by parity of the round */
    _Alignas(128) _Atomic int32_t running; /* runs under way here: others wait without a deadline */
    _Atomic int32_t pid;                   /* while it runs: unless it is stopped */
} peal_barrier_slot;

/* What carries messages to other hosts: an engine, and what it has opened here. */
/* PEAL_TRANSPORT_TCP, and the rest of that enumeration. */
enum { PEAL_NETWORK_COUNT = PEAL_TRANSPORT_COUNT - PEAL_TRANSPORT_TCP };
typedef struct peal_session_network {
    const peal_network_ops *engine;
    peal_network *_Atomic opened; /* NULL: no plan has needed it */
    peal_network_site site;
    peal_session *session;
    bool *is_tried; /* by process: the connection has carried a message; NULL: none has */
    int stream;     /* which of the control plane's streams between two processes are its own */
} peal_session_network;

struct peal_session {
    peal_session *next; /* of all: runtime/session/forks.c */
    peal_diagnostics *diagnostics;
    peal_bootstrap *bootstrap;
    peal_control *control;
    peal_bootstrap_identity identity;
    _Atomic int abort_word; /* a peal_status: the first cause */
    int64_t deadline_ns;
    int next_key; /* of published segments; the same in all processes from a compile's claims on:
                     some may have failed earlier than others before */
    peal_segment board; /* a peal_barrier_slot a process, and one for peal_session_told; no base:
                           the job has several hosts */
    uint64_t round;
    peal_device *device; /* runtime/session/device.c */
    const char *device_reason;
    bool device_tried;
    peal_device_identity *neighbours;   /* devices by process, once a plan has compared them */
    struct peal_peer_paths *peer_paths; /* runtime/bind/peer_path.c; NULL: nothing was asked */
    int cores;                          /* that the processes of this host may use: 1 or more */
    bool joined;                        /* all processes have come so far */
    bool fails_alike; /* all processes have found the same, and there is no board to agree by */
    int failed_first; /* the first process whose attempt failed, when last one did; -1: none */
    peal_session_network network[PEAL_NETWORK_COUNT]; /* runtime/session/network.c */
    int network_ports[2];                             /* of the caller's choice; 0: any */
    _Atomic int64_t lost_stream_ns;                   /* when a stream has ended; 0: none has */
    char lost_stream[256];                            /* which, in words */
    struct peal_originals *originals; /* base/originals.h: as they were before several runs */
    peal_log_level log_level;
    FILE *log;
    bool fatal; /* peal_session_desc.fatal */
};

/* For words that other processes of this host store, most often within microseconds: spins only if
 * each process has a core. */
peal_backoff peal_session_backoff(const peal_session *session);

/* Whether messages between some of its processes have to go by a network. */
static inline bool peal_session_spans_hosts(const peal_session *session)
{
    return peal_control_hosts(session->control) != NULL;
}

static inline bool peal_session_are_near(const peal_session *session, int a, int b)
{
    const int *host = peal_control_hosts(session->control);
    return !host || host[a] == host[b];
}

/* Whether that process is on this host. */
static inline bool peal_session_is_near(const peal_session *session, int process)
{
    return peal_session_are_near(session, process, session->identity.process);
}

/* Whether this process is the first one of its host. */
static inline bool peal_session_is_first(const peal_session *session)
{
    int first = 0;
    while (!peal_session_is_near(session, first))
        first++;
    return first == session->identity.process;
}

/* What the tools need beside <peal/session.h>. */
peal_diagnostics *peal_session_diagnostics(peal_session *session);
_Atomic int *peal_session_abort_word(peal_session *session);

/* peal_handle_check of a plan or exchange; one that was destroyed is told in its session, too. */
bool peal_session_check_handle(const void *object, peal_handle_kind kind, const char *call);

/* The status of an aborted job; who ended it and why has been reported when it returns. */
peal_status peal_session_cause(peal_session *session);
/* Tells all processes that `status` ends the job; the message is that of the first error reported
 * since diagnostic number `from`. Returns the first cause's status. */
peal_status peal_session_fail(peal_session *session, peal_status status, int from);

/* outcome.c: what a public function returns. Where failures are fatal, a failed call does not. */
peal_status peal_session_outcome(peal_session *session, peal_status status);
/* The same of a session that could not be created. */
_Noreturn void peal_session_fatal_start(peal_session *session, const peal_session_desc *desc,
                                        peal_status status, bool tells);

/* forks.c: from here on a forked copy of the process lets go of what the others take for it. */
void peal_session_watch_forks(peal_session *session);
void peal_session_forget_forks(const peal_session *session);

/* teller.c: whether this process is the one that prints why the job has ended: so once, with the
 * source position and the hint, wherever it happened. */
bool peal_session_tells(peal_session *session);
/* The same for a process that is about to leave without the others. */
bool peal_session_tells_of_exit(peal_session *session);
/* The word on the board that says who tells: its number + 1; 0: nobody yet. NULL: no board. */
_Atomic int32_t *peal_session_told(const peal_session *session);

/* The first error reported since diagnostic number `from`, in words; NULL: none. */
const char *peal_session_first_message(const peal_session *session, int from);

/* Collective: all processes get the status of the first (by number) that failed. `from` is the
 * number of diagnostics before the attempt: where nothing was reported since, the failing process
 * and its message are. Waits as peal_session_barrier does. */
peal_status peal_session_agree(peal_session *session, peal_status mine, int from);

/* Kinds of barriers. */
enum {
    PEAL_BARRIER_AGREE = 1,
    PEAL_BARRIER_START,
    PEAL_BARRIER_FINISH,
    PEAL_BARRIER_VERIFY,
    PEAL_BARRIER_EXCHANGE,
    PEAL_BARRIER_TRANSFER
};

/* Collective: waits until all processes have come with the same kind, hash and count.
 * PEAL_E_CALLS_DIFFER names the first that came with something else. PEAL_STATUS_DEADLINE when one
 * that isn't running anything does not come. */
peal_status peal_session_barrier(peal_session *session, int kind, uint64_t hash, int64_t count);
/* Begins or ends a run. While one is under way, others wait for this process without a deadline:
 * its own waits have one. */
void peal_session_running(peal_session *session, bool running);
/* Whether another process runs something, and is not stopped. */
bool peal_session_others_run(const peal_session *session);

#endif
