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
#include "base/sorted.h"
#include "scheduler/channels/channels.h"
#include "scheduler/channels/transports.h"
#include "scheduler/geometry/geometry.h"
#include "scheduler/messages/messages.h"
#include "scheduler/order/walk_index.h"
#include "scheduler/tasks/tasks.h"

enum { SLOTS = 2, SLOTS_BEHIND = 4 };

bool piece_wants_direct(const common_input *c, const rank_view *receiver, int sender,
                        const peal_piece *piece)
{
    int array = piece->target_array;
    if (array >= c->graph->array_count || c->graph->arrays[array].kind != PEAL_ARRAY_FIELD ||
        c->graph->arrays[array].data || piece->array != array)
        return false;
    const channel_transport *transport =
        channel_transport_between(&c->machine, sender, receiver->rank);
    int64_t run = (int64_t)peal_type_bytes(array_type(c, array)), runs = 1;
    const peal_box *stored = &receiver->layout[array].stored;
    bool is_one = true;
    for (int k = 0; k < PEAL_AXES; k++) { /* contiguous bytes in the receiver's memory */
        if (is_one)
            run *= piece->target_extent[k];
        else
            runs *= piece->target_extent[k];
        is_one = is_one && piece->target_extent[k] == stored->hi[k] - stored->lo[k];
    }
    return run >= transport->in_place_bytes ||
           (c->machine.accelerator && runs <= transport->in_place_runs);
}

typedef struct replay {
    const common_input *c;
    const pass_context *pass;
    rank_view *sender, *receiver;
    const rank_message *m; /* the sender's */
    const node_position *send, *recv;
} replay;

/* An instance of a node in the receiver's walk, counted from the message's own iteration: what uses
 * the memory that the message writes comes no later, before the message. */
typedef struct last_use {
    int iteration, position;
} last_use;

static bool is_later(const last_use *a, const last_use *b)
{
    return a->iteration != b->iteration ? a->iteration > b->iteration : a->position > b->position;
}

static bool touches_group(const common_input *c, const touch *t, int array, const peal_box *box)
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

/* Of the steps, only nodes directly in the body may use the halo, and only the body itself may swap
 * the group; setup is fenced off by a handshake, finish comes after every message. */
static bool outside_is_quiet(const replay *r, const peal_piece *p)
{
    int count;
    const array_use *use = uses_of(r->c, r->pass, r->receiver, p->target_array, &count);
    for (int i = 0; i < count; i++) {
        bool region = use[i].node->kind == NODE_IF || use[i].node->kind == NODE_LOOP;
        bool within = use[i].body == r->recv->number;
        bool around = !within && r->recv->loop == LOOP_OUTER; /* a region of the body has it */
        if (!around && within == region && uses_target(r, use[i].node, p))
            return false;
    }
    return true;
}

/* Storage that `array` names at a position of an iteration: its name, followed back through the
 * swaps. */
static int storage_at(const common_input *c, const pass_context *pass, rank_view *v,
                      const node_position *where, int iteration, int position, int array)
{
    int count;
    const array_use *swap = swaps_in(c, pass, v, array, where->number, &count);
    for (int k = count ? iteration : -1; k >= 0; k--)
        for (int i = count - 1; i >= 0; i--) {
            const node *n = swap[i].node;
            if (k == iteration && swap[i].position >= position)
                continue;
            array = array == n->first ? n->second : array == n->second ? n->first : array;
        }
    return array;
}

/* Whether the node at a position of an iteration uses the storage that the piece lands in, under
 * whichever name. */
static bool uses_storage(const replay *r, const peal_piece *p, int iteration, const array_use *use,
                         int storage)
{
    const node *n = use->node;
    peal_box box = piece_target(p);
    for (int i = 0; i < n->touch_count; i++)
        if (touches_group(r->c, &n->touch[i], p->target_array, &box) &&
            storage_at(r->c, r->pass, r->receiver, r->recv, iteration, use->position,
                       n->touch[i].array) == storage)
            return true;
    return false;
}

static int by_position(const void *left, const void *right)
{
    return ((const array_use *)left)->position - ((const array_use *)right)->position;
}

/* The last use of a storage before message k, an earlier message into it included: its flag comes
 * before the carrier as well. False: there is none. */
static bool find_last_use(const replay *r, const peal_piece *p, int k, int storage, last_use *out)
{
    int count, at = r->recv->position;
    const array_use *use =
        uses_in(r->c, r->pass, r->receiver, p->target_array, r->recv->number, &count);
    const array_use here = {.position = at};
    int before = peal_sorted_first(&here, use, count, sizeof(*use), by_position);
    for (int i = k; i >= 0; i--)
        for (int n = (i == k ? before : count) - 1; n >= 0; n--) {
            bool own = use[n].position == at;
            if (use[n].node->kind == NODE_SWAP)
                continue;
            if (own ? storage_at(r->c, r->pass, r->receiver, r->recv, i, at, p->target_array) ==
                          storage
                    : uses_storage(r, p, i, &use[n], storage)) {
                *out = (last_use){i - k, use[n].position};
                return true;
            }
        }
    return false;
}

/* The last use of what the piece lands in, over enough iterations to see every rotation of the
 * storages. False: the two ends mean different storages. */
static bool add_last_use(const replay *r, const peal_piece *p, int period, last_use *last)
{
    for (int k = 0; k < 2 * period + 2; k++) {
        last_use found;
        int array = p->target_array;
        int storage = storage_at(r->c, r->pass, r->receiver, r->recv, k, r->recv->position, array);
        if (storage != storage_at(r->c, r->pass, r->sender, r->send, k, r->send->position, array))
            return false;
        if (find_last_use(r, p, k, storage, &found) && is_later(&found, last))
            *last = found;
    }
    return true;
}

