/* Stage 5, lowering: nodes in walk order become ops; messages become copies, flags and waits on
 * channels. */
#include "scheduler/channels/channels.h"
#include "scheduler/compilation.h"

#include <string.h>

enum { LANES = 2 };

typedef struct lowering {
    peal_compilation *c;
    rank_view *v;
    const segment_map *map;
    peal_schedule *schedule;
    peal_channel *channel;
    delivery *delivery; /* by message; of incoming ones as the sender decides */
    int *carried_by;    /* by message: the outgoing message that carries its credit; -1 */
    int *awaits;        /* by outgoing message: the incoming one that brings its credit; -1 */
    lowered_op *op;
    int count, capacity;
} lowering;

static lowered_op *emit(lowering *l, peal_op_kind kind, const node *n)
{
    if (l->count == l->capacity) {
        int capacity = l->capacity ? 2 * l->capacity : 32;
        lowered_op *grown = PEAL_ARENA_ARRAY(l->c->arena, lowered_op, capacity);
        if (l->count)
            memcpy(grown, l->op, (size_t)l->count * sizeof(*grown));
        l->op = grown;
        l->capacity = capacity;
    }
    lowered_op *o = &l->op[l->count++];
    *o = (lowered_op){.node = n};
    o->op = (peal_op){.kind = kind,
                      .statement = n ? n->statement : -1,
                      .event = n ? n->event : -1,
                      .label = n ? n->label : "setup done",
                      .end = -1,
                      .loop = -1,
                      .task = -1,
                      .channel = -1,
                      .decision = -1};
    if (n)
        o->op.source = n->source;
    return o;
}

static void append_touch(lowering *l, touch **list, int *count, touch t)
{
    touch *grown = PEAL_ARENA_ARRAY(l->c->arena, touch, *count + 1);
    if (*count)
        memcpy(grown, *list, (size_t)*count * sizeof(*grown));
    grown[(*count)++] = t;
    *list = grown;
}

static int message_lane(const lowering *l, int message)
{
    if (l->c->mode == PEAL_MODE_STREAM)
        return l->schedule->lanes - 1;
    return l->c->mode == PEAL_MODE_FUSED ? message : 0;
}

static peal_box target_of(const peal_piece *p)
{
    peal_box box = {.axis_count = PEAL_AXES};
    for (int k = 0; k < PEAL_AXES; k++) {
        box.lo[k] = p->target[k];
        box.hi[k] = p->target[k] + p->target_extent[k];
    }
    return box;
}

/* What a send waits for on behalf of the messages whose credits it carries: the uses of their
 * memory here. */
static void carry_credits(lowering *l, lowered_op *o, int message)
{
    for (int i = 0; i < l->v->message_count; i++) {
        if (l->carried_by[i] != message)
            continue;
        const peal_channel *channel = &l->channel[i];
        for (int k = 0; k < channel->piece_count; k++)
            if (channel->piece[k].direct) {
                peal_box box = target_of(&channel->piece[k]);
                append_touch(l, &o->extra, &o->extra_count,
                             fixed_touch(channel->piece[k].target_array, true, &box));
            }
        if (channel->staged_count)
            append_touch(l, &o->extra, &o->extra_count,
                         virtual_touch(staging_array(l->c, i), true));
    }
}

static void lower_send(lowering *l, const node *n)
{
    peal_channel *channel = &l->channel[n->message];
    int lane = message_lane(l, n->message);
    if (channel->credit_offset >= 0) {
        lowered_op *wait = emit(l, PEAL_OP_WAIT, n);
        wait->op.channel = n->message;
        wait->op.credit = true;
        wait->op.lane = lane;
        wait->op.scope = PEAL_SCOPE_SYS;
    }
    lowered_op *copy = emit(l, PEAL_OP_COPY, n);
    copy->op.channel = n->message;
    copy->op.copy = PEAL_COPY_SEND;
    copy->op.lane = lane;
    copy->touch = n->touch;
    copy->touch_count = n->touch_count;
    append_touch(l, &copy->extra, &copy->extra_count,
                 virtual_touch(ready_array(l->c, channel->peer), false));
    if (l->awaits[n->message] >= 0)
        append_touch(l, &copy->extra, &copy->extra_count,
                     virtual_touch(received_array(l->c, l->v, l->awaits[n->message]), false));
    carry_credits(l, copy, n->message);
    lowered_op *write = emit(l, PEAL_OP_WRITE, n);
    write->op.channel = n->message;
    write->op.lane = lane;
    write->op.scope = PEAL_SCOPE_SYS;
}

