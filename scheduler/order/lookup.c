/* Look-up tables of a rank's view. Both ends of each message ask for them, so that what a message
 * costs must not grow with the number of the others. */
#include "scheduler/order/lookup.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PERIOD = 12 };

/* ---- Messages ---- */

struct message_table {
    int *bucket; /* 1 + number of a message, 0: free */
    uint64_t mask;
    int *outgoing; /* by peer, then ascending */
    int outgoing_count;
};

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
}

/* Of the end that points to `peer`. */
static uint64_t hash_end(const rank_message *m, bool outgoing, int peer)
{
    uint64_t hash = mix((uint64_t)outgoing, (uint64_t)(unsigned)peer);
    hash = mix(hash, (uint64_t)(unsigned)m->statement);
    hash = mix(hash, (uint64_t)(unsigned)m->phase);
    hash = mix(hash, (uint64_t)m->tag);
    for (int k = 0; k < PEAL_RANK_AXES; k++)
        hash = mix(hash, (uint64_t)(unsigned)m->direction[k]);
    return hash;
}

/* Where the end is, or would be. */
static uint64_t bucket_of(const message_table *table, const rank_view *v, const rank_message *m,
                          bool outgoing, int peer)
{
    uint64_t at = hash_end(m, outgoing, peer) & table->mask;
    for (; table->bucket[at]; at = (at + 1) & table->mask) {
        const rank_message *t = &v->message[table->bucket[at] - 1];
        if (t->outgoing == outgoing && t->peer == peer && t->statement == m->statement &&
            t->phase == m->phase && t->tag == m->tag &&
            !memcmp(t->direction, m->direction, sizeof(t->direction)))
            break;
    }
    return at;
}

typedef struct peer_message {
    int peer, message;
} peer_message;

static int by_peer(const void *left, const void *right)
{
    const peer_message *a = left, *b = right;
    return a->peer != b->peer ? (a->peer < b->peer ? -1 : 1) : a->message - b->message;
}

static void sort_outgoing(peal_compilation *c, const rank_view *v, message_table *table)
{
    peer_message *list = PEAL_ARENA_ARRAY(c->arena, peer_message, v->message_count + 1);
    int count = 0;
    for (int i = 0; i < v->message_count; i++)
        if (v->message[i].outgoing)
            list[count++] = (peer_message){v->message[i].peer, i};
    qsort(list, (size_t)count, sizeof(*list), by_peer);
    table->outgoing = PEAL_ARENA_ARRAY(c->arena, int, count + 1);
    table->outgoing_count = count;
    for (int i = 0; i < count; i++)
        table->outgoing[i] = list[i].message;
}

static const message_table *messages_of(peal_compilation *c, rank_view *v)
{
    if (v->messages)
        return v->messages;
    message_table *table = PEAL_ARENA_NEW(c->arena, message_table);
    uint64_t buckets = 4;
    while (buckets < 2 * (uint64_t)v->message_count)
        buckets *= 2;
    table->mask = buckets - 1;
    table->bucket = PEAL_ARENA_ARRAY(c->arena, int, buckets);
    for (int i = 0; i < v->message_count; i++) {
        const rank_message *m = &v->message[i];
        uint64_t at = bucket_of(table, v, m, m->outgoing, m->peer);
        if (!table->bucket[at])
            table->bucket[at] = i + 1;
    }
    sort_outgoing(c, v, table);
    return v->messages = table;
}

int twin_of(peal_compilation *c, rank_view *peer_view, int rank, const rank_message *m)
{
    const message_table *table = messages_of(c, peer_view);
    return table->bucket[bucket_of(table, peer_view, m, !m->outgoing, rank)] - 1;
}

const int *messages_to(peal_compilation *c, rank_view *v, int peer, int *count)
{
    const message_table *table = messages_of(c, v);
    int low = 0, high = table->outgoing_count, end;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (v->message[table->outgoing[middle]].peer < peer)
            low = middle + 1;
        else
            high = middle;
    }
    for (end = low; end < table->outgoing_count; end++)
        if (v->message[table->outgoing[end]].peer != peer)
            break;
    *count = end - low;
    return table->outgoing + low;
}

/* ---- Places ---- */

struct place_table {
    message_place *place; /* by message */
    array_use *use, *swap;
    int use_count, use_capacity, swap_count, swap_capacity, body_count;
    int *rotation; /* by body: 1 + what rotation_of() says; 0: not asked for */
};

static int group_number(const peal_compilation *c, int array)
{
    return c->swap_group[array] >= 0 ? c->swap_group[array] : array;
}

static void add_use(peal_compilation *c, place_table *table, int body, int position, const node *n)
{
    for (int i = 0; i < n->touch_count; i++) {
        int array = n->touch[i].array;
        if (array < 0 || array >= c->graph->array_count)
            continue;
        PEAL_ARENA_ROOM(c->arena, table->use, table->use_count, table->use_capacity);
        table->use[table->use_count++] = (array_use){group_number(c, array), body, position, n};
    }
    if (n->kind != NODE_SWAP)
        return;
    PEAL_ARENA_ROOM(c->arena, table->swap, table->swap_count, table->swap_capacity);
    table->swap[table->swap_count++] = (array_use){group_number(c, n->first), body, position, n};
}

