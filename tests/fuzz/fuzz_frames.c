/* Fuzzes what a socket of the message engine may bring: the first byte of input says in pieces of
 * which size it comes. Words and slots are compared with those of a plain reader of the same bytes,
 * and nothing beside them may change. */
#define _GNU_SOURCE
#include "runtime/network/network.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    PLAN = 7,
    PUTS = 4,
    LARGE = 20000, /* goes into its slot without the engine's buffer */
    SLOT_BYTES = 20032,
    MOST_SLOTS = 2,
    MEMORY = 64 + PUTS * 64 + PUTS * MOST_SLOTS * SLOT_BYTES + 64
};

/* Bytes, slots, quantum; the last one is a credit. */
static const peal_put kinds[PUTS] = {
    {.bytes = 64, .slots = 2, .quantum = 1},
    {.bytes = LARGE, .slots = 2, .quantum = 4},
    {.bytes = 0, .slots = 1, .quantum = 2},
    {.bytes = 0, .slots = 4, .quantum = 1, .credit = true},
};

static unsigned char real[MEMORY], model[MEMORY];

static size_t word_at(int put)
{
    return 64 + (size_t)put * 64;
}

static size_t slots_at(int put)
{
    return 64 + PUTS * 64 + (size_t)put * MOST_SLOTS * SLOT_BYTES;
}

/* ---- the reader to compare with ---- */

/* Whether the frame may come; raises the word and fills the slot where it all has come. */
static bool take(const peal_put_frame *head, const uint8_t *bytes, size_t there)
{
    uint64_t last;
    if (head->plan != PLAN)
        return true;
    if (head->put >= PUTS || head->bytes != (uint64_t)kinds[head->put].bytes)
        return false;
    const peal_put *kind = &kinds[head->put];
    memcpy(&last, model + word_at((int)head->put), sizeof(last));
    uint64_t step = head->value - last, ahead = kind->credit ? (uint64_t)kind->slots + 1 : 1;
    if (!step || step % kind->quantum || step > ahead * kind->quantum)
        return false;
    uint64_t slot = head->value / kind->quantum % (uint64_t)kind->slots;
    memcpy(model + slots_at((int)head->put) + slot * SLOT_BYTES, bytes,
           there < head->bytes ? there : (size_t)head->bytes);
    if (there >= head->bytes)
        memcpy(model + word_at((int)head->put), &head->value, sizeof(head->value));
    return true;
}

static bool read_all(const uint8_t *data, size_t size)
{
    size_t at = 0;
    peal_put_frame head;
    while (size - at >= sizeof(head)) {
        memcpy(&head, data + at, sizeof(head));
        at += sizeof(head);
        if (!take(&head, data + at, size - at))
            return false;
        if (head.bytes > size - at)
            return true;
        at += (size_t)head.bytes;
    }
    return true;
}

/* ---- the engine ---- */

typedef struct peer {
    int here, there;
    int failures;
} peer;

static peal_status lend_stream(void *user, int process, int *stream)
{
    const peer *self = user;
    *stream = self->here;
    return process == 1 ? PEAL_STATUS_OK : PEAL_STATUS_INTERNAL;
}

static void count_failure(void *user, peal_status status, const char *message)
{
    peer *self = user;
    if (status != PEAL_STATUS_INTERNAL || strncmp(message, "a frame from process 1", 22) != 0)
        abort();
    self->failures++;
}

static void feed(peal_network *network, const peer *self, const uint8_t *data, size_t size,
                 size_t piece)
{
    for (size_t at = 0; at < size && !self->failures;) {
        size_t part = size - at < piece ? size - at : piece;
        ssize_t sent = send(self->there, data + at, part, MSG_NOSIGNAL | MSG_DONTWAIT);
        at += sent > 0 ? (size_t)sent : 0;
        peal_network_tcp.progress(network);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static peal_put in[PUTS];
    int ends[2];
    peal_network *network = NULL;
    peal_network_plan *plan = NULL;
    if (size < 1)
        return 0;
    memset(real, 0xa5, sizeof(real));
    for (int p = 0; p < PUTS; p++) {
        in[p] = kinds[p];
        in[p].slot = kinds[p].bytes ? 0 : -1;
        in[p].slot_bytes = SLOT_BYTES;
        in[p].at = (_Atomic uint64_t *)(void *)(real + word_at(p));
        in[p].first_slot = real + slots_at(p);
        memset(real + word_at(p), 0, sizeof(uint64_t));
    }
    memcpy(model, real, sizeof(model));
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends))
        abort();
    peer self = {.here = ends[0], .there = ends[1]};
    const peal_pair pair = {.process = 1, .in = in, .in_count = PUTS};
    const peal_network_site site = {.size = sizeof(site),
                                    .processes = 2,
                                    .user = &self,
                                    .connect = lend_stream,
                                    .fail = count_failure};
    if (peal_network_tcp.open(&site, NULL, &network) ||
        peal_network_tcp.attach(network, PLAN, &pair, 1, NULL, &plan))
        abort();
    size_t piece = data[0] ? (size_t)data[0] * data[0] : 100000;
    feed(network, &self, data + 1, size - 1, piece);
    bool is_right = read_all(data + 1, size - 1);
    if (self.failures != !is_right || memcmp(real, model, sizeof(real)) != 0)
        abort();
    peal_network_tcp.detach(plan);
    peal_network_tcp.close(network);
    close(ends[1]);
    return 0;
}
