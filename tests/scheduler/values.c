/* Symbolic execution of events, in one order or in all. */
#include "tests/scheduler/values.h"

#include "tests/property/random_graph.h"

#include <stdlib.h>
#include <string.h>

typedef struct cell_key {
    int rank, storage;
    int64_t slot, p[PEAL_AXES];
} cell_key;

/* Cells in the order in which they are read and written. */
typedef struct cell_list {
    int *item;
    int count, capacity;
} cell_list;

typedef struct event_cells {
    cell_list reads, writes; /* of tiles */
    cell_list from, to;      /* of copies, pairwise */
    uint64_t name;           /* what the event is, whatever its place in the run */
    int flag;                /* index of its flag; -1: none */
    cell_list later;         /* events that depend on this one */
    int waits;               /* for how many events */
} event_cells;

typedef struct undone {
    int cell;
    uint64_t value;
} undone;

struct values {
    const unrolled *u;
    cell_key *key; /* of cells */
    int cell_count, cell_capacity;
    int *bucket; /* hash table: 1 + cell */
    int bucket_count;
    event_cells *event;
    uint64_t *value, all; /* of cells; of all of them together */
    uint64_t *word;       /* of flags: the message that was told last */
    int *word_of;         /* by flag event */
    undone *log;
    int log_count, log_capacity;
    uint64_t *visited; /* hash set */
    int64_t visited_count, visited_capacity;
    int *ready; /* events that wait for no other */
    int ready_count, done_count;
    uint64_t done; /* hash of those that are */
};

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t z = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void append(cell_list *list, int item)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 8;
        list->item = realloc(list->item, (size_t)list->capacity * sizeof(int));
    }
    list->item[list->count++] = item;
}

/* ---- Cells ---- */

static uint64_t hash_point(const cell_key *k)
{
    uint64_t sum = (uint64_t)k->slot;
    for (int i = 0; i < PEAL_AXES; i++)
        sum = sum * 1000003 + (uint64_t)k->p[i];
    return mix(1, sum);
}

static uint64_t hash_key(const cell_key *k)
{
    return mix(hash_point(k), (uint64_t)k->rank * 4000037 + (uint64_t)k->storage);
}

static bool same_key(const cell_key *a, const cell_key *b)
{
    return a->rank == b->rank && a->storage == b->storage && a->slot == b->slot &&
           !memcmp(a->p, b->p, sizeof(a->p));
}

static int *find_bucket(const values *v, const cell_key *k)
{
    int at = (int)(hash_key(k) & (uint64_t)(v->bucket_count - 1));
    while (v->bucket[at] && !same_key(&v->key[v->bucket[at] - 1], k))
        at = (at + 1) & (v->bucket_count - 1);
    return &v->bucket[at];
}

static void grow_cells(values *v)
{
    v->cell_capacity = v->cell_capacity ? 2 * v->cell_capacity : 256;
    v->key = realloc(v->key, (size_t)v->cell_capacity * sizeof(*v->key));
    free(v->bucket);
    v->bucket_count = 2 * v->cell_capacity;
    v->bucket = calloc((size_t)v->bucket_count, sizeof(int));
    for (int i = 0; i < v->cell_count; i++)
        *find_bucket(v, &v->key[i]) = i + 1;
}

static int cell_of(values *v, const cell_key *k)
{
    if (v->cell_count == v->cell_capacity)
        grow_cells(v);
    int *bucket = find_bucket(v, k);
    if (!*bucket) {
        v->key[v->cell_count++] = *k;
        *bucket = v->cell_count;
    }
    return *bucket - 1;
}

static void add_cells(values *v, cell_list *list, int rank, int storage, int64_t slot,
                      const peal_box *box)
{
    cell_key k = {.rank = rank, .storage = storage, .slot = slot};
    for (k.p[3] = box->lo[3]; k.p[3] < box->hi[3]; k.p[3]++)
        for (k.p[2] = box->lo[2]; k.p[2] < box->hi[2]; k.p[2]++)
            for (k.p[1] = box->lo[1]; k.p[1] < box->hi[1]; k.p[1]++)
                for (k.p[0] = box->lo[0]; k.p[0] < box->hi[0]; k.p[0]++)
                    append(list, cell_of(v, &k));
}

