/* Notices the end of the launcher, by the kernel alone: a pidfd of the parent, and the end of file
 * of the line to it. PR_SET_PDEATHSIG would be sent when the *thread* that has forked ends, and
 * launchers that fork by threads may end one at any time. */
#define _GNU_SOURCE
#include "runtime/bootstrap/parent.h"

#include "base/program.h"

#include <poll.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void add(const peal_parent *parent, int descriptor, unsigned events)
{
    struct epoll_event event = {.events = events, .data = {.fd = descriptor}};
    if (descriptor >= 0 && epoll_ctl(parent->watch, EPOLL_CTL_ADD, descriptor, &event)) {
        /* one means less: the others still tell */
    }
}

void peal_parent_open(int channel, peal_parent *out)
{
    pid_t parent = getppid();
    *out = (peal_parent){epoll_create1(EPOLL_CLOEXEC), peal_pidfd_open(parent),
                         eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (out->watch < 0)
        return;
    add(out, out->pidfd, EPOLLIN);
    add(out, out->gone, EPOLLIN);
    add(out, channel, EPOLLRDHUP); /* not EPOLLIN: answers come there, too */
    if (getppid() != parent)       /* it ended between: the pidfd may be of another */
        peal_parent_lose(out);
}

void peal_parent_lose(peal_parent *parent)
{
    uint64_t one = 1;
    if (parent->gone >= 0 && write(parent->gone, &one, sizeof(one)) < 0) {
        /* cannot be: the counter of an eventfd is far from full */
    }
}

bool peal_parent_is_gone(const peal_parent *parent)
{
    struct pollfd event = {parent->watch, POLLIN, 0};
    return parent->watch >= 0 && poll(&event, 1, 0) > 0;
}

void peal_parent_close(peal_parent *parent)
{
    const int descriptor[] = {parent->watch, parent->pidfd, parent->gone};
    for (int i = 0; i < 3; i++)
        if (descriptor[i] >= 0)
            close(descriptor[i]);
    *parent = (peal_parent){-1, -1, -1};
}
