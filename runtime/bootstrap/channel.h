/* What a process says to the peal that started it, and how it finds it: one socket of packets, made
 * before the process and inherited by it. No name, no port: nobody else can reach it.
 *
 * Its end of file tells each side that the other has gone. A packet is one header and `bytes` bytes
 * more, all on one host and from one peal, so in the host's byte order. */
#ifndef PEAL_RUNTIME_BOOTSTRAP_CHANNEL_H
#define PEAL_RUNTIME_BOOTSTRAP_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The descriptor, "process/processes", the same counted on its host, and the name by which the host
 * was asked for: set by the launcher, read by the process. */
#define PEAL_CHANNEL_SOCKET  "PEAL_LAUNCH_SOCKET"
#define PEAL_CHANNEL_PROCESS "PEAL_LAUNCH_PROCESS"
#define PEAL_CHANNEL_PLACE   "PEAL_LAUNCH_PLACE"
#define PEAL_CHANNEL_NODE    "PEAL_LAUNCH_NODE"

enum {
    PEAL_CHANNEL_MAGIC = 0x6863656c, /* "lech" */
    PEAL_CHANNEL_BLOB_LIMIT = 1 << 16
};

typedef enum peal_packet_kind {
    PEAL_PACKET_PUT = 1, /* to the launcher: the blob of `round` follows */
    PEAL_PACKET_GET,     /* to the launcher: wants the blob of `process` of `round` */
    PEAL_PACKET_BLOB,    /* back: it follows */
    PEAL_PACKET_LOST,    /* back: `process` has ended and never put it */
    PEAL_PACKET_ABORT,   /* to the launcher: end the job with `code`; a text follows */
    PEAL_PACKET_JOIN,    /* to the launcher: a session begins */
    PEAL_PACKET_LEAVE    /* to the launcher: it has ended as it should */
} peal_packet_kind;

typedef struct peal_packet {
    uint32_t magic, kind;
    int32_t process, round, code;
    uint32_t bytes;
} peal_packet;

/* Whether the launcher's socket was inherited: its descriptor, made close-on-exec; -1: this process
 * was started by something else. */
int peal_channel_inherited(void);
/* Of the environment: process and processes of the job, then of this host; false: not there, or
 * nonsense. */
bool peal_channel_identity(int *process, int *processes, int *local, int *locals);

/* One packet, at once: false: the other side is gone, or its queue is full (errno EAGAIN). */
bool peal_channel_send(int socket, const peal_packet *packet, const void *data);
/* One packet if there is one: 1; 0: none yet; -1: the other side is gone, or it is no packet. */
int peal_channel_receive(int socket, peal_packet *packet, void *data, size_t capacity);

#endif
