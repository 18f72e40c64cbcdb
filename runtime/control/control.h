/* The control plane of a job: blobs, start, finish, abort between processes.
 *
 * A binomial tree of stream sockets over processes. A thread of its own serves it: it notices dead
 * peers, forwards aborts and hands out file descriptors. Calls marked collective are made by all
 * processes in the same order. */
#ifndef PEAL_RUNTIME_CONTROL_CONTROL_H
#define PEAL_RUNTIME_CONTROL_CONTROL_H

#include "base/diagnostic.h"

#include <peal/plugin/bootstrap.h>

#include <stdatomic.h>

typedef struct peal_control peal_control;

/* Where a process listens for those of other hosts. */
typedef struct peal_network_choice {
    const char *interface;     /* a name, or a network such as "10.1.0.0/16"; NULL: all */
    int first_port, last_port; /* 1 to 65535; both 0: any port */
} peal_network_choice;

bool peal_network_choice_makes_sense(const peal_network_choice *choice);

/* Connects all processes of the job. Collective. `abort_word` becomes non-zero (a peal_status: the
 * first cause) once any process aborts, dies or leaves; it must outlive the control. deadline_ns
 * bounds this and every collective call. choice NULL: listens anywhere. */
peal_status peal_control_open(peal_bootstrap *bootstrap, const peal_network_choice *choice,
                              _Atomic int *abort_word, int64_t deadline_ns,
                              peal_diagnostics *diagnostics, peal_control **out);
/* Orderly end: after a barrier that all have reached, leaving is not a death. Collective on success
 * paths; after an abort it only closes. NULL is fine. */
void peal_control_close(peal_control *control);

/* In a copy of the process that was forked: it says nothing to the others any more. */
void peal_control_disown(peal_control *control);

const peal_bootstrap_identity *peal_control_identity(const peal_control *control);
/* By process: the number of its host, from 0 on as their first processes come. NULL: all are on
 * one. Of the control. */
const int *peal_control_hosts(const peal_control *control);
/* What the host of that process is called. Of the control. */
const char *peal_control_node(const peal_control *control, int process);
/* "process 3"; where processes are on several hosts "process 3 on NODE". Returns text. */
enum { PEAL_PROCESS_TEXT = 80 };
const char *peal_control_name(const peal_control *control, int process,
                              char text[PEAL_PROCESS_TEXT]);

/* While a process says that it is busy (as often as it says that it is not), the others wait for it
 * in collective calls without a deadline: only of jobs on several hosts, and not while it is in
 * such a call itself. Any thread. */
void peal_control_busy(peal_control *control, bool busy);
/* Whether another process has said so lately. */
bool peal_control_hears_busy(const peal_control *control);
/* What a process does now and then while it waits in a collective call; NULL: nothing. */
void peal_control_meanwhile(peal_control *control, void (*turn)(void *user), void *user);

/* all[p] gets the `bytes` bytes of process p. Collective. */
peal_status peal_control_allgather(peal_control *control, const void *mine, size_t bytes,
                                   void *all);
peal_status peal_control_barrier(peal_control *control);
/* Process `root`'s bytes arrive everywhere. Collective. */
peal_status peal_control_broadcast(peal_control *control, int root, void *data, size_t bytes);
/* Blobs of any size to process 0: there blob[p] (malloc'ed, the caller frees) and size[p].
 * Collective. */
peal_status peal_control_gather(peal_control *control, const void *mine, size_t bytes, void **blob,
                                size_t *size);

/* Makes a file descriptor (a sealed memfd) available to the other processes of this host under
 * `key`, and tells them how many bytes of memory it stands for; gets that of another process (a
 * duplicate, close-on-exec, that the caller closes; bytes may be NULL). Only the same user gets it.
 * Not collective: fetch waits until the other process has published, at most the deadline. */
peal_status peal_control_publish(peal_control *control, int key, int descriptor, int64_t bytes);
peal_status peal_control_fetch(peal_control *control, int process, int key, int *descriptor,
                               int64_t *bytes);
/* What is published keeps its memory alive: nobody will fetch `key` any more. Unknown keys are
 * fine. */
void peal_control_withdraw(peal_control *control, int key);

/* A stream (a socket that does not block and is closed on exec; the caller closes it) to another
 * process. Both ask for it once, with the same key; in any order: who asks for it first waits at
 * most the deadline for the other one, or does not wait. Several at a time differ in their keys. */
peal_status peal_control_connect(peal_control *control, int process, int key, int *stream);
/* Exactly so many bytes of such a stream: waits at most the deadline, or until the job has failed.
 */
peal_status peal_control_read(peal_control *control, int process, int stream, void *data,
                              size_t bytes);

/* Questions of a few words that a process answers at once, whatever it computes: for what a job
 * counts in one place. `answer` is called on a thread of the control's with its lock held: it waits
 * for nothing, and calls nothing of the control. `release` is called once `askers` processes (this
 * one is one of them) have asked for the last time, or the control closes. */
enum { PEAL_QUESTION_WORDS = 3 };
typedef void peal_control_answer(void *user, const uint64_t question[PEAL_QUESTION_WORDS],
                                 uint64_t answer[PEAL_QUESTION_WORDS]);
peal_status peal_control_serve(peal_control *control, int key, int askers,
                               peal_control_answer *answer, void (*release)(void *user),
                               void *user);
/* Asks a process under a key that it serves, or will: waits at most the deadline. Any thread. */
peal_status peal_control_ask(peal_control *control, int process, int key,
                             const uint64_t question[PEAL_QUESTION_WORDS],
                             uint64_t answer[PEAL_QUESTION_WORDS]);
/* Once a process and key, by who has asked. */
void peal_control_ask_no_more(peal_control *control, int process, int key);

/* The cause of whoever finds it (PEAL_E_LAUNCHER_LOST). */
#define PEAL_LAUNCHER_GONE "the launcher of this job is gone"

/* Tells every process why the job ends; sets the abort word here. Any thread, any number of times:
 * the first counts. */
void peal_control_abort(peal_control *control, peal_status status, const char *message);
/* The first cause, once the abort word is set: the process that found it (-1 unknown) and its
 * message. */
peal_status peal_control_cause(const peal_control *control, int *process, char *message,
                               size_t bytes);

/* What a connection to another host is tried with: more than two packets of the largest kind that
 * hosts use (jumbo frames, 9000 bytes). And what to do about PEAL_E_NO_PATH_TO_HOST. */
enum { PEAL_TRY_BYTES = 18432 };
#define PEAL_NO_PATH_HINT                                                                          \
    "is the other process stopped? Else: do all interfaces and switches on the way pass packets "  \
    "of the same size (MTU)? "                                                                     \
    "`ping -M do -s 8972 HOST` shows; --network-interface takes another way"

#endif
