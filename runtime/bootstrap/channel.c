/* The socket between a process and the peal that started it: packets, kept whole by the kernel. */
#define _GNU_SOURCE
#include "runtime/bootstrap/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* What a process of the job started has the variables, but not the descriptor. */
static bool is_channel(int descriptor)
{
    struct ucred peer;
    int type = 0;
    socklen_t length = sizeof(type), peer_length = sizeof(peer);
    return !getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) && type == SOCK_SEQPACKET &&
           !getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &peer_length) &&
           peer.uid == geteuid();
}

int peal_channel_inherited(void)
{
    const char *text = getenv(PEAL_CHANNEL_SOCKET);
    char *end;
    long number = text && *text ? strtol(text, &end, 10) : -1;
    if (number < 0 || number > INT32_MAX || *end || !is_channel((int)number))
        return -1;
    return fcntl((int)number, F_SETFD, FD_CLOEXEC) ? -1 : (int)number;
}

bool peal_channel_identity(int *process, int *processes, int *local, int *locals)
{
    const char *text = getenv(PEAL_CHANNEL_PROCESS), *place = getenv(PEAL_CHANNEL_PLACE);
    return text && place && sscanf(text, "%d/%d", process, processes) == 2 &&
           sscanf(place, "%d/%d", local, locals) == 2 && *process >= 0 && *process < *processes &&
           *local >= 0 && *local < *locals && *locals <= *processes;
}

bool peal_channel_send(int socket, const peal_packet *packet, const void *data)
{
    struct iovec part[2] = {{(void *)packet, sizeof(*packet)}, {(void *)data, packet->bytes}};
    struct msghdr message = {.msg_iov = part, .msg_iovlen = packet->bytes ? 2 : 1};
    ssize_t sent;
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)(sizeof(*packet) + packet->bytes);
}

int peal_channel_receive(int socket, peal_packet *packet, void *data, size_t capacity)
{
    struct iovec part[2] = {{packet, sizeof(*packet)}, {data, capacity}};
    struct msghdr message = {.msg_iov = part, .msg_iovlen = capacity ? 2 : 1};
    ssize_t got;
    do
        got = recvmsg(socket, &message, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    bool good = got >= (ssize_t)sizeof(*packet) && !(message.msg_flags & MSG_TRUNC) &&
                packet->magic == PEAL_CHANNEL_MAGIC &&
                (size_t)got == sizeof(*packet) + packet->bytes;
    return good ? 1 : -1;
}
