/* The sending half of the engine for RDMA adapters: a message is an entry that writes its bytes and
 * one that writes its word, rung for together; a credit is a word alone. Of every few entries one
 * is signalled, and an entry's place is taken again only when a completion behind it has been
 * taken. */
#include "runtime/network/mlx5.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { AT_ONCE = 16 };

void verbs_reap(verbs_link *link)
{
    struct ibv_wc got[AT_ONCE];
    int count;
    do {
        count = ibv_poll_cq(link->ring, AT_ONCE, got);
        for (int i = 0; i < count; i++) {
            if (got[i].status != IBV_WC_SUCCESS) {
                verbs_lose(link, "a message was not taken",
                           link->network->library->ibv_wc_status_str(got[i].status));
                return;
            }
            link->done = got[i].wr_id;
        }
    } while (count == AT_ONCE);
    if (count < 0)
        verbs_lose(link, "its completions cannot be read", strerror(errno));
}

static bool has_room(verbs_link *link, uint64_t entries)
{
    if (link->posted - link->done + entries <= link->depth)
        return true;
    verbs_reap(link);
    return link->posted - link->done + entries <= link->depth;
}

/* Entries of one doorbell. The last one is signalled if a quarter of the queue has gone without, or
 * if it must be. */
static bool post(verbs_link *link, struct ibv_send_wr *entry, uint64_t count, bool must)
{
    struct ibv_send_wr *bad = NULL, *last = &entry[count - 1];
    for (uint64_t i = 0; i + 1 < count; i++)
        entry[i].next = &entry[i + 1];
    link->posted += count;
    if (must || link->posted - link->signalled >= link->depth / 4) {
        last->send_flags |= IBV_SEND_SIGNALED;
        last->wr_id = link->signalled = link->posted;
    }
    int error = ibv_post_send(link->queue, entry, &bad);
    if (error)
        verbs_lose(link, "a message cannot be posted", strerror(error));
    return !error;
}

/* The bytes of the message that raises the word to a value; the number of entries. */
static uint64_t list_bytes(const verbs_end *end, int number, uint64_t value,
                           struct ibv_send_wr *entry, struct ibv_sge *piece)
{
    const peal_put *put = &end->pair->out[number];
    const verbs_put *to = &end->out[number];
    uint64_t most = end->link->network->device.at.max_msg_sz, done = 0, count = 0;
    const unsigned char *from = put->bytes ? peal_put_slot(put, value) : NULL;
    uint64_t there =
        to->slot + value / put->quantum % (uint64_t)put->slots * (uint64_t)put->slot_bytes;
    for (; done < (uint64_t)put->bytes; count++) {
        uint64_t left = (uint64_t)put->bytes - done, bytes = left < most ? left : most;
        piece[count] = (struct ibv_sge){(uintptr_t)from + done, (uint32_t)bytes, to->own_key};
        entry[count] = (struct ibv_send_wr){.sg_list = &piece[count],
                                            .num_sge = 1,
                                            .opcode = IBV_WR_RDMA_WRITE,
                                            .wr.rdma = {there + done, to->slot_key}};
        done += bytes;
    }
    return count;
}

/* false: there is no room now. */
static bool post_message(verbs_end *end, int number, uint64_t value)
{
    const peal_put *put = &end->pair->out[number];
    const verbs_put *to = &end->out[number];
    struct ibv_send_wr entry[VERBS_MOST_PARTS + 1];
    struct ibv_sge piece[VERBS_MOST_PARTS];
    struct ibv_sge word = {(uintptr_t)&value, sizeof(value), 0};
    uint64_t most = end->link->network->device.at.max_msg_sz;
    if (!has_room(end->link, ((uint64_t)put->bytes + most - 1) / most + 1))
        return false;
    uint64_t count = list_bytes(end, number, value, entry, piece);
    entry[count] = (struct ibv_send_wr){.sg_list = &word,
                                        .num_sge = 1,
                                        .opcode = IBV_WR_RDMA_WRITE,
                                        .send_flags = IBV_SEND_INLINE,
                                        .wr.rdma = {to->word, to->word_key}};
    return post(end->link, entry, count + 1, false);
}

void verbs_post(verbs_end *end, int number)
{
    if (end->ring) {
        mlx5_post(end, number, 0);
        return;
    }
    verbs_put *to = &end->out[number];
    const peal_put *put = &end->pair->out[number];
    while (to->sent != to->due && !atomic_load(&end->link->is_broken)) {
        uint64_t next = put->credit ? to->due : to->sent + put->quantum;
        if (!post_message(end, number, next)) {
            atomic_store(&end->link->has_pending, true);
            return;
        }
        to->sent = next;
    }
}

void verbs_post_pending(verbs_link *link)
{
    if (!atomic_load(&link->has_pending))
        return;
    atomic_store(&link->has_pending, false);
    for (verbs_end *end = link->end; end; end = end->next)
        for (int i = 0; end->pair && i < end->pair->out_count; i++)
            verbs_post(end, i);
}

void verbs_sign(verbs_link *link)
{
    if (!link->queue || link->signalled == link->posted || atomic_load(&link->is_broken) ||
        !has_room(link, 1))
        return;
    struct ibv_send_wr nothing = {.opcode = IBV_WR_RDMA_WRITE};
    post(link, &nothing, 1, true);
}

bool verbs_has_arrived(verbs_link *link)
{
    bool all = true;
    for (verbs_end *end = link->end; end; end = end->next)
        all &= !end->ring || mlx5_reap(end);
    if (link->queue)
        verbs_reap(link);
    verbs_sign(link);
    return (all && link->posted == link->done) || atomic_load(&link->is_broken);
}
