/* Connections between hosts: see the header. */
#define _GNU_SOURCE
#include "runtime/control/wire_tcp.h"
#include "base/clock.h"
#include "base/patience.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- addresses ---- */

static int listen_on(const struct sockaddr *address, socklen_t length, unsigned char port[2])
{
    struct sockaddr_storage bound;
    socklen_t bytes = sizeof(bound);
    int off = 0, on = 1,
        listener = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0)
        return -1;
    /* A port of a job that has just ended is free. */
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (address->sa_family == AF_INET6)
        setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind(listener, address, length) || listen(listener, SOMAXCONN) ||
        getsockname(listener, (struct sockaddr *)&bound, &bytes)) {
        int error = errno;
        close(listener);
        errno = error;
        return -1;
    }
    in_port_t bound_port = address->sa_family == AF_INET6
                               ? ((struct sockaddr_in6 *)&bound)->sin6_port
                               : ((struct sockaddr_in *)&bound)->sin_port;
    memcpy(port, &bound_port, 2);
    return listener;
}

static int listen_anywhere(const peal_address *only, int port_number, unsigned char port[2])
{
    in_port_t wanted = htons((uint16_t)port_number);
    struct sockaddr_in6 six = {.sin6_family = AF_INET6,
                               .sin6_addr = in6addr_any,
                               .sin6_port = wanted};
    struct sockaddr_in four = {.sin_family = AF_INET,
                               .sin_addr = {htonl(INADDR_ANY)},
                               .sin_port = wanted};
    if (only && only->version == 4)
        memcpy(&four.sin_addr, only->bytes, 4);
    if (only && only->version == 6)
        memcpy(&six.sin6_addr, only->bytes, 16);
    if (!only || only->version == 6) {
        int listener = listen_on((struct sockaddr *)&six, sizeof(six), port);
        if (listener >= 0 || only || (errno != EAFNOSUPPORT && errno != EADDRNOTAVAIL))
            return listener;
    }
    return listen_on((struct sockaddr *)&four, sizeof(four), port);
}

/* Processes of a host begin at different ports: most find theirs at once. */
int peal_wire_listen_tcp(const peal_network_choice *choice, const peal_address *only,
                         unsigned char port[2])
{
    int first = choice ? choice->first_port : 0, listener = -1;
    int count = first ? choice->last_port - first + 1 : 1;
    errno = EADDRINUSE;
    for (int i = 0; i < count && listener < 0 && (errno == EADDRINUSE || errno == EACCES); i++)
        listener = listen_anywhere(only, first ? first + ((int)getpid() + i) % count : 0, port);
    return listener;
}

int peal_wire_listen_on_loopback(peal_address *address)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    *address = (peal_address){.version = 4, .bytes = {127, 0, 0, 1}};
    return listen_on((struct sockaddr *)&four, sizeof(four), address->port);
}

/* Whether others may reach it, and then what it is. */
static bool address_of(const struct ifaddrs *entry, peal_address *out)
{
    *out = (peal_address){0};
    const unsigned needed = IFF_UP | IFF_RUNNING; /* what has no carrier reaches nobody */
    if (!entry->ifa_addr || (entry->ifa_flags & needed) != needed ||
        entry->ifa_flags & IFF_LOOPBACK)
        return false;
    if (entry->ifa_addr->sa_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)entry->ifa_addr;
        memcpy(out->bytes, &four->sin_addr, 4);
        if (out->bytes[0] == 169 && out->bytes[1] == 254)
            return false;
        out->version = 4;
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)entry->ifa_addr;
        if (IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
            return false;
        out->version = 6;
        memcpy(out->bytes, &six->sin6_addr, 16);
    }
    return out->version != 0;
}

/* A network: an address, and how many of its bits count. */
static bool parse_network(const char *text, peal_address *out, int *bits)
{
    char address[INET6_ADDRSTRLEN + 1], rest;
    int length = (int)strcspn(text, "/");
    if (length > INET6_ADDRSTRLEN || !text[length] || !isdigit((unsigned char)text[length + 1]) ||
        sscanf(text + length, "/%3d%c", bits, &rest) != 1)
        return false;
    snprintf(address, sizeof(address), "%.*s", length, text);
    *out = (peal_address){.version = 4};
    if (inet_pton(AF_INET, address, out->bytes) != 1) {
        out->version = 6;
        if (inet_pton(AF_INET6, address, out->bytes) != 1)
            return false;
    }
    return *bits >= 0 && *bits <= (out->version == 4 ? 32 : 128);
}

