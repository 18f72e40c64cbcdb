/* Unrolls schedules into events, accesses and edges. */
#include "tests/scheduler/unroll.h"

#include "base/expression.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const unroll_loss no_loss = {-1, -1, false};

/* One rank's walk. */
typedef struct walk {
    unrolled *u;
    const peal_schedule *s;
    int64_t counter[8];
    int64_t *passed;   /* by op */
    int **first_event; /* by op: event of the first tile slot of each instance */
    int *instance_count;
    int *binding;         /* by array */
    int *last_of_channel; /* by channel: last event */
    uint64_t *messages;   /* by channel: how many the walk has passed */
    int depth;            /* of loops around the op, without the outermost */
    int last_decision;    /* event of the latest DECIDE, ordered before what it decides; -1 */
    int key[KEY];
} walk;

static void *grow(void *list, int count, int *capacity, size_t size)
{
    if (count < *capacity)
        return list;
    *capacity = *capacity ? 2 * *capacity : 1024;
    return realloc(list, (size_t)*capacity * size);
}

void unroll_add_edge(unrolled *u, int from, int to)
{
    if (from < 0 || from == to)
        return;
    u->edge = grow(u->edge, u->edge_count, &u->edge_capacity, sizeof(*u->edge));
    u->edge[u->edge_count][0] = from;
    u->edge[u->edge_count++][1] = to;
}

static access *add_access(walk *w, int of_event, const int key[KEY], int rank, int storage,
                          int64_t slot, peal_box box, bool write)
{
    static access nobody;
    unrolled *u = w->u;
    if (peal_box_is_empty(&box))
        return &nobody;
    u->access = grow(u->access, u->access_count, &u->access_capacity, sizeof(*u->access));
    access *a = &u->access[u->access_count++];
    *a = (access){.event = of_event,
                  .memory_rank = rank,
                  .storage = storage,
                  .slot = slot,
                  .box = box,
                  .write = write};
    memcpy(a->key, key, sizeof(a->key));
    return a;
}

static void add_transfer(walk *w, int of_event, place_of_copy from, place_of_copy to)
{
    unrolled *u = w->u;
    u->transfer = grow(u->transfer, u->transfer_count, &u->transfer_capacity, sizeof(*u->transfer));
    u->transfer[u->transfer_count++] = (transfer){of_event, from, to};
}

static int add_event(walk *w, int op, int64_t tile)
{
    unrolled *u = w->u;
    if (u->event_count == UNROLL_EVENTS) {
        u->overflow = true;
        return UNROLL_EVENTS - 1;
    }
    event *e = &u->event[u->event_count];
    *e = (event){.rank = w->s->rank, .op = op, .tile = tile};
    memcpy(e->key, w->key, sizeof(e->key));
    if (w->last_decision >= 0)
        unroll_add_edge(u, w->last_decision, u->event_count);
    return u->event_count++;
}

static int64_t tile_count(const peal_schedule *s, const peal_op *op)
{
    return op->kind == PEAL_OP_LAUNCH ? s->task[op->task].tile_count : 1;
}