static void lower_recv(lowering *l, const node *n)
{
    peal_channel *channel = &l->channel[n->message];
    int lane = message_lane(l, n->message);
    lowered_op *wait = emit(l, PEAL_OP_WAIT, n);
    int wait_index = l->count - 1;
    wait->op.channel = n->message;
    wait->op.lane = lane;
    wait->op.scope = PEAL_SCOPE_SYS;
    wait->waits_for_nothing = true;
    append_touch(l, &wait->touch, &wait->touch_count,
                 virtual_touch(received_array(l->c, l->v, n->message), true));
    lowered_op *unpack = channel->staged_count ? emit(l, PEAL_OP_COPY, n) : NULL;
    wait = &l->op[wait_index];
    for (int i = 0; i < n->touch_count; i++) {
        bool staged = i < channel->piece_count && !channel->piece[i].direct;
        lowered_op *by = staged ? unpack : wait;
        append_touch(l, &by->touch, &by->touch_count, n->touch[i]);
    }
    if (!unpack)
        return;
    unpack->op.channel = n->message;
    unpack->op.copy = PEAL_COPY_UNPACK;
    unpack->op.lane = lane;
    append_touch(l, &unpack->touch, &unpack->touch_count,
                 virtual_touch(staging_array(l->c, n->message), false));
    if (channel->credit_offset >= 0) {
        lowered_op *credit = emit(l, PEAL_OP_WRITE, n);
        credit->op.channel = n->message;
        credit->op.credit = true;
        credit->op.lane = lane;
        credit->op.scope = PEAL_SCOPE_SYS;
    }
}

static void lower_list(lowering *l, const node_list *list);

static void lower_region(lowering *l, const node *n)
{
    lowered_op *begin = emit(l, n->kind == NODE_IF ? PEAL_OP_IF : PEAL_OP_LOOP, n);
    int index = l->count - 1;
    begin->op.condition = n->condition;
    begin->op.decision = n->decision;
    begin->op.loop = n->loop;
    lower_list(l, &n->body);
    lowered_op *end = emit(l, PEAL_OP_END, n);
    end->op.end = index;
    l->op[index].op.end = l->count - 1;
}

static void lower_node(lowering *l, const node *n)
{
    lowered_op *o;
    switch (n->kind) {
    case NODE_LAUNCH:
        o = emit(l, PEAL_OP_LAUNCH, n);
        o->op.task = n->task;
        o->op.range = n->range;
        o->op.range_count = n->range_count;
        o->touch = n->touch;
        o->touch_count = n->touch_count;
        break;
    case NODE_SEND:
        lower_send(l, n);
        break;
    case NODE_RECV:
        lower_recv(l, n);
        break;
    case NODE_LOCAL:
        o = emit(l, PEAL_OP_COPY, n);
        o->op.copy = PEAL_COPY_LOCAL;
        o->op.piece = n->piece;
        o->op.piece_count = n->piece_count;
        o->touch = n->touch;
        o->touch_count = n->touch_count;
        break;
    case NODE_SWAP:
        o = emit(l, PEAL_OP_SWAP, n);
        o->op.first = n->first;
        o->op.second = n->second;
        break;
    default:
        lower_region(l, n);
        break;
    }
}

static void lower_list(lowering *l, const node_list *list)
{
    for (int i = 0; i < list->count; i++)
        lower_node(l, list->item[i]);
}

/* Setup ends with a handshake between ranks that exchange messages: nobody writes into a halo that
 * setup still uses. */
static void lower_handshake(lowering *l, int first_ready)
{
    int setup_end = l->count;
    if (l->c->mode == PEAL_MODE_SERIAL)
        return;
    for (int outgoing = 1; outgoing >= 0; outgoing--)
        for (int i = 0; i < l->map->peer_count; i++) {
            if (l->map->peer[i] == l->v->rank)
                continue;
            lowered_op *o = emit(l, outgoing ? PEAL_OP_WRITE : PEAL_OP_WAIT, NULL);
            o->op.channel = first_ready + 2 * i + !outgoing;
            o->op.lane = message_lane(l, 0);
            o->op.scope = PEAL_SCOPE_SYS;
            if (!outgoing) {
                append_touch(l, &o->touch, &o->touch_count,
                             virtual_touch(ready_array(l->c, l->map->peer[i]), true));
                o->waits_for_nothing = true;
                continue;
            }
            for (int k = 0; k < setup_end; k++) /* everything that setup does */
                for (int t = 0; t < l->op[k].touch_count; t++) {
                    touch after = l->op[k].touch[t];
                    after.tiling = -1;
                    after.write = true;
                    append_touch(l, &o->extra, &o->extra_count, after);
                }
        }
}

