/* The inside of the socket engine, for its three files. */
#ifndef PEAL_RUNTIME_NETWORK_TCP_H
#define PEAL_RUNTIME_NETWORK_TCP_H

#include "runtime/network/network.h"

#include <peal/status.h>

#include <pthread.h>

enum { TCP_READ_BYTES = 65536, TCP_TEXT_BYTES = 200 };

/* A frame to be sent. */
typedef struct tcp_entry {
    peal_network_plan *plan;
    const peal_put *put;
    peal_put_frame head;
    const unsigned char *data;
    uint64_t done; /* bytes of head and data that are sent */
} tcp_entry;

typedef struct tcp_ring {
    tcp_entry *item;
    size_t first, count, room;
    size_t promised; /* what attached plans may need at a time; room is at least that */
} tcp_ring;

/* What has been read of the stream. */
typedef struct tcp_arriving {
    peal_put_frame head;
    size_t have;             /* bytes of head */
    uint64_t got;            /* of what follows it */
    peal_network_plan *plan; /* NULL: it has ended, the frame is skipped */
    int pair;
    unsigned char *to;
    unsigned char *buffer;
    size_t begin, end; /* what of the buffer has not been looked at */
} tcp_arriving;

typedef struct tcp_link {
    int process, socket;
    pthread_mutex_t sending, receiving;
    tcp_ring queue;
    size_t in_flight;       /* frames of it that one thread sends, without the lock; 0: none does */
    _Atomic bool has_queue; /* a hint */
    _Atomic bool is_broken;
    tcp_arriving in;
} tcp_link;

struct peal_network {
    const peal_network_site *site;
    pthread_mutex_t lock; /* of the list of plans; taken after a link's */
    peal_network_plan *plan;
    _Atomic(tcp_link *) *link; /* by process; NULL: not connected */
    _Atomic bool has_failed;
};

/* Where the message of an incoming put that raises its word to `value` goes. */
typedef struct tcp_expected {
    uint64_t value;
    unsigned char *to;   /* NULL: into its slot; with the lock `receiving` */
    _Atomic bool landed; /* set before the word is raised */
} tcp_expected;

struct peal_network_plan {
    peal_network *network;
    peal_network_plan *next;
    uint32_t number;
    const peal_pair *pair;
    int count;
    tcp_link **link;     /* by pair */
    uint64_t **sent;     /* by pair and outgoing put: what has been queued */
    uint64_t **received; /* by pair and incoming put */
    tcp_expected **expected;
    size_t *frames; /* by pair: the room that it was promised */
};

/* Ends the job, once. */
void tcp_fail(peal_network *network, peal_status status, const char *message);
/* The stream has ended. */
void tcp_lose(peal_network *network, tcp_link *link, int error);

/* ---- tcp_send.c ---- */

/* Room for so many more frames at a time, until tcp_drop(); false: no memory. */
bool tcp_add_room(tcp_link *link, size_t frames);
void tcp_due(peal_network_plan *plan, int pair, int number, uint64_t value);
void tcp_due_from(peal_network_plan *plan, int pair, int number, uint64_t value,
                  const unsigned char *from);
void tcp_send_due(peal_network_plan *plan);
/* Sends what the socket takes, unless another thread is at it, which then sends all there is. With
 * the lock `sending`, which is free meanwhile. */
void tcp_flush(peal_network *network, tcp_link *link);
/* Drops what of a plan is not sent, and what it was promised. */
void tcp_drop(tcp_link *link, const peal_network_plan *plan, size_t frames);

/* ---- tcp_receive.c ---- */

/* Takes what has come. With the lock `receiving`: no plan of the link ends meanwhile (detach). */
void tcp_receive(peal_network *network, tcp_link *link);
bool tcp_expect(peal_network_plan *plan, int pair, int number, uint64_t value, unsigned char *to);
bool tcp_withdraw(peal_network_plan *plan, int pair, int number);

#endif
