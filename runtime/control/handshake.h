/* How two processes on two hosts prove to each other that they are of one job. A secret of the one
 * that is called went to the other by the bootstrap; it never travels on the connection.
 *
 *     called -> caller    challenge: a nonce
 *     caller -> called    hello: who, what for, a nonce, a code over all of it and the challenge
 *     called -> caller    answer: another code over both
 *
 * A code is an HMAC-SHA-256 under the secret that begins with the role of who makes it: a code that
 * was heard proves nothing to anybody else, later, or in the other direction. Nothing is encrypted:
 * who can change packets on their way between the hosts can still take a connection over.
 *
 * Pure: no socket, no clock, no memory but the struct, which may be copied. Integers are
 * little-endian on the wire. */
#ifndef PEAL_RUNTIME_CONTROL_HANDSHAKE_H
#define PEAL_RUNTIME_CONTROL_HANDSHAKE_H

#include "runtime/control/wire.h"

enum {
    PEAL_NONCE_BYTES = 16,
    PEAL_CHALLENGE_BYTES = 32,
    PEAL_CALL_BYTES = 64,
    PEAL_ANSWER_BYTES = 32
};

typedef enum peal_handshake_state {
    PEAL_HANDSHAKE_GOES_ON,
    PEAL_HANDSHAKE_DONE,    /* each has proved it; a side that is called still says its answer */
    PEAL_HANDSHAKE_NO_PEAL, /* the other side speaks something else */
    PEAL_HANDSHAKE_OTHER_VERSION, /* of this protocol: see version */
    PEAL_HANDSHAKE_NOT_PROVED     /* another job's process, or a stranger */
} peal_handshake_state;

/* Who calls, and what for. */
typedef struct peal_caller {
    uint32_t kind; /* peal_hello_kind */
    int32_t process, key;
} peal_caller;

typedef enum peal_handshake_message {
    PEAL_NO_MESSAGE,
    PEAL_CHALLENGE,
    PEAL_CALL,
    PEAL_ANSWER
} peal_handshake_message;

typedef struct peal_handshake {
    peal_handshake_state state;
    peal_caller caller; /* of a side that is called: once it is done */
    uint32_t version;   /* the other side's, where it is another one */
    unsigned char secret[PEAL_SECRET_BYTES], nonce[PEAL_NONCE_BYTES];
    unsigned char challenge[PEAL_CHALLENGE_BYTES], call[PEAL_CALL_BYTES], answer[PEAL_ANSWER_BYTES];
    peal_handshake_message awaited, said; /* what comes next, and what is to be sent */
    size_t have;                          /* bytes of what is awaited */
} peal_handshake;

/* The side that is called, with its own secret. Nonces are fresh random bytes. */
void peal_handshake_called(peal_handshake *h, const unsigned char secret[PEAL_SECRET_BYTES],
                           const unsigned char nonce[PEAL_NONCE_BYTES]);
/* The side that calls, with the other one's secret. */
void peal_handshake_calls(peal_handshake *h, const unsigned char secret[PEAL_SECRET_BYTES],
                          const unsigned char nonce[PEAL_NONCE_BYTES], peal_caller caller);

/* How many bytes of what comes next are missing; 0: nothing is awaited. */
size_t peal_handshake_needs(const peal_handshake *h);
/* Takes bytes that came; returns how many: what comes behind a handshake is not of it. */
size_t peal_handshake_take(peal_handshake *h, const void *data, size_t bytes);
/* What is to be sent, which is then taken to be; NULL: nothing. Ask after each take, and before the
 * first one. */
const void *peal_handshake_say(peal_handshake *h, size_t *bytes);

#endif
