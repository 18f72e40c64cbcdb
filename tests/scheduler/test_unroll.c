/* Unrolls schedules of random graphs, tile by tile, and proves that dependences, flags, credits and
 * carriers order every two conflicting accesses as the sequential meaning does: nothing else may
 * order them.
 *
 * The events of all ranks form a graph: dependence maps, messages, the fixed order of one channel's
 * ops and of one tile's instances. Each pair of accesses to the same memory, one of them a write,
 * must be connected in the right direction. With every tile on a worker of its own, this is the
 * least order that any executor keeps. */
#include "base/box.h"
#include "base/expression.h"
#include "dsl/dsl.h"
#include "scheduler/scheduler.h"
#include "tests/property/random_graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 5, KEY = 5, SEEDS = 120, MOST_EVENTS = 24000 };

typedef struct event {
    int rank, op;
    int64_t tile;
    int key[KEY]; /* place in the sequential order: section, step, statement, inner iteration, event
                   */
} event;

typedef struct access {
    int event;
    int key[KEY];
    int memory_rank, storage; /* storage >= 1000000: staging of a channel's flag offset and slot */
    int64_t slot;
    peal_box box;
    bool write;
} access;

typedef struct unrolled {
    const peal_schedule **schedule;
    int ranks;
    event *event;
    int event_count;
    access *access;
    int access_count, access_capacity;
    int (*edge)[2];
    int edge_count, edge_capacity;
    bool overflow;
} unrolled;

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
    int last_decision;    /* event of the latest DECIDE, ordered before what it decides; -1 */
    int key[KEY];
} walk;

typedef struct flag_event {
    int rank;
    int64_t offset; /* in the receiver's (credit: the sender's) segment of rank */
    uint64_t message;
    int event;
    bool write, credit;
    int slots;
} flag_event;

static flag_event *flags;
static int flag_count, flag_capacity;

static void *grow(void *list, int count, int *capacity, size_t size)
{
    if (count < *capacity)
        return list;
    *capacity = *capacity ? 2 * *capacity : 1024;
    return realloc(list, (size_t)*capacity * size);
}

static void add_edge(unrolled *u, int from, int to)
{
    if (from < 0 || from == to)
        return;
    u->edge = grow(u->edge, u->edge_count, &u->edge_capacity, sizeof(*u->edge));
    u->edge[u->edge_count][0] = from;
    u->edge[u->edge_count++][1] = to;
}

static void add_access(walk *w, int of_event, const int key[KEY], int rank, int storage,
                       int64_t slot, peal_box box, bool write)
{
    unrolled *u = w->u;
    if (peal_box_is_empty(&box))
        return;
    u->access = grow(u->access, u->access_count, &u->access_capacity, sizeof(*u->access));
    access *a = &u->access[u->access_count++];
    *a = (access){.event = of_event,
                  .memory_rank = rank,
                  .storage = storage,
                  .slot = slot,
                  .box = box,
                  .write = write};
    memcpy(a->key, key, sizeof(a->key));
}