static bool in_range(const peal_tile_range *r, int tiling, const int64_t index[PEAL_AXES])
{
    bool inside = r->tiling == tiling;
    for (int k = 0; k < PEAL_AXES; k++)
        inside &= index[k] >= r->lo[k] && index[k] < r->hi[k];
    return inside;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Edges from the tiles of A that dependence d maps tile `index` of B to. */
static void follow(walk *w, const peal_dependence *d, int tiling, const int64_t index[PEAL_AXES],
                   int to)
{
    const peal_op *a = &w->s->op[d->op];
    int64_t instance = w->passed[d->op] - 1 - d->lag, lo[PEAL_AXES], hi[PEAL_AXES], i[PEAL_AXES];
    if (instance < 0 || (!d->all && d->b_tiling >= 0 && d->b_tiling != tiling))
        return;
    const int *events = w->first_event[d->op] + instance * tile_count(w->s, a);
    if (d->all) {
        for (int64_t t = 0; t < tile_count(w->s, a); t++)
            unroll_add_edge(w->u, events[t], to);
        return;
    }
    for (int k = 0; k < PEAL_AXES; k++) {
        const peal_map_axis *m = &d->map[k];
        int64_t j = m->b_axis < 0 ? 0 : index[m->b_axis];
        lo[k] = floor_div(j * m->step + m->low, m->divisor);
        hi[k] = floor_div(j * m->step + m->high, m->divisor);
        lo[k] = lo[k] > m->first ? lo[k] : m->first;
        hi[k] = hi[k] < m->last ? hi[k] : m->last;
    }
    const peal_tiling *g =
        a->kind == PEAL_OP_LAUNCH ? &w->s->task[a->task].tiling[d->a_tiling] : NULL;
    for (i[3] = lo[3]; i[3] <= hi[3]; i[3]++)
        for (i[2] = lo[2]; i[2] <= hi[2]; i[2]++)
            for (i[1] = lo[1]; i[1] <= hi[1]; i[1]++)
                for (i[0] = lo[0]; i[0] <= hi[0]; i[0]++) {
                    int64_t t =
                        !g ? 0
                           : g->first + i[0] +
                                 g->count[0] * (i[1] + g->count[1] * (i[2] + g->count[2] * i[3]));
                    unroll_add_edge(w->u, events[t], to);
                }
}

static peal_box reach_box(const peal_reach *reach, const peal_box *tile)
{
    peal_box out = {.axis_count = PEAL_AXES};
    for (int k = 0; k < PEAL_AXES; k++) {
        const peal_reach_axis *a = &reach->axis[k];
        out.lo[k] = a->fixed ? a->low : floor_div(tile->lo[k] * a->num, a->den) + a->low;
        out.hi[k] = a->fixed ? a->high : -floor_div(-tile->hi[k] * a->num, a->den) + a->high;
    }
    return out;
}

static peal_box stored_of(const walk *w, int array)
{
    return w->s->array[array].layout.stored;
}

typedef struct element_reads {
    walk *w;
    int event;
} element_reads;

static void read_element(void *user, int array)
{
    element_reads *r = user;
    add_access(r->w, r->event, r->w->key, r->w->s->rank, r->w->binding[array], 0,
               stored_of(r->w, array), false);
}

static const peal_statement *find_statement(const peal_body *body, int id)
{
    const peal_statement *found = NULL;
    for (int i = 0; i < body->count && !found; i++) {
        const peal_statement *s = body->statement[i];
        found = s->id == id                        ? s
                : s->kind == PEAL_STATEMENT_REPEAT ? find_statement(&s->u.loop.body, id)
                                                   : NULL;
    }
    return found;
}

/* Whether the task promises that its tiles never meet. */
static bool is_independent(const peal_graph_data *graph, int id)
{
    const peal_statement *s = find_statement(&graph->setup, id);
    s = s ? s : find_statement(&graph->step.body, id);
    s = s ? s : find_statement(&graph->finish, id);
    return s && s->kind == PEAL_STATEMENT_TASK && s->u.task.independent;
}

static void kernel_accesses(walk *w, const peal_schedule_task *t, const peal_tiling *g,
                            const int64_t index[PEAL_AXES], int64_t number, int e)
{
    int rank = w->s->rank;
    peal_box tile = g->box;
    element_reads reads = {w, e};
    if (is_independent(w->s->graph, t->statement))
        w->u->event[e].independent = 1 + (int)(t - w->s->task);
    for (int k = 0; k < PEAL_AXES; k++) {
        tile.lo[k] = g->box.lo[k] + index[k] * g->extent[k];
        tile.hi[k] =
            tile.lo[k] + g->extent[k] < g->box.hi[k] ? tile.lo[k] + g->extent[k] : g->box.hi[k];
    }
    for (int i = 0; i < t->access_count; i++)
        for (int j = 0; j < t->access[i].reach_count; j++) {
            const peal_task_access *a = &t->access[i];
            peal_box box = reach_box(&a->reach[j], &tile);
            if (a->per_tile)
                box.lo[0] = number * a->per_tile, box.hi[0] = box.lo[0] + a->per_tile;
            access *made = add_access(w, e, w->key, rank, w->binding[a->array], 0, box,
                                      a->mode != PEAL_READ_ACCESS);
            made->update = a->mode == PEAL_UPDATE_ACCESS;
        }
    for (int i = 0; i < t->reduction_count; i++)
        add_access(w, e, w->key, rank, w->binding[t->reduction[i].partials], 0,
                   (peal_box){.lo = {number}, .hi = {number + 1, 1, 1, 1}}, true);
    for (int i = 0; i < t->argument_count; i++)
        peal_expr_elements(t->argument[i], read_element, &reads);
}

static const peal_box one_cell = {.hi = {1, 1, 1, 1}};

static void builtin_accesses(walk *w, const peal_schedule_task *t, int e)
{
    element_reads reads = {w, e};
    bool tells = t->kind == PEAL_TASK_PRINT || t->kind == PEAL_TASK_SAVE;
    peal_expr_elements(t->value, read_element, &reads);
    for (int i = 0; i < t->item_count; i++)
        peal_expr_elements(t->item[i].value, read_element, &reads);
    if (t->gather >= 0)
        add_access(w, e, w->key, w->s->rank, w->binding[t->gather], 0, stored_of(w, t->gather),
                   false);
    if (t->array >= 0)
        add_access(w, e, w->key, w->s->rank, w->binding[t->array], 0, stored_of(w, t->array),
                   t->kind != PEAL_TASK_SAVE);
    if (tells)
        add_access(w, e, w->key, w->s->rank, CONSOLE, 0, one_cell, true)->update = true;
    if (t->kind == PEAL_TASK_DECIDE)
        add_access(w, e, w->key, w->s->rank, DECISIONS + t->decision, 0, one_cell, true);
}

static void unroll_launch(walk *w, int index, int *events)
{
    const peal_op *op = &w->s->op[index];
    const peal_schedule_task *t = &w->s->task[op->task];
    int64_t i[PEAL_AXES];
    for (int g = 0; g < t->tiling_count; g++) {
        const peal_tiling *tiling = &t->tiling[g];
        for (int64_t n = 0;
             n < tiling->count[0] * tiling->count[1] * tiling->count[2] * tiling->count[3]; n++) {
            bool mine = false;
            i[0] = n % tiling->count[0];
            i[1] = n / tiling->count[0] % tiling->count[1];
            i[2] = n / tiling->count[0] / tiling->count[1] % tiling->count[2];
            i[3] = n / tiling->count[0] / tiling->count[1] / tiling->count[2];
            for (int r = 0; r < op->range_count; r++)
                mine |= in_range(&op->range[r], g, i);
            if (!mine)
                continue;
            int e = events[tiling->first + n] = add_event(w, index, tiling->first + n);
            for (int d = 0; d < op->dependence_count; d++)
                follow(w, &op->dependence[d], g, i, e);
            if (t->kind == PEAL_TASK_KERNEL)
                kernel_accesses(w, t, tiling, i, tiling->first + n, e);
            else
                builtin_accesses(w, t, e);
            if (t->kind == PEAL_TASK_DECIDE)
                w->last_decision = e;
        }
    }
}

static peal_box piece_target(const peal_piece *p)
{
    peal_box box = {.axis_count = PEAL_AXES};
    for (int k = 0; k < PEAL_AXES; k++) {
        box.lo[k] = p->target[k];
        box.hi[k] = p->target[k] + p->target_extent[k];
    }
    return box;
}

/* A store into the receiver's memory happens, in the sequential order, at the receiver's receive.
 */
static void receive_key(const walk *w, int key[KEY])
{
    memcpy(key, w->key, KEY * sizeof(int));
    key[2 + 2 * w->depth]++;
}

/* A slot is written and read message by message; the receive may be written above the send. */
static void copy_accesses(walk *w, const peal_op *op, int e)
{
    const peal_channel *c = op->channel >= 0 ? &w->s->channel[op->channel] : NULL;
    const peal_piece *piece = c ? c->piece : op->piece;
    int count = c ? c->piece_count : op->piece_count, rank = w->s->rank;
    int receiver = c && c->outgoing ? c->peer : rank;
    int64_t slot = c ? (int64_t)(w->messages[op->channel] % (uint64_t)c->slots) : 0;
    int message_key[KEY] = {c ? (int)w->messages[op->channel] : 0, op->copy != PEAL_COPY_SEND};
    for (int i = 0; i < count; i++) {
        const peal_piece *p = &piece[i];
        int staging = c ? STAGING + (int)c->flag_offset : 0, key[KEY];
        bool staged = op->copy != PEAL_COPY_LOCAL && !p->direct;
        peal_box linear = {.lo = {p->staging},
                           .hi = {p->staging + peal_box_points(&p->source), 1, 1, 1}};
        place_of_copy at_sender = {rank, w->binding[p->array], 0, p->source};
        place_of_copy at_receiver = {receiver, w->binding[p->target_array], 0, piece_target(p)};
        place_of_copy between = {receiver, staging, slot, linear};
        memcpy(key, w->key, sizeof(key));
        if (op->copy != PEAL_COPY_UNPACK)
            add_access(w, e, w->key, rank, w->binding[p->array], 0, p->source, false);
        if (op->copy == PEAL_COPY_SEND && p->direct)
            receive_key(w, key);
        if (op->copy == PEAL_COPY_LOCAL || (op->copy == PEAL_COPY_SEND ? p->direct : !p->direct)) {
            add_access(w, e, key, receiver, w->binding[p->target_array], 0, piece_target(p), true);
            add_transfer(w, e, staged ? between : at_sender, at_receiver);
        }
        if (staged)
            add_access(w, e, message_key, receiver, staging, slot, one_cell,
                       op->copy == PEAL_COPY_SEND);
        if (staged && op->copy == PEAL_COPY_SEND)
            add_transfer(w, e, at_sender, between);
    }
}

static void note_flag(walk *w, const peal_op *op, int e)
{
    const peal_channel *c = &w->s->channel[op->channel];
    bool at_peer = op->credit ? !c->outgoing
                              : c->outgoing; /* flags lie at the receiver, credits at the sender */
    int64_t offset = op->credit ? c->credit_offset : c->flag_offset;
    w->u->flag = grow(w->u->flag, w->u->flag_count, &w->u->flag_capacity, sizeof(*w->u->flag));
    w->u->flag[w->u->flag_count++] = (flag_event){.rank = at_peer ? c->peer : w->s->rank,
                                                  .offset = offset,
                                                  .message = w->messages[op->channel],
                                                  .event = e,
                                                  .write = op->kind == PEAL_OP_WRITE,
                                                  .credit = op->credit,
                                                  .slots = c->slots};
}

static bool begins_message(const peal_schedule *s, int index)
{
    const peal_op *op = &s->op[index];
    if (op->channel < 0)
        return false;
    return index == 0 || s->op[index - 1].channel != op->channel;
}

static bool is_lost(const walk *w, int index)
{
    return w->u->loss.rank == w->s->rank && w->u->loss.op == index;
}

static void unroll_op(walk *w, int index)
{
    const peal_op *op = &w->s->op[index];
    int64_t count = tile_count(w->s, op), no_index[PEAL_AXES] = {0};
    w->first_event[index] =
        realloc(w->first_event[index], (size_t)((w->passed[index] + 1) * count) * sizeof(int));
    int *events = w->first_event[index] + w->passed[index] * count;
    for (int64_t i = 0; i < count; i++)
        events[i] = -1;
    if (begins_message(w->s, index))
        w->messages[op->channel]++;
    bool lost = is_lost(w, index);
    if (lost && !w->u->loss.wait_only)
        ; /* nobody waits for what is not there */
    else if (op->kind == PEAL_OP_LAUNCH)
        unroll_launch(w, index, events);
    else {
        int e = events[0] = add_event(w, index, 0);
        for (int d = 0; d < op->dependence_count; d++)
            follow(w, &op->dependence[d], -1, no_index, e);
        if (op->kind == PEAL_OP_COPY)
            copy_accesses(w, op, e);
        if (op->channel >= 0) {
            unroll_add_edge(w->u, w->last_of_channel[op->channel], e);
            w->last_of_channel[op->channel] = e;
            if (op->kind != PEAL_OP_COPY && !lost)
                note_flag(w, op, e);
        }
    }
    if (w->passed[index]) /* a tile's instances run in order */
        for (int64_t i = 0; i < count; i++)
            unroll_add_edge(w->u, events[i - count], events[i]);
    w->passed[index]++;
}

static void unroll_section(walk *w, int first, int end, int depth);

static void unroll_region(walk *w, int index, int depth)
{
    const peal_op *op = &w->s->op[index];
    peal_scope scope = {.graph = w->s->graph,
                        .rank = w->s->rank,
                        .ranks = w->s->machine->ranks,
                        .counter = w->counter,
                        .counter_count = 8};
    memcpy(scope.position, w->s->rank_position, sizeof(scope.position));
    memcpy(scope.dims, w->s->rank_dims, sizeof(scope.dims));
    if (op->kind == PEAL_OP_LOOP) {
        int64_t repeat = 1;
        assert_int_equal(peal_expr_integer(w->s->loop[op->loop].repeat, &scope, 1, &repeat, NULL),
                         0);
        int depth_index = w->s->loop[op->loop].depth;
        for (int64_t k = 0; k < repeat; k++) {
            w->counter[depth_index] = k;
            w->key[3 + 2 * depth] = (int)k + 1;
            w->depth = depth + 1;
            unroll_section(w, index + 1, op->end, depth + 1);
        }
        w->depth = depth;
        memset(&w->key[3 + 2 * depth], 0, sizeof(int) * (size_t)(KEY - 3 - 2 * depth));
        return;
    }
    bool taken = true;
    if (op->decision >=
        0) /* any verdict will do, if all ranks agree, as a send and its recv must */
        taken = ((int)w->counter[0] * 2 + w->key[3]) % 3 != 0;
    else
        assert_int_equal(peal_expr_boolean(op->condition, &scope, true, &taken, NULL), 0);
    if (taken)
        unroll_section(w, index + 1, op->end, depth);
}

/* The verdict of a loop comes after its body, whatever the number of its event. */
static bool ends_loop(const peal_schedule *s, const peal_op *op)
{
    return op->kind == PEAL_OP_LAUNCH && s->task[op->task].kind == PEAL_TASK_DECIDE &&
           !strcmp(s->task[op->task].name, "until");
}

static void unroll_section(walk *w, int first, int end, int depth)
{
    for (int i = first; i < end; i++) {
        const peal_op *op = &w->s->op[i];
        w->key[2 + 2 * depth] = ends_loop(w->s, op) ? INT32_MAX : op->event;
        if (op->kind == PEAL_OP_SWAP && is_lost(w, i))
            continue;
        if (op->kind == PEAL_OP_SWAP) {
            int held = w->binding[op->first];
            w->binding[op->first] = w->binding[op->second];
            w->binding[op->second] = held;
        } else if (op->kind == PEAL_OP_LOOP || op->kind == PEAL_OP_IF) {
            unroll_region(w, i, depth);
            i = op->end;
        } else if (op->kind != PEAL_OP_END)
            unroll_op(w, i);
    }
}

static void unroll_rank(unrolled *u, int rank)
{
    const peal_schedule *s = u->schedule[rank];
    walk w = {.u = u, .s = s, .last_decision = -1};
    w.passed = calloc((size_t)s->op_count, sizeof(*w.passed));
    w.first_event = calloc((size_t)s->op_count, sizeof(*w.first_event));
    w.binding = calloc((size_t)s->array_count, sizeof(*w.binding));
    w.last_of_channel = calloc((size_t)s->channel_count + 1, sizeof(int));
    w.messages = calloc((size_t)s->channel_count + 1, sizeof(*w.messages));
    for (int i = 0; i < s->array_count; i++)
        w.binding[i] = i;
    for (int i = 0; i < s->channel_count; i++)
        w.last_of_channel[i] = -1;
    unroll_section(&w, s->setup.first, s->setup.end, 0);
    w.key[0] = 1;
    for (int step = 0; step < u->steps; step++) {
        w.key[1] = step;
        w.counter[0] = step;
        unroll_section(&w, s->step.first, s->step.end, 0);
    }
    w.key[0] = 2;
    w.counter[0] = u->steps;
    unroll_section(&w, s->finish.first, s->finish.end, 0);
    for (int i = 0; i < s->op_count; i++)
        free(w.first_event[i]);
    free(w.passed);
    free(w.first_event);
    u->binding[rank] = w.binding;
    free(w.last_of_channel);
    free(w.messages);
}

void unroll_begin(unrolled *u, const peal_schedule *const *schedules, int ranks, int steps,
                  unroll_loss loss)
{
    *u = (unrolled){.schedule = schedules, .ranks = ranks, .steps = steps, .loss = loss};
    u->event = calloc(UNROLL_EVENTS, sizeof(*u->event));
    for (int rank = 0; rank < ranks; rank++)
        unroll_rank(u, rank);
}

void unroll_end(unrolled *u)
{
    for (int rank = 0; rank < u->ranks; rank++)
        free(u->binding[rank]);
    free(u->event);
    free(u->access);
    free(u->transfer);
    free(u->flag);
    free(u->edge);
}

void unroll_connect_flags(unrolled *u)
{
    for (int k = 0; k < u->flag_count; k++) {
        const flag_event *wait = &u->flag[k];
        uint64_t wanted = wait->credit ? wait->message - (uint64_t)wait->slots : wait->message;
        bool free_slot = wait->credit && wait->message <= (uint64_t)wait->slots;
        int found = 0;
        for (int i = 0; i < u->flag_count && !wait->write; i++) {
            const flag_event *write = &u->flag[i];
            if (!write->write || write->rank != wait->rank || write->offset != wait->offset ||
                write->credit != wait->credit || write->message != wanted)
                continue;
            unroll_add_edge(u, write->event, wait->event);
            found++;
        }
        u->unmatched_waits += !wait->write && !free_slot && found != 1 && !u->overflow;
    }
}
