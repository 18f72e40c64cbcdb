/* Finds conflicting accesses of unrolled schedules that nothing orders. */
#include "tests/scheduler/unroll.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool unroll_sort(const unrolled *u, int *order)
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
             "rank %d op %d (%s) tile %d, key %d.%d.%d.%d.%d.%d.%d, %s storage %d of rank %d",
             e->rank, e->op, op->label, (int)e->tile, a->key[0], a->key[1], a->key[2], a->key[3],
             a->key[4], a->key[5], a->key[6], a->write ? "writes" : "reads", a->storage,
             a->memory_rank);
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
    if (!unroll_sort(u, order)) {
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
            const event *of_a = &u->event[a->event], *of_b = &u->event[b->event];
            if (!earlier && of_a->rank == of_b->rank && of_a->independent &&
                of_a->independent == of_b->independent)
                continue;
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

/* Whether one worker a rank, which does everything in walk order, comes to an end. */
static bool one_worker_ends(unrolled *u)
{
    int *order = malloc((size_t)u->event_count * sizeof(int));
    for (int e = 1; e < u->event_count; e++)
        if (u->event[e].rank == u->event[e - 1].rank)
            unroll_add_edge(u, e - 1, e);
    bool ends = unroll_sort(u, order);
    free(order);
    return ends;
}

int unroll_races(const peal_schedule *const *schedules, int ranks, unroll_loss loss, char *text,
                 size_t bytes, bool *overflow)
{
    unrolled u;
    unroll_begin(&u, schedules, ranks, UNROLL_STEPS, loss);
    unroll_connect_flags(&u);
    *overflow = u.overflow;
    int races = u.overflow ? 0 : count_races(&u, text, bytes);
    if (!races && !u.overflow && !one_worker_ends(&u)) {
        snprintf(text, bytes, "one worker a rank would wait for ever");
        races = 1;
    }
    if (!races && u.unmatched_waits) {
        snprintf(text, bytes, "%d waits are not released by one write", u.unmatched_waits);
        races = u.unmatched_waits;
    }
    unroll_end(&u);
    return races;
}