/* Notes where the messages of a body and of those within stand. */
static void note_body(peal_compilation *c, place_table *table, const node_list *body,
                      const message_place *where)
{
    message_place here = *where;
    here.body = body;
    here.number = where->section == LOOP_OUTER ? table->body_count++ : -1;
    for (int i = 0; i < body->count; i++) {
        const node *n = body->item[i];
        here.position = i;
        if (here.number >= 0)
            add_use(c, table, here.number, i, n);
        if (n->kind == NODE_SEND || n->kind == NODE_RECV)
            table->place[n->message] = here;
        message_place within = here;
        within.in_if = n->kind == NODE_IF;
        within.loop = n->kind == NODE_LOOP ? n->statement : here.loop;
        if (n->kind == NODE_IF || n->kind == NODE_LOOP)
            note_body(c, table, &n->body, &within);
    }
}

static int by_array(const void *left, const void *right)
{
    const array_use *a = left, *b = right;
    if (a->array != b->array)
        return a->array < b->array ? -1 : 1;
    if (a->body != b->body)
        return a->body < b->body ? -1 : 1;
    return a->position < b->position ? -1 : a->position > b->position;
}

/* A node that touches an array several times uses it once. */
static int sort_uses(array_use *use, int count)
{
    int kept = 0;
    if (count)
        qsort(use, (size_t)count, sizeof(*use), by_array);
    for (int i = 0; i < count; i++)
        if (!i || by_array(&use[i - 1], &use[i]))
            use[kept++] = use[i];
    return kept;
}

static place_table *places_of(peal_compilation *c, rank_view *v)
{
    if (v->places)
        return v->places;
    static const int names[] = {LOOP_SETUP, LOOP_OUTER, LOOP_FINISH};
    const node_list *sections[] = {&v->setup, &v->step, &v->finish};
    place_table *table = PEAL_ARENA_NEW(c->arena, place_table);
    table->place = PEAL_ARENA_ARRAY(c->arena, message_place, v->message_count);
    for (int i = 0; i < 3; i++)
        note_body(c, table, sections[i], &(message_place){.loop = names[i], .section = names[i]});
    table->use_count = sort_uses(table->use, table->use_count);
    table->swap_count = sort_uses(table->swap, table->swap_count);
    table->rotation = PEAL_ARENA_ARRAY(c->arena, int, table->body_count + 1);
    return v->places = table;
}

const message_place *place_of(peal_compilation *c, rank_view *v, int message)
{
    return &places_of(c, v)->place[message];
}

/* The first entry that is not before a place. */
static int find_use(const array_use *use, int count, int array, int body)
{
    array_use key = {.array = array, .body = body};
    int low = 0, high = count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (by_array(&use[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const array_use *uses_between(const array_use *use, int all, int array, int first, int end,
                                     int *count)
{
    int low = find_use(use, all, array, first);
    *count = find_use(use, all, array, end) - low;
    return use ? use + low : NULL;
}

const array_use *uses_of(peal_compilation *c, rank_view *v, int array, int *count)
{
    const place_table *table = places_of(c, v);
    return uses_between(table->use, table->use_count, group_number(c, array), 0, table->body_count,
                        count);
}

const array_use *uses_in(peal_compilation *c, rank_view *v, int array, int body, int *count)
{
    const place_table *table = places_of(c, v);
    return uses_between(table->use, table->use_count, group_number(c, array), body, body + 1,
                        count);
}

const array_use *swaps_in(peal_compilation *c, rank_view *v, int array, int body, int *count)
{
    const place_table *table = places_of(c, v);
    return uses_between(table->swap, table->swap_count, group_number(c, array), body, body + 1,
                        count);
}

static void apply_swaps(const node_list *body, int *binding)
{
    for (int i = 0; i < body->count; i++)
        if (body->item[i]->kind == NODE_SWAP) {
            int held = binding[body->item[i]->first];
            binding[body->item[i]->first] = binding[body->item[i]->second];
            binding[body->item[i]->second] = held;
        }
}

static int find_rotation(peal_compilation *c, const node_list *body)
{
    int arrays = c->graph->array_count;
    int *binding = PEAL_ARENA_ARRAY(c->arena, int, arrays);
    for (int i = 0; i < arrays; i++)
        binding[i] = i;
    for (int period = 1; period <= MOST_PERIOD; period++) {
        bool identity = true;
        apply_swaps(body, binding);
        for (int i = 0; i < arrays; i++)
            identity &= binding[i] == i;
        if (identity)
            return period;
    }
    return 0;
}

int rotation_of(peal_compilation *c, rank_view *v, const node_list *body, int number)
{
    place_table *table = places_of(c, v);
    if (!table->rotation[number])
        table->rotation[number] = 1 + find_rotation(c, body);
    return table->rotation[number] - 1;
}
