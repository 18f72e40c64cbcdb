/* Sockets of the control plane: abstract names (nothing in a file system), same user only. */
#define _GNU_SOURCE
#include "runtime/control/wire.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

int peal_poll_milliseconds(int64_t until_ns)
{
    int64_t left = until_ns - peal_clock_ns();
    if (left <= 0)
        return 0;
    int64_t milliseconds = (left + 999999) / 1000000;
    return milliseconds > 3600000 ? 3600000 : (int)milliseconds;
}

bool peal_random_bytes(void *out, size_t bytes)
{
    unsigned char *at = out;
    while (bytes) {
        ssize_t got = getrandom(at, bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        bytes -= (size_t)got;
    }
    return true;
}

static socklen_t address_of(const char name[PEAL_NAME_BYTES], struct sockaddr_un *address)
{
    memset(address, 0, sizeof(*address));
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path + 1, name, PEAL_NAME_BYTES);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + PEAL_NAME_BYTES);
}

static void print_name(char name[PEAL_NAME_BYTES], const unsigned char *random)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuv";
    memcpy(name, "peal-", 5);
    for (int i = 5; i < PEAL_NAME_BYTES; i++)
        name[i] = digits[random[i] & 31];
}

int peal_wire_listen(char name[PEAL_NAME_BYTES])
{
    unsigned char random[PEAL_NAME_BYTES];
    struct sockaddr_un address;
    if (!peal_random_bytes(random, sizeof(random)))
        return -1;
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0)
        return -1;
    print_name(name, random);
    socklen_t length = address_of(name, &address);
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, SOMAXCONN)) {
        int error = errno;
        close(listener);
        errno = error;
        return -1;
    }
    return listener;
}

bool peal_wire_same_user(int socket)
{
    struct ucred peer;
    socklen_t length = sizeof(peer);
    return !getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) && peer.uid == geteuid();
}

int peal_wire_pidfd(int socket)
{
#ifdef SYS_pidfd_open
    struct ucred peer;
    socklen_t length = sizeof(peer);
    if (!getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) && peer.pid > 0)
        return (int)syscall(SYS_pidfd_open, peer.pid, 0); /* close-on-exec by itself */
#else
    (void)socket;
#endif
    return -1;
}

int peal_wire_connect(const char name[PEAL_NAME_BYTES], int64_t until_ns)
{
    struct sockaddr_un address;
    socklen_t length = address_of(name, &address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    int error = 0;
    while (connect(fd, (struct sockaddr *)&address, length)) {
        error = errno;
        if (error == EINTR)
            continue;
        if (error != EAGAIN || peal_clock_ns() >= until_ns)
            goto fail;
        poll(NULL, 0, 1); /* the other's queue is full: it is accepting */
    }
    if (peal_wire_same_user(fd))
        return fd;
    error = EACCES;
fail:
    close(fd);
    errno = error;
    return -1;
}

bool peal_wire_send_small(int socket, const void *data, size_t bytes)
{
    ssize_t sent;
    do
        sent = send(socket, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)bytes;
}
