/* The state of the service thread: service.c (the thread, its neighbours) and guests.c (connections
 * that somebody has opened). */
#ifndef PEAL_RUNTIME_CONTROL_SERVICE_H
#define PEAL_RUNTIME_CONTROL_SERVICE_H

#include "runtime/control/handshake.h"
#include "runtime/control/internal.h"

#include <poll.h>

enum {
    HALF_OPEN_LIMIT = 64,
    GUEST_LIMIT = 4096,
    FIRST_LINK = 4, /* in the poll list */
    POLL_LIMIT = FIRST_LINK + 2 * PEAL_TREE_LINKS + GUEST_LIMIT
};
/* Who has not said what it is here for by then leaves. */
#define PEAL_HALF_OPEN_NS INT64_C(5000000000)

typedef enum guest_state {
    GUEST_HELLO,
    GUEST_HANDSHAKE, /* of another host, in place of a hello */
    GUEST_NOTICE,
    GUEST_FETCH,
    GUEST_ASKS, /* stays */
    GUEST_GONE
} guest_state;

/* On which listener: each has room of its own, so that strangers of other hosts keep nobody of this
 * one waiting. */
typedef enum guest_side { NEAR, FAR, SIDES } guest_side;

/* A connection that somebody opened to us and that has not (yet) become a tree edge. */
typedef struct guest_socket {
    int socket;
    guest_state state;
    guest_side side;
    int64_t since_ns;
    size_t have; /* bytes of the frame being read */
    int key;
    union {
        peal_hello hello;
        peal_handshake handshake;
        peal_notice notice;
        peal_question question;
    } frame;
} guest_socket;

typedef struct service {
    peal_control *control;
    guest_socket guest[GUEST_LIMIT];
    int guest_count, half_open[SIDES];
    bool is_starved; /* no descriptor was left for a guest: look again a little later */
    bool is_crowded; /* there was no room for one of another host: likewise */
    struct pollfd poll[POLL_LIMIT];
    int polled_link[PEAL_TREE_LINKS];
} service;

/* What another process says has ended the job; from: the neighbour that said it, -1: none. */
void peal_take_cause(peal_control *control, peal_notice *notice, int from);

bool peal_guests_are_full(const service *self, guest_side side);
/* Takes those who wait at the listeners, as far as there is room. */
void peal_guests_accept(service *self);
/* Reads what they say, and drops those that are too slow. */
void peal_guests_serve(service *self);
void peal_guests_drop(service *self);

#endif