static int add_event(walk *w, int op, int64_t tile)
{
    unrolled *u = w->u;
    if (u->event_count == MOST_EVENTS) {
        u->overflow = true;
        return MOST_EVENTS - 1;
    }
    event *e = &u->event[u->event_count];
    *e = (event){.rank = w->s->rank, .op = op, .tile = tile};
    memcpy(e->key, w->key, sizeof(e->key));
    if (w->last_decision >= 0)
        add_edge(u, w->last_decision, u->event_count);
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
            add_edge(w->u, events[t], to);
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
                    add_edge(w->u, events[t], to);
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

static void kernel_accesses(walk *w, const peal_schedule_task *t, const peal_tiling *g,
                            const int64_t index[PEAL_AXES], int64_t number, int e)
{
    int rank = w->s->rank;
    peal_box tile = g->box;
    element_reads reads = {w, e};
    for (int k = 0; k < PEAL_AXES; k++) {
        tile.lo[k] = g->box.lo[k] + index[k] * g->extent[k];
        tile.hi[k] =
            tile.lo[k] + g->extent[k] < g->box.hi[k] ? tile.lo[k] + g->extent[k] : g->box.hi[k];
    }
    for (int i = 0; i < t->access_count; i++)
        for (int j = 0; j < t->access[i].reach_count; j++)
            add_access(w, e, w->key, rank, w->binding[t->access[i].array], 0,
                       reach_box(&t->access[i].reach[j], &tile),
                       t->access[i].mode != PEAL_READ_ACCESS);
    for (int i = 0; i < t->reduction_count; i++)
        add_access(w, e, w->key, rank, w->binding[t->reduction[i].partials], 0,
                   (peal_box){.lo = {number}, .hi = {number + 1, 1, 1, 1}}, true);
    for (int i = 0; i < t->argument_count; i++)
        peal_expr_elements(t->argument[i], read_element, &reads);
}

static void builtin_accesses(walk *w, const peal_schedule_task *t, int e)
{
    element_reads reads = {w, e};
    peal_expr_elements(t->value, read_element, &reads);
    if (t->gather >= 0)
        add_access(w, e, w->key, w->s->rank, w->binding[t->gather], 0, stored_of(w, t->gather),
                   false);
    if (t->array >= 0)
        add_access(w, e, w->key, w->s->rank, w->binding[t->array], 0, stored_of(w, t->array), true);
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
    key[KEY - 1]++;
    if (key[3] == 0)
        key[2]++;
}

static void copy_accesses(walk *w, const peal_op *op, int e)
{
    const peal_channel *c = op->channel >= 0 ? &w->s->channel[op->channel] : NULL;
    const peal_piece *piece = c ? c->piece : op->piece;
    int count = c ? c->piece_count : op->piece_count, rank = w->s->rank;
    int receiver = c && c->outgoing ? c->peer : rank;
    int64_t slot = c ? (int64_t)(w->messages[op->channel] % (uint64_t)c->slots) : 0;
    for (int i = 0; i < count; i++) {
        const peal_piece *p = &piece[i];
        int staging = c ? 1000000 + (int)c->flag_offset : 0, key[KEY];
        peal_box one = {.hi = {1, 1, 1, 1}};
        memcpy(key, w->key, sizeof(key));
        if (op->copy != PEAL_COPY_UNPACK)
            add_access(w, e, w->key, rank, w->binding[p->array], 0, p->source, false);
        if (op->copy == PEAL_COPY_SEND && p->direct)
            receive_key(w, key);
        if (op->copy == PEAL_COPY_LOCAL || (op->copy == PEAL_COPY_SEND ? p->direct : !p->direct))
            add_access(w, e, key, receiver, w->binding[p->target_array], 0, piece_target(p), true);
        if (op->copy != PEAL_COPY_LOCAL && !p->direct)
            add_access(w, e, w->key, receiver, staging, slot, one, op->copy == PEAL_COPY_SEND);
    }
}

static void note_flag(walk *w, const peal_op *op, int e)
{
    const peal_channel *c = &w->s->channel[op->channel];
    bool at_peer = op->credit ? !c->outgoing
                              : c->outgoing; /* flags lie at the receiver, credits at the sender */
    int64_t offset = op->credit ? c->credit_offset : c->flag_offset;
    flags = grow(flags, flag_count, &flag_capacity, sizeof(*flags));
    flags[flag_count++] = (flag_event){.rank = at_peer ? c->peer : w->s->rank,
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
    if (op->kind == PEAL_OP_LAUNCH)
        unroll_launch(w, index, events);
    else {
        int e = events[0] = add_event(w, index, 0);
        for (int d = 0; d < op->dependence_count; d++)
            follow(w, &op->dependence[d], -1, no_index, e);
        if (op->kind == PEAL_OP_COPY)
            copy_accesses(w, op, e);
        if (op->channel >= 0) {
            add_edge(w->u, w->last_of_channel[op->channel], e);
            w->last_of_channel[op->channel] = e;
            if (op->kind != PEAL_OP_COPY)
                note_flag(w, op, e);
        }
    }
    if (w->passed[index]) /* a tile's instances run in order */
        for (int64_t i = 0; i < count; i++)
            add_edge(w->u, events[i - count], events[i]);
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
    if (op->kind == PEAL_OP_LOOP) {
        int64_t repeat = 1;
        assert_int_equal(peal_expr_integer(w->s->loop[op->loop].repeat, &scope, 1, &repeat, NULL),
                         0);
        int depth_index = w->s->loop[op->loop].depth;
        w->key[2] = op->event;
        for (int64_t k = 0; k < repeat; k++) {
            w->counter[depth_index] = k;
            w->key[3] = (int)k + 1;
            unroll_section(w, index + 1, op->end, depth + 1);
        }
        w->key[3] = 0;
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

static void unroll_section(walk *w, int first, int end, int depth)
{
    for (int i = first; i < end; i++) {
        const peal_op *op = &w->s->op[i];
        if (w->key[3] == 0)
            w->key[2] = op->event;
        w->key[4] = op->event;
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
    for (int step = 0; step < STEPS; step++) {
        w.key[1] = step;
        w.counter[0] = step;
        unroll_section(&w, s->step.first, s->step.end, 0);
    }
    w.key[0] = 2;
    w.counter[0] = STEPS;
    unroll_section(&w, s->finish.first, s->finish.end, 0);
    for (int i = 0; i < s->op_count; i++)
        free(w.first_event[i]);
    free(w.passed);
    free(w.first_event);
    free(w.binding);
    free(w.last_of_channel);
    free(w.messages);
}

static void connect_flags(unrolled *u)
{
    for (int i = 0; i < flag_count; i++)
        for (int k = 0; k < flag_count; k++) {
            const flag_event *write = &flags[i], *wait = &flags[k];
            uint64_t wanted = wait->credit ? wait->message - (uint64_t)wait->slots : wait->message;
            if (write->write && !wait->write && write->rank == wait->rank &&
                write->offset == wait->offset && write->credit == wait->credit &&
                write->message == wanted)
                add_edge(u, write->event, wait->event);
        }
}

/* Events in an order that respects the edges; false: a cycle. */
static bool sort_events(const unrolled *u, int *order)
{
    int n = u->event_count, done = 0, *incoming = calloc((size_t)n, sizeof(int));
    int *head = malloc((size_t)n * sizeof(int)),
        *next = malloc((size_t)u->edge_count * sizeof(int) + 1);
    for (int i = 0; i < n; i++)
        head[i] = -1;
    for (int i = 0; i < u->edge_count; i++) {
        incoming[u->edge[i][1]]++;
        next[i] = head[u->edge[i][0]];
        head[u->edge[i][0]] = i;
    }
    for (int i = 0; i < n; i++)
        if (!incoming[i])
            order[done++] = i;
    for (int at = 0; at < done; at++)
        for (int i = head[order[at]]; i >= 0; i = next[i])
            if (!--incoming[u->edge[i][1]])
                order[done++] = u->edge[i][1];
    free(incoming);
    free(head);
    free(next);
    return done == n;
}

/* reach[b] has bit a: a happens before b. */
static uint64_t *happens_before(const unrolled *u, const int *order)
{
    size_t words = ((size_t)u->event_count + 63) / 64;
    uint64_t *reach = calloc(words * (size_t)u->event_count, sizeof(*reach));
    int *position = malloc((size_t)u->event_count * sizeof(int));
    int *head = malloc((size_t)u->event_count * sizeof(int)),
        *next = malloc((size_t)u->edge_count * sizeof(int) + 1);
    for (int i = 0; i < u->event_count; i++)
        head[i] = -1;
    for (int i = 0; i < u->edge_count; i++) {
        next[i] = head[u->edge[i][1]];
        head[u->edge[i][1]] = i;
    }
    for (int at = 0; at < u->event_count; at++) {
        int b = order[at];
        for (int i = head[b]; i >= 0; i = next[i]) {
            int a = u->edge[i][0];
            for (size_t k = 0; k < words; k++)
                reach[words * (size_t)b + k] |= reach[words * (size_t)a + k];
            reach[words * (size_t)b + (size_t)a / 64] |= 1ull << (a % 64);
        }
    }
    free(position);
    free(head);
    free(next);
    return reach;
}

static int compare_keys(const int *a, const int *b)
{
    for (int k = 0; k < KEY; k++)
        if (a[k] != b[k])
            return a[k] < b[k] ? -1 : 1;
    return 0;
}

static void describe(const unrolled *u, const access *a, char *text, size_t bytes)
{
    const event *e = &u->event[a->event];
    const peal_op *op = &u->schedule[e->rank]->op[e->op];
    snprintf(text, bytes,
             "rank %d op %d (%s) tile %d, key %d.%d.%d.%d.%d, %s storage %d of rank %d", e->rank,
             e->op, op->label, (int)e->tile, a->key[0], a->key[1], a->key[2], a->key[3], a->key[4],
             a->write ? "writes" : "reads", a->storage, a->memory_rank);
}

static int by_memory(const void *left, const void *right)
{
    const access *a = left, *b = right;
    if (a->memory_rank != b->memory_rank)
        return a->memory_rank - b->memory_rank;
    if (a->storage != b->storage)
        return a->storage - b->storage;
    return a->slot < b->slot ? -1 : a->slot > b->slot;
}

/* How many conflicting pairs are not ordered; the first is described. */
static int count_races(unrolled *u, char *text, size_t bytes)
{
    int *order = malloc((size_t)u->event_count * sizeof(int)), races = 0;
    if (!sort_events(u, order)) {
        snprintf(text, bytes, "the events of the schedule form a cycle");
        free(order);
        return 1;
    }
    uint64_t *reach = happens_before(u, order);
    size_t words = ((size_t)u->event_count + 63) / 64;
    qsort(u->access, (size_t)u->access_count, sizeof(*u->access), by_memory);
    for (int i = 0; i < u->access_count; i++)
        for (int k = i + 1; k < u->access_count && !by_memory(&u->access[i], &u->access[k]); k++) {
            const access *a = &u->access[i], *b = &u->access[k];
            if (a->event == b->event || (!a->write && !b->write) ||
                !peal_box_meets(&a->box, &b->box))
                continue;
            int earlier = compare_keys(a->key, b->key);
            bool before =
                reach[words * (size_t)b->event + (size_t)a->event / 64] >> (a->event % 64) & 1;
            bool after =
                reach[words * (size_t)a->event + (size_t)b->event / 64] >> (b->event % 64) & 1;
            if (earlier < 0 ? before : earlier > 0 ? after : before || after)
                continue;
            if (!races++) {
                char one[300], two[300];
                describe(u, earlier <= 0 ? a : b, one, sizeof(one));
                describe(u, earlier <= 0 ? b : a, two, sizeof(two));
                snprintf(text, bytes, "not ordered:\n  %s\n  %s", one, two);
            }
        }
    free(reach);
    free(order);
    return races;
}

typedef struct mutation {
    int op, dependence; /* of rank 0: leave this dependence out; -1: none */
} mutation;

static int races_of(const peal_schedule **schedules, int ranks, char *text, size_t bytes,
                    bool *overflow)
{
    unrolled u = {.schedule = schedules, .ranks = ranks};
    u.event = calloc(MOST_EVENTS, sizeof(*u.event));
    flag_count = 0;
    for (int rank = 0; rank < ranks; rank++)
        unroll_rank(&u, rank);
    connect_flags(&u);
    *overflow = u.overflow;
    int races = u.overflow ? 0 : count_races(&u, text, bytes);
    free(u.event);
    free(u.access);
    free(u.edge);
    return races;
}

/* Drops one dependence after the other: how many of these mutants the check notices. */
static void try_mutants(const peal_schedule **schedules, int ranks, uint64_t seed, int *noticed,
                        int *tried)
{
    char text[1024];
    bool overflow;
    peal_schedule copy = *schedules[0];
    peal_op *op = malloc((size_t)copy.op_count * sizeof(*op));
    memcpy(op, copy.op, (size_t)copy.op_count * sizeof(*op));
    copy.op = op;
    const peal_schedule *kept = schedules[0];
    schedules[0] = &copy;
    for (int i = 0; i < copy.op_count && *tried < 400; i++) {
        if (!op[i].dependence_count || (uint64_t)i % 5 != seed % 5)
            continue;
        const peal_dependence *all = op[i].dependence;
        int count = op[i].dependence_count;
        op[i].dependence_count = 0;
        (*tried)++;
        *noticed += races_of(schedules, ranks, text, sizeof(text), &overflow) > 0;
        op[i].dependence = all;
        op[i].dependence_count = count;
    }
    schedules[0] = kept;
    free(op);
}

static void check_seed(uint64_t seed, peal_mode mode, int *noticed, int *tried)
{
    random_graph *r = random_graph_create(seed);
    peal_diagnostics *diagnostics = peal_diagnostics_create();
    const peal_graph_data *graph;
    peal_status status = peal_graph_resolve(random_graph_builder(r), diagnostics, &graph);
    peal_machine machine = {.ranks = random_graph_ranks(r),
                            .processes = 1,
                            .workers = 2,
                            .cache_bytes = 1 << 18};
    const peal_schedule *schedules[8];
    peal_compilation *c = NULL;
    char text[1024] = "";
    bool overflow = false;
    if (!status)
        status = peal_compilation_create(graph, &machine, mode, diagnostics, &c);
    if (!status)
        status = peal_compilation_check(c);
    for (int rank = 0; !status && rank < machine.ranks; rank++)
        status = peal_compilation_schedule(c, rank, &schedules[rank]);
    if (status) {
        peal_diagnostics_print(diagnostics, stderr, 5);
        fail_msg("seed %llu is not valid:\n%s", (unsigned long long)seed, random_graph_text(r));
    }
    if (races_of(schedules, machine.ranks, text, sizeof(text), &overflow) > 0) {
        for (int rank = 0; rank < machine.ranks; rank++)
            peal_schedule_print_text(schedules[rank], stderr);
        fail_msg("seed %llu, mode %s: %s\n%s", (unsigned long long)seed, peal_mode_name(mode), text,
                 random_graph_text(r));
    }
    if (noticed && !overflow)
        try_mutants(schedules, machine.ranks, seed, noticed, tried);
    peal_compilation_destroy(c);
    peal_diagnostics_destroy(diagnostics);
    random_graph_destroy(r);
}

static void test_fused_schedules_order_all_conflicts(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        check_seed(seed, PEAL_MODE_FUSED, NULL, NULL);
}

static void test_stream_schedules_order_all_conflicts(void **state)
{
    (void)state;
    for (uint64_t seed = SEEDS + 1; seed <= SEEDS + 30; seed++)
        check_seed(seed, PEAL_MODE_STREAM, NULL, NULL);
}

/* Mutants that stay unnoticed are equivalent: another path orders the same pairs. Most are not. */
static void test_dropped_dependences_are_noticed(void **state)
{
    (void)state;
    int noticed = 0, tried = 0;
    for (uint64_t seed = 1; seed <= 12; seed++)
        check_seed(seed, PEAL_MODE_FUSED, &noticed, &tried);
    print_message("%d of %d mutants noticed\n", noticed, tried);
    assert_true(tried > 20);
    assert_true(2 * noticed > tried);
}

int main(int argc, char **argv)
{
    if (argc > 1) { /* one seed, to look at */
        check_seed(strtoull(argv[1], NULL, 10), PEAL_MODE_FUSED, NULL, NULL);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fused_schedules_order_all_conflicts),
        cmocka_unit_test(test_stream_schedules_order_all_conflicts),
        cmocka_unit_test(test_dropped_dependences_are_noticed),
    };
    int failed = cmocka_run_group_tests_name("unroll", tests, NULL, NULL);
    free(flags);
    return failed;
}
