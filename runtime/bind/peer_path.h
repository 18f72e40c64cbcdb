/* The paths by which processes with devices reach each other: which of them can be used here, and
 * the one that a plan takes. */
#ifndef PEAL_RUNTIME_BIND_PEER_PATH_H
#define PEAL_RUNTIME_BIND_PEER_PATH_H

#include "runtime/memory/storage.h"
#include "runtime/session/session.h"

enum { PEAL_REASON_BYTES = 240 };

/* What a session has found out so far; the same in all processes. */
typedef struct peal_peer_paths {
    bool asked[PEAL_PATH_COUNT];                     /* reason is known */
    char reason[PEAL_PATH_COUNT][PEAL_REASON_BYTES]; /* why nobody can use the path; "": all can */
} peal_peer_paths;

/* PEAL_E_UNKNOWN_TRANSPORT unless `name` is what a plan's `transport` may be; NULL is. */
peal_status peal_transport_check(const char *name, peal_diagnostics *diagnostics);
/* The same for ranks on the host, who have shm only: PEAL_E_NO_GPU_TRANSPORT for what is between
 * GPUs. */
peal_status peal_transport_check_host(const char *name, peal_diagnostics *diagnostics);

/* PEAL_E_SEVERAL_HOSTS for a transport that was asked for and does not reach other hosts, where
 * there are such. */
peal_status peal_transport_check_reach(const peal_session *session, const char *name);

/* Collective, with equal arguments: sets machine->path, of GPUs: the best one between those of a
 * host, if some host has several: of those that `name` allows and that every process can use to
 * every other one; each is tried out the first time. *note gets what was passed over, and why.
 * PEAL_STATUS_ENVIRONMENT (PEAL_E_NO_GPU_TRANSPORT), in all processes, if there is none, or if one
 * cannot map memory of its host from where messages go to others. session->neighbours are known. */
peal_status peal_peer_path_settle(peal_session *session, const char *name, peal_machine *machine,
                                  char *note, size_t bytes);

/* NULL, or why memory for the path can't be had in this space, which is made and given back.
 * Another process's part is not tried. */
const char *peal_path_try(const peal_memory_space *space, char reason[PEAL_REASON_BYTES]);

#endif
