/* The handles of the public API: which are alive, whose they are, and what is wrong with the
 * others.
 *
 * A handle is looked up by its address before it is followed, so that NULL, a handle of another
 * type, one that was destroyed, or one that a forked child has from its parent is a status instead
 * of a crash. Lookups take no lock. The memory of what was destroyed lately is kept, lest a new
 * object gets its address. */
#ifndef PEAL_BASE_HANDLE_H
#define PEAL_BASE_HANDLE_H

#include <peal/status.h>

#include <stdbool.h>

typedef enum peal_handle_kind {
    PEAL_HANDLE_GRAPH,
    PEAL_HANDLE_SESSION,
    PEAL_HANDLE_PLAN,
    PEAL_HANDLE_EXCHANGE,
    PEAL_HANDLE_TRANSFER,
    PEAL_HANDLE_KINDS
} peal_handle_kind;

/* "graph", "session", ... */
const char *peal_handle_kind_name(peal_handle_kind kind);
/* From now on object (of malloc) is a handle. owner: the session that it is made in, or NULL.
 * False: no memory. */
bool peal_handle_open(void *object, peal_handle_kind kind, const void *owner);
/* It is none any more: what is misused from now on is told. */
void peal_handle_close(const void *object);
/* Frees a closed object's memory, later. */
void peal_handle_free(void *object);

/* Whether it is alive, of this kind, and of this process. Else this thread's peal_misuse says what
 * is wrong with the call. */
bool peal_handle_check(const void *object, peal_handle_kind kind, const char *call);
/* A pointer that the call needs, of a caller that has checked its handle. */
bool peal_argument_check(const void *pointer, const char *name, const char *call);
/* This thread's peal_misuse says that a session was destroyed before what it owns. */
void peal_handle_report_early(const char *call, peal_handle_kind kind);

/* What is alive and owned by a session: the youngest; NULL: nothing is. */
void *peal_handle_owned(const void *owner, peal_handle_kind *kind);
/* The session of a handle that is not alive any more, if that is alive; else NULL. */
void *peal_handle_owner(const void *object);

#endif
