/* The inside of the control plane, for the files of this folder. */
#ifndef PEAL_RUNTIME_CONTROL_INTERNAL_H
#define PEAL_RUNTIME_CONTROL_INTERNAL_H

#include "runtime/control/control.h"
#include "runtime/control/wire.h"

#include <pthread.h>

enum { PEAL_TREE_LINKS = 32 }; /* the parent and at most 31 children */

/* One edge of the tree. The data socket belongs to the thread that makes collective calls, the
 * watch socket to the service thread (for sending: to whoever holds the lock). */
typedef struct peal_link {
    int process;
    bool is_known; /* blob is what the process published */
    bool left;     /* said that it leaves */
    bool is_far;   /* over TCP: what it says on another connection may come after this one's end */
    int data, watch;
    size_t tried; /* bytes sent before anything else, see tries.c */
    int pidfd; /* of the process, -1 without: its sockets may live on in a child that it forked */
    size_t notice_bytes;      /* of `notice` that have arrived */
    int64_t busy_ns, beat_ns; /* when it was last told that somebody is busy, or anything */
    bool is_unheard;          /* it has not answered that yet: it may be stopped */
    bool is_patient;          /* it is: see be_patient() */
    peal_notice notice;
    peal_control_blob blob;
} peal_link;

typedef struct peal_dial_failure {
    int error;                         /* an errno; EPROTO: somebody else answered */
    char text[PEAL_MESSAGE_BYTES / 2]; /* what it means, and at which addresses */
} peal_dial_failure;

typedef struct peal_published {
    int key, descriptor;
    int64_t bytes;
} peal_published;

/* A stream that another process has opened and that nobody here has asked for yet. */
typedef struct peal_stream {
    int process, key, socket;
} peal_stream;

/* What this process answers. */
typedef struct peal_desk {
    int key, askers; /* how many have not taken leave */
    peal_control_answer *answer;
    void (*release)(void *user);
    void *user;
} peal_desk;

/* By which another process is asked. */
typedef struct peal_line {
    int process, socket;
} peal_line;

struct peal_control {
    peal_bootstrap_identity identity;
    _Atomic int *abort_word;
    int64_t deadline_ns;
    peal_diagnostics *diagnostics;
    peal_bootstrap *bootstrap;

    int listener;
    int far_listener; /* for processes of other hosts; -1: there are none */
    int wake;         /* eventfd: the service thread has something to look at */
    int launcher;     /* the bootstrap's: readable once the launcher is gone; -1: none, or known */
    int aborted;      /* eventfd: readable for ever once a cause is set */
    pthread_t thread;
    bool has_thread;
    peal_control_blob mine;
    peal_control_blob *peer; /* of all processes, once the tree stands; a secret that is all zero
                                stayed behind */
    int *host;               /* of each, by number; NULL: all are on one */
    uint64_t sequence;       /* of collective calls */
    void (*turn)(void *user);
    void *turn_user;

    _Atomic int busy;              /* how often this process has said that it is */
    _Atomic bool waits;            /* it is in a collective call */
    _Atomic int64_t busy_heard_ns; /* when another one last said so */

    pthread_mutex_t asking; /* of the lines; taken before `lock` */
    peal_line *line;
    int line_count;

    pthread_mutex_t lock;
    pthread_cond_t changed; /* of anything below */
    bool stopping;
    bool leaving; /* all have reached the end: nobody's death matters any more */
    int link_count;
    peal_link link[PEAL_TREE_LINKS];
    peal_published *published;
    int published_count;
    peal_stream *stream;
    int stream_count, stream_room;
    peal_desk *desk;
    int desk_count;
    bool has_cause;
    peal_status cause_status;
    int cause_process;
    char cause_message[PEAL_MESSAGE_BYTES];
};

static inline bool peal_control_has_parent(const peal_control *control)
{
    return control->identity.process != 0;
}

/* Sets the first cause, the abort word and the abort event; tells all neighbours but `from` (-1:
 * none). False: another cause was first. */
bool peal_control_set_cause(peal_control *control, peal_status status, int process,
                            const char *message, int from);
