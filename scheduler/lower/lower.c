/* Stage 5, lowering: nodes in walk order become ops; messages become copies, flags and waits on
 * channels. */
#include "scheduler/channels/channels.h"
#include "scheduler/geometry/geometry.h"
#include "scheduler/lower/lowering.h"

#include <string.h>

enum { LANES = 2 };

typedef struct lowering {
    const common_input *c;
    const pass_context *pass;
    rank_views *views;
    rank_view *v;
    peal_schedule *schedule;
    channel_table table; /* of an outline: empty */
    lowered_op *op;
    int count, capacity;
} lowering;

static lowered_op *emit(lowering *l, peal_op_kind kind, const node *n)
{
    PEAL_ARENA_ROOM(l->pass->arena, l->op, l->count, l->capacity);
    lowered_op *o = &l->op[l->count++];
    *o = (lowered_op){.node = n, .same_as = -1};
    o->op = (peal_op){.kind = kind,
                      .statement = n ? n->statement : -1,
                      .event = n ? n->event : -1,
                      .label = n ? n->label : "setup done",
                      .end = -1,
                      .loop = -1,
                      .task = -1,
                      .channel = -1,
                      .decision = -1};
    if (n) {
        o->op.source = n->source;
        o->op.border = n->border;
        o->op.rest = n->rest;
    }
    return o;
}

static void append_touch(lowering *l, touch **list, int *count, touch t)
{
    int capacity = *count;
    if (capacity != 1 && !(capacity & (capacity - 1))) /* full at powers of two, from two */
        *list = peal_arena_grow(l->pass->arena, *list, &capacity, sizeof(**list));
    (*list)[(*count)++] = t;
}

static int message_lane(const lowering *l, int message)
{
    if (l->c->mode == PEAL_MODE_STREAM || peal_is_repeated(l->c))
        return l->schedule->lanes - 1;
    return l->c->mode == PEAL_MODE_FUSED ? message : 0;
}

/* The box of a field under all names that its storage may have by a swap: what the peer overwrites
 * next may be used here under another one than that which it arrives under. */
static void append_uses(lowering *l, lowered_op *o, int array, const peal_box *box)
{
    int group = l->c->swap_group[array];

    for (int i = 0; i < l->c->graph->array_count; i++)
        if (i == array || (group >= 0 && l->c->swap_group[i] == group))
            append_touch(l, &o->extra, &o->extra_count, fixed_touch(i, true, box));
}

/* What a send waits for on behalf of the messages whose credits it carries: the uses of their
 * memory here. */
static void carry_credits(lowering *l, lowered_op *o, int message)
{
    for (int i = l->table.carried[message]; i >= 0; i = l->table.next_carried[i]) {
        const peal_channel *channel = &l->table.channel[i];
        for (int k = 0; k < channel->piece_count; k++)
            if (channel->piece[k].direct) {
                peal_box box = piece_target(&channel->piece[k]);
                append_uses(l, o, channel->piece[k].target_array, &box);
            }
        if (channel->staged_count)
            append_touch(l, &o->extra, &o->extra_count,
                         virtual_touch(staging_array(l->c, i), true));
    }
}

static void lower_send(lowering *l, const node *n)
{
    peal_channel *channel = &l->table.channel[n->message];
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
    if (l->table.awaits[n->message] >= 0)
        append_touch(l, &copy->extra, &copy->extra_count,
                     virtual_touch(received_array(l->c, l->v, l->table.awaits[n->message]), false));
    carry_credits(l, copy, n->message);
    lowered_op *write = emit(l, PEAL_OP_WRITE, n);
    write->op.channel = n->message;
    write->op.lane = lane;
    write->op.scope = PEAL_SCOPE_SYS;
}

