/* Delivery: whether a message is stored straight into the receiver's halo, and how its sender
 * learns that the memory it writes is free again.
 *
 * No buffer is overwritten before its reader is done. Staged messages have two slots, and more
 * where nothing waits for what they bring, so that one side can be behind. An explicit credit is
 * dropped where some message of the receiver to the sender (the carrier) says the same: when the
 * sender has received it, the receiver has passed, in its walk, everything that used the memory.
 * The carrier's send then waits for those uses (which it mostly does anyway). A halo is written in
 * place only where a carrier covers all its readers: checked by replaying both walks over enough
 * iterations to see every rotation of the storages. */
#include "scheduler/channels/channels.h"
#include "scheduler/compilation.h"

#include <string.h>

enum { MOST_PERIOD = 12, SLOTS = 2, SLOTS_BEHIND = 4 };

/* A body in which a message's node stands, and where. */
typedef struct found_node {
    const node_list *body;
    int position;
    int loop;    /* id of the loop statement; LOOP_* */
    int section; /* LOOP_SETUP, LOOP_OUTER, LOOP_FINISH */
    bool in_if;
} found_node;

static bool find_in(const node_list *list, int loop, bool in_if, node_kind kind, int message,
                    found_node *out)
{
    for (int i = 0; i < list->count; i++) {
        const node *n = list->item[i];
        if (n->kind == kind && n->message == message) {
            *out = (found_node){.body = list, .position = i, .loop = loop, .in_if = in_if};
            return true;
        }
        if (n->kind == NODE_IF && find_in(&n->body, loop, true, kind, message, out))
            return true;
        if (n->kind == NODE_LOOP && find_in(&n->body, n->statement, false, kind, message, out))
            return true;
    }
    return false;
}

static bool find_node(const rank_view *v, node_kind kind, int message, found_node *out)
{
    const node_list *sections[] = {&v->setup, &v->step, &v->finish};
    static const int names[] = {LOOP_SETUP, LOOP_OUTER, LOOP_FINISH};
    for (int i = 0; i < 3; i++)
        if (find_in(sections[i], names[i], false, kind, message, out)) {
            out->section = names[i];
            return true;
        }
    return false;
}

bool piece_wants_direct(const peal_compilation *c, const rank_view *receiver, int sender,
                        const peal_piece *piece)
{
    int array = piece->target_array;
    if (array >= c->graph->array_count || c->graph->arrays[array].kind != PEAL_ARRAY_FIELD ||
        c->graph->arrays[array].data || piece->array != array)
        return false;
    int64_t run = (int64_t)peal_type_bytes(array_type(c, array));
    const peal_box *stored = &receiver->layout[array].stored;
    for (int k = 0; k < PEAL_AXES; k++) { /* contiguous bytes in the receiver's memory */
        run *= piece->target_extent[k];
        if (piece->target_extent[k] != stored->hi[k] - stored->lo[k])
            break;
    }
    return run >= channel_transport_between(&c->machine, sender, receiver->rank)->in_place_bytes;
}

typedef struct replay {
    peal_compilation *c;
    const rank_view *sender, *receiver;
    const rank_message *m, *carrier; /* the sender's; the receiver's */
    found_node send, recv, carrier_send, carrier_recv;
    int iterations;
} replay;

static bool touches_group(const peal_compilation *c, const touch *t, int array, const peal_box *box)
{
    bool same = t->array == array ||
                (t->array >= 0 && t->array < c->graph->array_count && c->swap_group[array] >= 0 &&
                 c->swap_group[t->array] == c->swap_group[array]);
    return same && peal_box_meets(&t->box, box);
}

/* Whether a node of the receiver may use the memory of a direct piece. */
static bool uses_target(const replay *r, const node *n, const peal_piece *p)
{
    peal_box box = piece_target(p);
    for (int i = 0; i < n->touch_count; i++)
        if (touches_group(r->c, &n->touch[i], p->target_array, &box))
            return true;
    return false;
}

/* Only nodes directly in the body may use the halo, and only the body itself may swap the group. */
static bool only_body_uses(const replay *r, const node_list *list, const peal_piece *p)
{
    for (int i = 0; i < list->count; i++) {
        const node *n = list->item[i];
        bool region = n->kind == NODE_IF || n->kind == NODE_LOOP;
        if (list == r->recv.body ? region && uses_target(r, n, p) : !region && uses_target(r, n, p))
            return false;
        if (list != r->recv.body && region && !only_body_uses(r, &n->body, p))
            return false;
    }
    return true;
}

