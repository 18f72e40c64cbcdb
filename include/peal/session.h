/* A session: this process's membership in a job of one or more processes.
 *
 * It finds the other processes (by the launcher's PMIx, or by two functions of the caller),
 * connects to them and watches them. Plans and exchanges are made in a session. Calls marked
 * *collective* are made by all processes of the job, in the same order. A session and what was made
 * in it are used by one thread at a time, except where a function says otherwise. */
#ifndef PEAL_SESSION_H
#define PEAL_SESSION_H

#include <peal/status.h>
#include <peal/types.h>

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct peal_session peal_session;

/* The caller's own allgather and barrier, see <peal/bootstrap.h>. */
typedef struct peal_bootstrap_callbacks peal_bootstrap_callbacks;

typedef enum peal_log_level {
    PEAL_LOG_QUIET, /* nothing */
    PEAL_LOG_ERROR, /* why peal_session_create failed */
    PEAL_LOG_INFO   /* and a line for each plan: backend, mode, ranks, transports, hash */
} peal_log_level;

/* How to make a session. All members but size may be zero. */
typedef struct peal_session_desc {
    size_t size_bytes; /* sizeof(peal_session_desc) */
    /* How to find the other processes; copied, but what its user pointer refers to must stay valid
     * until the session is destroyed. NULL: PMIx when a launcher offers it, else this process is
     * alone. */
    const peal_bootstrap_callbacks *bootstrap;
    double deadline_s;        /* longest time without progress, in seconds; 0: 30 */
    peal_log_level log_level; /* of what goes to log */
    FILE *log;                /* NULL: nothing is ever printed */
    /* Of a job on several hosts: by which interface ("eth1") or network ("10.1.0.0/16") others
     * reach this host (NULL: any that is up), and on which TCP ports, from [0] to [1], this process
     * may listen, on one (0, 0: any). */
    const char *network_interface;
    int network_ports[2];
    /* A failed call, on the session or on what was made in it, ends the job, as MPI's own do by
     * default: one process prints why on log (NULL: standard error), bootstrap's abort is called,
     * and the process exits with the status. Calls with a handle that is none return as ever. */
    bool fatal;
} peal_session_desc;

/* Joins the job. Collective. desc NULL: all defaults. PEAL_STATUS_USAGE: a descriptor that makes no
 * sense; PEAL_STATUS_ENVIRONMENT: the processes cannot reach each other; PEAL_STATUS_DEADLINE: some
 * process did not come. *out is set only on success; it is the caller's to destroy. */
peal_status peal_session_create(const peal_session_desc *desc, peal_session **out);

/* Leaves the job and frees the session. Collective unless the job was aborted. Its plans and
 * exchanges have been destroyed before; those that are left are destroyed with it (E339). NULL is
 * fine. Of handles that are not alive: peal_misuse (<peal/peal.h>). */
void peal_session_destroy(peal_session *session);

/* Number of this process, and how many there are; the same among those of this host. */
int peal_session_process(const peal_session *session);
int peal_session_processes(const peal_session *session);
int peal_session_local_process(const peal_session *session);
int peal_session_local_processes(const peal_session *session);
/* How the processes were found: "single", "peal" (by `peal run`), "pmix", "caller". */
const char *peal_session_bootstrap(const peal_session *session);

/* Ends what runs in all processes: every wait gives up, plans return the first cause's status. Any
 * thread, not a signal handler. The session is good only for reading diagnostics and destroying
 * afterwards. message may be NULL. */
void peal_session_abort(peal_session *session, peal_status status, const char *message);
/* PEAL_STATUS_OK, or the first cause after an abort by any process. Any thread. */
peal_status peal_session_status(const peal_session *session);

/* Prints what was reported so far in this process ("file:line:column: error: message [E021]", then
 * a hint), the first `limit` (0: all), in the order of places. */
void peal_session_print_diagnostics(const peal_session *session, FILE *stream, int limit);
/* How many errors were reported so far in this process. */
int peal_session_error_count(const peal_session *session);

/* One of them, or a warning. Its texts live until the session is destroyed or forgets them. */
typedef struct peal_message {
    const char *code; /* "E131": `peal explain E131` says more */
    bool is_error;    /* else a warning */
    peal_source source;
    const char *text; /* what is wrong */
    const char *hint; /* what to do; NULL: none */
} peal_message;

/* How many errors and warnings were reported so far in this process, and number `index` of them, in
 * the order in which they came. PEAL_STATUS_USAGE: there is none. */
int peal_session_message_count(const peal_session *session);
peal_status peal_session_message(const peal_session *session, int index, peal_message *out);
/* Drops them: what is wrong in the same way again is reported again, not counted as told. */
void peal_session_forget_messages(peal_session *session);

#ifdef __cplusplus
}
#endif
#endif
