/* Finds the other ends of channels. A pair of programs is connected once, however many ranks have
 * them. The check that both ends agree shows that ranks which were taken for alike are. */
#include "backends/sim/internal.h"
#include "base/sorted.h"

#include <inttypes.h>
#include <stdlib.h>

/* The channel of another program that a channel is connected to. */
typedef struct connection {
    uint64_t key; /* program, channel and peer's program, plus one; 0: none */
    int channel;  /* the peer's */
} connection;

struct sim_network {
    const sim_desc *desc;
    const sim_program *program;
    connection *table;
    size_t mask, count;
    int channels; /* most of a program */
};

static uint64_t key_of(const sim_network *n, int number, int channel, int peer_number)
{
    uint64_t programs = (uint64_t)n->desc->schedule_count;
    return ((uint64_t)number * (uint64_t)n->channels + (uint64_t)channel) * programs +
           (uint64_t)peer_number + 1;
}

static connection *find(const sim_network *n, uint64_t key)
{
    size_t at = (size_t)((key * 0x9e3779b97f4a7c15u) >> 20) & n->mask;
    while (n->table[at].key && n->table[at].key != key)
        at = (at + 1) & n->mask;
    return &n->table[at];
}

int sim_network_peer(const sim_network *n, int number, int channel, int peer_number)
{
    return find(n, key_of(n, number, channel, peer_number))->channel;
}

static bool words_agree(const sim_channel *a, const sim_channel *b)
{
    return a->bytes == b->bytes && a->credit == b->credit && a->slots == b->slots &&
           a->staged == b->staged;
}

static int by_end(const void *left, const void *right)
{
    return sim_compare_ends(*(const sim_channel *const *)left, *(const sim_channel *const *)right);
}

/* The peer's channel; -1: there is none, or the two ends describe different messages. */
static int find_end(const sim_program *peer, const sim_channel *mine)
{
    const sim_channel wanted = {.name = mine->name,
                                .outgoing = !mine->outgoing,
                                .offset = -mine->offset};
    const sim_channel *key = &wanted;
    int count = peer->schedule->channel_count;
    int low = peal_sorted_first(&key, peer->by_end, count, sizeof(key), by_end);
    if (low == count || sim_compare_ends(peer->by_end[low], &wanted) ||
        !words_agree(mine, peer->by_end[low]))
        return -1;
    return (int)(peer->by_end[low] - peer->channel);
}

static peal_status grow(sim_network *n, peal_arena *arena)
{
    size_t old = n->mask + 1;
    connection *table = n->table;
    n->mask = 2 * old - 1;
    n->table = PEAL_ARENA_ARRAY(arena, connection, 2 * old);
    for (size_t i = 0; i < old; i++)
        if (table[i].key)
            *find(n, table[i].key) = table[i];
    return PEAL_STATUS_OK;
}

static peal_status connect_channel(sim_network *n, peal_arena *arena, int rank, int channel)
{
    const int *number = n->desc->number;
    const sim_channel *c = &n->program[number[rank]].channel[channel];
    int64_t peer = rank + c->offset;
    if (peer < 0 || peer >= n->desc->ranks)
        return peal_report(n->desc->diagnostics, PEAL_E_INTERNAL, (peal_source){0}, NULL,
                           "rank %d has a message for rank %" PRId64, rank, peer);
    uint64_t key = key_of(n, number[rank], channel, number[peer]);
    connection *known = find(n, key);
    if (known->key)
        return PEAL_STATUS_OK;
    *known = (connection){key, find_end(&n->program[number[peer]], c)};
    if (known->channel < 0)
        return peal_report(n->desc->diagnostics, PEAL_E_INTERNAL, (peal_source){0}, NULL,
                           "ranks %d and %" PRId64 " have different schedules for %s", rank, peer,
                           n->program[number[rank]].schedule->channel[channel].edge);
    n->count++;
    return 2 * n->count > n->mask ? grow(n, arena) : PEAL_STATUS_OK;
}

/* Checks that the machine has times for the link between two ranks. */
static peal_status check_link(const sim_network *n, const sim_placement *placement, int rank,
                              int peer, bool *seen)
{
    peal_link_class link = sim_link_between(placement, rank, peer);
    if (seen[link])
        return PEAL_STATUS_OK;
    seen[link] = true;
    if (placement->times->link[link].given)
        return PEAL_STATUS_OK;
    return peal_report(n->desc->diagnostics, PEAL_E_MACHINE_TIME_MISSING, (peal_source){0},
                       link == PEAL_LINK_NETWORK
                           ? "add it to the machine file's `links`, or give fewer `nodes`, whose "
                             "devices the ranks then share"
                           : "add it to the machine file's `links`",
                       "the machine file has no link `%s`, which lies between ranks %d and %d",
                       peal_link_name(link), rank, peer);
}

peal_status sim_network_create(const sim_desc *desc, const sim_program *program,
                               const sim_placement *placement, peal_arena *arena, sim_network **out)
{
    sim_network *n = PEAL_ARENA_NEW(arena, sim_network);
    peal_status status = PEAL_STATUS_OK;
    bool seen[PEAL_LINK_COUNT] = {false};

    *n = (sim_network){.desc = desc, .program = program, .mask = 1023};
    n->table = PEAL_ARENA_ARRAY(arena, connection, n->mask + 1);
    for (int i = 0; i < desc->schedule_count; i++)
        if (desc->schedule[i]->channel_count > n->channels)
            n->channels = desc->schedule[i]->channel_count;
    for (int rank = 0; rank < desc->ranks && !status; rank++) {
        const sim_program *p = &program[desc->number[rank]];
        for (int i = 0; i < p->schedule->channel_count && !status; i++) {
            if (!p->channel[i].is_used)
                continue;
            status = connect_channel(n, arena, rank, i);
            if (!status)
                status = check_link(n, placement, rank, rank + (int)p->channel[i].offset, seen);
        }
    }
    *out = n;
    return status;
}