bool peal_network_choice_makes_sense(const peal_network_choice *choice)
{
    const int most = 65535;
    peal_address network;
    int bits;
    bool any_port = !choice->first_port && !choice->last_port;
    if (!any_port && (choice->first_port < 1 || choice->last_port < choice->first_port ||
                      choice->last_port > most))
        return false;
    const char *interface = choice->interface;
    if (interface && strchr(interface, '/'))
        return parse_network(interface, &network, &bits);
    return !interface || (*interface && strlen(interface) < IF_NAMESIZE);
}

static bool is_chosen(const peal_network_choice *choice, const struct ifaddrs *entry,
                      const peal_address *address)
{
    const char *interface = choice ? choice->interface : NULL;
    peal_address network;
    int bits;
    if (!interface)
        return true;
    if (!strchr(interface, '/'))
        return !strcmp(entry->ifa_name, interface);
    if (!parse_network(interface, &network, &bits) || network.version != address->version)
        return false;
    for (int b = 0; b < bits; b++)
        if ((network.bytes[b / 8] ^ address->bytes[b / 8]) >> (7 - b % 8) & 1)
            return false;
    return true;
}

static int take_addresses(const struct ifaddrs *all, const peal_network_choice *choice,
                          peal_address address[PEAL_ADDRESSES])
{
    peal_address found;
    int most = choice && choice->interface ? 1 : PEAL_ADDRESSES, fours = 0, sixes = 0, count = 0;
    for (const struct ifaddrs *at = all; at; at = at->ifa_next)
        if (address_of(at, &found) && is_chosen(choice, at, &found)) {
            fours += found.version == 4;
            sixes += found.version == 6;
        }
    int most_fours = most > 1 && sixes > 0 ? most - 1 : most;
    fours = fours < most_fours ? fours : most_fours;
    for (int version = 4; version <= 6; version += 2) {
        int end = version == 4 ? fours : most;
        for (const struct ifaddrs *at = all; at && count < end; at = at->ifa_next)
            if (address_of(at, &found) && found.version == version && is_chosen(choice, at, &found))
                address[count++] = found;
    }
    return count;
}

/* The kernel's list has gaps if interfaces come or go while it is read (NLM_F_DUMP_INTR, which the
 * C library does not look at), as where containers start: none is asked for again. */
int peal_wire_addresses(const peal_network_choice *choice, peal_address address[PEAL_ADDRESSES])
{
    enum { ATTEMPTS = 4, BETWEEN_NS = 5000000 };
    struct ifaddrs *all;
    int count = 0;
    memset(address, 0, PEAL_ADDRESSES * sizeof(*address));
    for (int attempt = 0; attempt < ATTEMPTS && count == 0; attempt++) {
        if (attempt > 0)
            peal_clock_sleep(BETWEEN_NS);
        if (getifaddrs(&all))
            continue;
        count = take_addresses(all, choice, address);
        freeifaddrs(all);
    }
    return count;
}

const char *peal_wire_list_interfaces(char *text, size_t bytes)
{
    struct ifaddrs *all;
    peal_address found;
    char number[INET6_ADDRSTRLEN];
    size_t used = 0;
    snprintf(text, bytes, "none");
    if (getifaddrs(&all))
        return text;
    for (const struct ifaddrs *at = all; at && used < bytes; at = at->ifa_next)
        if (address_of(at, &found) &&
            inet_ntop(found.version == 4 ? AF_INET : AF_INET6, found.bytes, number, sizeof(number)))
            used += (size_t)snprintf(text + used, bytes - used, "%s%s %s", used ? ", " : "",
                                     at->ifa_name, number);
    freeifaddrs(all);
    return text;
}

