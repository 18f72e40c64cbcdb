/* Fuzzes what processes say to each other when a job begins: the blob that the bootstrap carries,
 * the first frames of strangers, and what neighbours send on their connections. This process is 0
 * or 1 of two; a thread with the fuzzer's bytes is the other. The first byte says who says what.
 * Whatever the bytes: no crash, and each call ends. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "runtime/control/internal.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { DEADLINE_NS = 12000000 };

typedef enum what { BLOB, STRANGER, DATA, WATCH, WHATS } what;

typedef struct other {
    peal_bootstrap bootstrap;
    int me; /* number of the process that is tested */
    what says;
    const uint8_t *bytes;
    size_t size;
    peal_control_blob blob, tested; /* the other's, and that of the process that is tested */
    int listener;
    int kept; /* the data connection of one that says its last word on the other; -1: none */
    pthread_t thread;
    bool begun;
} other;

static void say(int socket, const void *bytes, size_t size)
{
    if (socket >= 0 && size > 0 && send(socket, bytes, size, MSG_NOSIGNAL) < 0) {
        /* it has closed: that is an answer, too */
    }
}

static int knock(const other *o, uint32_t kind)
{
    int socket = peal_wire_connect(o->tested.endpoint.name, peal_clock_ns() + DEADLINE_NS);
    peal_hello hello = {.magic = PEAL_HELLO_MAGIC,
                        .wire_version = PEAL_WIRE_VERSION,
                        .kind = kind,
                        .process = !o->me};
    memcpy(hello.secret, o->tested.endpoint.secret, PEAL_SECRET_BYTES);
    if (kind)
        say(socket, &hello, sizeof(hello));
    return socket;
}

/* The connections of a child that joins, or those that a child opens to us. */
static void connect_both(const other *o, int socket[2])
{
    for (int i = 0; i < 2; i++) {
        struct pollfd event = {o->listener, POLLIN, 0};
        if (o->me == 0)
            socket[i] = knock(o, i == 0 ? PEAL_HELLO_DATA : PEAL_HELLO_WATCH);
        else
            socket[i] =
                poll(&event, 1, DEADLINE_NS / 1000000) > 0 ? accept(o->listener, NULL, NULL) : -1;
    }
}

static void *be_other(void *argument)
{
    other *o = argument;
    int socket[2] = {-1, -1};
    if (o->says == STRANGER) {
        int stranger = knock(o, 0);
        say(stranger, o->bytes, o->size);
        if (stranger >= 0)
            close(stranger);
    }
    connect_both(o, socket);
    if (o->says == DATA || o->says == WATCH)
        say(socket[o->says == WATCH], o->bytes, o->size);
    if (o->says == WATCH) {
        o->kept = socket[0];
        socket[0] = -1;
    }
    for (int i = 0; i < 2; i++)
        if (socket[i] >= 0)
            close(socket[i]);
    return NULL;
}

/* ---- the bootstrap ---- */

static peal_status tell_identity(peal_bootstrap *bootstrap, peal_bootstrap_identity *out)
{
    const other *o = (const other *)bootstrap;
    *out = (peal_bootstrap_identity){.process = o->me,
                                     .processes = 2,
                                     .local_process = o->me,
                                     .local_processes = 2,
                                     .name = "fuzz"};
    return PEAL_STATUS_OK;
}

static peal_status take_blob(peal_bootstrap *bootstrap, int round, const void *blob, size_t bytes)
{
    other *o = (other *)bootstrap;
    (void)round;
    memcpy(&o->tested, blob, bytes < sizeof(o->tested) ? bytes : sizeof(o->tested));
    return PEAL_STATUS_OK;
}

static peal_status give_blob(peal_bootstrap *bootstrap, int round, int process, int64_t deadline_ns,
                             void *blob, size_t capacity, size_t *bytes)
{
    other *o = (other *)bootstrap;
    (void)round, (void)process, (void)deadline_ns;
    if (!o->begun)
        o->begun = pthread_create(&o->thread, NULL, be_other, o) == 0;
    const bool fuzzed = o->says == BLOB;
    *bytes = fuzzed ? o->size : sizeof(o->blob);
    if (*bytes > capacity)
        *bytes = capacity;
    memcpy(blob, fuzzed ? o->bytes : (const uint8_t *)&o->blob, *bytes);
    return PEAL_STATUS_OK;
}

static void be_ended(peal_bootstrap *bootstrap, int code, const char *message)
{
    (void)bootstrap, (void)code, (void)message;
}

static void be_closed(peal_bootstrap *bootstrap)
{
    (void)bootstrap;
}

static const peal_bootstrap_ops ops = {.size = sizeof(ops),
                                       .identity = tell_identity,
                                       .put = take_blob,
                                       .get = give_blob,
                                       .abort = be_ended,
                                       .close = be_closed};

/* ---- the process that is tested ---- */

static void call_all(peal_control *control)
{
    char text[16] = "text";
    void *blob[2] = {NULL, NULL};
    size_t size[2] = {0, 0};
    peal_status status = peal_control_gather(control, text, sizeof(text), blob, size);
    for (int p = 0; p < 2 && !status; p++) {
        volatile unsigned char last =
            blob[p] && size[p] ? ((unsigned char *)blob[p])[size[p] - 1] : 0;
        (void)last;
        free(blob[p]);
    }
    peal_control_broadcast(control, 1, text, sizeof(text));
    peal_control_broadcast(control, 0, text, sizeof(text));
    peal_control_barrier(control);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _Atomic int abort_word = 0;
    peal_control *control = NULL;
    if (size == 0)
        return 0;
    other o = {.bootstrap = {.ops = &ops},
               .me = data[0] & 1,
               .says = (what)((data[0] >> 1) % WHATS),
               .bytes = data + 1,
               .size = size - 1,
               .kept = -1};
    o.blob = (peal_control_blob){.magic = PEAL_BLOB_MAGIC,
                                 .wire_version = PEAL_WIRE_VERSION,
                                 .process = !o.me,
                                 .processes = 2};
    peal_host_identity(o.blob.host, sizeof(o.blob.host));
    o.listener = peal_wire_listen(o.blob.endpoint.name);
    if (o.listener < 0)
        abort();
    peal_diagnostics *list = peal_diagnostics_create();
    if (!peal_control_open(&o.bootstrap, NULL, &abort_word, DEADLINE_NS, list, &control)) {
        call_all(control);
        peal_control_close(control);
    } else if (peal_diagnostics_count(list) == 0)
        abort(); /* it ended, and nobody was told why */
    if (o.begun)
        pthread_join(o.thread, NULL);
    if (o.kept >= 0)
        close(o.kept);
    close(o.listener);
    peal_diagnostics_destroy(list);
    return 0;
}