/* Whether some pieces can be stored in place, given a carrier that lies after the last use of their
 * memory. */
static bool may_be_direct(const replay *r, last_use *last)
{
    int period = rotation_of(r->c, r->pass, r->receiver, r->recv->body, r->recv->number);
    bool any = false;
    *last = (last_use){INT32_MIN, 0};
    if (!period)
        return false;
    for (int i = 0; i < r->m->piece_count; i++) {
        const peal_piece *p = &r->m->piece[i];
        if (!piece_wants_direct(r->c, r->receiver, r->sender->rank, p))
            continue;
        any = true;
        if (!outside_is_quiet(r, p) || !add_last_use(r, p, period, last))
            return false;
    }
    return any;
}

/* Finds a message of the receiver to the sender, in the same body of both, that can carry credits:
 * one that the receiver sends after the last use (NULL: whenever), of a statement (-1: any). */
static int find_carrier(const replay *r, const last_use *last, int statement)
{
    int count;
    const sent_message *back = messages_to(r->pass, r->receiver, r->sender, &count);
    for (int i = 0; i < count; i++) {
        const rank_message *m = &r->receiver->message[back[i].message];
        if (back[i].peer_end < 0 || (statement >= 0 && m->statement != statement))
            continue;
        const node_position *send = node_position_of(r->c, r->pass, r->receiver, back[i].message);
        const node_position *recv = node_position_of(r->c, r->pass, r->sender, back[i].peer_end);
        last_use carried = {recv->position < r->send->position ? 0 : -1, send->position};
        if (send->body && send->body == r->recv->body && recv->body &&
            recv->body == r->send->body && !(last && !is_later(&carried, last)))
            return back[i].message;
    }
    return -1;
}

/* Where others go on while contributions are folded. Under a condition, more slots would make the
 * period of a recorded run longer. */
static bool may_be_behind(const common_input *c, const rank_message *m)
{
    const peal_statement *s = c->statement[m->statement];

    return c->mode == PEAL_MODE_FUSED && c->traits->folds_aside && !s->when &&
           reduction_is_reported(c, s);
}

int message_slots(const common_input *c, const rank_message *m)
{
    int slots = may_be_behind(c, m) ? SLOTS_BEHIND : SLOTS;
    int ahead = c->leads.ahead[m->statement];
    bool networks = c->machine.node || c->machine.apart;
    while (networks && slots < ahead) /* a network tells the slot by the flag's value */
        slots *= 2;
    return ahead > slots ? ahead : slots;
}

static const char *why_no_carrier(const replay *r)
{
    int count;
    messages_to(r->pass, r->receiver, r->sender, &count);
    return count ? "what goes back is in another body or under a `when`" : "nothing goes back";
}

/* In place only in the steps: nothing fences the first message of a loop in setup or finish. A
 * reduction's contributions carry each other's credits: an exchange before them need not wait for
 * what is folded of the step before. */
static void choose_carrier(const replay *r, delivery *out)
{
    last_use last;
    if (r->c->statement[r->m->statement]->kind == PEAL_STATEMENT_EXCHANGE &&
        !r->m->application_reads && r->recv->section == LOOP_OUTER && may_be_direct(r, &last))
        out->carrier = find_carrier(r, &last, -1);
    out->direct = out->carrier >= 0;
    if (!out->direct)
        out->carrier = find_carrier(r, NULL, r->m->statement);
    if (out->carrier < 0)
        out->carrier = find_carrier(r, NULL, -1);
    out->credit = out->carrier < 0;
    out->why = why_no_carrier(r);
}

peal_status deliver(const common_input *c, const pass_context *pass, rank_views *views, int sender,
                    int index, delivery *out)
{
    rank_view *from = view_at(views, sender, STAGE_ORDER);
    if (!from)
        return views->of[sender]->status;
    const rank_message *m = &from->message[index];
    rank_view *to = view_at(views, m->peer, STAGE_ORDER);
    if (!to)
        return views->of[m->peer]->status;
    int peer_end = peer_end_of(pass, to, sender, m);
    *out = (delivery){.credit = true, .slots = message_slots(c, m), .carrier = -1};
    if (c->mode == PEAL_MODE_SERIAL) {
        out->credit = false;
        out->why = "one event runs at a time";
        return PEAL_STATUS_OK;
    }
    if (peer_end < 0)
        return PEAL_STATUS_OK;
    replay r = {.c = c,
                .pass = pass,
                .sender = from,
                .receiver = to,
                .m = m,
                .send = node_position_of(c, pass, from, index),
                .recv = node_position_of(c, pass, to, peer_end)};
    if (!r.send->body || !r.recv->body)
        return PEAL_STATUS_OK;
    if (r.send->loop == LOOP_SETUP || r.send->loop == LOOP_FINISH) {
        out->credit = false;
        out->why = "it is sent once";
        return PEAL_STATUS_OK;
    }
    if (r.send->in_if || r.recv->in_if) {
        out->why = "it is sent under a `when`";
        return PEAL_STATUS_OK;
    }
    if (may_be_behind(c, m)) {
        out->why =
            "nothing waits for it: one that another message carries would have both sides wait";
        return PEAL_STATUS_OK;
    }
    choose_carrier(&r, out);
    return PEAL_STATUS_OK;
}
