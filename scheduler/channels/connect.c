/* Stage 5, connecting: messages become channels: their transport, memory, flags, slots and credits.
 * Both ends compute the same from the same views. */
#include "scheduler/channels/channels.h"
#include "scheduler/channels/transports.h"
#include "scheduler/messages/messages.h"

typedef struct connecting {
    const common_input *c;
    const pass_context *pass;
    rank_views *views;
    rank_view *v;
    channel_table *table;
} connecting;

/* The name of a rank's message. */
static char *edge_name(connecting *l, int rank, const rank_message *m)
{
    const peal_statement *s = l->c->statement[m->statement];
    int from = m->outgoing ? rank : m->peer, to = m->outgoing ? m->peer : rank;
    if (m->directed)
        return peal_arena_print(l->pass->arena, "%s@%d [%d,%d,%d] %d->%d", s->name, s->source.line,
                                m->direction[0], m->direction[1], m->direction[2], from, to);
    return peal_arena_print(l->pass->arena, "%s@%d%s %d->%d", s->name, s->source.line,
                            m->part ? m->part : "", from, to);
}

/* The carrier is a message of the receiver's. */
static const char *credit_reason(connecting *l, const rank_view *receiver, const delivery *d)
{
    if (d->carrier < 0)
        return d->why;
    return peal_arena_print(l->pass->arena, "%s carries it",
                            edge_name(l, receiver->rank, &receiver->message[d->carrier]));
}

