/* Events in the order of their times. */
#include "backends/sim/queue.h"

#include <stdlib.h>
#include <string.h>

enum { CHILDREN = 4 };

/* Makes room for one more item, or for twice as many. */
#define ROOM(list, count, capacity)                                                                \
    ((count) < (capacity) || make_room((void *)&(list), &(capacity), sizeof(*(list))))

static bool make_room(void *list, size_t *capacity, size_t size)
{
    size_t more = *capacity ? 2 * *capacity : 1024;
    void *old, *new;

    memcpy(&old, list, sizeof(old));
    new = more < UINT32_MAX ? realloc(old, more * size) : NULL;
    if (!new)
        return false;
    memcpy(list, &new, sizeof(new));
    *capacity = more;
    return true;
}

/* ---- the table ---- */

static size_t bucket_of(const sim_event_queue *q, double time_s)
{
    uint64_t bits;
    memcpy(&bits, &time_s, sizeof(bits));
    bits *= 0x9e3779b97f4a7c15u;
    return (size_t)(bits >> 24) & (q->table_capacity - 1);
}

static uint32_t *find(const sim_event_queue *q, double time_s)
{
    size_t at = bucket_of(q, time_s);
    while (q->table[at] && q->moment[q->table[at] - 1].time_s != time_s)
        at = (at + 1) & (q->table_capacity - 1);
    return &q->table[at];
}

static bool grow_table(sim_event_queue *q)
{
    size_t capacity = q->table_capacity ? 2 * q->table_capacity : 1024;
    uint32_t *old = q->table, *table = calloc(capacity, sizeof(*table));
    size_t count = q->table_capacity;

    if (!table)
        return false;
    q->table = table;
    q->table_capacity = capacity;
    for (size_t i = 0; i < count; i++)
        if (old[i])
            *find(q, q->moment[old[i] - 1].time_s) = old[i];
    free(old);
    return true;
}

/* Removes a moment from the hash table; entries that were displaced by it move up. */
static void forget(sim_event_queue *q, double time_s)
{
    size_t mask = q->table_capacity - 1, hole = (size_t)(find(q, time_s) - q->table);

    for (size_t at = (hole + 1) & mask; q->table[at]; at = (at + 1) & mask) {
        size_t home = bucket_of(q, q->moment[q->table[at] - 1].time_s);
        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        q->table[hole] = q->table[at];
        hole = at;
    }
    q->table[hole] = 0;
    q->table_count--;
}

/* ---- the heap ---- */

static double time_at(const sim_event_queue *q, size_t at)
{
    return q->moment[q->heap[at]].time_s;
}

static void add_to_heap(sim_event_queue *q, uint32_t moment)
{
    double time_s = q->moment[moment].time_s;
    size_t at = q->heap_count++;

    for (; at > 0 && time_s < time_at(q, (at - 1) / CHILDREN); at = (at - 1) / CHILDREN)
        q->heap[at] = q->heap[(at - 1) / CHILDREN];
    q->heap[at] = moment;
}

static void remove_first(sim_event_queue *q)
{
    uint32_t last = q->heap[--q->heap_count];
    size_t at = 0;

    for (;;) {
        size_t child = CHILDREN * at + 1, least = child;
        for (size_t i = child + 1; i < child + CHILDREN && i < q->heap_count; i++)
            least = time_at(q, i) < time_at(q, least) ? i : least;
        if (child >= q->heap_count || time_at(q, least) >= q->moment[last].time_s)
            break;
        q->heap[at] = q->heap[least];
        at = least;
    }
    q->heap[at] = last;
}

/* ---- moments and entries ---- */

/* The moment of a time, found or new; UINT32_MAX: out of memory. */
static uint32_t moment_of(sim_event_queue *q, double time_s)
{
    if (2 * (q->table_count + 1) > q->table_capacity && !grow_table(q))
        return UINT32_MAX;
    uint32_t *known = find(q, time_s), moment = q->free_moment - 1;
    if (*known)
        return *known - 1;
    if (q->free_moment)
        q->free_moment = q->moment[moment].next_free;
    else {
        if (!ROOM(q->moment, q->moment_count, q->moment_capacity))
            return UINT32_MAX;
        moment = (uint32_t)q->moment_count++;
    }
    if (!ROOM(q->heap, q->heap_count, q->heap_capacity))
        return UINT32_MAX;
    q->moment[moment] = (sim_moment){.time_s = time_s};
    *known = moment + 1;
    q->table_count++;
    add_to_heap(q, moment);
    return moment;
}

bool sim_queue_push(sim_event_queue *q, double time_s, int rank, int what)
{
    uint32_t number = moment_of(q, time_s), entry = q->free_entry;

    if (number == UINT32_MAX)
        return false;
    if (entry)
        q->free_entry = q->entry[entry - 1].next;
    else {
        if (!ROOM(q->entry, q->entry_count, q->entry_capacity))
            return false;
        entry = (uint32_t)++q->entry_count;
    }
    sim_moment *moment = &q->moment[number];
    q->entry[entry - 1] = (sim_entry){rank, what, 0};
    if (moment->first)
        q->entry[moment->last - 1].next = entry;
    else
        moment->first = entry;
    moment->last = entry;
    return true;
}

bool sim_queue_pop(sim_event_queue *q, int *rank, int *what)
{
    while (q->heap_count && !q->moment[q->heap[0]].first) { /* all of its events have been taken */
        uint32_t moment = q->heap[0];
        forget(q, q->moment[moment].time_s);
        remove_first(q);
        q->moment[moment].next_free = q->free_moment;
        q->free_moment = moment + 1;
    }
    if (!q->heap_count)
        return false;
    sim_moment *moment = &q->moment[q->heap[0]];
    uint32_t number = moment->first;
    sim_entry *entry = &q->entry[number - 1];
    q->now_s = moment->time_s;
    *rank = entry->rank;
    *what = entry->what;
    moment->first = entry->next;
    entry->next = q->free_entry;
    q->free_entry = number;
    return true;
}

size_t sim_queue_bytes(const sim_event_queue *q)
{
    return q->entry_capacity * sizeof(*q->entry) + q->moment_capacity * sizeof(*q->moment) +
           q->heap_capacity * sizeof(*q->heap) + q->table_capacity * sizeof(*q->table);
}

void sim_queue_release(sim_event_queue *q)
{
    free(q->entry);
    free(q->moment);
    free(q->heap);
    free(q->table);
}