static void lower_recv(lowering *l, const node *n)
{
    peal_channel *channel = &l->table.channel[n->message];
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
        bool direct = i < channel->piece_count && channel->piece[i].direct;
        bool extra = i >= channel->piece_count; /* `after` */
        lowered_op *by = direct || (extra && !unpack) ? wait : unpack;
        append_touch(l, &by->touch, &by->touch_count, n->touch[i]);
        wait->waits_for_nothing &= !(extra && !unpack);
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

/* Everything that setup does. */
static void wait_for_setup(lowering *l, lowered_op *o, int setup_end)
{
    int count = 0;
    for (int k = 0; k < setup_end; k++)
        count += l->op[k].touch_count;
    o->extra = PEAL_ARENA_ARRAY(l->pass->arena, touch, count);
    for (int k = 0; k < setup_end; k++)
        for (int t = 0; t < l->op[k].touch_count; t++) {
            touch after = l->op[k].touch[t];
            after.tiling = -1;
            after.write = true;
            o->extra[o->extra_count++] = after;
        }
}

/* Setup ends with a handshake between ranks that exchange messages: nobody writes into a halo that
 * setup still uses. */
static void lower_handshake(lowering *l, int first_ready)
{
    int setup_end = l->count, first_write = -1;
    if (l->c->mode == PEAL_MODE_SERIAL)
        return;
    for (int outgoing = 1; outgoing >= 0; outgoing--)
        for (int i = 0; i < l->table.map->peer_count; i++) {
            if (l->table.map->peer[i] == l->v->rank)
                continue;
            lowered_op *o = emit(l, outgoing ? PEAL_OP_WRITE : PEAL_OP_WAIT, NULL);
            o->op.channel = first_ready + 2 * i + !outgoing;
            o->op.lane = message_lane(l, 0);
            o->op.scope = PEAL_SCOPE_SYS;
            if (!outgoing) {
                append_touch(l, &o->touch, &o->touch_count,
                             virtual_touch(ready_array(l->c, l->table.map->peer[i]), true));
                o->waits_for_nothing = true;
                continue;
            }
            if (first_write >= 0) {
                o->same_as = first_write;
                continue;
            }
            first_write = l->count - 1;
            wait_for_setup(l, o, setup_end);
        }
}

static bool is_defined(const common_input *c, int array)
{
    const peal_array *a = &c->graph->arrays[array];
    return a->kind == PEAL_ARRAY_FIELD || a->keep;
}

static peal_status make_arrays(lowering *l)
{
    const common_input *c = l->c;
    int total = array_total(c);
    peal_schedule_array *array = PEAL_ARENA_ARRAY(l->pass->arena, peal_schedule_array, total);
    for (int i = 0; i < total; i++) {
        bool hidden = i >= c->graph->array_count;
        array[i] =
            (peal_schedule_array){.name = array_name(c, i),
                                  .type = array_type(c, i),
                                  .layout = l->v->layout[i],
                                  .swap_group = hidden ? -1 : c->swap_group[i],
                                  .has_components = !hidden && c->graph->arrays[i].components,
                                  .hidden = hidden,
                                  .defined = !hidden && is_defined(c, i)};
        array[i].layout.offset = l->table.map ? l->table.map->array[i] : -1;
        if (hidden)
            continue;
        array[i].lent = c->graph->arrays[i].data;
        if (c->graph->arrays[i].file || c->graph->arrays[i].values) {
            peal_constant constant;
            peal_status status =
                c->graph->constant(c->graph, i, l->v->rank, c->machine.ranks, true, &constant);
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
    peal_peer *peer = PEAL_ARENA_ARRAY(l->pass->arena, peal_peer, l->table.map->peer_count);
    int total = array_total(l->c);
    for (int i = 0; i < l->table.map->peer_count; i++) {
        rank_view *v = l->views->of[l->table.map->peer[i]];
        const segment_map *map = map_segment(l->c, l->pass, v);
        peal_layout *layout = PEAL_ARENA_ARRAY(l->pass->arena, peal_layout, total);
        memcpy(layout, v->layout, (size_t)total * sizeof(*layout));
        for (int a = 0; a < total; a++)
            layout[a].offset = map->array[a];
        peer[i] = (peal_peer){.rank = v->rank,
                              .process = peal_machine_process(&l->c->machine, v->rank),
                              .layout = layout,
                              .segment_bytes = map->bytes,
                              .mailbox_offset = map->mailbox};
    }
    l->schedule->peer = peer;
    l->schedule->peer_count = l->table.map->peer_count;
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
    make_dependences(l->c, l->pass, l->v, l->op, l->count, s->step.first, s->step.end);
    peal_op *op = PEAL_ARENA_ARRAY(l->pass->arena, peal_op, l->count);
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

static peal_schedule *new_schedule(const common_input *c, const pass_context *pass,
                                   const rank_view *v)
{
    peal_schedule *s = PEAL_ARENA_NEW(pass->arena, peal_schedule);
    *s = (peal_schedule){.graph = c->graph,
                         .machine = &c->machine,
                         .mode = c->mode,
                         .rank = v->rank,
                         .workers = c->machine.workers,
                         .task = v->task,
                         .task_count = v->task_count};
    memcpy(s->rank_position, v->position, sizeof(v->position));
    memcpy(s->rank_dims, c->dims, sizeof(c->dims));
    return s;
}

peal_status make_outline(const common_input *c, const pass_context *pass, rank_view *v,
                         const peal_schedule **out)
{
    lowering l = {.c = c, .pass = pass, .v = v, .schedule = new_schedule(c, pass, v)};
    peal_status status = make_arrays(&l);
    if (!status)
        *out = l.schedule;
    return status;
}

peal_status make_schedule(const common_input *c, const pass_context *pass, rank_views *views,
                          rank_view *v)
{
    peal_schedule *s = new_schedule(c, pass, v);
    lowering l = {.c = c, .pass = pass, .views = views, .v = v, .schedule = s};
    s->lanes = s->workers < LANES ? s->workers : LANES;
    s->loop = v->loop;
    s->loop_count = v->loop_count;
    s->loop_depth = deepest(v);
    s->decision_count = v->decision_count;
    s->outer = v->outer;
    peal_status status = make_channels(c, pass, views, v, &l.table);
    if (!status)
        status = make_arrays(&l);
    if (status)
        return status;
    s->segment_bytes = l.table.map->bytes;
    s->used_bytes = l.table.used_bytes;
    s->mailbox_offset = l.table.map->mailbox;
    s->channel = l.table.channel;
    s->channel_count = l.table.count;
    make_peers(&l);
    make_ops(&l);
    s->hash = c->graph->hash ^ ((uint64_t)c->mode << 56) ^
              ((uint64_t)(unsigned)c->machine.ranks << 32) ^
              ((uint64_t)c->dims[0] * 65536 + (uint64_t)c->dims[1]);
    v->schedule = s;
    return PEAL_STATUS_OK;
}