static bool outside_is_quiet(const replay *r, const peal_piece *p)
{
    /* the step section, down to the body; setup is fenced off by a handshake, finish comes after
     * every message */
    return r->recv.loop == LOOP_OUTER
               ? only_body_uses(r, r->recv.body, p)
               : only_body_uses(r, &r->receiver->step, p) && only_body_uses(r, r->recv.body, p);
}

static void apply_swaps(const node_list *body, int from, int to, int *binding)
{
    for (int i = from; i < to; i++)
        if (body->item[i]->kind == NODE_SWAP) {
            int held = binding[body->item[i]->first];
            binding[body->item[i]->first] = binding[body->item[i]->second];
            binding[body->item[i]->second] = held;
        }
}

/* Storage that `array` names at a position of an iteration. */
static int storage_at(const replay *r, const node_list *body, int iteration, int position,
                      int array, int *binding)
{
    for (int i = 0; i < r->c->graph->array_count; i++)
        binding[i] = i;
    for (int k = 0; k < iteration; k++)
        apply_swaps(body, 0, body->count, binding);
    apply_swaps(body, 0, position, binding);
    return binding[array];
}

/* Whether the node at a position of an iteration uses the storage that the piece lands in, under
 * whichever name. */
static bool uses_storage(const replay *r, const peal_piece *p, int iteration, int position,
                         int storage, int *binding)
{
    const node *n = r->recv.body->item[position];
    peal_box box = piece_target(p);
    for (int i = 0; i < n->touch_count; i++)
        if (touches_group(r->c, &n->touch[i], p->target_array, &box) &&
            storage_at(r, r->recv.body, iteration, position, n->touch[i].array, binding) == storage)
            return true;
    return false;
}

/* Whether every use of the storage that message `k` writes lies, in the receiver's walk, before the
 * carrier that the sender has received when it sends message k. */
static bool iteration_is_covered(const replay *r, const peal_piece *p, int k, int *binding)
{
    int storage = storage_at(r, r->recv.body, k, r->recv.position, p->target_array, binding);
    if (storage != storage_at(r, r->send.body, k, r->send.position, p->target_array, binding))
        return false;
    int carried = r->carrier_recv.position < r->send.position ? k : k - 1;
    for (int i = 0; i <= k; i++)
        for (int at = 0; at < r->recv.body->count; at++) {
            const node *n = r->recv.body->item[at];
            bool before_recv = i < k || at < r->recv.position;
            bool before_carrier = i < carried || (i == carried && at < r->carrier_send.position);
            if (!before_recv || before_carrier || n->kind == NODE_SWAP ||
                n == r->recv.body->item[r->recv.position])
                continue;
            if (uses_storage(r, p, i, at, storage, binding))
                return false;
        }
    /* the receive of an earlier message into the same storage: its flag comes before the carrier as
     * well */
    for (int i = carried + (r->recv.position >= r->carrier_send.position ? 0 : 1); i < k; i++)
        if (i >= 0 &&
            storage_at(r, r->recv.body, i, r->recv.position, p->target_array, binding) == storage)
            return false;
    return true;
}

static int rotation_period(const replay *r, int *binding)
{
    for (int period = 1; period <= MOST_PERIOD; period++) {
        bool identity = true;
        storage_at(r, r->recv.body, period, 0, 0, binding);
        for (int i = 0; i < r->c->graph->array_count; i++)
            identity &= binding[i] == i;
        if (identity)
            return period;
    }
    return 0;
}

static bool direct_is_covered(replay *r)
{
    int *binding = PEAL_ARENA_ARRAY(r->c->arena, int, r->c->graph->array_count);
    int period = rotation_period(r, binding);
    bool any = false;
    if (!period)
        return false;
    for (int i = 0; i < r->m->piece_count; i++) {
        const peal_piece *p = &r->m->piece[i];
        if (!piece_wants_direct(r->c, r->receiver, r->sender->rank, p))
            continue;
        any = true;
        if (!outside_is_quiet(r, p))
            return false;
        for (int k = 0; k < 2 * period + 2; k++)
            if (!iteration_is_covered(r, p, k, binding))
                return false;
    }
    return any;
}