const char *peal_wire_print_address(const peal_address *address, char text[PEAL_ADDRESS_TEXT_BYTES])
{
    char host[INET6_ADDRSTRLEN] = "?";
    bool six = address->version == 6;
    inet_ntop(six ? AF_INET6 : AF_INET, address->bytes, host, sizeof(host));
    snprintf(text, PEAL_ADDRESS_TEXT_BYTES, six ? "[%s]:%d" : "%s:%d", host,
             address->port[0] << 8 | address->port[1]);
    return text;
}

/* ---- calling ---- */

/* 0: the socket has what is awaited; else errno. The time starts anew where this process was
 * stopped. */
static int await(int socket, short events, int stop, int64_t *until_ns)
{
    struct pollfd poll_of[2] = {{socket, events, 0}, {stop, POLLIN, 0}};
    int64_t now = peal_clock_ns();
    peal_patience patience = peal_patience_begin(now, *until_ns > now ? *until_ns - now : 1);
    for (;;) {
        int ready = poll(poll_of, 2, peal_patience_slice_ms(&patience, now));
        now = peal_clock_ns();
        *until_ns += peal_patience_jumped(&patience, now);
        if (ready < 0 && errno != EINTR && errno != EAGAIN)
            return errno;
        if (ready > 0 && poll_of[1].revents)
            return ECANCELED;
        if (ready > 0 && poll_of[0].revents)
            return 0;
        if (now >= *until_ns)
            return ETIMEDOUT;
    }
}

static int connect_tcp(const peal_address *address, int stop, int64_t until_ns, int *socket_out)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};
    bool is_six = address->version == 6;
    memcpy(is_six ? &six.sin6_port : &four.sin_port, address->port, 2);
    memcpy(&six.sin6_addr, address->bytes, 16);
    memcpy(&four.sin_addr, address->bytes, 4);
    int fd = socket(is_six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    int error = connect(fd, is_six ? (struct sockaddr *)&six : (struct sockaddr *)&four,
                        is_six ? sizeof(six) : sizeof(four))
                    ? errno
                    : 0;
    if (error == EINPROGRESS || error == EINTR) { /* either way it goes on by itself */
        socklen_t bytes = sizeof(error);
        int late = await(fd, POLLOUT, stop, &until_ns);
        if (late)
            error = late;
        else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes))
            error = errno;
    }
    if (error)
        close(fd);
    else
        *socket_out = fd;
    return error;
}

/* Until it is over; reads nothing that is not of the handshake. share_ns: until when somebody has
 * to answer at all. Once the call has been said it is finished, also a moment after the stop: the
 * other side may have taken the connection, and would take its end for a death. */
static int shake(int socket, peal_handshake *h, int stop, int64_t share_ns, int64_t until_ns)
{
    const int64_t moment_ns = 1000000000;
    unsigned char in[PEAL_CALL_BYTES];
    bool is_stopped = false;
    int64_t end_ns = share_ns;
    while (h->state == PEAL_HANDSHAKE_GOES_ON) {
        int64_t before_ns = end_ns;
        int error = await(socket, POLLIN, is_stopped ? -1 : stop, &end_ns);
        until_ns += end_ns - before_ns; /* this process was stopped for so long */
        if (error == ECANCELED) {
            int64_t soon_ns = peal_clock_ns() + moment_ns;
            is_stopped = true;
            until_ns = soon_ns < until_ns ? soon_ns : until_ns;
            end_ns = soon_ns < end_ns ? soon_ns : end_ns;
            continue;
        }
        if (error)
            return is_stopped ? ECANCELED : error;
        ssize_t got = recv(socket, in, peal_handshake_needs(h), MSG_DONTWAIT);
        if (got < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK))
            continue;
        if (got < 0)
            return errno;
        if (!got)
            return ECONNRESET;
        peal_handshake_take(h, in, (size_t)got);
        size_t bytes;
        const void *said = peal_handshake_say(h, &bytes);
        if (!said)
            continue;
        if (!peal_wire_send_small(socket, said, bytes))
            return errno;
        end_ns = until_ns;
    }
    return h->state == PEAL_HANDSHAKE_DONE ? 0 : EPROTO;
}