static void add_place(values *v, cell_list *list, const place_of_copy *p)
{
    add_cells(v, list, p->memory_rank, p->storage, p->slot, &p->box);
}

/* ---- Events ---- */

static void name_event(values *v, int index)
{
    const event *e = &v->u->event[index];
    const peal_schedule *s = v->u->schedule[e->rank];
    const peal_op *op = &s->op[e->op];
    v->event[index].flag = -1;
    v->event[index].name = mix(mix((uint64_t)e->rank, (uint64_t)op->task + 1), (uint64_t)e->tile);
}

static void add_accesses(values *v)
{
    const unrolled *u = v->u;
    for (int i = 0; i < u->access_count; i++) {
        const access *a = &u->access[i];
        const event *e = &u->event[a->event];
        if (u->schedule[e->rank]->op[e->op].kind != PEAL_OP_LAUNCH)
            continue; /* copies are transfers */
        if (!a->write || a->update)
            add_cells(v, &v->event[a->event].reads, a->memory_rank, a->storage, a->slot, &a->box);
        if (a->write)
            add_cells(v, &v->event[a->event].writes, a->memory_rank, a->storage, a->slot, &a->box);
    }
    for (int i = 0; i < u->transfer_count; i++) {
        event_cells *e = &v->event[u->transfer[i].event];
        add_place(v, &e->from, &u->transfer[i].from);
        add_place(v, &e->to, &u->transfer[i].to);
    }
}

/* Flags of one place share a word. */
static void add_flags(values *v)
{
    const unrolled *u = v->u;
    v->word = calloc((size_t)u->flag_count + 1, sizeof(*v->word));
    v->word_of = calloc((size_t)u->flag_count + 1, sizeof(*v->word_of));
    for (int i = 0; i < u->flag_count; i++) {
        const flag_event *f = &u->flag[i];
        int first = 0;
        while (u->flag[first].rank != f->rank || u->flag[first].offset != f->offset ||
               u->flag[first].credit != f->credit)
            first++;
        v->word_of[i] = first;
        v->event[f->event].flag = i;
    }
}

values *values_create(const unrolled *u)
{
    values *v = calloc(1, sizeof(*v));
    v->u = u;
    v->event = calloc((size_t)u->event_count + 1, sizeof(*v->event));
    v->ready = calloc((size_t)u->event_count + 1, sizeof(int));
    for (int i = 0; i < u->event_count; i++)
        name_event(v, i);
    add_accesses(v);
    add_flags(v);
    for (int i = 0; i < u->edge_count; i++) {
        append(&v->event[u->edge[i][0]].later, u->edge[i][1]);
        v->event[u->edge[i][1]].waits++;
    }
    v->value = calloc((size_t)v->cell_count + 1, sizeof(*v->value));
    return v;
}

void values_destroy(values *v)
{
    for (int i = 0; i < v->u->event_count; i++) {
        event_cells *e = &v->event[i];
        free(e->reads.item);
        free(e->writes.item);
        free(e->from.item);
        free(e->to.item);
        free(e->later.item);
    }
    free(v->event);
    free(v->key);
    free(v->bucket);
    free(v->value);
    free(v->word);
    free(v->word_of);
    free(v->log);
    free(v->visited);
    free(v->ready);
    free(v);
}

/* ---- Running ---- */

static void set_value(values *v, int cell, uint64_t value)
{
    if (v->log_count == v->log_capacity) {
        v->log_capacity = v->log_capacity ? 2 * v->log_capacity : 1024;
        v->log = realloc(v->log, (size_t)v->log_capacity * sizeof(*v->log));
    }
    v->log[v->log_count++] = (undone){cell, v->value[cell]};
    v->all ^= mix((uint64_t)cell, v->value[cell]) ^ mix((uint64_t)cell, value);
    v->value[cell] = value;
}

