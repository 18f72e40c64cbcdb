/* A rank's messages by what identifies them. Both ends of each message ask, so that what a message
 * costs must not grow with the number of the others. */
#include "base/sorted.h"
#include "scheduler/messages/messages.h"

#include <stdlib.h>
#include <string.h>

enum { UNKNOWN_END = -2 };

struct message_table {
    int *bucket; /* 1 + number of a message, 0: free */
    uint64_t mask;
    sent_message *outgoing; /* by peer, then ascending */
    int outgoing_count;
};

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
}

/* Of the end that points to `peer`. */
static uint64_t hash_end(const rank_message *m, bool outgoing, int peer)
{
    uint64_t hash = mix((uint64_t)outgoing, (uint64_t)(unsigned)peer);
    hash = mix(hash, (uint64_t)(unsigned)m->statement);
    hash = mix(hash, (uint64_t)(unsigned)m->phase);
    hash = mix(hash, (uint64_t)m->tag);
    for (int k = 0; k < PEAL_RANK_AXES; k++)
        hash = mix(hash, (uint64_t)(unsigned)m->direction[k]);
    return hash;
}

/* Where the end is, or would be. */
static uint64_t bucket_of(const message_table *table, const rank_view *v, const rank_message *m,
                          bool outgoing, int peer)
{
    uint64_t at = hash_end(m, outgoing, peer) & table->mask;
    for (; table->bucket[at]; at = (at + 1) & table->mask) {
        const rank_message *t = &v->message[table->bucket[at] - 1];
        if (t->outgoing == outgoing && t->peer == peer && t->statement == m->statement &&
            t->phase == m->phase && t->tag == m->tag &&
            !memcmp(t->direction, m->direction, sizeof(t->direction)))
            break;
    }
    return at;
}

static int by_peer(const void *left, const void *right)
{
    const sent_message *a = left, *b = right;
    return a->peer != b->peer ? (a->peer < b->peer ? -1 : 1) : a->message - b->message;
}

static void sort_outgoing(const pass_context *pass, const rank_view *v, message_table *table)
{
    sent_message *list = PEAL_ARENA_ARRAY(pass->arena, sent_message, v->message_count + 1);
    int count = 0;
    for (int i = 0; i < v->message_count; i++)
        if (v->message[i].outgoing)
            list[count++] = (sent_message){v->message[i].peer, i, UNKNOWN_END};
    qsort(list, (size_t)count, sizeof(*list), by_peer);
    table->outgoing = list;
    table->outgoing_count = count;
}

static const message_table *messages_of(const pass_context *pass, rank_view *v)
{
    if (v->messages)
        return v->messages;
    message_table *table = PEAL_ARENA_NEW(pass->arena, message_table);
    uint64_t buckets = 4;
    while (buckets < 2 * (uint64_t)v->message_count)
        buckets *= 2;
    table->mask = buckets - 1;
    table->bucket = PEAL_ARENA_ARRAY(pass->arena, int, buckets);
    for (int i = 0; i < v->message_count; i++) {
        const rank_message *m = &v->message[i];
        uint64_t at = bucket_of(table, v, m, m->outgoing, m->peer);
        if (!table->bucket[at])
            table->bucket[at] = i + 1;
    }
    sort_outgoing(pass, v, table);
    return v->messages = table;
}

int peer_end_of(const pass_context *pass, rank_view *peer_view, int rank, const rank_message *m)
{
    const message_table *table = messages_of(pass, peer_view);
    return table->bucket[bucket_of(table, peer_view, m, !m->outgoing, rank)] - 1;
}

/* The first of the outgoing messages to this peer, or to a later one. */
static int first_to(const message_table *table, int peer)
{
    const sent_message key = {.peer = peer};
    return peal_sorted_first(&key, table->outgoing, table->outgoing_count, sizeof(key), by_peer);
}

const sent_message *messages_to(const pass_context *pass, rank_view *v, rank_view *peer, int *count)
{
    const message_table *table = messages_of(pass, v);
    int first = first_to(table, peer->rank);
    sent_message *list = table->outgoing + first;
    *count = first_to(table, peer->rank + 1) - first;
    for (int i = 0; i < *count && list[i].peer_end == UNKNOWN_END; i++)
        list[i].peer_end = peer_end_of(pass, peer, v->rank, &v->message[list[i].message]);
    return list;
}