/* state: of a handshake that came to an end. */
static int try_one(const peal_address *address, const unsigned char secret[PEAL_SECRET_BYTES],
                   peal_caller caller, int stop, int64_t share_ns, int64_t until_ns,
                   peal_handshake *state, int *socket_out)
{
    unsigned char nonce[PEAL_NONCE_BYTES];
    peal_handshake h;
    int fd = -1;
    if (!peal_random_bytes(nonce, sizeof(nonce)))
        return errno;
    peal_handshake_calls(&h, secret, nonce, caller);
    int error = connect_tcp(address, stop, share_ns, &fd);
    if (error)
        return error;
    peal_wire_be_prompt(fd);
    error = shake(fd, &h, stop, share_ns, until_ns);
    if (!error || error == EPROTO)
        *state = h;
    if (error)
        close(fd);
    else
        *socket_out = fd;
    return error;
}

/* Who is called drops callers in the middle of a handshake where it has too many, or where it takes
 * a pause of its own for theirs: they come again. */
static int call_one(const peal_address *address, const unsigned char secret[PEAL_SECRET_BYTES],
                    peal_caller caller, int stop, int64_t share_ns, int64_t until_ns,
                    peal_handshake *state, int *socket_out)
{
    enum { TRIES = 12, FIRST_PAUSE_MS = 10, LONGEST_PAUSE_MS = 320 };
    int error = 0, pause_ms = FIRST_PAUSE_MS;
    for (int i = 0; i < TRIES; i++) {
        error = try_one(address, secret, caller, stop, share_ns, until_ns, state, socket_out);
        if (error != ECONNRESET || peal_clock_ns() >= share_ns)
            break;
        struct pollfd stopped = {stop, POLLIN, 0};
        if (poll(&stopped, 1, pause_ms) > 0)
            return ECANCELED;
        pause_ms = pause_ms * 2 < LONGEST_PAUSE_MS ? pause_ms * 2 : LONGEST_PAUSE_MS;
    }
    return error;
}

static void put_first(peal_address *address, int index)
{
    peal_address good = address[index];
    memmove(address + 1, address, (size_t)index * sizeof(*address));
    address[0] = good;
}

/* All in turn, once; where others follow, none takes more than most_ns. */
static int call_each(peal_address *address, int count, const unsigned char *secret,
                     peal_caller caller, int stop, int64_t most_ns, int64_t until_ns,
                     peal_handshake *state, int *socket_out, bool *is_silent)
{
    bool was_refused = false;
    int error = EADDRNOTAVAIL;
    *is_silent = false;
    for (int i = 0; i < count && error != ECANCELED; i++) {
        int64_t now = peal_clock_ns(), share = (until_ns - now) / (count - i);
        share = now + (count > 1 && share > most_ns ? most_ns : share);
        error = call_one(&address[i], secret, caller, stop, share, until_ns, state, socket_out);
        if (!error)
            put_first(address, i);
        if (!error)
            return 0;
        was_refused |= error == EPROTO;
        *is_silent |= error == ETIMEDOUT;
    }
    return was_refused && error != ECANCELED ? EPROTO : error;
}

int peal_wire_call_tcp(peal_address *address, const unsigned char secret[PEAL_SECRET_BYTES],
                       peal_caller caller, int stop, int64_t until_ns, peal_handshake *state)
{
    int count = 0, error, fd = -1;
    int64_t most_ns = INT64_C(2000000000);
    bool is_silent = true;
    *state = (peal_handshake){0};
    while (count < PEAL_ADDRESSES && address[count].version)
        count++;
    do {
        error = call_each(address, count, secret, caller, stop, most_ns, until_ns, state, &fd,
                          &is_silent);
        most_ns *= 2;
    } while (error && error != ECANCELED && is_silent && peal_clock_ns() < until_ns);
    errno = error;
    return error ? -1 : fd;
}

/* ---- options ---- */

void peal_wire_be_prompt(int socket)
{
    int on = 1, idle_s = 30, between_s = 10;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &between_s, sizeof(between_s));
}

void peal_wire_be_watched(int socket, unsigned silent_ms)
{
    int on = 1, idle_s = 1, between_s = 1;
    setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &between_s, sizeof(between_s));
    setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent_ms, sizeof(silent_ms));
}
