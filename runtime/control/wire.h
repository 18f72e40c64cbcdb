/* What processes say to each other on the control plane, and the sockets they say it on.
 *
 * In the byte order of the hosts: those of another one do not understand a blob. On one host a
 * connection begins with one hello of 64 bytes, which is checked before anything else is believed;
 * between hosts with the handshake of handshake.h. */
#ifndef PEAL_RUNTIME_CONTROL_WIRE_H
#define PEAL_RUNTIME_CONTROL_WIRE_H

#include "base/host.h"

#include <peal/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PEAL_WIRE_VERSION = 3,
    PEAL_NAME_BYTES = 24, /* of an abstract socket's name, without the leading NUL */
    PEAL_SECRET_BYTES = 16,
    PEAL_ADDRESSES = 4,
    PEAL_VERSION_BYTES = 24,
    PEAL_NODE_BYTES = 48,
    PEAL_MESSAGE_BYTES = 240
};

#define PEAL_BLOB_MAGIC  UINT64_C(0x31306c7274636c70) /* "plctrl01" */
#define PEAL_HELLO_MAGIC UINT64_C(0x31306f6c656c6c70)
#define PEAL_FRAME_MAGIC UINT32_C(0x7266706c)

/* Where a process listens for those of other hosts. */
typedef struct peal_address {
    unsigned char version; /* 4 or 6; 0: none */
    unsigned char reserved;
    unsigned char port[2];   /* big-endian, as in packets */
    unsigned char bytes[16]; /* the first 4 of IPv4 */
} peal_address;
_Static_assert(sizeof(peal_address) == 20, "addresses travel as they lie");

/* Where a process is to be found, and what proves that somebody was told so. */
typedef struct peal_endpoint {
    char name[PEAL_NAME_BYTES]; /* on its host */
    unsigned char secret[PEAL_SECRET_BYTES];
    peal_address address[PEAL_ADDRESSES]; /* from other hosts; those behind the last: none */
} peal_endpoint;

/* What the bootstrap carries. The first two members keep their offsets in every version. */
typedef struct peal_control_blob {
    uint64_t magic;
    uint32_t wire_version;
    int32_t process, processes;
    uint32_t pid;
    char version[PEAL_VERSION_BYTES];
    peal_endpoint endpoint;
    char host[PEAL_HOST_BYTES]; /* boot and network namespace: equal iff sockets reach */
    char node[PEAL_NODE_BYTES]; /* what the host is called: for messages only */
} peal_control_blob;

typedef enum peal_hello_kind {
    PEAL_HELLO_DATA = 1, /* a tree edge: collective calls */
    PEAL_HELLO_WATCH,    /* a tree edge: aborts, leaving, death */
    PEAL_HELLO_FETCH,    /* asks for the descriptor `key` */
    PEAL_HELLO_NOTICE,   /* an abort frame follows: sent by who failed before the tree stood */
    PEAL_HELLO_STREAM,   /* from here on the connection is the stream `key` */
    PEAL_HELLO_ASK       /* questions follow, and a reply goes back to each */
} peal_hello_kind;

typedef struct peal_hello {
    uint64_t magic;
    uint32_t wire_version;
    uint32_t kind;
    int32_t process; /* who connects */
    int32_t key;
    unsigned char secret[PEAL_SECRET_BYTES]; /* of the one that is connected to */
    unsigned char reserved[24];
} peal_hello;
_Static_assert(sizeof(peal_hello) == 64, "a first frame has 64 bytes");

typedef enum peal_notice_kind {
    PEAL_NOTICE_ABORT = 1,
    PEAL_NOTICE_LEAVE,
    PEAL_NOTICE_BUSY, /* somebody that way will come, but not yet: a job on several hosts */
    PEAL_NOTICE_BEAT, /* I am here */
    PEAL_NOTICE_HEARD /* answers either */
} peal_notice_kind;

/* A frame of a watch connection. */
typedef struct peal_notice {
    uint32_t kind;
    int32_t status;
    int32_t process;
    char message[PEAL_MESSAGE_BYTES];
} peal_notice;

typedef struct peal_question {
    int32_t key;
    uint32_t is_last; /* who asks takes leave: the words mean nothing */
    uint64_t words[3];
} peal_question;

typedef struct peal_reply {
    uint64_t words[3];
} peal_reply;

/* The header of what a data connection carries. */
typedef struct peal_frame {
    uint32_t magic;
    uint32_t operation;
    uint64_t sequence; /* of the collective call */
    uint64_t bytes;    /* that follow */
} peal_frame;

/* What poll() takes: rounded up, at least 0. */
int peal_poll_milliseconds(int64_t until_ns);

/* Random bytes from the kernel; false: it has none. */
bool peal_random_bytes(void *out, size_t bytes);

/* A listening abstract socket of a fresh random name; -1 and errno. */
int peal_wire_listen(char name[PEAL_NAME_BYTES]);
/* Connected, close-on-exec, non-blocking, the other side is the same user; -1 and errno (EACCES:
 * another user). */
int peal_wire_connect(const char name[PEAL_NAME_BYTES], int64_t until_ns);
bool peal_wire_same_user(int socket);
/* A pidfd of the process at the other end; -1: the kernel has none. */
int peal_wire_pidfd(int socket);
/* Sends all at once or not at all: frames are small and buffers empty. */
bool peal_wire_send_small(int socket, const void *data, size_t bytes);

#endif