static int peer_index(const segment_map *map, int rank)
{
    int low = 0, high = map->peer_count - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (map->peer[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint64_t quantum_of(int slots)
{
    uint64_t period = 2;
    while (period <= 2u * ((unsigned)slots + 1))
        period *= 2;
    return (UINT64_MAX / period) + 1;
}

static void make_pieces(connecting *l, const rank_message *m, const delivery *d,
                        const rank_view *receiver, peal_channel *out)
{
    peal_piece *piece = PEAL_ARENA_ARRAY(l->pass->arena, peal_piece, m->piece_count);
    for (int i = 0; i < m->piece_count; i++) {
        piece[i] = m->piece[i];
        piece[i].direct =
            d->direct &&
            piece_wants_direct(l->c, receiver, m->peer == receiver->rank ? l->v->rank : m->peer,
                               &piece[i]);
        out->message_bytes += piece[i].bytes;
        if (piece[i].direct)
            continue;
        piece[i].staging = out->staging_bytes;
        out->staging_bytes += (piece[i].bytes + 7) / 8 * 8;
        out->staged_count++;
    }
    out->piece = piece;
    out->piece_count = m->piece_count;
}

/* The slots of a message that is not stored in place after all. */
static void use_spare(connecting *l, const peal_channel *channel)
{
    int64_t bytes, end;
    if (peal_multiply_overflows(channel->slots, channel->staging_bytes, &bytes) ||
        peal_add_overflows(channel->staging_offset, bytes, &end) || end > l->table->map->bytes)
        end = l->table->map->bytes;
    if (end > l->table->used_bytes)
        l->table->used_bytes = end;
}

static peal_status make_channel(connecting *l, int index)
{
    const rank_message *m = &l->v->message[index];
    peal_channel *out = &l->table->channel[index];
    rank_view *peer = view_at(l->views, m->peer, STAGE_ORDER);
    if (!peer)
        return l->views->of[m->peer]->status;
    int peer_end = peer_end_of(l->pass, peer, l->v->rank, m);
    const segment_map *theirs = map_segment(l->c, l->pass, peer);
    delivery *d = &l->table->delivery[index];
    peal_status status = m->outgoing ? deliver(l->c, l->pass, l->views, l->v->rank, index, d)
                                     : deliver(l->c, l->pass, l->views, m->peer, peer_end, d);
    if (status)
        return status;
    const channel_transport *transport =
        channel_transport_between(&l->c->machine, l->v->rank, m->peer);
    *out = (peal_channel){.outgoing = m->outgoing,
                          .peer = m->peer,
                          .peer_index = peer_index(l->table->map, m->peer),
                          .transport = transport->kind,
                          .statement = m->own_statement,
                          .ahead = !m->outgoing && m->own_statement < m->statement,
                          .edge = edge_name(l, l->v->rank, m),
                          .source = l->c->statement[m->own_statement]->source,
                          .slots = d->slots,
                          .quantum = quantum_of(d->slots)};
    const segment_map *receiver = m->outgoing ? theirs : l->table->map,
                      *sender = m->outgoing ? l->table->map : theirs;
    int at_receiver = m->outgoing ? peer_end : index, at_sender = m->outgoing ? index : peer_end;
    out->flag_offset = receiver->flag[at_receiver];
    bool spare = !d->direct && receiver->spare[at_receiver] >= 0;
    out->staging_offset = (spare ? receiver->spare : receiver->staging)[at_receiver];
    out->credit_offset = d->credit ? sender->credit[at_sender] : -1;
    out->credit_why = credit_reason(l, m->outgoing ? peer : l->v, d);
    make_pieces(l, m, d, m->outgoing ? peer : l->v, out);
    out->staging_bytes = (spare ? receiver->spare_slot_bytes : receiver->slot_bytes)[at_receiver];
    if (spare && !m->outgoing)
        use_spare(l, out);
    if (m->outgoing && d->carrier >= 0)
        l->table->awaits[index] =
            peer_end_of(l->pass, l->v, peer->rank, &peer->message[d->carrier]);
    return PEAL_STATUS_OK;
}

static void make_ready_channels(connecting *l, int first)
{
    for (int i = 0; i < l->table->map->peer_count; i++)
        for (int incoming = 0; incoming < 2; incoming++) {
            int peer = l->table->map->peer[i], from = incoming ? peer : l->v->rank,
                to = incoming ? l->v->rank : peer;
            const segment_map *receiver =
                incoming ? l->table->map : map_segment(l->c, l->pass, l->views->of[peer]);
            const channel_transport *transport =
                channel_transport_between(&l->c->machine, l->v->rank, peer);
            l->table->channel[first + 2 * i + incoming] = (peal_channel){
                .outgoing = !incoming,
                .peer = peer,
                .peer_index = i,
                .transport = transport->kind,
                .statement = -1,
                .edge = peal_arena_print(l->pass->arena, "setup done %d->%d", from, to),
                .slots = 1,
                .flag_offset = receiver->ready[peer_index(receiver, incoming ? peer : l->v->rank)],
                .credit_offset = -1,
                .credit_why = "it is sent once",
                .quantum = quantum_of(1)};
        }
}

/* What each outgoing message carries, ascending. */
static void list_carried(connecting *l)
{
    for (int i = l->v->message_count - 1; i >= 0; i--) {
        int carrier = l->v->message[i].outgoing ? -1 : l->table->delivery[i].carrier;
        if (carrier < 0)
            continue;
        l->table->next_carried[i] = l->table->carried[carrier];
        l->table->carried[carrier] = i;
    }
}

peal_status make_channels(const common_input *c, const pass_context *pass, rank_views *views,
                          rank_view *v, channel_table *out)
{
    int messages = v->message_count;
    connecting l = {c, pass, views, v, out};
    *out = (channel_table){.map = map_segment(c, pass, v)};
    out->used_bytes = out->map->all_spare;
    out->count = messages + 2 * out->map->peer_count;
    out->channel = PEAL_ARENA_ARRAY(pass->arena, peal_channel, out->count);
    out->delivery = PEAL_ARENA_ARRAY(pass->arena, delivery, messages);
    out->carried = PEAL_ARENA_ARRAY(pass->arena, int, messages);
    out->next_carried = PEAL_ARENA_ARRAY(pass->arena, int, messages);
    out->awaits = PEAL_ARENA_ARRAY(pass->arena, int, messages);
    for (int i = 0; i < messages; i++)
        out->carried[i] = out->next_carried[i] = out->awaits[i] = -1;
    for (int i = 0; i < messages; i++) {
        peal_status status = make_channel(&l, i);
        if (status)
            return status;
    }
    list_carried(&l);
    make_ready_channels(&l, messages);
    return PEAL_STATUS_OK;
}