/* Finds a message of the receiver to the sender, in the same body of both, that can carry credits.
 */
static int find_carrier(replay *r, int sender, bool (*good)(replay *r))
{
    for (int i = 0; i < r->receiver->message_count; i++) {
        const rank_message *m = &r->receiver->message[i];
        if (!m->outgoing || m->peer != sender)
            continue;
        int twin = twin_of(r->sender, r->receiver->rank, m);
        if (twin < 0 || !find_node(r->receiver, NODE_SEND, i, &r->carrier_send) ||
            !find_node(r->sender, NODE_RECV, twin, &r->carrier_recv))
            continue;
        r->carrier = m;
        if (r->carrier_send.body == r->recv.body && r->carrier_recv.body == r->send.body && good(r))
            return i;
    }
    return -1;
}

/* A reduction's contributions carry each other's credits: an exchange before them need not wait for
 * what is folded of the step before. */
static bool same_statement(replay *r)
{
    return r->carrier->statement == r->m->statement;
}

static bool any_carrier(replay *r)
{
    (void)r;
    return true;
}

/* In the kernel that stays on an accelerator, others go on while contributions are folded. Under a
 * condition, more slots would make the period of a recorded run longer. */
static bool may_be_behind(const peal_compilation *c, const rank_message *m)
{
    const peal_statement *s = c->statement[m->statement];

    return c->mode == PEAL_MODE_FUSED && c->machine.accelerator && !s->when &&
           reduction_is_reported(c, s);
}

int message_slots(const peal_compilation *c, const rank_message *m)
{
    return may_be_behind(c, m) ? SLOTS_BEHIND : SLOTS;
}

static const char *why_no_carrier(const replay *r, int sender)
{
    for (int i = 0; i < r->receiver->message_count; i++)
        if (r->receiver->message[i].outgoing && r->receiver->message[i].peer == sender)
            return "what goes back is in another body or under a `when`";
    return "nothing goes back";
}

peal_status deliver(peal_compilation *c, int sender, int index, delivery *out)
{
    rank_view *from = view_at(c, sender, 4);
    if (!from)
        return c->view[sender]->status;
    const rank_message *m = &from->message[index];
    rank_view *to = view_at(c, m->peer, 4);
    if (!to)
        return c->view[m->peer]->status;
    replay r = {.c = c, .sender = from, .receiver = to, .m = m};
    int twin = twin_of(to, sender, m);
    *out = (delivery){.credit = true, .slots = message_slots(c, m), .carrier = -1};
    if (c->mode == PEAL_MODE_SERIAL) {
        out->credit = false;
        out->why = "one event runs at a time";
        return PEAL_STATUS_OK;
    }
    if (!find_node(from, NODE_SEND, index, &r.send) || twin < 0 ||
        !find_node(to, NODE_RECV, twin, &r.recv))
        return PEAL_STATUS_OK;
    if (r.send.loop == LOOP_SETUP || r.send.loop == LOOP_FINISH) {
        out->credit = false;
        out->why = "it is sent once";
        return PEAL_STATUS_OK;
    }
    if (r.send.in_if || r.recv.in_if) {
        out->why = "it is sent under a `when`";
        return PEAL_STATUS_OK;
    }
    if (may_be_behind(c, m)) {
        out->why =
            "nothing waits for it: one that another message carries would have both sides wait";
        return PEAL_STATUS_OK;
    }
    /* In place only in the steps: nothing fences the first message of a loop in setup or finish. */
    if (c->statement[m->statement]->kind == PEAL_STATEMENT_EXCHANGE && !m->application_reads &&
        r.recv.section == LOOP_OUTER)
        out->carrier = find_carrier(&r, sender, direct_is_covered);
    out->direct = out->carrier >= 0;
    if (!out->direct)
        out->carrier = find_carrier(&r, sender, same_statement);
    if (out->carrier < 0)
        out->carrier = find_carrier(&r, sender, any_carrier);
    out->credit = out->carrier < 0;
    out->why = why_no_carrier(&r, sender);
    return PEAL_STATUS_OK;
}