static void undo_to(values *v, int count)
{
    while (v->log_count > count) {
        undone *u = &v->log[--v->log_count];
        v->all ^= mix((uint64_t)u->cell, v->value[u->cell]) ^ mix((uint64_t)u->cell, u->value);
        v->value[u->cell] = u->value;
    }
}

static void run_event(values *v, int index)
{
    const event_cells *e = &v->event[index];
    uint64_t result = e->name;
    for (int i = 0; i < e->reads.count; i++)
        result = mix(result, v->value[e->reads.item[i]]);
    for (int i = 0; i < e->writes.count; i++) /* where it lies does not change what it is */
        set_value(v, e->writes.item[i], mix(result, hash_point(&v->key[e->writes.item[i]])));
    for (int i = 0; i < e->from.count; i++) /* pieces of a copy do not meet */
        set_value(v, e->to.item[i], v->value[e->from.item[i]]);
    if (e->flag >= 0 && v->u->flag[e->flag].write)
        v->word[v->word_of[e->flag]] = v->u->flag[e->flag].message;
}

/* Hash of what somebody can observe in the end. */
static uint64_t observe(const values *v)
{
    uint64_t seen = 0;
    for (int i = 0; i < v->cell_count; i++) {
        const cell_key *k = &v->key[i];
        const peal_schedule *s = v->u->schedule[k->rank];
        cell_key named = *k;
        bool defined = k->storage >= CONSOLE && k->storage < STAGING;
        for (int a = 0; k->storage < CONSOLE && a < s->array_count; a++) {
            peal_box one = {.axis_count = PEAL_AXES};
            for (int axis = 0; axis < PEAL_AXES; axis++) {
                one.lo[axis] = k->p[axis];
                one.hi[axis] = k->p[axis] + 1;
            }
            if (v->u->binding[k->rank][a] != k->storage)
                continue;
            named.storage = a;
            defined = s->array[a].defined && peal_box_meets(&s->array[a].layout.own, &one);
        }
        if (defined && v->value[i]) /* memory starts at 0 */
            seen ^= mix(hash_key(&named), v->value[i]);
    }
    return seen;
}

uint64_t values_in_order(values *v, const int *order)
{
    for (int i = 0; i < v->u->event_count; i++)
        run_event(v, order[i]);
    uint64_t seen = observe(v);
    undo_to(v, 0);
    memset(v->word, 0, (size_t)v->u->flag_count * sizeof(*v->word));
    return seen;
}

bool values_of(const peal_schedule *const *schedules, int ranks, int steps, unroll_loss loss,
               uint64_t *results)
{
    unrolled u;
    unroll_begin(&u, schedules, ranks, steps, loss);
    unroll_connect_flags(&u);
    int *order = malloc(((size_t)u.event_count + 1) * sizeof(int));
    bool ends = unroll_sort(&u, order);
    if (ends) {
        values *v = values_create(&u);
        *results = values_in_order(v, order);
        values_destroy(v);
    }
    free(order);
    unroll_end(&u);
    return ends;
}

/* ---- Orders as they come ---- */

/* Adds a state; false: it was there. */
static bool visit(values *v, uint64_t state)
{
    state |= state == 0;
    if (2 * v->visited_count >= v->visited_capacity) {
        int64_t capacity = v->visited_capacity ? 2 * v->visited_capacity : 4096;
        uint64_t *grown = calloc((size_t)capacity, sizeof(*grown));
        for (int64_t i = 0; i < v->visited_capacity; i++) {
            if (!v->visited[i])
                continue;
            int64_t at = (int64_t)(v->visited[i] & (uint64_t)(capacity - 1));
            while (grown[at])
                at = (at + 1) & (capacity - 1);
            grown[at] = v->visited[i];
        }
        free(v->visited);
        v->visited = grown;
        v->visited_capacity = capacity;
    }
    int64_t at = (int64_t)(state & (uint64_t)(v->visited_capacity - 1));
    for (; v->visited[at]; at = (at + 1) & (v->visited_capacity - 1))
        if (v->visited[at] == state)
            return false;
    v->visited[at] = state;
    v->visited_count++;
    return true;
}