/* Likewise; the first cause is reported before any other thread can see it, and may print what has
 * been reported. `report` is called with the lock held. */
typedef void peal_cause_report(const peal_control *control);
bool peal_control_tell_cause(peal_control *control, peal_status status, int process,
                             const char *message, int from, peal_cause_report *report);
/* Status of the cause; OK if none. */
peal_status peal_control_cause_status(const peal_control *control);
/* Reports that the connection to `process` closed (error: 0, or why) and aborts. */
void peal_control_lost(peal_control *control, int process, int error);

/* Reports that the launcher is gone and aborts. */
void peal_control_orphaned(peal_control *control);

/* Whether it is on this process's host: then it is reached by the name of its socket. */
bool peal_control_is_near(const peal_control *control, const peal_control_blob *blob);
/* A connection to that process that has begun with who calls and what for: on one host by a hello,
 * else by TCP and a handshake. -1 and why. */
int peal_control_dial(peal_control *control, peal_control_blob *blob, peal_hello_kind kind, int key,
                      int64_t until_ns, peal_dial_failure *why);

/* Number of processes whose way to process 0 leads through `process` (itself included): they are
 * process .. process + n - 1. */
int peal_tree_size(int process, int processes);
/* Fills control->link: the parent first (but for process 0), then children, nearest first. */
void peal_tree_init(peal_control *control);
/* Where that process is to be called: its blob with the secret, for which the bootstrap is asked
 * where it has not come with the others. NULL: the bootstrap does not say. */
peal_control_blob *peal_control_find(peal_control *control, int process, int64_t until_ns);
/* Dials any process once the tree stands, within the deadline. */
int peal_control_call(peal_control *control, int process, peal_hello_kind kind, int key,
                      peal_dial_failure *why);
/* Finds the neighbours by the bootstrap and connects. On failure tells those it can reach. */
peal_status peal_tree_connect(peal_control *control, peal_bootstrap *bootstrap);
/* tries.c: that connections of the tree to other hosts carry large packets, too. As soon as there
 * is one, with the lock (false: it has ended); and once all are there. */
bool peal_tree_begin_try(peal_link *link);
peal_status peal_tree_try(peal_control *control);

/* How often it is said that somebody is busy; 0: all are on one host, where a board says it. */
int64_t peal_busy_interval(const peal_control *control);
/* Of the service thread: tells the neighbours if this process is; passes on what one has said. */
void peal_busy_say(peal_control *control);
void peal_busy_hear(peal_control *control, peal_link *from);
/* Of the service thread: sends the beats that are due; answers one; takes an answer. */
void peal_beat(peal_control *control);
void peal_beat_answer(peal_control *control, const peal_link *from);
void peal_beat_heard(peal_control *control, peal_link *from);

/* 1: complete, 0: not yet, -1: closed (errno: 0) or broken. */
int peal_read_frame(int socket, void *frame, size_t bytes, size_t *have);

peal_status peal_service_start(peal_control *control);
void peal_service_stop(peal_control *control);
void peal_service_wake(peal_control *control);

/* What is published under `key`; NULL: nothing. With the lock held. */
const peal_published *peal_published_find(const peal_control *control, int key);
/* Sends the number of bytes, and with it the descriptor. */
bool peal_descriptor_send(int socket, const peal_published *published);
/* What is told when a process is gone before what was asked of it: its cause, if that comes within
 * a moment. why: it could not be called; NULL: it closed. */
peal_status peal_control_lost_owner(peal_control *control, int process, const char *before,
                                    const peal_dial_failure *why);

/* Answers, or takes a leave; false: nobody serves the key yet. */
bool peal_desk_answer(peal_control *control, const peal_question *question, peal_reply *reply);
/* Those that are left, and the lines to others. */
void peal_desks_close(peal_control *control);

/* Takes the socket, until it is asked for; false: it is not taken. */
bool peal_stream_keep(peal_control *control, int process, int key, int socket);
/* Closes those that nobody has asked for. */
void peal_streams_close(peal_control *control);

#endif
