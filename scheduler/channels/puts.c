/* The puts of a pair of processes: all words of channels by a network between their ranks, sorted
 * by who owns them and where they lie. Pure; both ends compute the same. */
#include "base/arena.h"
#include "scheduler/scheduler.h"

#include <stdlib.h>

typedef struct put_list {
    peal_arena *arena;
    peal_put *item;
    int count, capacity;
} put_list;

static void add(put_list *list, const peal_put *put)
{
    PEAL_ARENA_ROOM(list->arena, list->item, list->count, list->capacity);
    list->item[list->count++] = *put;
}

/* What is sent of a slot: up to the end of its last staged piece. */
static int64_t bytes_of(const peal_channel *channel)
{
    int64_t bytes = 0;
    for (int i = 0; i < channel->piece_count; i++) {
        const peal_piece *piece = &channel->piece[i];
        int64_t end = piece->direct ? 0 : (piece->staging + piece->bytes + 7) / 8 * 8;
        bytes = end > bytes ? end : bytes;
    }
    return bytes;
}

/* The flag of a channel, and the credit. */
static void add_channel(const peal_schedule *schedule, int index, int number, put_list *out,
                        put_list *in)
{
    const peal_channel *c = &schedule->channel[number];
    int64_t bytes = bytes_of(c);
    peal_put flag = {.rank = c->outgoing ? c->peer : schedule->rank,
                     .word = c->flag_offset,
                     .slot = bytes ? c->staging_offset : -1,
                     .slot_bytes = bytes ? c->staging_bytes : 0,
                     .bytes = bytes,
                     .slots = c->slots,
                     .quantum = c->quantum,
                     .index = index,
                     .channel = number};
    add(c->outgoing ? out : in, &flag);
    if (c->credit_offset < 0)
        return;
    peal_put credit = flag;
    credit.rank = c->outgoing ? schedule->rank : c->peer;
    credit.word = c->credit_offset;
    credit.credit = true;
    credit.slot = -1;
    credit.slot_bytes = credit.bytes = 0;
    add(c->outgoing ? in : out, &credit);
}

static int by_word(const void *left, const void *right)
{
    const peal_put *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->word < b->word ? -1 : a->word > b->word;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
}

static uint64_t sort(put_list *list)
{
    uint64_t hash = (uint64_t)list->count;
    if (list->count)
        qsort(list->item, (size_t)list->count, sizeof(*list->item), by_word);
    for (int i = 0; i < list->count; i++) {
        const peal_put *p = &list->item[i];
        const uint64_t words[] = {
            (uint64_t)p->rank,       (uint64_t)p->word,  p->credit,          (uint64_t)p->slot,
            (uint64_t)p->slot_bytes, (uint64_t)p->bytes, (uint64_t)p->slots, p->quantum};
        for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++)
            hash = mix(hash, words[k]);
    }
    return hash;
}

bool peal_has_puts(const peal_schedule *schedule)
{
    for (int c = 0; c < schedule->channel_count; c++)
        if (peal_transport_is_network(schedule->channel[c].transport))
            return true;
    return false;
}

void peal_list_puts(const peal_schedule *const *schedule, int count, int process, peal_arena *arena,
                    peal_pair *out)
{
    put_list to = {.arena = arena}, from = {.arena = arena};
    for (int i = 0; i < count; i++)
        for (int k = 0; k < schedule[i]->channel_count; k++) {
            const peal_channel *c = &schedule[i]->channel[k];
            if (peal_transport_is_network(c->transport) &&
                schedule[i]->peer[c->peer_index].process == process)
                add_channel(schedule[i], i, k, &to, &from);
        }
    *out = (peal_pair){.process = process, .out_hash = sort(&to), .in_hash = sort(&from)};
    out->out = to.item;
    out->out_count = to.count;
    out->in = from.item;
    out->in_count = from.count;
}