static char *edge_name(lowering *l, const rank_message *m)
{
    const peal_statement *s = l->c->statement[m->statement];
    int from = m->outgoing ? l->v->rank : m->peer, to = m->outgoing ? m->peer : l->v->rank;
    const char *shot = m->phase ? " (second shot)" : "";
    if (m->directed)
        return peal_arena_print(l->c->arena, "%s@%d [%d,%d,%d] %d->%d", s->name, s->source.line,
                                m->direction[0], m->direction[1], m->direction[2], from, to);
    return peal_arena_print(l->c->arena, "%s@%d%s %d->%d", s->name, s->source.line, shot, from, to);
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

static void make_pieces(lowering *l, const rank_message *m, const delivery *d,
                        const rank_view *receiver, peal_channel *out)
{
    peal_piece *piece = PEAL_ARENA_ARRAY(l->c->arena, peal_piece, m->piece_count);
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

static peal_status make_channel(lowering *l, int index)
{
    const rank_message *m = &l->v->message[index];
    peal_channel *out = &l->channel[index];
    rank_view *peer = view_at(l->c, m->peer, 4);
    if (!peer)
        return l->c->view[m->peer]->status;
    int twin = twin_of(peer, l->v->rank, m);
    const segment_map *theirs = map_segment(l->c, peer);
    delivery *d = &l->delivery[index];
    peal_status status =
        m->outgoing ? deliver(l->c, l->v->rank, index, d) : deliver(l->c, m->peer, twin, d);
    if (status)
        return status;
    const channel_transport *transport =
        channel_transport_between(&l->c->machine, l->v->rank, m->peer);
    *out = (peal_channel){.outgoing = m->outgoing,
                          .peer = m->peer,
                          .peer_index = peer_index(l->map, m->peer),
                          .transport = transport->kind,
                          .statement = m->own_statement,
                          .edge = edge_name(l, m),
                          .source = l->c->statement[m->own_statement]->source,
                          .slots = d->slots,
                          .quantum = quantum_of(d->slots)};
    const segment_map *receiver = m->outgoing ? theirs : l->map,
                      *sender = m->outgoing ? l->map : theirs;
    int at_receiver = m->outgoing ? twin : index, at_sender = m->outgoing ? index : twin;
    out->flag_offset = receiver->flag[at_receiver];
    out->staging_offset = receiver->staging[at_receiver];
    out->credit_offset = d->credit ? sender->credit[at_sender] : -1;
    make_pieces(l, m, d, m->outgoing ? peer : l->v, out);
    out->staging_bytes = receiver->slot_bytes[at_receiver];
    if (!m->outgoing &&
        d->carrier >= 0) /* an outgoing message of mine carries the credit of this one */
        l->carried_by[index] = d->carrier;
    if (m->outgoing && d->carrier >= 0)
        l->awaits[index] = twin_of(l->v, peer->rank, &peer->message[d->carrier]);
    return PEAL_STATUS_OK;
}

static void make_ready_channels(lowering *l, int first)
{
    for (int i = 0; i < l->map->peer_count; i++)
        for (int incoming = 0; incoming < 2; incoming++) {
            int peer = l->map->peer[i], from = incoming ? peer : l->v->rank,
                to = incoming ? l->v->rank : peer;
            const segment_map *receiver = incoming ? l->map : map_segment(l->c, l->c->view[peer]);
            const channel_transport *transport =
                channel_transport_between(&l->c->machine, l->v->rank, peer);
            l->channel[first + 2 * i + incoming] = (peal_channel){
                .outgoing = !incoming,
                .peer = peer,
                .peer_index = i,
                .transport = transport->kind,
                .statement = -1,
                .edge = peal_arena_print(l->c->arena, "setup done %d->%d", from, to),
                .slots = 1,
                .flag_offset = receiver->ready[peer_index(receiver, incoming ? peer : l->v->rank)],
                .credit_offset = -1,
                .quantum = quantum_of(1)};
        }
}

static peal_status make_channels(lowering *l)
{
    int count = l->v->message_count;
    l->channel = PEAL_ARENA_ARRAY(l->c->arena, peal_channel, count + 2 * l->map->peer_count);
    l->delivery = PEAL_ARENA_ARRAY(l->c->arena, delivery, count);
    l->carried_by = PEAL_ARENA_ARRAY(l->c->arena, int, count);
    l->awaits = PEAL_ARENA_ARRAY(l->c->arena, int, count);
    for (int i = 0; i < count; i++)
        l->carried_by[i] = l->awaits[i] = -1;
    for (int i = 0; i < count; i++) {
        peal_status status = make_channel(l, i);
        if (status)
            return status;
    }
    make_ready_channels(l, count);
    l->schedule->channel = l->channel;
    l->schedule->channel_count = count + 2 * l->map->peer_count;
    return PEAL_STATUS_OK;
}

static bool is_defined(const peal_compilation *c, int array)
{
    const peal_array *a = &c->graph->arrays[array];
    return a->kind == PEAL_ARRAY_FIELD || a->keep;
}

static peal_status make_arrays(lowering *l)
{
    peal_compilation *c = l->c;
    int total = array_total(c);
    peal_schedule_array *array = PEAL_ARENA_ARRAY(c->arena, peal_schedule_array, total);
    for (int i = 0; i < total; i++) {
        bool hidden = i >= c->graph->array_count;
        array[i] = (peal_schedule_array){.name = array_name(c, i),
                                         .type = array_type(c, i),
                                         .layout = l->v->layout[i],
                                         .swap_group = hidden ? -1 : c->swap_group[i],
                                         .hidden = hidden,
                                         .defined = !hidden && is_defined(c, i)};
        array[i].layout.offset = l->map->array[i];
        if (hidden)
            continue;
        array[i].lent = c->graph->arrays[i].data;
        if (c->graph->arrays[i].file || c->graph->arrays[i].values) {
            peal_constant constant;
            peal_status status =
                c->graph->constant(c->graph, i, l->v->rank, c->machine.ranks, &constant);
            if (status)
                return status;
            array[i].constant = constant.data;
        }
    }
    l->schedule->array = array;
    l->schedule->array_count = total;
    return PEAL_STATUS_OK;
}

static void make_peers(lowering *l)
{
    peal_peer *peer = PEAL_ARENA_ARRAY(l->c->arena, peal_peer, l->map->peer_count);
    int total = array_total(l->c);
    for (int i = 0; i < l->map->peer_count; i++) {
        rank_view *v = l->c->view[l->map->peer[i]];
        const segment_map *map = map_segment(l->c, v);
        peal_layout *layout = PEAL_ARENA_ARRAY(l->c->arena, peal_layout, total);
        memcpy(layout, v->layout, (size_t)total * sizeof(*layout));
        for (int a = 0; a < total; a++)
            layout[a].offset = map->array[a];
        peer[i] = (peal_peer){.rank = v->rank,
                              .process = peal_machine_process(&l->c->machine, v->rank),
                              .layout = layout,
                              .segment_bytes = map->bytes};
    }
    l->schedule->peer = peer;
    l->schedule->peer_count = l->map->peer_count;
}

static void make_ops(lowering *l)
{
    peal_schedule *s = l->schedule;
    lower_list(l, &l->v->setup);
    lower_handshake(l, l->v->message_count);
    s->setup = (peal_section){0, l->count};
    lower_list(l, &l->v->step);
    s->step = (peal_section){s->setup.end, l->count};
    lower_list(l, &l->v->finish);
    s->finish = (peal_section){s->step.end, l->count};
    make_dependences(l->c, l->v, l->op, l->count, s->step.first, s->step.end);
    peal_op *op = PEAL_ARENA_ARRAY(l->c->arena, peal_op, l->count);
    for (int i = 0; i < l->count; i++)
        op[i] = l->op[i].op;
    s->op = op;
    s->op_count = l->count;
}

static int deepest(const rank_view *v)
{
    int depth = 0;
    for (int i = 0; i < v->loop_count; i++)
        depth = v->loop[i].depth > depth ? v->loop[i].depth : depth;
    return depth + 1;
}

peal_status make_schedule(peal_compilation *c, rank_view *v)
{
    peal_schedule *s = PEAL_ARENA_NEW(c->arena, peal_schedule);
    lowering l = {.c = c, .v = v, .map = map_segment(c, v), .schedule = s};
    *s = (peal_schedule){.graph = c->graph,
                         .machine = &c->machine,
                         .mode = c->mode,
                         .rank = v->rank,
                         .workers = c->machine.workers,
                         .lanes = c->machine.workers < LANES ? c->machine.workers : LANES,
                         .loop = v->loop,
                         .loop_count = v->loop_count,
                         .loop_depth = deepest(v),
                         .decision_count = v->decision_count,
                         .outer = v->outer,
                         .segment_bytes = l.map->bytes};
    memcpy(s->rank_position, v->position, sizeof(v->position));
    memcpy(s->rank_dims, c->dims, sizeof(c->dims));
    peal_status status = make_channels(&l);
    if (!status)
        status = make_arrays(&l);
    if (status)
        return status;
    make_peers(&l);
    s->task = v->task;
    s->task_count = v->task_count;
    make_ops(&l);
    s->hash = c->graph->hash ^ ((uint64_t)c->mode << 56) ^
              ((uint64_t)(unsigned)c->machine.ranks << 32) ^
              (uint64_t)(unsigned)(c->dims[0] * 65536 + c->dims[1]);
    v->schedule = s;
    return PEAL_STATUS_OK;
}
