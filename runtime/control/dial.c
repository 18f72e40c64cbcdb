/* Calls to other processes: by the name of a socket on one host, by TCP between hosts. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "runtime/control/internal.h"
#include "runtime/control/wire_tcp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool peal_control_is_near(const peal_control *control, const peal_control_blob *blob)
{
    return !strncmp(blob->host, control->mine.host, PEAL_HOST_BYTES);
}

static int dial_near(const peal_control *control, const peal_control_blob *blob, peal_caller caller,
                     int64_t until_ns)
{
    int socket = peal_wire_connect(blob->endpoint.name, until_ns);
    if (socket < 0)
        return -1;
    peal_hello hello = {.magic = PEAL_HELLO_MAGIC,
                        .wire_version = PEAL_WIRE_VERSION,
                        .kind = caller.kind,
                        .process = control->identity.process,
                        .key = caller.key};
    memcpy(hello.secret, blob->endpoint.secret, PEAL_SECRET_BYTES);
    if (peal_wire_send_small(socket, &hello, sizeof(hello)))
        return socket;
    int error = errno;
    close(socket);
    errno = error;
    return -1;
}

static int dial_far(peal_control *control, peal_control_blob *blob, peal_caller caller,
                    int64_t until_ns, peal_handshake *state)
{
    peal_address address[PEAL_ADDRESSES];
    memcpy(address, blob->endpoint.address, sizeof(address));
    /* A job that has ended is no reason not to say so. */
    int stop = caller.kind == PEAL_HELLO_NOTICE ? -1 : control->aborted;
    int socket = peal_wire_call_tcp(address, blob->endpoint.secret, caller, stop, until_ns, state);
    if (socket >= 0 && memcmp(address, blob->endpoint.address, sizeof(address)) != 0) {
        pthread_mutex_lock(&control->lock); /* the service thread reads blobs of neighbours */
        memcpy(blob->endpoint.address, address, sizeof(address));
        pthread_mutex_unlock(&control->lock);
    }
    if (socket >= 0 && caller.kind == PEAL_HELLO_WATCH)
        peal_wire_be_watched(socket, PEAL_WATCHED_MS);
    return socket;
}

static const char *name_of(int error, const peal_handshake *state)
{
    if (error != EPROTO)
        return strerror(error);
    return state->state == PEAL_HANDSHAKE_OTHER_VERSION ? "another version of peal answers"
           : state->state == PEAL_HANDSHAKE_NO_PEAL     ? "something else answers"
                                                        : "a process of another job answers";
}

static void say_why(const peal_control_blob *blob, bool is_near, int error,
                    const peal_handshake *state, peal_dial_failure *why)
{
    char text[PEAL_ADDRESS_TEXT_BYTES];
    int room = (int)sizeof(why->text);
    int at = snprintf(why->text, sizeof(why->text), "%s", name_of(error, state));
    why->error = error;
    for (int i = 0; !is_near && i < PEAL_ADDRESSES && at < room; i++)
        if (blob->endpoint.address[i].version)
            at += snprintf(why->text + at, (size_t)(room - at), "%s%s", i ? ", " : " at ",
                           peal_wire_print_address(&blob->endpoint.address[i], text));
}

int peal_control_dial(peal_control *control, peal_control_blob *blob, peal_hello_kind kind, int key,
                      int64_t until_ns, peal_dial_failure *why)
{
    const peal_caller caller = {kind, control->identity.process, key};
    peal_handshake state = {0};
    /* Without an address there is only the name: in vain between true hosts. */
    bool is_near = !blob->endpoint.address[0].version || peal_control_is_near(control, blob);
    int socket = is_near ? dial_near(control, blob, caller, until_ns)
                         : dial_far(control, blob, caller, until_ns, &state);
    if (socket < 0)
        say_why(blob, is_near, errno, &state, why);
    return socket;
}

int peal_control_call(peal_control *control, int process, peal_hello_kind kind, int key,
                      peal_dial_failure *why)
{
    int64_t until_ns = peal_clock_ns() + control->deadline_ns;
    peal_control_blob *blob = peal_control_find(control, process, until_ns);
    if (blob)
        return peal_control_dial(control, blob, kind, key, until_ns, why);
    why->error = ENOENT;
    snprintf(why->text, sizeof(why->text), "the %s bootstrap does not say where it is",
             control->identity.name);
    return -1;
}