static bool may_begin(const values *v, int index)
{
    int flag = v->event[index].flag;
    const flag_event *f = flag < 0 ? NULL : &v->u->flag[flag];
    if (!f || f->write)
        return true;
    uint64_t lag = f->credit ? (uint64_t)f->slots : 0;
    return f->message <= lag || v->word[v->word_of[flag]] >= f->message - lag;
}

static verdict explore(values *v, uint64_t expected, int64_t most);

/* Runs one event, explores from there, takes it back. */
static verdict try_event(values *v, int at, uint64_t expected, int64_t most)
{
    int index = v->ready[at], ready_count = v->ready_count, log_count = v->log_count;
    event_cells *e = &v->event[index];
    uint64_t word = e->flag >= 0 ? v->word[v->word_of[e->flag]] : 0;
    run_event(v, index);
    v->ready[at] = v->ready[--v->ready_count];
    for (int i = 0; i < e->later.count; i++)
        if (!--v->event[e->later.item[i]].waits)
            v->ready[v->ready_count++] = e->later.item[i];
    v->done ^= mix(0x1234567, (uint64_t)index);
    v->done_count++;
    verdict found = explore(v, expected, most);
    v->done_count--;
    v->done ^= mix(0x1234567, (uint64_t)index);
    for (int i = 0; i < e->later.count; i++)
        v->event[e->later.item[i]].waits++;
    v->ready_count = ready_count;
    v->ready[ready_count - 1] = v->ready[at]; /* what was moved, back to its place */
    v->ready[at] = index;
    undo_to(v, log_count);
    if (e->flag >= 0)
        v->word[v->word_of[e->flag]] = word;
    return found;
}

static verdict explore(values *v, uint64_t expected, int64_t most)
{
    verdict worst = ALWAYS_EQUAL;
    bool any = false;
    if (!visit(v, mix(v->done, v->all)))
        return ALWAYS_EQUAL;
    if (v->visited_count > most)
        return TOO_MANY;
    if (v->done_count == v->u->event_count)
        return observe(v) == expected ? ALWAYS_EQUAL : DIFFERS;
    for (int at = 0; at < v->ready_count; at++) {
        if (!may_begin(v, v->ready[at]))
            continue;
        any = true;
        verdict found = try_event(v, at, expected, most);
        if (found == DIFFERS || found == STUCK)
            return found;
        worst = found == TOO_MANY ? TOO_MANY : worst;
        if (worst == TOO_MANY)
            return worst;
    }
    return any ? worst : STUCK;
}

static void begin(values *v)
{
    v->ready_count = 0;
    for (int i = 0; i < v->u->event_count; i++)
        if (!v->event[i].waits)
            v->ready[v->ready_count++] = i;
}

verdict values_in_random_order(values *v, uint64_t expected, uint64_t *state)
{
    verdict found = ALWAYS_EQUAL;
    int *waits = malloc(((size_t)v->u->event_count + 1) * sizeof(int)), done = 0;
    for (int i = 0; i < v->u->event_count; i++)
        waits[i] = v->event[i].waits;
    begin(v);
    for (; done < v->u->event_count; done++) {
        int at = v->ready_count ? random_below(state, v->ready_count) : 0, tried = 0;
        while (tried < v->ready_count && !may_begin(v, v->ready[at])) {
            at = (at + 1) % v->ready_count;
            tried++;
        }
        if (tried == v->ready_count)
            break;
        int index = v->ready[at];
        v->ready[at] = v->ready[--v->ready_count];
        run_event(v, index);
        const cell_list *later = &v->event[index].later;
        for (int i = 0; i < later->count; i++)
            if (!--waits[later->item[i]])
                v->ready[v->ready_count++] = later->item[i];
    }
    if (done < v->u->event_count)
        found = STUCK;
    else if (observe(v) != expected)
        found = DIFFERS;
    free(waits);
    undo_to(v, 0);
    memset(v->word, 0, (size_t)v->u->flag_count * sizeof(*v->word));
    return found;
}

verdict values_in_every_order(values *v, uint64_t expected, int64_t most, int64_t *states)
{
    begin(v);
    verdict found = explore(v, expected, most);
    *states = v->visited_count;
    return found;
}
